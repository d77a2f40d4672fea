"""CTC beside the decoder: its loss by brute force and by torch, what has no room, training."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_cells import tiny_cell
from torch import Tensor
from torch.nn import functional as F

from dragoman.base.errors import RecipeError
from dragoman.data.batches import Batch, make_batch
from dragoman.models.interface import Memory, Network
from dragoman.nn.layout import Layout
from dragoman.nn.linear import Linear
from dragoman.runs.run import WEIGHTS
from dragoman.sources.frames.form import FramesSource
from dragoman.sources.line import LineSource
from dragoman.sources.shared.rows import RowsSource
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.training import train
from dragoman.training.losses.objectives import (
    JointCtc,
    Sums,
    ctc_loss,
    rows_needed,
    targets_of,
    without_room,
)
from dragoman.training.weights import open_weights

OUTPUTS, WIDTH = 3, 5
BLANK = OUTPUTS


class Heads(torch.nn.Module):
    """A model that has nothing but the head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.ctc = Linear(WIDTH, OUTPUTS + 1)


def memory_of(*lengths: int) -> Memory:
    torch.manual_seed(2)
    return Memory(torch.randn(sum(lengths), WIDTH), Layout(lengths))


def loss_of(memory: Memory, *targets: list[int]) -> float:
    with torch.no_grad():
        found = ctc_loss(Heads(), memory, [torch.tensor(t, dtype=torch.int64) for t in targets])  # type: ignore[arg-type]
    return float(found)


def brute_force(log_probabilities: Tensor, target: list[int]) -> float:
    """-log of the sum over every way to spread a text over the rows."""
    rows, outputs = log_probabilities.shape
    total = 0.0
    for way in itertools.product(range(outputs), repeat=rows):
        merged = [one for one, _ in itertools.groupby(way)]
        if [one for one in merged if one != BLANK] == target:
            total += math.exp(sum(float(log_probabilities[t, one]) for t, one in enumerate(way)))
    return -math.log(total)


@pytest.mark.parametrize("target", [[0], [0, 1], [1, 1], [2, 0, 2], []], ids=str)
def test_the_loss_is_the_sum_over_all_alignments(target: list[int]) -> None:
    memory = memory_of(5)
    with torch.no_grad():
        known = torch.log_softmax(Heads().ctc(memory.rows), dim=-1)
    assert loss_of(memory, target) == pytest.approx(brute_force(known, target), abs=1e-5)


def test_a_batch_is_its_recordings_and_torch_agrees() -> None:
    memory, targets = memory_of(6, 2, 9), ([0, 1, 1], [2], [2, 2, 0, 1])
    rows = memory.rows.split([6, 2, 9])
    alone = sum(
        loss_of(Memory(one, Layout([len(one)])), target)
        for one, target in zip(rows, targets, strict=True)
    )
    assert loss_of(memory, *targets) == pytest.approx(alone, abs=1e-4)
    with torch.no_grad():
        known = torch.log_softmax(Heads().ctc(rows[0]), dim=-1)
    oracle = F.ctc_loss(
        known, torch.tensor([targets[0]]), torch.tensor([6]), torch.tensor([3]), blank=BLANK,
        reduction="sum",
    )  # fmt: skip
    assert loss_of(Memory(rows[0], Layout([6])), targets[0]) == pytest.approx(float(oracle))


def test_recordings_without_room_are_left_out() -> None:
    assert [rows_needed(np.array(t)) for t in ([], [1], [1, 1], [1, 2, 2, 2])] == [0, 1, 3, 6]
    memory = memory_of(2, 4)
    first = Memory(memory.rows[2:], Layout([4]))
    assert loss_of(memory, [1, 1], [1, 1]) == pytest.approx(loss_of(first, [1, 1]), abs=1e-5)
    model = Heads()
    nothing = ctc_loss(model, memory_of(1), [torch.tensor([1, 2])])  # type: ignore[arg-type]
    nothing.backward()
    assert float(nothing.detach()) == 0 and float(model.ctc.weight.grad.abs().sum()) == 0  # type: ignore[union-attr]


def test_both_losses_are_weighed() -> None:
    batch = make_batch(
        [np.array([3], np.int32)], [np.array([1, 2], np.int32)], bos=0, eos=0, ids=[0]
    )
    assert [one.tolist() for one in targets_of(batch)] == [[1, 2]]

    class Reads(Heads):
        def encode(self, source: object) -> Memory:
            return memory_of(4)

    class Decoder:
        def __call__(self, model: Network, batch: Batch) -> Sums:
            model.encode(batch.source)
            return Sums(torch.tensor(10.0), torch.tensor(7.0), 3)

    found = JointCtc(Decoder(), 0.3)(Reads(), batch)
    assert float(found.loss.detach()) == pytest.approx(
        7 + 0.3 * loss_of(memory_of(4), [1, 2]), abs=1e-5
    )
    assert (float(found.nll), found.tokens) == (7, 3)


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_a_run_learns_by_it_and_is_opened(kind: str, tmp_path: Path) -> None:
    recipe = tiny_cell("translation", kind, "frames", tmp_path / "files").change(
        ["training.ctc_weight=0.3", "training.updates=6", "training.validate_every=0",
         "source.subsample=4", "text.kind=char"]
    )  # fmt: skip
    said: list[str] = []
    train(recipe, tmp_path / "run", say=said.append, display=False, measure=False)
    assert any("too short for CTC" in line and ".wav" in line for line in said), said
    with open_weights(tmp_path / "run" / WEIGHTS) as file:
        assert file.shapes["ctc.weight"][1] == recipe.model.model_dim
    assert len(Run.open(tmp_path / "run").model().state_dict()) == len(file.shapes)


def test_it_is_refused_where_nothing_is_heard(tmp_path: Path) -> None:
    for task, kind, source in (
        ("translation", "transformer", "text"), ("classification", "encoder", "frames"),
        ("translation", "transformer", "picture"), ("translation", "convolutional", "frames"),
    ):  # fmt: skip
        recipe = tiny_cell(task, kind, source, tmp_path / f"{task}-{kind}-{source}")
        why = "keys and values" if kind == "convolutional" else "for recordings"
        with pytest.raises(RecipeError, match=f"ctc_weight .*{why}"):
            recipe.change(["training.ctc_weight=0.3"])


def test_the_recipe_of_digits_has_it() -> None:
    assert Recipe.load("fsdd-digits").training.ctc_weight == 0.3


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (FramesSource(subsample=4), "2 recordings are too short .* set source.subsample = 2, or"),
        (FramesSource(subsample=2), "2 recordings are too short .* many: use tokens with longer"),
        (LineSource(subsample=8), "2 pictures are too short .* set source.subsample = 4, or use"),
        (LineSource(subsample=2), "2 pictures are too short .* many: use tokens with longer"),
    ],
)
def test_what_is_too_short_is_called_by_its_name(source: RowsSource, told: str) -> None:
    tokens = [np.array([4, 5]), np.array([6, 6]), np.array([4, 5, 6])]
    store: Any = SimpleNamespace(
        lengths={"source": np.array([4, 4, 4]), "target": np.array([2, 2, 3])},
        tokens=lambda _, example: tokens[example],
        text=lambda _, example: "abc"[example],
    )
    network: Any = SimpleNamespace(memory_length=lambda length: length // 2)
    found = without_room(store, network, source)
    assert found is not None and re.search(told, found) and "(b, c)" in found, found
    network.memory_length = lambda length: length
    assert without_room(store, network, source) is None
