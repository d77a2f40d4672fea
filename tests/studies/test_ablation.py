"""Ablations: which rows a recipe has, what is trained, and what the table says of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Dragoman
from recipe_of_files import recipe_of
from tiny_recipe import TINY

from dragoman.base.errors import DragomanError
from dragoman.runs.recipe.recipe_text import shipped_recipes
from dragoman.studies import records
from dragoman.studies.ablation import Ablation, begin_ablation, estimate
from dragoman.studies.ablation_rows import GROUPS, PAPER_BASE, choose_rows, rows_of
from dragoman.studies.ablation_table import table, write
from dragoman.tasks.catalogue import Recipe

SHORT = ("training.updates=10", "training.average_last=0")  # validated once


@pytest.fixture
def recipe(parallel_text: tuple[Path, Path], tmp_path: Path) -> Path:
    made, _ = recipe_of([str(path) for path in parallel_text], changes=[*TINY, *SHORT])
    made.save(tmp_path / "tiny.toml")
    return tmp_path / "tiny.toml"


def test_the_papers_model_has_the_papers_rows() -> None:
    """Names, settings and figures of table 3, but for the big model."""
    rows = {row.name: row for row in rows_of(Recipe.load("transformer-base"))}
    for row in rows.values():
        if row.paper is not None and row.paper != PAPER_BASE:
            # What the paper changed is what our row changes, at the size of the paper.
            said, here = row.paper.what.lower(), row.what.lower()
            assert said in (here, here.replace("2+2", "2").replace("4+4", "4").replace("8+8", "8"))
    published = {
        name: (row.paper.perplexity, row.paper.bleu) for name, row in rows.items() if row.paper
    }
    assert published == {
        "base": (4.92, 25.8), "heads-1": (5.29, 24.9), "heads-4": (5.00, 25.5),
        "heads-16": (4.91, 25.8), "heads-32": (5.01, 25.4), "key-width-16": (5.16, 25.1),
        "key-width-32": (5.01, 25.4), "layers-2+2": (6.11, 23.7), "layers-4+4": (5.19, 25.3),
        "layers-8+8": (4.88, 25.5), "width-256": (5.75, 24.5), "width-1024": (4.66, 26.0),
        "feed-forward-1024": (5.12, 25.4), "feed-forward-4096": (4.75, 26.2),
        "dropout-0": (5.77, 24.6), "dropout-0.2": (4.95, 25.5), "smoothing-0": (4.67, 25.3),
        "smoothing-0.2": (5.47, 25.7), "positions-learned": (4.92, 25.7),
    }  # fmt: skip
    assert not any(row.cannot for row in rows.values())
    parts = "".join(dict.fromkeys(row.part for row in rows.values()))
    assert parts == "ABCDE"


def test_rows_are_scaled_to_the_recipe() -> None:
    rows = {row.name: row for row in rows_of(Recipe.load("demo"))}
    assert [name for name in rows if name.startswith("heads")] == [
        "heads-1", "heads-2", "heads-8", "heads-16",
    ]  # fmt: skip
    demo = Recipe.load("demo")
    for row in rows.values():
        if not row.cannot and row.changes:
            assert demo.change(row.changes) != demo, row.name
    assert (
        demo.change(rows["slices"].changes).model.model_dump()["attention"]["whole_input"] is False
    )
    norm = rows_of(Recipe.load("demo", ["model.norm=pre"]))
    assert next(row.what for row in norm if row.name == "norm") == "post-norm"
    assert demo.change(rows["no-norm"].changes).model.model_dump()["norm"] == "none"
    for name, other in (("demo", "muon"), ("transformer-base", "muon")):
        base = Recipe.load(name)
        changes = next(row.changes for row in rows_of(base) if row.name == "optimizer")
        assert base.change(changes).training.optimizer.kind == other
    assert demo.change(rows["residual"].changes).model.model_dump()["residual"] is False


def test_what_a_recipe_cannot_have_is_said() -> None:
    rows = rows_of(Recipe.load("demo-recurrent"))
    cannot = {row.name: row.cannot for row in rows if row.cannot}
    assert cannot["heads"] == "recurrent models have no model.attention.num_heads"
    assert {"positions", "norm", "feed-forward", "scaling", "slices", "key-width"} <= cannot.keys()
    assert {"dropout-0", "width-64", "smoothing-0"} <= {row.name for row in rows} - cannot.keys()
    one = rows_of(Recipe.load("demo", ["model.attention.num_heads=1"]))
    assert next(row.cannot for row in one if row.name == "heads-1") == (
        "the paper's 1 head, d_k 512, scaled to it, is the same as the recipe as it is"
    )
    odd = rows_of(Recipe.load("demo", ["model.model_dim=132", "model.ffn_dim=64"]))
    assert "not a multiple of num_heads" in next(row.cannot for row in odd if row.name == "heads-8")


def test_a_row_is_measured_on_the_same_dev_examples() -> None:
    """Sinusoids reach as far as a sentence does, a table of positions ends."""
    short = rows_of(Recipe.load("demo", ["model.positions.maximum=64"]))
    cannot = next(row.cannot for row in short if row.name == "positions-learned")
    assert cannot.startswith("it is measured on other dev examples: sides of up to 64 tokens, not")
    long = rows_of(Recipe.load("demo", ["model.positions.maximum=256"]))
    assert not next(row.cannot for row in long if row.name == "positions-learned")


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_recipe_that_ships_has_rows(name: str) -> None:
    recipe = Recipe.load(name)
    possible = [row for row in rows_of(recipe) if not row.cannot]
    assert len({row.name for row in possible}) == len(possible) > 3
    of_recordings = set() if recipe.source.kind == "frames" else {"synthetic-voices"}
    assert {row.group for row in rows_of(recipe)} == {"base", *GROUPS} - of_recordings


def test_rows_are_named_or_in_groups() -> None:
    rows = rows_of(Recipe.load("demo"))
    assert [row.name for row in choose_rows(rows, ["dropout", "heads-1"])] == [
        "base", "heads-1", "dropout-0", "dropout-0.2",
    ]  # fmt: skip
    assert choose_rows(rows, []) == rows
    with pytest.raises(DragomanError, match="there is no 'haeds'"):
        choose_rows(rows, ["haeds"])
    with pytest.raises(DragomanError, match="nothing to compare"):
        choose_rows(rows_of(Recipe.load("demo-recurrent")), ["heads"])


@pytest.mark.slow  # six trainings; test_every_task.py ablates each task
def test_rows_times_seeds(dragoman: Dragoman, recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ablation"
    words = ("ablate", recipe, "--to", folder, "--seeds")
    said = dragoman(*words, "1,2", "--rows", "smoothing-0,heads-1")
    assert said.code == 0, said.err
    records = {path.stem for path in (folder / "records").iterdir()}
    assert records == {
        f"{row}-seed-{seed}" for row in ("base", "heads-1", "smoothing-0") for seed in (1, 2)
    }
    found = Ablation.open(folder)
    base, heads, smoothing = found.results()
    assert [one.scores["perplexity"].count for one in (base, heads, smoothing)] == [2, 2, 2]
    # Equal updates and tokens; the differences are those of runs of the same seed.
    for same_seed in zip(base.records, heads.records, smoothing.records, strict=True):
        assert {(one.updates, one.tokens) for one in same_seed} == {(10, same_seed[0].tokens)}
    by_hand = [
        one.scores["loss"] - other.scores["loss"]
        for one, other in zip(heads.records, base.records, strict=True)
    ]
    assert heads.differences["loss"].mean == pytest.approx(sum(by_hand) / 2)
    assert heads.differences["loss"].half == pytest.approx(estimate(by_hand).half)
    assert base.differences == {} and heads.differences["loss"].half is not None
    for words_said in ("5.29", "24.9", "-0.9", "1 head, d_k 32", "±", "10 updates"):
        assert words_said in said.out, words_said
    ElementTree.fromstring((folder / "ablation.svg").read_text(encoding="utf-8"))
    with (folder / "ablation.csv").open(encoding="utf-8") as file:
        numbers = {row["row"]: row for row in csv.DictReader(file)}
    assert float(numbers["heads-1"]["more loss"]) == pytest.approx(sum(by_hand) / 2, rel=1e-6)
    assert float(numbers["heads-1"]["paper BLEU"]) == 24.9
    # Another seed joins, the others stay; so does another row.
    before = (folder / "records" / "base-seed-1.json").stat().st_mtime_ns
    assert dragoman(*words, "3", "--rows", "smoothing-0").code == 0
    assert [one.scores["bleu"].count for one in Ablation.open(folder).results()] == [3, 3, 3]
    assert (folder / "records" / "base-seed-1.json").stat().st_mtime_ns == before
    said = dragoman(*words, "1", "--set", "model.dropout=0.5")
    assert said.code == 1 and "another ablation (the recipe" in said.err


def test_a_row_that_fails_is_a_row(recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ablation"
    begun = begin_ablation(
        folder, Recipe.load(recipe), ["smoothing", "norm"], [1, 2], minutes=None, keep=False,
        say=lambda _: None,
    )  # fmt: skip
    (folder / "records").mkdir()
    for training in begun.trainings:
        failed = training.name.startswith("smoothing-0-") or training.name == "norm-seed-2"
        scores = {"loss": 2.0, "perplexity": 7.39, "bleu": 20.0 + len(training.name)}
        record = records.Record(
            name=training.name, changes=list(training.changes), updates=30,
            ended="untrainable" if failed else "finished", scores={} if failed else scores,
        )  # fmt: skip
        path = folder / "records" / f"{training.name}.json"
        path.write_text(record.model_dump_json(), encoding="utf-8")
    lines = table(begun).splitlines()
    assert "0, 2 failed" in next(line for line in lines if " smoothing-0 " in line)
    assert "1, 1 failed" in next(line for line in lines if " norm " in line)
    write(begun)
    svg = (folder / "ablation.svg").read_text(encoding="utf-8")
    assert "label smoothing 0 not measured" in svg
    # A plan of rows that this program does not know is said.
    plan = json.loads((folder / "ablation.json").read_text(encoding="utf-8"))
    (folder / "ablation.json").write_text(json.dumps({**plan, "rows": ["base", "x"]}))
    with pytest.raises(DragomanError, match="this recipe has no row 'x'"):
        _ = Ablation.open(folder).trainings


def test_the_rows_can_be_listed(dragoman: Dragoman) -> None:
    said = dragoman("ablate", "demo-recurrent", "--list")
    assert said.code == 0 and "not possible: recurrent models have no" in said.out
