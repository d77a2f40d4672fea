"""On a GPU, training does what it does on a CPU: every task, kind of model and source.

Where torch finds no GPU nothing of this runs. Two devices are compared in fp32 and without dropout;
they add in different orders, so last digits differ.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_cells import MODELS, tiny_cell, told_cells
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run
from training_toy import Toy, toy_batch, toy_objective

from dragoman import load
from dragoman.nn import dropout
from dragoman.runs.files import read_metrics
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import METRICS, WAYS, Run
from dragoman.tasks.training import resume, train
from dragoman.training import distributed, trainer
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import MakeBatch, Splits
from dragoman.training.settings import TrainingSettings
from dragoman.training.update import Updater

if not torch.cuda.is_available():
    pytest.skip("needs a GPU: make test-gpu", allow_module_level=True)

CELLS = [
    (task, kind, source)
    for (task, source), kinds in told_cells().items()
    for kind in sorted(kinds & MODELS.keys())
]


def losses(run: Path) -> list[float]:
    return [line["nll"] for line in read_metrics(run / METRICS) if line["kind"] == "update"]


def scores(run: Path) -> list[dict[str, float]]:
    return [line["scores"] for line in read_metrics(run / METRICS) if line["kind"] == "validation"]


def on_both(recipe: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Run]:
    """The same training on the GPU and on the CPU."""
    on_gpu = trained_run(recipe, folder / "gpu")
    with monkeypatch.context() as patched:
        patched.setattr(distributed, "own_device", lambda: "cpu")
        on_cpu = trained_run(recipe, folder / "cpu")
    return on_gpu, on_cpu


def assert_alike(recipe: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over ten updates: later ones amplify last digits."""
    recipe = recipe.change(["training.updates=10", "training.validate_every=5"])
    on_gpu, on_cpu = on_both(recipe, folder, monkeypatch)
    assert losses(on_gpu.folder) == pytest.approx(losses(on_cpu.folder), rel=2e-3)
    for one, other in zip(scores(on_gpu.folder), scores(on_cpu.folder), strict=True):
        assert one.keys() == other.keys()
        assert one["loss"] == pytest.approx(other["loss"], rel=5e-3)


@pytest.mark.parametrize(("task", "kind", "source"), CELLS, ids=map("-".join, CELLS))
def test_a_cell_learns_what_it_learns_on_a_cpu(
    task: str, kind: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_alike(tiny_cell(task, kind, source, tmp_path), tmp_path, monkeypatch)


def test_codes_are_learned_as_on_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tiny_recipe_of("codes", tmp_path)
    assert_alike(recipe, tmp_path, monkeypatch)
    low = trained_run(recipe.change(["training.precision=bf16"]), tmp_path / "low")
    assert all(map(math.isfinite, losses(low.folder)))


_CTC = ["training.ctc_weight=0.3", "search.ctc_weight=0.5", "evaluation.dev_sentences=20"]
OPTIONS = {
    "ctc": ("translation", "transformer", "frames", _CTC),
    "ctc-recurrent": ("translation", "recurrent", "frames", _CTC),
    "variational": ("translation", "recurrent", "text",
                    ["model.dropout_kind=variational", "model.dropout=0.3"]),
    "dropout": ("translation", "transformer", "text",
                ["model.dropout=0.3", "model.attention.dropout=0.2"]),
    "sets": ("detection", "transformer", "picture", ["boxes.kind=set", "boxes.most=4"]),
    "guided": ("translation", "transformer", "text", ["training.guided.weight=0.05"]),
    "averages": ("translation", "transformer", "text",
                 ["training.ema=0.9", "training.average_last=2"]),
    "learned": ("translation", "transformer", "text", ["model.positions.kind=learned"]),
}  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_is_learned_as_on_a_cpu(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, kind, source, changes = OPTIONS[option]
    recipe = tiny_cell(task, kind, source, tmp_path).change(changes)
    assert_alike(recipe, tmp_path, monkeypatch)


IN_BF16 = [(*cell, ["model.dropout=0.1"]) for cell in CELLS] + list(OPTIONS.values())


@pytest.mark.parametrize(("task", "kind", "source", "changes"), IN_BF16)
def test_bf16_learns(task: str, kind: str, source: str, changes: list[str], tmp_path: Path) -> None:
    recipe = tiny_cell(task, kind, source, tmp_path)
    run = trained_run(recipe.change(["training.precision=bf16", *changes]), tmp_path / "run")
    (first, *_) = found = losses(run.folder)
    assert all(map(math.isfinite, found))
    assert scores(run.folder)[-1]["loss"] < 0.9 * first


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("seed", [1, 2])
def test_masks_are_those_of_a_cpu(rate: float, seed: int) -> None:
    keys = torch.arange(40, dtype=torch.int32) * 7
    ones = torch.ones(40, 96)
    found = []
    for device in ("cpu", "cuda"):
        with dropout.drawing(seed):
            twice = [dropout.Dropout(rate)(ones.to(device), keys.to(device)) for _ in range(2)]
        found.append(torch.stack(twice).cpu())
    assert torch.equal(*found)


def test_a_run_of_the_gpu_is_used_on_the_cpu(tmp_path: Path) -> None:
    run = trained_run(tiny_recipe_of("translation", tmp_path), tmp_path / "run")
    assert load(run.folder)("A cat sleeps.").text is not None


def test_a_run_that_was_killed_goes_on_as_if_it_had_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = ["model.dropout=0.2", "training.updates=12", "training.validate_every=6"]
    recipe = tiny_recipe_of("translation", tmp_path, *changes, "training.checkpoint_every=6")
    whole = trained_run(recipe, tmp_path / "whole")

    class Killed(Exception):
        pass

    update = Updater.update

    def dying(self: Updater, state: TrainingState, *rest: Any) -> Any:
        if state.update == 8:
            raise Killed
        return update(self, state, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(Updater, "update", dying)
        with pytest.raises(Killed):
            trained_run(recipe, tmp_path / "cut")
    resume(tmp_path / "cut", say=lambda _: None, display=False)
    assert losses(tmp_path / "cut") == pytest.approx(losses(whole.folder), rel=1e-4)


def test_two_trainings_are_alike(tmp_path: Path) -> None:
    """To the last digits; whether to the bit as well is printed (pytest -rP)."""
    recipe = tiny_recipe_of("translation", tmp_path, "model.dropout=0.2", "training.updates=20")
    one, two = (losses(trained_run(recipe, tmp_path / name).folder) for name in ("one", "two"))
    print("equal to the bit:", one == two)
    assert one == pytest.approx(two, rel=1e-4)


class Greedy(Toy):
    """Asks the GPU for more than it has where more than ``most`` sentences come at once."""

    most = 4

    def encode(self, source: Any) -> Any:
        if source.layout.batch > self.most:
            total = torch.cuda.get_device_properties(0).total_memory
            torch.empty(2 * total, dtype=torch.uint8, device="cuda")
        return super().encode(source)


def test_a_batch_that_is_too_large_for_the_gpu_is_halved(tmp_path: Path) -> None:
    def batches(*_: int) -> list[MakeBatch]:
        return [lambda: toy_batch(1, 3), lambda: toy_batch(2, 6)]

    warnings: list[str] = []
    records = []
    for model in (Toy(), Greedy()):
        updater = Updater(
            model, toy_objective(model, 0.0), TrainingSettings(precision="fp32"),
            lambda _: 0.01, Ranks(device="cuda:0"),
        )  # fmt: skip
        state = TrainingState()
        updater.repeat_choices(state)
        folder = tmp_path / type(model).__name__
        folder.mkdir()
        gradients = updater.gradients(1, Splits(folder), warnings.append)
        records.append(updater.update(state, batches, gradients))
    assert len(warnings) == 1
    assert "micro-batch 2 of 2 (6 examples," in warnings[0]
    assert records[0].loss == pytest.approx(records[1].loss)


def test_the_way_is_measured_and_is_of_this_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRAGOMAN_MEASURE")
    recipe = tiny_recipe_of("translation", tmp_path, "training.precision=auto")
    said: list[str] = []
    train(recipe, tmp_path / "run", say=said.append, display=False, epochs=1.0)
    ways = json.loads((tmp_path / "run" / WAYS).read_text())
    rates = {way["precision"]: way["tokens_per_second"] for way in ways["measured"]}
    assert set(rates) == {"fp32", "bf16"}
    assert 0.1 < rates["bf16"] / rates["fp32"] < 100  # the pass that loads code does not count
    name = torch.cuda.get_device_name(0)
    assert name in ways["chosen"]["machine"]
    assert any(line.startswith(f"computed by {name}") for line in said)
    with monkeypatch.context() as patched:  # what was measured is not taken for the CPU's
        patched.setattr(distributed, "own_device", lambda: "cpu")
        train(recipe, tmp_path / "cpu", say=said.append, display=False, epochs=1.0)
    assert name not in json.loads((tmp_path / "cpu" / WAYS).read_text())["chosen"]["machine"]


def test_a_run_of_the_gpu_goes_on_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe_of("translation", tmp_path, "training.updates=8")
    folder = tmp_path / "run"
    monkeypatch.setattr(trainer.Trainer, "_is_done", lambda self: self._state.update >= 4)
    trained_run(recipe, folder)
    monkeypatch.undo()
    monkeypatch.setenv("DRAGOMAN_MEASURE", "off")
    monkeypatch.setattr(distributed, "own_device", lambda: "cpu")
    resume(folder, say=lambda _: None, display=False)
    assert len(losses(folder)) == 8
