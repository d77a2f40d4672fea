"""A task whose target is no text: trees, by the same trainer, store, search and verbs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from command_line import Dragoman
from recipe_of_files import recipe_of
from tiny_treebank import treebank, write_treebank
from trained_run import trained_run

from dragoman.base.errors import DataError, DragomanError, RecipeError, RunError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.word_links import word_starts, words_of
from dragoman.engine.settings import EngineSettings
from dragoman.forms.form import Pair
from dragoman.forms.tree import Tree
from dragoman.forms.tree_form import TreeForm, tree_of
from dragoman.models.transformer.model import Transformer
from dragoman.pictures.records import merged_to_words
from dragoman.runs.prepare import prepare
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.tasks.catalogue import TASKS, Recipe, Run
from dragoman.tasks.parsing.evaluation import ParsingEvaluation, score_each, trees_in
from dragoman.tasks.parsing.metrics import Parseval, score_parse
from dragoman.tasks.parsing.parser import Parser
from dragoman.tasks.report import write_report
from dragoman.tasks.training import resume, train
from dragoman.tasks.translation.translator import Translator

SMALL = [
    "model.model_dim=64", "model.ffn_dim=128", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.attention.num_heads=4", "model.dropout=0.0", "text.vocabulary=300",
    "training.precision=fp32", "training.label_smoothing=0.0", "training.average_last=0",
    "plan.tokens_per_update=1024", "plan.tokens_per_micro_batch=1024", "training.updates=200",
    "training.validate_every=100", "training.schedule.warmup=30", "training.schedule.peak=6e-3",
    "evaluation.dev_sentences=20", "search.beam=4", "data.split.dev=0.05", "data.split.test=0.1",
]  # fmt: skip


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_treebank(tmp_path_factory.mktemp("trees") / "toy.mrg", treebank(400))


def recipe_of_trees(trees: Path, *changes: str) -> Recipe:
    """Of a small Transformer."""
    changes = ("trees.tags=none", *SMALL, *changes)
    return recipe_of([str(trees)], task="parsing", base="wsj-sample", changes=changes)[0]


@pytest.fixture(scope="module")
def toy(trees: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "toy"
    return trained_run(recipe_of_trees(trees), folder)


@pytest.mark.system
def test_it_learns_a_small_grammar_in_seconds(toy: Run) -> None:
    validations = [line for line in toy.metrics() if line["kind"] == "validation"]
    assert set(validations[0]["scores"]) == set(TASKS["parsing"].metrics)
    assert validations[-1]["scores"]["loss"] < math.log(toy.target.size) / 8
    assert toy.metadata()["metric"] == "f1"
    found = ParsingEvaluation()(toy)
    assert found.scores["f1"] > 75 and found.counts.sentences == len(found.pairs) > 20
    flat = [Tree("S", tuple(tree_of(pair.target).leaves())) for pair in found.pairs]
    baseline = Parseval.of(
        score_parse(tree_of(pair.target), one) for pair, one in zip(found.pairs, flat, strict=True)
    )
    assert baseline.scores["f1"] < 50
    assert json.loads((toy.folder / "scores.json").read_text())["scores"]["f1"]["value"] == (
        pytest.approx(found.scores["f1"])
    )
    assert "tags" not in found.scores, "none were learned"


@pytest.mark.system
def test_its_report_draws_trees(toy: Run) -> None:
    found = ParsingEvaluation()(toy)
    page = write_report(toy).read_text()
    begin = page.index("<h2>What it writes")
    samples = page[begin : page.index("</section>", begin)]
    count = toy.recipe.evaluation.samples
    assert samples.count("<svg ") == 2 * count == 2 * len(toy.scores()["samples"])
    assert "(NP" not in samples and ">XX<" not in samples and ">DT<" not in samples
    step = len(found.pairs) // count
    scored = score_each(found.pairs, found.parses)[: step * count : step]
    exact = sum(one.is_exact for one in scored)
    assert f"{exact} of {count} have every bracket" in samples
    unmatched = sum(one.brackets.both - 2 * one.brackets.right for one in scored)
    assert samples.count('class="f1"') == unmatched
    assert "not drawn" not in samples


@pytest.mark.system
def test_a_report_says_how_many_trees_it_leaves_out(toy: Run) -> None:
    ParsingEvaluation()(toy)
    path = toy.folder / "scores.json"
    whole = path.read_text()
    found = json.loads(whole)
    count = len(found["samples"])
    for sample in found["samples"][:2]:
        sample["reference"] = f"{sample['reference'][:20]}…"
    try:
        path.write_text(json.dumps(found))
        page = write_report(toy).read_text()
    finally:
        path.write_text(whole)
    begin = page.index("<h2>What it writes")
    samples = page[begin : page.index("</section>", begin)]
    assert samples.count("<svg ") == 2 * (count - 2)
    assert f"of {count - 2} have every bracket" in samples
    assert "2 more were parsed and not drawn: a tree is too long" in samples


@pytest.mark.system
def test_each_parse_is_a_tree_over_the_words_that_are_given(toy: Run) -> None:
    parser = Parser(toy)
    lines = ["the cat sleeps .", "", "cat (the) ( 字 \x01 -LRB- often", "  ", "x " * 60]
    drawn = SearchSettings(sampling=SamplingSettings(temperature=50.0, seed=1), n_best=3)
    for settings in (None, SearchSettings(beam=3, n_best=3), drawn):
        found = list(parser.stream(lines, settings))
        assert [len(parses) > 0 for parses in found] == [True, False, True, False, True]
        for line, parses in zip(lines, found, strict=True):
            words = line.replace("(", "-LRB-").replace(")", "-RRB-").split()
            for parse in parses:
                assert parse.tree.words == words and tree_of(parse.text) == parse.tree
                assert {leaf.label for leaf in parse.tree.leaves()} == {"XX"}
    assert parser("the cat sleeps .").text == next(parser.stream(lines))[0].text
    long = "x " * 1500
    with pytest.raises(DataError, match=r"line 2 has [\d,]+ tokens, and 1,000 are read at once"):
        list(parser.stream(["the cat sleeps .", long]))
    with pytest.raises(DataError, match="an empty line has no tree"):
        parser(" ")


def test_the_score_of_a_reference_is_what_the_model_gives_it(toy: Run) -> None:
    """Constraints change what is chosen, and no probability of what is."""
    parser, sentence = Parser(toy), "the cat sleeps ."
    parse = parser(sentence)
    (scored,) = parser.score_ids([sentence], [parse.ids])
    assert scored.token_log_probabilities == pytest.approx(parse.token_log_probabilities, abs=0.05)


@pytest.mark.slow  # two trainings; that others go on is tested in tests/training
def test_a_stopped_training_goes_on(trees: Path, tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    few = ["training.updates=8", "training.validate_every=4", "training.schedule.warmup=4"]
    train(recipe_of_trees(trees, *few), whole, say=lambda _: None, display=False, measure=False)
    train(
        recipe_of_trees(trees, *few, "training.updates=4"), stopped, say=lambda _: None,
        display=False, measure=False,
    )  # fmt: skip
    recipe = stopped / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("updates = 4\n", "updates = 8\n"))
    resume(stopped, say=lambda _: None, display=False)
    assert Run.open(whole).weights_hash == Run.open(stopped).weights_hash


@pytest.mark.system
def test_a_parser_goes_on_with_other_trees(toy: Run, tmp_path: Path) -> None:
    other = write_treebank(tmp_path / "other.mrg", treebank(60, 5))
    few = ["training.updates=2", "training.validate_every=2", "training.precision=fp32"]
    recipe, _ = recipe_of([str(other)], start_from=toy, changes=few)
    assert recipe.model == toy.recipe.model and recipe.trees == toy.recipe.trees
    tuned = trained_run(recipe, tmp_path / "run", start_from=toy)
    assert tuned.target.fingerprint == toy.target.fingerprint
    assert ParsingEvaluation()(tuned, [other]).scores["f1"] > 60, "it has not begun anew"
    with pytest.raises(
        RecipeError, match="--init-part encoder: a parser starts from all weights of another run"
    ):
        recipe_of([str(other)], task="parsing", start_from=toy, take="encoder")


@pytest.mark.slow  # trains another parser
def test_tags_are_learned_if_they_are_wanted(trees: Path, tmp_path: Path) -> None:
    recipe = recipe_of_trees(trees, "trees.tags=kept")
    run = trained_run(recipe, tmp_path / "run")
    found = ParsingEvaluation()(run)
    assert found.scores["f1"] > 75 and found.scores["tags"] > 60 and Parser(run).no_tag == ""
    tags = {leaf.label for leaf in Parser(run)("the cat sleeps .").tree.leaves()}
    assert tags <= {"DT", "NN", "VBP", "VBZ", "IN", "RB", "JJ", "."} and len(tags) > 1


@pytest.mark.slow  # a parser is trained with links between words
def test_a_head_can_be_taught_to_follow_the_words(trees: Path, tmp_path: Path) -> None:
    """It looks at the word that comes next, which the trees themselves tell."""
    recipe = recipe_of_trees(
        trees, "training.guided.weight=1.0", "training.guided.head=2", "training.updates=150",
        "training.validate_every=0", "training.schedule.warmup=20", "model.next_word=false",
    )  # fmt: skip
    run = trained_run(recipe, tmp_path / "run")
    engine, store = Parser(run).engine, prepare(recipe, run.folder, lambda _: None).train
    form = engine.target
    assert isinstance(form, TreeForm)
    followed, symbols = np.zeros(4), 0
    for example in range(40):
        read, written = store.tokens("source", example), store.tokens("target", example)
        (cross,) = next(engine.attention.cross([(read, written)]))
        where = words_of(read, word_starts(run.source_text))  # of each token that is read
        done = np.cumsum(np.isin(written, list(form.symbols.words)))
        looked_at = cross[0, :, 1:, : len(read)].argmax(axis=2)  # of each head, by each symbol
        left = done < done[-1]
        followed += (where[looked_at] == done)[:, left].sum(axis=1)
        symbols += int(left.sum())
    assert followed[1] > 0.75 * symbols > 100 and followed.argmax() == 1, followed / symbols


def test_a_run_knows_what_a_word_is(toy: Run) -> None:
    """Its decoder is told of the word that comes next, from the vocabularies of the run."""
    engine = Parser(toy).engine
    model, form = Parser(toy).plain, engine.target
    assert isinstance(model, Transformer) and model.next_word is not None
    assert isinstance(form, TreeForm)
    sentence = "the cat sleeps ."
    source = engine.source.values([sentence])[0]
    begins = model.next_word.begins[torch.tensor(source)].tolist()
    assert len(source) > 5 and sum(begins) == 5, "four words and the end"
    ids = form.tokens([Parser(toy)(sentence).text])[0]
    stands = model.next_word.stands[torch.tensor(ids)].tolist()
    assert [form.names_of([one])[0] for one, word in zip(ids, stands, strict=True) if word] == [
        "XX"
    ] * 4


def test_only_trees_keep_the_words_in_order() -> None:
    with pytest.raises(RecipeError, match="is for outputs in the order"):
        Recipe.load("demo", ["model.next_word=true"])


def test_any_kind_that_reads_can_learn_it(trees: Path, tmp_path: Path) -> None:
    plain = recipe_of_trees(trees).model_dump(mode="json", exclude_none=True)
    plain["model"] = {"kind": "recurrent", "model_dim": 32, "tie": "target"}
    recipe = Recipe.parse(plain, ["training.updates=6", "training.validate_every=6"])
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    parse = Parser(Run.open(tmp_path / "run"))("a dog runs .")
    assert parse.tree.words == ["a", "dog", "runs", "."]


def test_the_command_line_knows_the_task(toy: Run, dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("parse", toy.folder, "the cat sleeps .")
    assert said.code == 0 and tree_of(said.out.strip()).words == ["the", "cat", "sleeps", "."]
    drawn = dragoman("parse", toy.folder, "the cat sleeps .", "--draw")
    assert drawn.code == 0 and "├─" in drawn.out and "XX" not in drawn.out and "cat" in drawn.out
    several = dragoman("parse", toy.folder, "the cat sleeps .", "-n", "3", "--scores")
    scores = [float(line.split("\t")[0]) for line in several.out.splitlines()]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)
    assert dragoman("parse", toy.folder, "a dog runs .", "--svg", tmp_path / "t.svg").code == 0
    picture = ElementTree.parse(tmp_path / "t.svg").getroot()
    shown = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    words = ["a", "dog", "runs", "."]
    assert [word for word in shown if word in words] == words
    folder = tmp_path / "drawn"
    folder.mkdir()
    assert dragoman("parse", toy.folder, "a dog runs .", "--svg", folder).code == 0
    assert [path.name for path in folder.iterdir()] == ["1.svg"]
    assert dragoman("parse", toy.folder, "--svg", folder, stdin=b"a dog .\n\na cat .").code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["1.svg", "3.svg"], "by their lines"
    gold = write_treebank(tmp_path / "gold.mrg", treebank(5, 9))
    out = tmp_path / "parses.mrg"
    evaluated = dragoman("evaluate", toy.folder, gold, "--output", out)
    assert [tree.words for tree in map(tree_of, out.read_text().splitlines())] == [
        tree.words for tree in treebank(5, 9)
    ]
    assert evaluated.code == 0 and "recall" in evaluated.out and "NP" in evaluated.out
    for wrong, words in (
        (("translate", toy.folder, "Hallo"), "does not translate: dragoman parse"),
        (("write", toy.folder, "Hallo"), "is a parser, not a language model"),
        (("parse", toy.folder, "  "), ""),
        (("parse", toy.folder, "a", "--draw", "--scores"), "Leave --draw out"),
        (("parse", toy.folder, "a", "--set", "min_length=4"), "set both to 0"),
        (("parse", toy.folder, "a", "--svg", tmp_path / "no" / "t.svg"), "there is no folder"),
        (("parse", toy.folder, "--svg", tmp_path / "t.svg"), "are drawn into a folder"),
        (("parse", toy.folder, "--svg", gold), "are drawn into a folder"),
        (("evaluate", toy.folder, "--mbr", "4"), "Leave it out"),
        (("evaluate", toy.folder, gold, gold), "measured on one file of trees"),
        (("evaluate", toy.folder, tmp_path / "t.svg"), "t.svg, line 1: "),
        (("shortlist", toy.folder), "which writes no text"),
        (("align", toy.folder, gold, gold), "cannot align words"),
        (("look", toy.folder, "a dog runs .", "--prefix", "x"), "writes the tree of what it reads"),
        (("figure", "temperature", "--run", toy.folder), "dragoman parse"),
    ):
        refused = dragoman(*wrong)
        assert refused.code == (1 if words else 0), (wrong, refused)
        assert words in refused.err and "Traceback" not in refused.err, (wrong, refused)


@pytest.mark.parametrize("verb", ["parse", "evaluate"])
def test_settings_that_a_parse_does_not_allow_are_told_at_once(
    toy: Run, dragoman: Dragoman, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr("dragoman.engine.engine.Engine.open", None)
    said = dragoman(verb, toy.folder, "--set", "min_length=5")
    assert said.code == 1 and "how to search: a parse has its own rules" in said.err


def test_other_runs_do_not_parse(parallel_text: tuple[Path, Path]) -> None:
    run = Run(Path("runs/x"), Recipe())
    with pytest.raises(RunError, match="is a translator, which does not parse"):
        Parser(run)


def test_a_run_of_trees_does_not_translate(toy: Run) -> None:
    with pytest.raises(RunError, match="does not translate: dragoman parse"):
        Translator(toy)


def test_a_recipe_of_trees_must_fit_its_task(trees: Path, tmp_path: Path) -> None:
    for change, words in (
        ("model.tie=all", "cannot share one matrix"),
        ("search.no_repeat_ngram=3", "a parse has its own rules"),
        ("data.moses=true", "a parser must not do"),
        ("training.metric=bleu", "cannot be measured for a pars"),
    ):
        with pytest.raises(RecipeError, match=words):
            recipe_of_trees(trees, change)
    with pytest.raises(RecipeError, match=r"needs bracketed trees\. Set format trees"):
        Recipe.parse({
            "task": "parsing", "model": {"tie": "target"},
            "data": {"train": [{"source": "a", "target": "b"}]},
        })  # fmt: skip
    with pytest.raises(RecipeError, match="format trees is for parsing, not for a translator"):
        Recipe.parse({"data": {"train": [{"source": "a.mrg", "format": "trees"}]}})
    with pytest.raises(RecipeError, match="give one file, or a folder of files"):
        recipe_of([str(trees), str(trees)], task="parsing")
    recipe, epochs = recipe_of([str(trees)])
    assert recipe.task == "parsing" and epochs, "its name says what is in it"
    recipe, epochs = recipe_of([str(trees)], base="wsj-sample")
    assert epochs is None and recipe.data.dev is None and recipe.data.split.dev > 0
    empty = tmp_path / "empty.mrg"
    empty.write_text("\n\n")
    with pytest.raises(DataError, match="contains no tree"):
        recipe_of([str(empty)])


@pytest.mark.system
def test_few_trees_are_learned_by_lstms_and_many_by_a_transformer(tmp_path: Path) -> None:
    kinds = {}
    for count in (900, 3_400, 10_000):
        path = write_treebank(tmp_path / f"{count}.mrg", treebank(1) * count)
        recipe, epochs = recipe_of([str(path)])
        assert epochs
        kinds[count] = recipe
    assert [recipe.model.kind for recipe in kinds.values()] == [
        "recurrent", "recurrent", "transformer",
    ]  # fmt: skip
    # What was measured beside the Transformer is what a person gets.
    measured = Recipe.load("wsj-sample-lstm")
    for part in ("task", "model", "trees", "search"):
        assert getattr(kinds[3_400], part) == getattr(measured, part), part
    assert kinds[3_400].training.schedule == measured.training.schedule
    assert kinds[3_400].training.guided == measured.training.guided


def test_the_language_of_trees_is_identified(tmp_path: Path) -> None:
    path = tmp_path / "wsj_0001.mrg"
    sentence = "the man who was in the garden of his house is not the one that they have seen"
    path.write_text(f"(S {' '.join(f'(XX {word})' for word in sentence.split())})\n" * 30)
    assert recipe_of([str(path)])[0].languages.source == "en"
    assert recipe_of([str(path)], languages="ko")[0].languages.source == "ko"
    assert recipe_of([str(path)])[0].name == "wsj_0001"


def test_a_user_says_how_fine_labels_are(tmp_path: Path, toy: Run, dragoman: Dragoman) -> None:
    train_on = write_treebank(tmp_path / "fine.mrg", treebank(60))
    dev = write_treebank(tmp_path / "dev.mrg", treebank(5, 9))
    for path in (train_on, dev):
        path.write_text(path.read_text().replace("(NP ", "(NP.ms "))
    said = dragoman(
        "train", train_on, "--label-ends", "-=.", "--dev", dev, "--to", tmp_path / "run",
        *(part for change in SMALL if "split.dev" not in change for part in ("--set", change)),
        "--recipe", "wsj-sample", "--set", "text.vocabulary=280", "--set", "training.updates=2",
        "--set", "training.validate_every=2",
    )  # fmt: skip
    assert said.code == 0, said.err
    run = Run.open(tmp_path / "run")
    corpora = (*run.recipe.data.train, run.recipe.data.dev)
    assert [one and one.label_ends for one in corpora] == ["-=.", "-=."]
    assert all("(NP " in pair.target for pair in trees_in(dev, like=run))
    assert all("(NP.ms " in pair.target for pair in trees_in(dev))
    for ends, label in (("-=.", "NP"), ("-=", "NP.ms")):
        shown = dragoman("data", "show", dev, "--task", "parsing", "--label-ends", ends, "--json")
        assert json.loads(shown.out)["constituents"][label] > 1, shown
    # Who goes on with a run, or takes its recipe, has its labels.
    assert recipe_of([str(dev)], start_from=run)[0].data.train[0].label_ends == "-=."
    recipe = str(tmp_path / "run" / "recipe.toml")
    assert recipe_of([str(dev)], base=recipe)[0].data.train[0].label_ends == "-=."
    whole, _ = recipe_of([str(dev)], base=recipe, label_ends="")
    assert whole.data.train[0].label_ends == ""
    for wrong, words in (
        ((train_on, "--label-ends", "." * 21), "at most 20 characters"),
        (
            ("wsj-sample", "--label-ends", "."),
            "works only with a file or folder of bracketed trees",
        ),
        (
            (tmp_path, "--task", "masked", "--label-ends", "."),
            "works only with a file or folder of bracketed",
        ),
    ):
        refused = dragoman("train", *wrong, "--to", tmp_path / "none")
        assert refused.code != 0 and words in refused.err, (wrong, refused)
        assert "Traceback" not in refused.err and refused.err.count("\n") <= 2, refused.err


def test_files_of_trees_are_read_one_by_one(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    folder.mkdir()
    (folder / "a.mrg").write_text("( (S (NP-SBJ (NN x)) (VP (VB y))) )\n\n(S\n (VB z))\n")
    (folder / "b.mrg").write_text("((UH Yes))\n")
    corpus = CorpusSettings(source=str(folder), format="trees")
    assert list(read_pairs(corpus)) == [
        Pair(1, "x y", "(S (NP (NN x)) (VP (VB y)))"), Pair(3, "z", "(S (VB z))"),
        Pair(1, "Yes", "(TOP (UH Yes))"),
    ]  # fmt: skip
    for text, words in (
        ("(S (NN a)", r"b\.mrg, line 2: the bracket that opens here is never closed"),
        ("(S (NP (-NONE- *)))", r"b\.mrg, line 2: this tree has only empty elements, no words"),
        ("(S (NN ))", r"b\.mrg, line 2: the bracket \(NN\) holds no word"),
    ):
        (folder / "b.mrg").write_text(f"((UH Yes))\n{text}\n")
        with pytest.raises(DataError, match=words):
            list(read_pairs(corpus))
    with pytest.raises(DragomanError, match="does not exist"):
        list(read_pairs(CorpusSettings(source=str(tmp_path / "none.mrg"), format="trees")))


def test_a_tree_is_looked_into(toy: Run, dragoman: Dragoman) -> None:
    """Where each bracket looked, by the words that stand in it; and what if a head were off."""
    parser, text = Parser(toy, EngineSettings(precision="fp32")), "the cat of a dog sleeps ."
    best = parser(text)
    record = merged_to_words(parser.look(text, best.ids))
    words = best.tree.words
    assert list(record.source) == [*words, "</s>"]
    symbols = [name for name in record.target[:-1] if name[0] not in "()"]
    assert symbols == words, "a word stands where its tag is written"
    brackets = [name[1:] for name in record.target if name[0] == "(" and name[1:]]
    assert brackets == [one.label for one in best.tree.brackets()]
    assert record.cross.sum(axis=-1) == pytest.approx(1, abs=1e-4)
    said = dragoman("look", toy.folder, text, "--head-off", "cross.1.*")
    assert said.code == 0, said.err
    assert said.out.startswith(best.text[:20]) and "What if heads off: cross.1.1" in said.out
    assert "log P of the first output" in said.out
