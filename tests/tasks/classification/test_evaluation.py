"""Texts and their labels: the same trainer, another head and other figures."""

from __future__ import annotations

import json
import math
import random
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import Dragoman
from recipe_of_files import recipe_of
from tiny_recipe import TINY
from trained_run import trained_run

from dragoman.base.errors import DataError, RecipeError, RunError
from dragoman.metrics.classification import Confusion
from dragoman.pictures.records import words as words_of
from dragoman.sizing.start_from import for_fine_tuning, for_part, part_named, serve_context
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.classification.evaluation import ClassificationEvaluation
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.classification.reasons import reasons
from dragoman.tasks.new_run import fitting, places
from dragoman.tasks.report import write_report
from dragoman.tasks.shared.label_report import draw_confusion
from dragoman.tasks.training import train
from dragoman.tasks.translation.translator import Translator

SMALL = (
    "text.vocabulary=300", "model.model_dim=16", "model.ffn_dim=32", "model.layers=1",
    "model.attention.num_heads=2", "model.dropout=0.0", "plan.tokens_per_update=512",
    "training.updates=40", "training.validate_every=20", "training.schedule.warmup=5",
    "training.schedule.peak=1e-2", "training.precision=fp32", "data.split.dev=0.1",
    "data.split.test=0.2",
)  # fmt: skip
WORDS = {
    "animals": ["dog", "cat", "horse", "barks", "runs", "sleeps", "tail", "fur"],
    "food": ["bread", "soup", "apple", "tastes", "boils", "sweet", "hot", "plate"],
    "weather": ["rain", "wind", "snow", "falls", "blows", "cold", "storm", "sky"],
}
BETWEEN = ["the", "a", "is", "and", "today", "very", "again"]


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Labels, and sentences in each of which two words of three say which it is."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        label = draw.choice(sorted(WORDS))
        words = [draw.choice(WORDS[label] if draw.random() < 2 / 3 else BETWEEN) for _ in range(6)]
        found.append((label, " ".join([*words, draw.choice(WORDS[label])])))
    return found


def as_tsv(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return as_tsv(tmp_path_factory.mktemp("labelled") / "topics.tsv", sentences(400, 1))


@pytest.fixture(scope="module")
def topics(labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An encoder from nothing."""
    recipe, _ = recipe_of([str(labelled)], task="classification", changes=SMALL)
    folder = tmp_path_factory.mktemp("runs") / "topics"
    return trained_run(recipe, folder)


def test_it_learns_and_says_so_in_its_own_terms(topics: Run) -> None:
    validations = [line for line in topics.metrics() if line["kind"] == "validation"]
    assert set(validations[0]["scores"]) == {"accuracy", "macro_f1", "loss"}
    assert validations[-1]["scores"]["loss"] < math.log(3) / 2
    assert topics.metadata()["metric"] == "macro_f1"
    assert topics.forms.labels.names == tuple(sorted(WORDS))
    sample = validations[-1]["samples"][0]
    assert sample["reference"] in WORDS and sample["translation"] in WORDS
    found = ClassificationEvaluation()(topics)
    assert found.scores["accuracy"] > 85 and found.confusion.texts > 40
    scores = topics.scores()
    assert scores["scores"]["macro_f1"]["value"] == found.scores["macro_f1"]
    assert np.array(scores["confusion"]).sum() == found.confusion.texts
    page = write_report(topics).read_text(encoding="utf-8")
    assert "What it takes for what" in page and "label by row, chosen by column" in page


def test_what_it_measures_is_what_it_answers(
    topics: Run, dragoman: Dragoman, tmp_path: Path
) -> None:
    rows = sentences(60, 2)
    wrong = [("food", "dog cat horse barks"), ("weather", "bread soup apple tastes sweet")]
    path = as_tsv(tmp_path / "test.tsv", [*rows, *wrong])
    found = ClassificationEvaluation()(topics, [path])
    assert found.left_out == 0 and " a label that " not in found.table()
    assert 0 < found.seconds < 60
    answers = Labeller(topics)([text for _, text in [*rows, *wrong]])
    other = tmp_path / "other.tsv"
    other.write_text("".join(f"x\t{text}\t{label}\n" for label, text in [*rows, *wrong]))
    again = dragoman("evaluate", topics.folder, other, "--columns", "2,3", "--json")
    assert json.loads(again.out)["confusion"] == found.confusion.counts.tolist()
    for name, column in (("texts", 1), ("labels", 0)):  # in two files, a line of each together
        lines = [f"{row[column]}\n" for row in [*rows, *wrong]]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    two = dragoman("evaluate", topics.folder, tmp_path / "texts", tmp_path / "labels", "--json")
    assert json.loads(two.out)["confusion"] == found.confusion.counts.tolist()
    names = topics.forms.labels.names
    true = [names.index(label) for label, _ in [*rows, *wrong]]
    confusion = Confusion.of(true, [names.index(one.label) for one in answers], 3)
    assert found.confusion.counts.tolist() == confusion.counts.tolist()
    losses = [-one.log_probabilities[k] for one, k in zip(answers, true, strict=True)]
    assert found.scores["loss"] == pytest.approx(sum(losses) / len(losses))
    surest = {mistake.line: mistake for mistake in found.worst}
    assert surest[61].true == "food" and surest[61].chosen == "animals"
    assert surest[61].probability > 0.5 > surest[61].of_true
    table = found.table()
    assert "line 62: weather, taken for food" in table and "macro F1" in table
    assert "Label by row, chosen by column" in table
    picture = draw_confusion("confusions", found.labels, found.confusion)
    assert picture is not None
    assert picture.weights.sum(axis=1).tolist() == pytest.approx([1, 1, 1])


def test_records_are_read_as_such_whatever_was_learned_from(topics: Run, tmp_path: Path) -> None:
    text, label = "dog", topics.forms.target.raw([[0]])[0]
    (tmp_path / "a.tsv").write_text(f"{label}\t{text}\n", encoding="utf-8")
    records = json.dumps({"text": text, "label": label}) + "\n"
    (tmp_path / "a.jsonl").write_text(records, encoding="utf-8")
    one, other = (
        ClassificationEvaluation()(topics, [tmp_path / name]) for name in ("a.tsv", "a.jsonl")
    )
    assert one.scores == other.scores


def test_texts_are_labelled_alike_in_any_company(topics: Run) -> None:
    labeller = Labeller(topics)
    texts = ["the dog barks", "", "snow and wind " * 200, "hot bread tastes sweet"]
    together, alone = labeller(texts), [labeller([text])[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert one.text == other.text
        assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-5)
        assert one.probabilities.sum() == pytest.approx(1)
    assert [one.label for one in together if one.text] == ["animals", "weather", "food"]
    assert [one.cut for one in together] == [False, False, True, False]
    assert together[0].ranked[0] == (str(together[0]), together[0].probability)


def test_the_verb_gives_a_line_for_a_line(topics: Run, dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("classify", topics.folder, "the dog barks", "", "cold rain falls")
    assert said.code == 0, said.err
    lines = [line.split("\t") for line in said.out.splitlines()]
    assert len(lines) == 3 and [lines[0][0], lines[2][0]] == ["animals", "weather"]
    assert float(lines[0][1]) > 0.5
    every = dragoman("classify", topics.folder, "the dog barks", "--all")
    fields = every.out.strip().split("\t")
    assert sorted(fields[::2]) == sorted(WORDS) and fields[0] == "animals"
    assert sum(map(float, fields[1::2])) == pytest.approx(1, abs=1e-3)
    long = dragoman("classify", topics.folder, "dog " * 500)
    assert "the rest was not read" in long.err and long.out.startswith("animals")
    for wrong, words in (
        (("translate", topics.folder, "Hallo"), "does not translate: dragoman classify"),
        (("write", topics.folder, "Hallo"), "not a language model"),
        (("evaluate", topics.folder, "--beam", "2"), "Leave it out"),
        (("evaluate", topics.folder, "--set", "window=2"), "Leave out --set"),
        (("shortlist", topics.folder), "writes no text"),
        (("score", topics.folder, tmp_path), "--all"),
        (("look", topics.folder, "the dog", "--target", "x"), "writes no text"),
        (("look", topics.folder, "dog " * 1200), "tokens. Give a part of it"),
        (("compare", topics.folder, topics.folder, "--to", tmp_path / "x.html"), "Leave it out"),
        (("figure", "temperature", "--run", topics.folder), "dragoman classify"),
        (("align", topics.folder), "cannot align words"),
    ):
        refused = dragoman(*wrong)
        assert refused.code == 1 and words in refused.err, (wrong, refused)
        assert "Traceback" not in refused.err
    with pytest.raises(RunError, match=r"does not translate: dragoman classify"):
        Translator(topics)


def test_labels_that_cannot_be_used_are_said_in_one_line(
    topics: Run, dragoman: Dragoman, tmp_path: Path
) -> None:
    good = "".join(f"{label}\t{text}\n" for label, text in sentences(30, 3))
    files = {
        "empty.tsv": ("", "empty.tsv is empty"),
        "notab.tsv": (good + "no tab here\n", "notab.tsv, line 31: there is no tab"),
        "one.tsv": ("same\tone text\nsame\tother text\n", "2 lines, and one label, 'same'"),
        "unclear.tsv": ("a\tb\nc\td\n", "cannot determine which column contains the labels"),
        "blank.tsv": (good + " \tno label\n", "blank.tsv, line 31: the label is empty"),
    }
    for name, (content, words) in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
        to = tmp_path / "run"
        said = dragoman("train", tmp_path / name, "--task", "classification", "--to", to)
        assert said.code == 1 and words in said.err, (name, said)
        assert len(said.err.strip().splitlines()) == 1 and not to.exists(), said.err
    unseen = as_tsv(tmp_path / "unseen.tsv", [*sentences(3, 4), ("music", "a song")])
    said = dragoman("evaluate", topics.folder, unseen)
    assert said.code == 1
    assert "unseen.tsv, line 4: no training text has the label 'music'" in said.err
    assert "labels are 'animals', 'food', 'weather'" in said.err
    wrong = dragoman("train", unseen, "--task", "classification", "--columns", "x")
    assert wrong.code == 1 and "--columns x: give two numbers such as 2,3" in wrong.err


def test_either_column_may_hold_the_labels(tmp_path: Path) -> None:
    rows = sentences(50, 5)
    first = as_tsv(tmp_path / "first.tsv", rows)
    second = as_tsv(tmp_path / "second.tsv", [(text, label) for label, text in rows])
    lines = tmp_path / "lines.jsonl"
    records = [json.dumps({"text": text, "label": label}) for label, text in rows]
    lines.write_text("".join(f"{record}\n" for record in records), encoding="utf-8")
    found = []
    for path in (first, second, lines):
        recipe, _ = recipe_of([str(path)], task="classification")
        (corpus,) = recipe.data.train
        found.append((corpus.source_column, corpus.target_column))
        assert recipe.task == "classification" and recipe.model.kind == "encoder"
    assert found[:2] == [(2, 1), (1, 2)]
    told, _ = recipe_of([str(first)], task="classification", columns="text,label")
    assert told.data.train[0].source_column == 1
    with pytest.raises(RecipeError, match="--columns label,text"):
        recipe_of([str(first)], columns="label,text")


def test_a_kind_of_model_must_be_one_stack() -> None:
    with pytest.raises(RecipeError, match=r"Choose one of .*encoder"):
        Recipe.parse({"task": "classification"})
    for kind in ("encoder", "decoder", "recurrent-decoder"):
        recipe = Recipe.parse({"task": "classification", "model": {"kind": kind}})
        assert recipe.training.metric == "macro_f1"


def test_labels_held_out_with_too_few_examples_are_said(labelled: Path, tmp_path: Path) -> None:
    """A label that no training text has is measured by nothing, and that is said."""
    rare = tmp_path / "rare.tsv"
    dev = tmp_path / "dev.tsv"
    rare.write_text(labelled.read_text() + "music\ta song of its own\n", encoding="utf-8")
    as_tsv(dev, [*sentences(20, 6), ("opera", "an aria")])
    recipe, _ = recipe_of([str(rare)], task="classification", changes=SMALL)
    like = recipe.data.train[0].model_copy(update={"source": str(dev)})
    data = recipe.data.model_copy(update={"dev": like})
    recipe = recipe.model_copy(update={"data": data}).change(
        ["training.updates=2", "training.validate_every=2", "data.split.test=0.0"]
    )
    said: list[str] = []
    train(recipe, tmp_path / "run", say=said.append, display=False, measure=False)
    assert any("fewer than 3 training examples, such as 'music' with 1" in line for line in said)
    assert any("of 21 dev texts, 1 is without tokens, or of a label" in line for line in said)


# ---- beginning with another run


@pytest.fixture(scope="module")
def writer(labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A language model of the same texts."""
    folder = tmp_path_factory.mktemp("runs") / "writer"
    texts = tmp_path_factory.mktemp("texts") / "texts.txt"
    lines = [line.split("\t")[1] for line in labelled.read_text().splitlines()]
    texts.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    small = [one for one in SMALL if not one.startswith("data")]
    changes = [*small, "training.updates=10", "training.validate_every=10", "plan.context=32"]
    recipe, _ = recipe_of([str(texts)], task="language-model", texts="text", changes=changes)
    return trained_run(recipe, folder)


def test_it_begins_with_a_language_model(writer: Run, labelled: Path, tmp_path: Path) -> None:
    few = ("training.updates=1", "training.validate_every=0", "training.schedule.peak=1e-9",
           "training.precision=fp32")  # fmt: skip
    said: list[str] = []
    recipe, _ = recipe_of(
        [str(labelled)], task="classification", start_from=writer, changes=few, say=said.append
    )
    assert recipe.model == writer.recipe.model
    train(
        recipe, tmp_path / "run", start_from=writer, take="decoder", say=said.append,
        display=False, measure=False,
    )  # fmt: skip
    run = Run.open(tmp_path / "run")
    (line,) = [line for line in said if line.startswith("taken from")]
    old, new = writer.model().state_dict(), run.model().state_dict()
    assert f"{len(old):,} tensors of its decoder" in line and "did not fit" not in line
    for name, value in old.items():
        assert torch.allclose(new[f"body.{name}"], value, atol=1e-6), name
    assert run.source.vocabulary is not None
    assert run.source.vocabulary.fingerprint == writer.target_text.fingerprint
    note = run.notes()["start"]
    assert note["part"] == "decoder" and note["tensors"] == len(old) and not note["did_not_fit"]
    assert Labeller(run)(["the dog"])[0].label in WORDS


def test_it_reads_as_much_as_its_own_recipe_says(
    writer: Run, labelled: Path, tmp_path: Path
) -> None:
    """Not what the run that it begins with has read at once, which was 32 tokens."""
    assert writer.recipe.plan.context == 32
    said: list[str] = []
    begin = partial(recipe_of, start_from=writer, say=said.append)
    recipe, _ = begin([str(labelled)], task="classification")
    alone, _ = recipe_of([str(labelled)], task="classification")
    assert recipe.plan.context == alone.plan.context == 256
    (line,) = said
    assert "256 tokens are read at once" in line and "windows of 32" in line
    assert "Training uses the longer ones" in line
    few, _ = begin([str(labelled)], task="classification", changes=["plan.context=24"])
    assert few.plan.context == 24 and len(said) == 1, "of fewer nothing is to be said"
    written = tmp_path / "own.toml"
    alone.change(["plan.context=100"]).save(written)
    for own in (begin([str(written)])[0], begin([str(labelled)], base=str(written))[0]):
        assert own.plan.context == 100
    # A run that goes on with the same task reads on as it did, unless its recipe says otherwise.
    assert for_fine_tuning(alone, few).plan.context == 24
    assert for_fine_tuning(alone, few, own_context=True).plan.context == 256


def test_a_part_without_positions_for_all_of_it_is_said_or_refused(
    writer: Run, labelled: Path
) -> None:
    learned = writer.recipe.change(["model.positions.kind=learned", "model.positions.maximum=32"])
    alone, _ = recipe_of([str(labelled)], task="classification")
    recipe, said = for_part(alone, learned, "decoder"), list[str]()
    served = serve_context(recipe, learned, writer.folder, False, said.append)
    assert served.plan.context == 32 and "have no positions for more" in said[0]
    with pytest.raises(RecipeError, match=r"positions for 32 tokens. Set plan\.context=32 or less"):
        serve_context(recipe, learned, writer.folder, True, said.append)


def test_a_part_that_is_not_there_is_said(writer: Run, labelled: Path, dragoman: Dragoman) -> None:
    with pytest.raises(
        RecipeError, match=r"--init-part encoder: .* whose only part is its decoder"
    ):
        recipe_of([str(labelled)], task="classification", start_from=writer, take="encoder")
    said = dragoman("train", labelled, "--task", "classification", "--init-part", "encoder")
    assert said.code == 1 and "--init-part encoder works only with --from RUN" in said.err


def test_other_labels_are_not_learned_by_the_same_head(topics: Run, tmp_path: Path) -> None:
    other = as_tsv(tmp_path / "other.tsv", [*sentences(20, 7), *[("music", "a song")] * 5])
    recipe, _ = recipe_of([str(other)], start_from=topics, changes=["data.split.test=0.0"])
    with pytest.raises(DataError, match=r"'music' is not a label of .*--init-part encoder"):
        train(recipe, tmp_path / "run", start_from=topics, say=lambda _: None, display=False)
    assert not (tmp_path / "run").exists()


def test_places_are_the_same_in_all_that_has_the_part() -> None:
    whole = {
        "source_embedding.weight": (9, 4), "encoder.0.attention.query.weight": (4, 4),
        "encoder_norm.gain": (4,), "decoder.0.self_attention.query.weight": (4, 4),
        "decoder.0.cross_attention.query.weight": (4, 4),
    }  # fmt: skip
    encoder = {
        "body.source_embedding.weight": (9, 4), "body.encoder.0.attention.query.weight": (4, 4),
        "body.encoder.1.attention.query.weight": (4, 4), "body.encoder_norm.gain": (3,),
        "head.weight": (3, 4),
    }  # fmt: skip
    fit = fitting(encoder, whole, "encoder")
    assert dict(fit.taken) == {name: name.removeprefix("body.") for name in list(encoder)[:2]}
    assert fit.missing == tuple(list(encoder)[2:4]) and "layers.1" in fit.why
    assert (fit.parameters, fit.of) == (36 + 16, 36 + 16 + 16 + 3 + 12)
    alone = {"embedding.weight": (9, 4), "layers.0.attention.query.weight": (4, 4)}
    taken = fitting(alone, whole, "decoder").taken
    assert taken == {
        "embedding.weight": "source_embedding.weight",  # one matrix for both sides
        "layers.0.attention.query.weight": "decoder.0.self_attention.query.weight",
    }
    assert not places(alone, "encoder")


def test_runs_are_compared_by_their_labels(
    topics: Run, labelled: Path, dragoman: Dragoman, tmp_path: Path
) -> None:
    """One that has learned for two updates, and one that has learned."""
    changes = (*SMALL, "training.updates=2", "training.validate_every=2")
    recipe, _ = recipe_of([str(labelled)], task="classification", changes=changes)
    train(recipe, tmp_path / "short", say=lambda _: None, display=False, measure=False)
    said = dragoman("compare", tmp_path / "short", topics.folder, "--json", "--samples", "200")
    assert said.code == 0, said.err
    found = json.loads(said.out)["metrics"]
    baseline, better = found["macro F1"]["systems"]
    assert better["value"] == pytest.approx(ClassificationEvaluation()(topics).scores["macro_f1"])
    assert better["value"] > baseline["value"] and better["p_value"] < 0.05
    same = dragoman("compare", topics.folder, topics.folder, "--json", "--test", "randomisation")
    assert json.loads(same.out)["metrics"]["accuracy"]["systems"][1]["p_value"] == 1


def test_it_begins_with_the_encoder_of_a_translation(
    parallel_text: tuple[Path, Path], labelled: Path, tmp_path: Path
) -> None:
    sizes = [change for change in TINY if "average_last" not in change]
    pairs, _ = recipe_of([str(path) for path in parallel_text])
    few = ["training.updates=2", "training.validate_every=0", "training.precision=fp32"]
    train(
        pairs.change([*sizes, *few, "training.average_last=0"]), tmp_path / "pairs",
        say=lambda _: None, display=False, measure=False,
    )  # fmt: skip
    learned = Run.open(tmp_path / "pairs")
    recipe, _ = recipe_of(
        [str(labelled)], task="classification", start_from=learned,
        changes=[*few, "training.schedule.peak=1e-9", "training.updates=1"],
    )  # fmt: skip
    assert recipe.model.kind == "encoder" and recipe.model.model_dim == 32
    said: list[str] = []
    train(
        recipe, tmp_path / "run", start_from=learned, take="encoder", say=said.append,
        display=False, measure=False,
    )  # fmt: skip
    old, new = learned.model().state_dict(), Run.open(tmp_path / "run").model().state_dict()
    taken = [name for name in old if name.startswith(("source_", "encoder"))]
    assert len(taken) > 30
    for name in taken:
        assert torch.allclose(new[f"body.{name}"], old[name], atol=1e-6), name
    (line,) = [line for line in said if line.startswith("taken from")]
    assert f"{len(taken)} tensors of its encoder" in line and "did not fit" not in line


def test_a_translation_begins_with_an_encoder(
    topics: Run, parallel_text: tuple[Path, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    """What fits of it: the layers that there are, and all that it reads by."""
    sizes = {"model_dim": 16, "ffn_dim": 32, "encoder_layers": 2, "decoder_layers": 1,
             "attention.num_heads": 2, "tie": "target", "norm": "pre"}  # fmt: skip
    changes = [f"model.{name}={value}" for name, value in sizes.items()]
    changes += ["text.shared=false", "training.updates=1", "training.validate_every=0",
                "training.schedule.peak=1e-9", "training.average_last=0"]  # fmt: skip
    options = [word for change in changes for word in ("--set", change)]
    to = tmp_path / "run"
    said = dragoman(
        "train", *parallel_text, "--task", "translation", "--from", topics.folder,
        "--init-part", "encoder", "--to", to, *options,
    )  # fmt: skip
    assert said.code == 0, said.err
    run = Run.open(to)
    old, new = topics.model().state_dict(), run.model().state_dict()
    for name in ("source_embedding.weight", "encoder.0.attention.query.weight"):
        assert torch.allclose(new[name], old[f"body.{name}"], atol=1e-6), name
    note = run.notes()["start"]
    assert note["part"] == "encoder" and all(
        name.startswith("encoder.1.") for name in note["did_not_fit"]
    )
    assert "taken from" in said.out and "it has no layers.1." in said.out


def test_a_part_brings_the_vocabulary_of_its_side_alone(
    topics: Run, writer: Run, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    """With one vocabulary for both sides, the other language would be written in its bytes."""
    files = [str(path) for path in parallel_text]
    few = ["training.updates=1", "training.validate_every=0", "training.average_last=0"]
    for run, part, own, other in (
        (topics, "encoder", "source", "target"),
        (writer, "decoder", "target", "source"),
    ):
        said: list[str] = []
        recipe, _ = recipe_of(
            files, task="translation", start_from=run, take=part_named(part, True), changes=few,
            say=said.append,
        )  # fmt: skip
        assert "source and target get separate ones" in said[0]
        assert recipe.model.model_dim == 16, "as wide as what it begins with"
        train(
            recipe, tmp_path / part, start_from=run, take=part_named(part, True), say=said.append,
            display=False, measure=False,
        )  # fmt: skip
        (line,) = [line for line in said if line.startswith("taken from")]
        assert part == "decoder" or "did not fit" not in line, "it has no cross-attention"
        forms = Run.open(tmp_path / part).forms._asdict()
        brought = getattr(run.forms, "source" if run is topics else "target").vocabulary
        assert forms[own].vocabulary.fingerprint == brought.fingerprint
        assert forms[other].vocabulary.size == recipe.text.vocabulary > 300
        words = forms[other].vocabulary.pieces(
            forms[other].vocabulary.encode(["The dog sleeps." if own == "target" else "Der Hund"])[
                0
            ]
        )
        assert not any("<0x" in piece for piece in words)
    with pytest.raises(RecipeError, match=r"--set text\.shared=false --set model\.tie=target"):
        recipe_of(files, base="transformer-base", start_from=topics, take="encoder")
    with pytest.raises(RecipeError, match=r"has its own vocabulary"):
        recipe_of(
            files, task="translation", start_from=topics, take="encoder",
            changes=["text.shared=true"],
        )  # fmt: skip


def test_one_vocabulary_stays_one_between_the_same_languages(
    tiny_run: Path, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    run, said = Run.open(tiny_run), list[str]()
    files = [str(path) for path in parallel_text]
    begin = partial(recipe_of, task="translation", start_from=run, take="encoder", say=said.append)
    back, _ = begin(files[::-1])
    assert back.text.shared and not said
    assert not begin(files, languages="en-fr")[0].text.shared


def test_it_begins_with_a_masked_model(labelled: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    lines = [line.split("\t")[1] for line in labelled.read_text().splitlines()]
    texts.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    small = [one for one in SMALL if not one.startswith("data")]
    changes = [*small, "training.updates=2", "training.validate_every=2", "plan.context=32",
               "languages.target=en"]  # fmt: skip
    masked, _ = recipe_of([str(texts)], task="masked", texts="text", changes=changes)
    learned = trained_run(masked, tmp_path / "masked")
    few = ["training.updates=1", "training.validate_every=0", "training.schedule.peak=1e-9",
           "training.precision=fp32"]  # fmt: skip
    recipe, _ = recipe_of([str(labelled)], task="classification", start_from=learned, changes=few)
    assert recipe.model == learned.recipe.model and recipe.languages.source == "en"
    train(
        recipe, tmp_path / "run", start_from=learned, take="encoder", say=lambda _: None,
        display=False, measure=False,
    )  # fmt: skip
    run = Run.open(tmp_path / "run")
    old, new = learned.model().state_dict(), run.model().state_dict()
    for name, value in old.items():
        if not name.startswith("output"):
            assert torch.allclose(new[f"body.{name}"], value, atol=1e-6), name
    assert run.notes()["start"]["part"] == "encoder" and not run.notes()["start"]["did_not_fit"]


def test_a_label_is_looked_into(topics: Run, dragoman: Dragoman) -> None:
    """Where the encoder looked; and how sure the label is when a word is hidden."""
    text = "the dog barks today"
    said = dragoman("look", topics.folder, text, "--hide", "dog")
    assert said.code == 0, said.err
    before = Labeller(topics)([text])[0]
    lines = [line.rstrip() for line in said.out.splitlines()]
    assert lines[0] == f"{before.label}  {before.probability:.4f}"
    assert "hidden: “dog”" in said.out and "barks" in said.out
    (doubt,) = [line for line in lines if line.startswith("log P of the first output")]
    old, new = (float(one.strip(" ,")) for one in re.findall(r"-?\d+\.\d+", doubt))
    assert old == pytest.approx(before.log_probabilities.max(), abs=0.006) and new != old
    labeller = Labeller(topics)
    record = labeller.look(text, ())
    names, word_of = words_of(record.source)
    assert list(names[:-1]) == text.split() and not record.target
    shares = np.bincount(word_of, record.encoder[-1].mean(axis=(0, 1)))
    wanted = [word.attention for word in reasons(labeller, text).words]
    assert shares[: len(wanted)].tolist() == pytest.approx(wanted, abs=1e-4)
