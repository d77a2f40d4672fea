"""Comparisons that would mislead: on texts that a run has learned from, of runs that have learned
nothing, of runs of different languages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from command_line import Dragoman
from tiny_tasks import tiny_recipe_of
from tiny_treebank import treebank
from trained_run import trained_run

from dragoman.data.files.corpora import read_lines
from dragoman.runs.corpora import plain_pairs
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.studies.comparison import compare, compare_runs
from dragoman.studies.systems import ComparisonRequest
from dragoman.tasks.parsing.parser import Parse, Parser

SHORT = ("training.updates=2", "training.validate_every=0")


def with_less_text(recipe: Recipe, folder: Path, keep: int) -> Recipe:
    """The recipe for the first so many lines of its text, beside a dev and a test set of them."""
    (corpus,) = recipe.data.train
    changed = {}
    for side in ("source", "target"):
        path = getattr(corpus, side)
        if path is not None:
            lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
            changed[side] = str(folder / f"less-{Path(path).name}")
            Path(changed[side]).write_text("".join(lines[:keep]), encoding="utf-8")
    train = corpus.model_copy(update=changed)
    data = recipe.data.model_copy(update={"train": (train,)})
    return recipe.model_copy(update={"data": data})


def two_runs(task: str, tmp_path: Path, *changes: str) -> tuple[Run, Run]:
    """The test set of the first was held out of a part of what the second has learned from, by
    another split."""
    whole = tiny_recipe_of(task, tmp_path, *SHORT, *changes)
    less = with_less_text(whole, tmp_path, 90)
    less = less.change(["data.split.test=0.4"])
    more = whole.change(["data.split.test=0.1"])
    return trained_run(less, tmp_path / "less"), trained_run(more, tmp_path / "more")


@pytest.mark.parametrize("task", ["translation", "classification"])
def test_texts_that_a_run_has_learned_from_are_counted(
    task: str, tmp_path: Path, dragoman: Dragoman
) -> None:
    less, more = two_runs(task, tmp_path)
    test = [pair.source for pair in plain_pairs(less.recipe, "test")]
    learned = {pair.source for pair in plain_pairs(more.recipe, "train")}
    seen = sum(source in learned for source in test)
    assert 0 < seen < len(test) - 9, "or the test shows nothing"
    said = dragoman("compare", less.folder, more.folder, "--samples", "20", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    words = f"more has learned from {seen} of the {len(test)} test texts"
    assert [one for one in found["warnings"] if words in one]
    assert not [one for one in found["warnings"] if one.startswith("less has")]
    assert found["unseen"]["sentences"] == len(test) - seen
    table = dragoman("compare", less.folder, more.folder, "--samples", "20").out
    assert f"warning: {words}" in table and "none of them was trained on:" in table
    # The same figures as on a file of what is left.
    again = dragoman("compare", less.folder, less.folder, "--samples", "20", "--json")
    assert json.loads(again.out)["unseen"] is None and "has learned from" not in again.out
    # Without its text a run still knows it by hashes.
    for path in tmp_path.glob("my.*"):
        path.unlink()
    assert words in dragoman("compare", less.folder, more.folder, "--samples", "20").out
    shutil.rmtree(more.folder / "learned")
    said = dragoman("compare", less.folder, more.folder, "--samples", "20")
    assert "whether more has learned from any of the" in said.out and said.code == 0


@pytest.mark.slow  # a parser is trained; labels and trees are looked at above
def test_trees_that_a_parser_has_learned_from_are_counted(tmp_path: Path) -> None:
    """Of a file that all are measured on."""
    run = trained_run(tiny_recipe_of("parsing", tmp_path, *SHORT), tmp_path / "run")
    found = compare_runs(
        ComparisonRequest([run.folder, run.folder], tmp_path / "toy.mrg", samples=10)
    )
    learned = len({pair.source for pair in plain_pairs(run.recipe, "train")})
    seen = f"run has learned from {learned} of the 120 test texts"
    told = f"{seen}: the scores of run on them may be too high"
    assert told in found.warnings and 50 < learned < 110
    assert found.unseen is not None and found.unseen.sentences == 120 - learned


def test_what_is_left_is_compared_as_a_set_of_its_own(tmp_path: Path) -> None:
    less, more = two_runs("translation", tmp_path)
    compared = compare(ComparisonRequest([less.folder, more.folder], samples=20)).compared
    learned = {pair.source for pair in plain_pairs(more.recipe, "train")}
    left = [pair for pair in plain_pairs(less.recipe, "test") if pair.source not in learned]
    for name, lines in (("s", [p.source for p in left]), ("t", [p.target for p in left])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    alone = compare(
        ComparisonRequest([less.folder, more.folder], tmp_path / "s", [tmp_path / "t"], samples=20)
    )
    assert compared.unseen is not None
    for one, other in zip(
        compared.unseen.comparisons, alone.compared.quality.comparisons, strict=True
    ):
        assert [s.value for s in one.scores] == pytest.approx([s.value for s in other.scores])


def test_nobody_wins_where_nothing_has_learned(tmp_path: Path, dragoman: Dragoman) -> None:
    """Two outputs of noise, of which one is surely better by some tenths of BLEU."""
    lines = [f"Der {noun} schläft heute im {place} ." for noun in ("Hund", "Bär", "Wal", "Ochse")
             for place in ("Wald", "Haus", "Meer", "Feld", "Zoo")]  # fmt: skip
    noise = {"a": [f"x{n} y z" for n in range(20)], "b": [f". heute im q{n}" for n in range(20)]}
    noise["c"] = [lines[0]] * 20
    for name, content in {"reference": lines, **noise}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    files = [tmp_path / "a", tmp_path / "b"]
    found = compare(ComparisonRequest(files, references=[tmp_path / "reference"])).compared
    assert not found.quality.learned and "*" not in found.table()
    assert found.warnings[0].startswith("nothing has learned yet: BLEU is ")
    # Who writes the same sentence whatever it reads has learned nothing either.
    found = compare(
        ComparisonRequest([*files, tmp_path / "c"], references=[tmp_path / "reference"])
    ).compared
    assert not found.quality.learned
    better = [line if n % 2 else lines[0] for n, line in enumerate(lines)]
    (tmp_path / "d").write_text("".join(f"{line}\n" for line in better), encoding="utf-8")
    found = compare(
        ComparisonRequest([*files, tmp_path / "d"], references=[tmp_path / "reference"])
    ).compared
    assert found.quality.learned and not found.warnings and "*" in found.table()


def test_labels_and_trees_that_are_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained_run(tiny_recipe_of("classification", tmp_path, *SHORT), tmp_path / "labels")
    rows = [f"animals\tbread soup {n}\n" for n in range(15)]
    rows += [f"food\tdog cat {n}\n" for n in range(6)]
    (tmp_path / "wrong.tsv").write_text("".join(rows), encoding="utf-8")
    found = compare_runs(
        ComparisonRequest([run.folder, run.folder], tmp_path / "wrong.tsv", samples=10)
    )
    assert not found.quality.learned and "accuracy is" in found.warnings[0]
    parser = trained_run(tiny_recipe_of("parsing", tmp_path, *SHORT), tmp_path / "parser")
    trees = tmp_path / "few.mrg"
    lines = (tmp_path / "toy.mrg").read_text(encoding="utf-8").splitlines(keepends=True)
    trees.write_text("".join(lines[:30]), encoding="utf-8")
    found = compare_runs(ComparisonRequest([parser.folder, parser.folder], trees, samples=10))
    assert not found.quality.learned and "F1 is" in found.warnings[0]
    gold = {" ".join(tree.words): tree for tree in treebank(120)}

    def stream(self: Parser, sentences: Iterable[str], _: object = None) -> Iterator[list[Parse]]:
        yield from ([Parse(gold[sentence], 0.0, ())] for sentence in sentences)

    monkeypatch.setattr(Parser, "stream", stream)
    found = compare_runs(ComparisonRequest([parser.folder, parser.folder], trees, samples=10))
    assert found.quality.learned


def test_runs_of_different_languages_are_refused(tmp_path: Path, dragoman: Dragoman) -> None:
    for task in ("translation", "classification"):
        (tmp_path / task).mkdir()
        recipe = tiny_recipe_of(task, tmp_path / task, *SHORT)
        run = trained_run(recipe, tmp_path / task / "one")
        said = {}
        for code in ("fr", "en-GB", "und"):
            other = tmp_path / task / code
            trained_run(recipe.change([f"languages.source={code}"]), other)
            said[code] = dragoman("compare", run.folder, other, "--samples", "10")
        if recipe.languages.source != "und":
            assert said["fr"].code == 1 and "only runs of the same languages can" in said["fr"].err
            assert str(tmp_path / task / "fr") in said["fr"].err
        assert said["en-GB"].code == said["und"].code == 0, said


def test_samples_stand_side_by_side(tmp_path: Path, dragoman: Dragoman) -> None:
    lines = ["Ein Hund.", "Eine Katze.", "Ein Bär \x1b[31m."]
    for name, wrong in (("a", 0), ("b", 1)):
        said = [line if n != wrong else "?" * 500 for n, line in enumerate(lines)]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in said), encoding="utf-8")
    (tmp_path / "r").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    words = ("compare", tmp_path / "a", tmp_path / "b", "--reference", tmp_path / "r")
    said = dragoman(*words)
    shown = said.out.split("\n\n")[1:]
    assert len(shown) == 2, "of what they translate alike nothing is shown"
    assert shown[0].splitlines() == [
        "reference  Ein Hund.", f"a          {'?' * 239}…", "b          Ein Hund."
    ]  # fmt: skip
    assert "\x1b" not in said.out
    found = json.loads(dragoman(*words, "--json").out)["samples"]
    assert found[1]["outputs"] == {"a": "Eine Katze.", "b": "?" * 500}
    assert next(iter(read_lines(tmp_path / "r"))) == found[0]["reference"]
