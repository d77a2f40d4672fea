"""Words and their tags: the same trainer, another head and other figures."""

from __future__ import annotations

import json
import random
import re
import shutil
import unicodedata
from pathlib import Path

import pytest
import torch
from command_line import Dragoman
from recipe_of_files import recipe_of
from tiny_tasks import tiny_recipe_of, tiny_tagger_of
from trained_run import trained_run

import dragoman as package
from dragoman.base.errors import DataError, DragomanError, RecipeError, RunError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.labelled import WordCutter
from dragoman.forms.form import Pair
from dragoman.runs.run import LEXICON
from dragoman.sizing.start_from import for_part
from dragoman.studies.comparison import compare_runs
from dragoman.studies.systems import ComparisonRequest
from dragoman.tasks.catalogue import Recipe, Run, runtime_of
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.inspection import inspect_data
from dragoman.tasks.report import write_report
from dragoman.tasks.shared.evaluation import EvaluationRequest
from dragoman.tasks.tagging.evaluation import (
    TaggedValidation,
    TaggingEvaluation,
    usual_scores,
)
from dragoman.tasks.tagging.form import Tags, words_and_tags
from dragoman.tasks.tagging.metrics import TagScores
from dragoman.tasks.tagging.tagger import Tagger
from dragoman.tasks.training import train

SMALL = (
    "text.vocabulary=40", "text.byte_fallback=false", "model.model_dim=32", "model.ffn_dim=64",
    "model.layers=1", "model.attention.num_heads=2", "model.dropout=0.0", "text.sampling=0",
    "plan.tokens_per_update=512", "plan.context=64", "training.updates=100",
    "training.validate_every=50", "training.schedule.warmup=10", "training.schedule.peak=1e-2",
    "training.precision=fp32", "data.split.dev=0.1", "data.split.test=0.2",
)  # fmt: skip
NOUNS = ["the", "a", "unforgettable"]
PEOPLE = ["they", "we", "you"]
BOTH = ["run", "sleep", "walk", "drink"]


def sentence(draw: random.Random) -> str:
    """A word of ``BOTH`` is a noun behind one of ``NOUNS`` and a verb behind one of ``PEOPLE``."""
    found = []
    for _ in range(draw.randint(1, 3)):
        first = draw.choice([*NOUNS, *PEOPLE])
        tag = ("DT", "NN") if first in NOUNS else ("PRP", "VB")
        found += [f"{first}_{tag[0]}", f"{draw.choice(BOTH)}_{tag[1]}"]
    return " ".join(found)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = random.Random(1)
    path = tmp_path_factory.mktemp("tagged") / "words.txt"
    path.write_text("".join(f"{sentence(draw)}\n" for _ in range(400)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def words(tagged: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    recipe, _ = recipe_of([str(tagged)], task="tagging", changes=SMALL)
    return trained_run(recipe, tmp_path_factory.mktemp("runs") / "words")


def test_the_language_is_that_of_the_sentences(tmp_path: Path) -> None:
    path = tmp_path / "sentences.txt"
    line = "Der_ART Hund_NN und_KON die_ART Katze_NN schlafen_VV nicht_PTK in_APPR dem_ART Haus_NN"
    path.write_text(f"{line}\n" * 60, encoding="utf-8")
    recipe, _ = recipe_of([str(path)], task="tagging")
    assert recipe.languages.source == "de"


def test_it_learns_what_words_alone_do_not_tell(words: Run) -> None:
    validations = [line for line in words.metrics() if line["kind"] == "validation"]
    assert set(validations[0]["scores"]) == {"accuracy", "loss"}
    assert validations[-1]["scores"]["accuracy"] == 100
    sample = validations[-1]["samples"][0]
    assert sample["translation"] == sample["reference"] and "_" in sample["reference"]
    found = TaggingEvaluation()(words)
    assert found.scores["accuracy"] == 100 and found.scores["loss"] < 0.1
    assert found.usual.accuracy < 0.9
    assert words.scores()["scores"]["known"]["value"] == 100
    assert words.scores()["usual"]["accuracy"] == pytest.approx(100 * found.usual.accuracy)
    assert runtime_of(words.task).hardly_learned(words, None) is None  # type: ignore[arg-type]
    page = write_report(words).read_text(encoding="utf-8")
    assert "Tag by tag" in page and "tag by row, chosen by column" in page


def test_words_of_several_pieces_get_one_tag_each(words: Run) -> None:
    (pieces,) = WordCutter(words.source)([["unforgettable", "run", "zzz"]])
    assert len(pieces[0]) > 1 and len(pieces) == 3 and all(map(len, pieces))
    (found,) = Tagger(words)(["the  run they\trun unforgettable run"])
    assert found.words == ("the", "run", "they", "run", "unforgettable", "run")
    assert found.tags == ("DT", "NN", "PRP", "VB", "DT", "NN")
    assert str(found) == "the_DT run_NN they_PRP run_VB unforgettable_DT run_NN"


def test_words_are_cut_anew_as_a_draw_says(tagged: Path, tmp_path: Path) -> None:
    """A pure function of the words and the draw, whatever was cut before."""
    changes = (*SMALL, "text.sampling=0.3", "training.updates=1", "training.validate_every=0")
    recipe, _ = recipe_of([str(tagged)], task="tagging", changes=changes)
    form = trained_run(recipe, tmp_path / "run").source
    words = ["unforgettable", "run", "they"] * 10
    cutter = WordCutter(form)
    drawn = [cutter.sample(words, draw) for draw in range(20)]
    assert [WordCutter(form).sample(words, draw) for draw in reversed(range(20))][::-1] == drawn
    assert len({str(one) for one in drawn}) > 10
    for one in drawn:
        assert form.raw([[token for word in one for token in word]]) == [" ".join(words)]


def test_sentences_are_tagged_alike_in_any_company(words: Run) -> None:
    tagger = Tagger(words)
    texts = ["we walk", "", "zzz ☃ \u200b the", "they run the run " * 40, "a drink"]
    together, alone = tagger(texts), [tagger([text])[0] for text in texts]
    for text, one, other in zip(texts, together, alone, strict=True):
        assert one.words == other.words == tuple(text.split()) and one.parts == other.parts
        assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-5)
        assert len(one.tags) == len(one.words)
    assert together[3].parts > 1 and together[1].parts == 0
    assert together[0].ranking(1)[0] == ("VB", pytest.approx(together[0].probabilities[1]))
    assert sum(p for _, p in together[0].ranking(1)) == pytest.approx(1, abs=1e-5)


@pytest.mark.system
def test_a_sentence_far_too_long_is_read_in_parts(words: Run) -> None:
    (found,) = Tagger(words)(["they run " * 50_000])
    assert len(found.tags) == 100_000 and found.parts > 1000
    (word,) = Tagger(words)(["unforgettable" * 100])
    assert len(word.tags) == 1


def test_validation_measures_what_the_predictor_says(words: Run) -> None:
    pairs = TaggingEvaluation().read_fitting(EvaluationRequest(words)).pairs
    odd = [Pair(1, "they run", "PRP XX"), Pair(2, "", "")]
    validation = TaggedValidation(
        words.model(), words.recipe, words.forms, [*pairs, *odd], torch.device("cpu")
    )
    assert validation.left_out == 1
    with torch.no_grad():
        scores = validation(1).scores
    count = sum(len(pair.source.split()) for pair in pairs)
    assert scores["accuracy"] == pytest.approx(100 * (count + 1) / (count + 2))
    none = TaggedValidation(
        words.model(), words.recipe, words.forms, [Pair(1, "they run", "X Y")], torch.device("cpu")
    )
    with torch.no_grad():
        assert none(1).scores == {"accuracy": 0.0}, "of no known tag there is no loss"
    with pytest.raises(DataError, match=r"dev, line 3: 2 words and 1 tag. Each word needs one tag"):
        TaggedValidation(words.model(), words.recipe, words.forms, [Pair(3, "a b", "X")],
                         torch.device("cpu"))  # fmt: skip


def test_what_it_measures_is_what_it_answers(words: Run, tmp_path: Path) -> None:
    path = tmp_path / "test.txt"
    path.write_text("they_PRP run_NN\nnew_DT walk_NN\nwe_PRP sleep_XX\n", encoding="utf-8")
    found = TaggingEvaluation()(words, [path])
    answers = Tagger(words)(["they run", "new walk", "we sleep"])
    true = [["PRP", "NN"], ["DT", "NN"], ["PRP", "XX"]]
    known = [[True, True], [False, True], [True, True]]
    expected = TagScores.of(true, [one.tags for one in answers], known, spans=False).figures()
    assert {name: found.scores[name] for name in expected} == expected
    costs = [
        -one.log_probabilities[place][one.names.index(tag)]
        for one, line in zip(answers, true, strict=True)
        for place, tag in enumerate(line)
        if tag in one.names
    ]
    assert len(costs) == 5 and found.scores["loss"] == pytest.approx(sum(costs) / 5)
    assert {"they [run]", "we [sleep]"} <= {one.text for one in found.worst} and found.new == 1
    table = found.table()
    assert "6 words, 1 of them not in the training text" in table
    assert "1 word has a tag that no training text has" in table
    assert "line 1: NN, taken for VB" in table and "accuracy (unknown words)" in table
    assert "Always the most frequent tag of each word: accuracy" in table
    known = TaggingEvaluation().read_fitting(EvaluationRequest(words, [path]))
    usual = usual_scores(Tagger(words).tags, known.pairs)
    assert usual == found.usual


def test_the_verb_gives_a_line_for_a_line(words: Run, dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("tag", words.folder, "they run", "", "a run")
    assert said.code == 0 and said.out == "they_PRP run_VB\n\na_DT run_NN\n", said.err
    (tmp_path / "in.txt").write_text("they run\na run\n", encoding="utf-8")
    said = dragoman("tag", words.folder, tmp_path / "in.txt", "--format", "tsv")
    assert said.out == "they\tPRP\nrun\tVB\n\na\tDT\nrun\tNN\n\n"
    said = dragoman("tag", words.folder, "--json", "--all", stdin=b"they run\n")
    found = json.loads(said.out)
    assert found["words"] == ["they", "run"] and found["tags"] == ["PRP", "VB"]
    assert found["probabilities"][1] == pytest.approx(found["all"][1]["VB"])
    said = dragoman("tag", words.folder, "they run", "--all", "--format", "tsv")
    assert said.out.splitlines()[1].split("\t")[:2] == ["run", "VB"]
    assert dragoman("tag", words.folder, "they run", "--all").out == said.out
    said = dragoman("tag", words.folder, "they run", "--all", "--format", "underscore")
    assert said.code == 1 and "--format tsv" in said.err
    said = dragoman("tag", words.folder, "they run " * 30)
    assert "1 line is longer than the 64 tokens" in said.err and said.code == 0
    # What was written can be learned from and measured on.
    (tmp_path / "out.txt").write_text(dragoman("tag", words.folder, "they run").out, "utf-8")
    assert TaggingEvaluation()(words, [tmp_path / "out.txt"]).scores["accuracy"] == 100
    said = dragoman("evaluate", words.folder, "--output", tmp_path / "tags.txt")
    assert (tmp_path / "tags.txt").read_text(encoding="utf-8").count("_") > 100, said.err


def test_other_verbs_say_what_it_is(
    words: Run, dragoman: Dragoman, tiny_run: Path, tmp_path: Path
) -> None:
    for verb in ("translate", "classify", "parse", "fill"):
        said = dragoman(verb, words.folder, "they run")
        assert said.code == 1 and "is a tagger" in said.err and "dragoman tag" in said.err, verb
        assert "Traceback" not in said.err and said.err.count("\n") == 1
    said = dragoman("tag", tiny_run, "they run")
    assert said.code == 1 and "which does not tag words" in said.err
    said = dragoman("score", words.folder, tmp_path / "none.txt")
    advice = re.search(r"does not score texts.* (dragoman tag \S+ --all)", said.err)
    assert said.code == 1 and advice is not None, said.err
    advised = dragoman(*advice[1].split()[1:], stdin=b"they run\n")
    assert advised.code == 0 and advised.out.startswith("they\tPRP\t")


def test_it_can_be_looked_into(words: Run) -> None:
    tagger = Tagger(words)
    shown = tagger.own_output("they run")
    assert shown.text == "they_PRP run_VB"
    (scored,) = tagger.score_ids(["they run"], [shown.ids])
    assert scored.score == pytest.approx(shown.score, abs=1e-5)
    record = tagger.look("they run", shown.ids)
    assert len(record.source) == len(tagger.source_ids("they run"))
    with pytest.raises(DragomanError, match="prefix"):
        tagger.own_output("they run", "a")


def test_a_tagger_from_a_masked_model_and_from_a_tagger(
    words: Run, tagged: Path, tmp_path: Path
) -> None:
    masked = trained_run(tiny_recipe_of("masked", tmp_path), tmp_path / "masked")
    recipe, epochs = recipe_of([str(tagged)], task="tagging", start_from=masked, changes=(
        "training.updates=2", "training.validate_every=0", "training.average_last=0"))  # fmt: skip
    assert recipe.task == "tagging" and epochs == 4
    assert recipe.model.model_dim == masked.recipe.model.model_dim
    run = trained_run(recipe, tmp_path / "from", start_from=masked, take="encoder")
    assert run.notes()["start"]["part"] == "encoder"
    assert Tagger(run)(["they run"])[0].words == ("they", "run")
    # A whole tagger goes on with the tags that it knows, and refuses others.
    other = tmp_path / "other.txt"
    brief = ("training.updates=2", "training.validate_every=0", "data.split.dev=0")
    for text, fails in (("they_PRP run_VB\nwe_PRP run_VB\n", False), ("a_DT b_XX\n", True)):
        other.write_text(text * 20, encoding="utf-8")
        recipe, _ = recipe_of([str(other)], start_from=words, changes=brief)
        if fails:
            with pytest.raises(DataError, match="'XX' is not a tag of"):
                trained_run(recipe, tmp_path / "tuned-2", start_from=words)
        else:
            tuned = trained_run(recipe, tmp_path / "tuned", start_from=words)
            assert Tagger(tuned).tags.labels.names == Tagger(words).tags.labels.names
            # What the first had read is known, or else nothing of it is said.
            read = tuned.lexicon()
            assert read is not None and read.has("they") and read.has("we")
            forgetful = Path(shutil.copytree(words.folder, tmp_path / "forgetful"))
            (forgetful / LEXICON).unlink()
            begun_with = Run.open(forgetful)
            unknown = trained_run(recipe, tmp_path / "unknown", start_from=begun_with)
            assert unknown.lexicon() is None
            (tmp_path / "test.txt").write_text("they_PRP zzz_VB\n", encoding="utf-8")
            table = TaggingEvaluation()(tuned, [tmp_path / "test.txt"]).table()
            assert "1 of them not in the training text of words, from which this run was" in table
            begun = TaggingEvaluation()(run, [tmp_path / "test.txt"]).table()
            assert "1 of them not in the training text; " in begun, "it learned its tags itself"


def test_two_are_compared_on_the_same_words(words: Run, tagged: Path, tmp_path: Path) -> None:
    recipe, _ = recipe_of([str(tagged)], task="tagging", changes=(*SMALL, "training.updates=2"))
    poor = trained_run(recipe, tmp_path / "poor")
    found = compare_runs(ComparisonRequest([poor.folder, words.folder], samples=200))
    assert "accuracy" in found.table() and "words" in found.table()
    first, second = found.to_dict()["metrics"]["accuracy"]["systems"]
    assert first["value"] < 60 and second["value"] == 100 and second["p_value"] < 0.05
    TaggingEvaluation()(poor)
    why = runtime_of(poor.task).hardly_learned(poor, None)  # type: ignore[arg-type]
    assert why is not None and "the most frequent tag of each word gives" in why


def test_spans_are_measured_where_tags_are_of_spans(tmp_path: Path) -> None:
    recipe = tiny_recipe_of("tagging", tmp_path)
    assert recipe.training.metric == "f1"
    run = trained_run(recipe, tmp_path / "run")
    found = TaggingEvaluation()(run)
    assert {"f1", "precision", "recall"} <= set(found.scores) and "span" in found.table()
    assert set(run.scores()["spans"]) == {"animals", "food"}
    assert "Spans" in write_report(run).read_text(encoding="utf-8")
    damaged = run.scores() | {"spans": {"food": {"right": 1, "found": 2}}}
    (run.folder / "scores.json").write_text(json.dumps(damaged), encoding="utf-8")
    with pytest.raises(RunError, match=r"scores\.json.*spans"):
        run.scores()


def test_what_does_not_fit_is_refused(words: Run, tagged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    recipe, _ = recipe_of([str(tagged)], task="tagging", changes=("training.metric=f1",))
    with pytest.raises(DataError, match=r"training.metric = f1 needs spans"):
        trained_run(recipe, run)
    with pytest.raises(DataError, match=r"needs spans.*--set training\.metric=accuracy"):
        recipe.spec.check_target(recipe, lambda: iter(()), words.forms, words.folder)
    with pytest.raises(RecipeError, match=r"data\.moses splits words"):
        recipe_of([str(tagged)], task="tagging", changes=("data.moses=true",))
    with pytest.raises(RecipeError, match="cannot generate tagged words"):
        Recipe.parse({"name": "x", "task": "tagging", "model": {"kind": "encoder"},
                      "data": {"embedded": "demo"}})  # fmt: skip
    with pytest.raises(RecipeError, match="reads one text and writes another"):
        Recipe.parse({"name": "x", "task": "tagging", "model": {"kind": "transformer"}})
    with pytest.raises(DataError, match="my, line 4: 1 word and 0 tags"):
        words_and_tags(Pair(4, "a", ""), "my")


def test_known_words_are_known_however_they_are_composed(words: Run) -> None:
    tags = Tags.learn([(["서울", "caf\u00e9"], ["A", "B"]), (["부산"], ["A"])])
    for form in ("NFC", "NFD"):
        some = [unicodedata.normalize(form, word) for word in ("서울", "café", "대구")]
        assert [tags.knows(word) for word in some] == [True, True, False]
        assert tags.usual(some) == ["A", "B", "A"]


def test_comments_among_columns_are_no_words(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("# one comment of many words\n서울\tLOC\n간다\tO\n\n# b\n#\tX\n", "utf-8")
    recipe, _ = recipe_of([str(file)], task="tagging")
    pairs = [(pair.source, pair.target) for pair in read_pairs(recipe.data.train[0])]
    assert pairs == [("서울 간다", "LOC O"), ("#", "X")]


@pytest.mark.parametrize("task", ["tagging", "classification"])
def test_what_is_behind_the_context_is_told_of(task: str, tmp_path: Path) -> None:
    said: list[str] = []
    recipe = tiny_recipe_of(task, tmp_path, "plan.context=4", "training.updates=1")
    train(recipe, tmp_path / "run", say=said.append, display=False, measure=False)
    (told,) = [line for line in said if "plan.context = 4" in line]
    assert re.fullmatch(r"of (\d+) (texts|sentences), \1 are longer than plan\.context.*", told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1-2\tzum" + "\t_" * 8 + "\n", "contains no tagged sentences"),
        ("# newdoc\n# text = a b\n\n# c\n", "contains no tagged words: '# newdoc'"),
    ],
)
def test_conllu_without_words_is_refused(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        recipe_of([str(tmp_path / "a.conllu")], task="tagging")


@pytest.mark.parametrize(("task", "sampling"), [("classification", 0.0), ("tagging", 0.1)])
def test_a_task_of_fixed_tokens_takes_no_sampling_over(
    task: str, sampling: float, words: Run, tmp_path: Path
) -> None:
    text = words.recipe.text.model_copy(update={"sampling": 0.1})
    learned = words.recipe.model_copy(update={"text": text})
    taken = for_part(tiny_recipe_of(task, tmp_path), learned, "encoder")
    assert taken.text == text.model_copy(update={"sampling": sampling})


def test_two_files_of_words_and_of_tags(tmp_path: Path) -> None:
    (tmp_path / "my.words").write_text("they run\n" * 5 + "a run\n" * 5, encoding="utf-8")
    (tmp_path / "my.tags").write_text("PRP VB\n" * 5 + "DT NN\n" * 5, encoding="utf-8")
    given = [str(tmp_path / name) for name in ("my.words", "my.tags")]
    recipe, _ = recipe_of(given, task="tagging", changes=("data.cleaning.duplicates=false",))
    found = inspect_data(recipe)
    assert found.counts == {"PRP": 5, "VB": 5, "DT": 5, "NN": 5}
    assert "tags: 4 different" in found.text() and found.to_dict()["tags"]["NN"] == 5


def test_python_has_it_by_name(words: Run) -> None:
    assert package.Tagger is Tagger
    with pytest.raises(RunError, match="which does not label"):
        Labeller(words)


UNDER = "the\tX_A\ncat\tY_B\n\n"


def test_tags_with_underscores_are_written_so_that_they_read_back(
    tmp_path: Path, dragoman: Dragoman
) -> None:
    path = tmp_path / "my.tsv"
    path.write_text(UNDER * 60, encoding="utf-8")
    run = trained_run(tiny_tagger_of(path), tmp_path / "run")
    said = dragoman("tag", run.folder, "the cat", "cat")
    assert said.code == 0 and said.out.count("\t") == 3
    (tmp_path / "out.tsv").write_text(said.out, encoding="utf-8")
    assert TaggingEvaluation()(run, [tmp_path / "out.tsv"]).scores["accuracy"] == 100
    said = dragoman(
        "evaluate", run.folder, tmp_path / "out.tsv", "--output", tmp_path / "again.tsv"
    )
    assert said.code == 0, said.err
    assert TaggingEvaluation()(run, [tmp_path / "again.tsv"]).scores["accuracy"] == 100
    said = dragoman("tag", run.folder, "the cat", "--format", "underscore")
    assert said.code == 1 and not said.out
    told = said.err.splitlines()[-1]
    assert told.startswith("error: --format underscore: ")
    assert "'X_A', so word_TAG would be ambiguous. Use --format tsv" in told


def test_evaluate_is_told_where_a_file_has_words_and_tags(
    words: Run, tmp_path: Path, dragoman: Dragoman
) -> None:
    (tmp_path / "my.conll").write_text("1 PRP they x\n2 VB run x\n", encoding="utf-8")
    said = dragoman("evaluate", words.folder, tmp_path / "my.conll", "--columns", "3,2", "--json")
    assert said.code == 0 and json.loads(said.out)["scores"]["accuracy"]["value"] == 100, said.err
    (tmp_path / "my.jsonl").write_text('{"w": "they run", "t": "PRP VB"}\n', encoding="utf-8")
    said = dragoman("evaluate", words.folder, tmp_path / "my.jsonl", "--keys", "w", "t", "--json")
    assert said.code == 0 and json.loads(said.out)["scores"]["accuracy"]["value"] == 100, said.err
    (tmp_path / "my.txt").write_text("they_PRP run_VB\n", encoding="utf-8")
    for name, wanted in (("my.txt", "contains lines of word_TAG"), ("my.jsonl", "one .tsv file")):
        said = dragoman("evaluate", words.folder, tmp_path / name, "--columns", "3,2")
        assert said.code == 1 and wanted in said.err and said.err.count("\n") == 1
    said = dragoman("evaluate", words.folder, tmp_path / "my.conll", "--beam", "3")
    assert said.code == 1 and "Leave it out" in said.err
