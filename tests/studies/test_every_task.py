"""Sweeps and ablations of every task there is, and going on with both."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from command_line import Dragoman
from tiny_tasks import tiny_recipe_of

from dragoman.runs.files import read_stored
from dragoman.studies import records
from dragoman.studies.ablation import Ablation, scores_of
from dragoman.studies.records import ranking_score
from dragoman.studies.sweep import Sweep
from dragoman.tasks.catalogue import TASKS, Recipe

pytestmark = pytest.mark.system

SOME = ("translation", "classification", "painting")
"""Of text, of a label, and over rows; the others are slow, as each of them trains four times."""


@pytest.fixture(
    params=[pytest.param(one, marks=() if one in SOME else pytest.mark.slow) for one in TASKS]
)
def recipe(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    tiny_recipe_of(request.param, tmp_path).save(tmp_path / "tiny.toml")
    return tmp_path / "tiny.toml"


def test_a_sweep_of_every_task(dragoman: Dragoman, recipe: Path, tmp_path: Path) -> None:
    """Only labels are learned so soon; of others no trial is the best."""
    folder, task = tmp_path / "sweep", TASKS[Recipe.load(recipe).task]
    said = dragoman(
        "sweep", recipe, "--search-space", "training.schedule.peak=5e-3,1e-3", "--trials", "2",
        "--to", folder,
    )  # fmt: skip
    learned = task.name == "classification"
    assert said.code == (0 if learned else 1), said.err
    assert ("has learned anything yet" in said.err) != learned
    assert (folder / "best.toml").exists() == learned
    records = Sweep.open(folder).records
    assert [(one.ended, one.updates) for one in records] == [("finished", 4)] * 2
    for one in records:
        assert set(one.scores) == set(task.metrics) and one.parameters > 1000
        assert {ranking_score(Recipe.load(recipe))} <= set(one.chance) <= set(one.scores)
    measure = task.measure(ranking_score(Recipe.load(recipe)))
    assert f"dev {measure.head}" in said.out
    (folder / "records" / "trial-2.json").unlink()
    said = dragoman("resume", folder)
    assert "2 of 2: trial-2" in said.out and Sweep.open(folder).records[1].updates == 4


def test_an_ablation_of_every_task(dragoman: Dragoman, recipe: Path, tmp_path: Path) -> None:
    folder, task = tmp_path / "ablation", TASKS[Recipe.load(recipe).task]
    row = "warm-up" if task.name == "codes" else "dropout-0"
    said = dragoman("ablate", recipe, "--rows", row, "--seeds", "1", "--to", folder)
    assert said.code == 0, said.err
    (folder / "records" / f"{row}-seed-1.json").unlink()
    said = dragoman("resume", folder)
    assert said.code == 0, said.err
    base, other = Ablation.open(folder).results()
    assert len(base.records) == len(other.records) == 1
    assert ("No row has learned anything yet" in said.out) == (task.name != "classification")
    # What the task is judged by stands in the table and beside it.
    first = scores_of(Recipe.load(recipe))[0]
    assert other.differences[first].count == 1
    (head,) = (one for one in said.out.splitlines() if re.search(r"\brow\b.*\bparameters\b", one))
    assert task.metrics[first].head in head and f"more {task.metrics[first].called}" in head
    with (folder / "ablation.csv").open(encoding="utf-8") as file:
        numbers = {one["row"]: one for one in csv.DictReader(file)}
    assert float(numbers[row][f"dev {first}"]) == pytest.approx(other.scores[first].mean)
    assert float(numbers[row]["updates"]) == 4


def test_trainings_are_of_equal_length(dragoman: Dragoman, tmp_path: Path) -> None:
    """Patience would end each at another update, and minutes be counted anew in each."""
    ends = ("training.patience=1", "training.minutes=0.01", "training.validate_every=1")
    recipe = tiny_recipe_of("classification", tmp_path, *ends, "training.schedule.peak=0.5")
    recipe.save(tmp_path / "tiny.toml")
    assert recipe.training.patience == 1
    for verb, options in (
        ("sweep", ("--search-space", "training.schedule.peak=0.1,1e-9", "--trials", "3")),
        ("ablate", ("--rows", "dropout-0", "--seeds", "1,2")),
    ):
        said = dragoman(verb, tmp_path / "tiny.toml", *options, "--to", tmp_path / verb)
        assert "training.patience and training.minutes would end some" in said.out, said.err
        found = [
            read_stored(path, records.Record) for path in (tmp_path / verb / "records").iterdir()
        ]
        assert len(found) > 2 and {one.updates for one in found} == {4}
    # Of an older folder, whose trainings patience ended, the table says how many each had.
    path = tmp_path / "ablate" / "records" / "dropout-0-seed-2.json"
    shorter = read_stored(path, records.Record).model_copy(update={"updates": 2})
    path.write_text(shorter.model_dump_json(), encoding="utf-8")
    said = dragoman("resume", tmp_path / "ablate")
    assert "Training runs have 2 to 4 updates" in said.out and "Every training" not in said.out
    (row,) = (line for line in said.out.splitlines() if " dropout-0 " in line)
    assert row.endswith("2 to 4")
    with (tmp_path / "ablate" / "ablation.csv").open(encoding="utf-8") as file:
        numbers = {one["row"]: one["updates"] for one in csv.DictReader(file)}
    assert {name: float(updates) for name, updates in numbers.items()} == {
        "base": 4, "dropout-0": 3
    }  # fmt: skip
