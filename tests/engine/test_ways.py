"""Which way trains a model the fastest is measured once, kept in the run, and shared by trainings
that are compared."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command_line import Dragoman
from recipe_of_files import recipe_of
from safetensors.torch import load_file
from tiny_recipe import TINY

from dragoman.runs.run import WAYS
from dragoman.studies.records import BASE
from dragoman.tasks import training
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.training import count_updates, resume, train
from dragoman.training import fastest_way
from dragoman.training.checkpoint import Checkpoints
from dragoman.training.fastest_way import MeasuredWays, Timing
from dragoman.training.settings import TrainingWay, this_machine

pytestmark = pytest.mark.system

SHORT = ("training.updates=4", "training.validate_every=2", "training.checkpoint_every=2")


def plain(precision: str) -> TrainingWay:
    return TrainingWay.model_validate(
        {"kernels": "plain", "precision": precision, "threads": 1, "machine": this_machine()}
    )


@pytest.fixture
def recipe(parallel_text: tuple[Path, Path]) -> Recipe:
    return recipe_of([*map(str, parallel_text)], changes=[*TINY, *SHORT])[0]


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> list[TrainingWay]:
    """What was chosen: plain torch in bf16 at first, and in fp32 by whoever asks again."""
    monkeypatch.setenv("DRAGOMAN_MEASURE", "auto")
    # Plain torch imitates bf16 where the processor has none: slow, but it is offered here.
    monkeypatch.setattr("dragoman.training.arithmetic.no_bf16_units", lambda: None)
    made: list[TrainingWay] = []

    def found(*_: Any, **__: Any) -> MeasuredWays:
        made.append(plain("fp32" if made else "bf16"))
        return MeasuredWays(made[-1], {made[-1]: 100.0, plain("fp32"): 50.0})

    monkeypatch.setattr(training, "fastest_way", found)
    return made


def state_of(run: Path) -> tuple[str, str, int]:
    state = Checkpoints(run / "training").latest().state
    return state.kernels, state.precision, state.threads


def quietly(recipe: Recipe, run: Path, **rest: Any) -> list[str]:
    said: list[str] = []
    train(recipe, run, say=said.append, display=False, measure=False, **rest)
    return said


def test_the_choice_and_all_rates_are_in_the_run(
    recipe: Recipe, choices: list[TrainingWay], tmp_path: Path
) -> None:
    (line,) = [one for one in quietly(recipe, tmp_path / "run") if "computed by" in one]
    assert "plain torch in bf16, 1 thread: 100 target tokens/s, 2.0 times" in line
    run = Run.open(tmp_path / "run")
    assert run.recipe.training.way == plain("bf16") == choices[0]
    assert state_of(run.folder) == ("plain", "bf16", 1)
    told = json.loads((run.folder / WAYS).read_text(encoding="utf-8"))
    assert told["chosen"]["precision"] == "bf16"
    assert [one["tokens_per_second"] for one in told["measured"]] == [100.0, 50.0]


def test_a_run_goes_on_by_its_own_way_where_another_would_be_chosen_now(
    recipe: Recipe, choices: list[TrainingWay], tmp_path: Path
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    quietly(recipe, whole)
    # Again by its recipe: nothing is measured, and all bits are the same.
    again = Run.open(whole).recipe
    quietly(again.change(["training.updates=2"]), cut)
    assert len(choices) == 1
    again.save(cut / "recipe.toml")
    said: list[str] = []
    resume(cut, say=said.append, display=False)
    assert len(choices) == 1 and not any("last digits" in one for one in said)
    assert state_of(cut) == state_of(whole) == ("plain", "bf16", 1)
    first, other = (Checkpoints(folder / "training").latest().weights for folder in (whole, cut))
    assert all((first[name] == other[name]).all() for name in first)


def test_a_recipe_of_another_machine_is_measured_anew(
    recipe: Recipe, choices: list[TrainingWay], tmp_path: Path
) -> None:
    there = plain("bf16").model_copy(update={"machine": "another"})
    settings = recipe.training.model_copy(update={"way": there})
    quietly(recipe.model_copy(update={"training": settings}), tmp_path / "run")
    assert len(choices) == 1
    assert Run.open(tmp_path / "run").recipe.training.way == choices[0]


def test_seeds_share_one_choice(
    recipe: Recipe, choices: list[TrainingWay], tmp_path: Path, dragoman: Dragoman
) -> None:
    recipe.save(tmp_path / "recipe.toml")
    done = dragoman(
        "train", tmp_path / "recipe.toml", "--seeds", "1,2", "--to", tmp_path / "both",
        "--set", "training.updates=4",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert len(choices) == 1
    for seed in (1, 2):
        assert state_of(tmp_path / "both" / f"seed-{seed}") == ("plain", "bf16", 1)


def test_trials_of_a_sweep_share_one_choice(
    recipe: Recipe, choices: list[TrainingWay], tmp_path: Path, dragoman: Dragoman
) -> None:
    recipe.save(tmp_path / "recipe.toml")
    dragoman(  # which finds none best: they have learned nothing
        "sweep", tmp_path / "recipe.toml", "--search-space", "model.dropout=0.1,0.2",
        "--trials", "3", "--to", tmp_path / "sweep", "--keep",
    )  # fmt: skip
    assert len(choices) == 1
    assert Recipe.load(tmp_path / "sweep" / BASE).training.way == choices[0]
    runs = sorted((tmp_path / "sweep" / "runs").iterdir())
    assert len(runs) == 3 and {state_of(run) for run in runs} == {("plain", "bf16", 1)}


def test_updates_that_are_counted_for_several_trainings_bring_the_way_along(
    recipe: Recipe, choices: list[TrainingWay], measured_shortly: None
) -> None:
    counted = count_updates(recipe, 0.01, say=lambda _: None)
    assert counted.training.way == choices[0] and len(choices) == 1


@pytest.mark.slow  # it times every way to compute
def test_this_very_model_is_measured(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_MEASURE", "auto")
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fastest_way, "Timing", partial(Timing, most=0.0))
    said = quietly(recipe, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    way = run.recipe.training.way
    assert way is not None and any(one.startswith("computed by ") for one in said)
    assert state_of(run.folder) == (way.kernels, way.precision, way.threads)
    assert load_file(run.folder / "model.safetensors")
    # Found in the cache, the same choice is made for a run that differs in its length alone.
    monkeypatch.setattr(fastest_way, "time_ways", None)
    quietly(recipe.change(["training.updates=2", "seed=3"]), tmp_path / "other")
    assert Run.open(tmp_path / "other").recipe.training.way == way
