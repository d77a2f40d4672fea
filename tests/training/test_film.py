"""The film of a run: which updates it has, what its files hold, and that training ignores it."""

from __future__ import annotations

from itertools import pairwise
from math import log
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from training_toy import ToyRun

from dragoman.training.checkpoint import MOST_PARAMETERS, Film, film_updates
from dragoman.training.settings import FirstPlan, TrainingSettings
from dragoman.training.weights import open_weights, weights_in


@given(updates=st.integers(1, 10**6), length=st.integers(2, 40))
def test_a_film_begins_at_0_ends_at_the_end_and_has_no_more_pictures(
    updates: int, length: int
) -> None:
    chosen = sorted(film_updates(TrainingSettings(updates=updates), length))
    assert len(chosen) <= length
    assert (chosen[0], chosen[-1]) == (0, updates)


def test_the_logarithms_are_evenly_spread() -> None:
    chosen = sorted(film_updates(TrainingSettings(updates=100_000), 20))
    assert len(chosen) == 20 and chosen[:2] == [0, 1]
    steps = [log(b / a) for a, b in pairwise(chosen[1:])]
    assert steps[5:] == pytest.approx([log(100_000) / 18] * len(steps[5:]), rel=0.02)


@pytest.mark.parametrize("length", [0, 1])
def test_short_films(length: int) -> None:
    assert film_updates(TrainingSettings(), length) == frozenset([0][:length])


def test_a_corrected_plan_keeps_what_it_has_and_ends_at_its_own_end() -> None:
    planned = TrainingSettings(updates=1000)
    first = FirstPlan(until=300, updates=1000, validate_every=0, snapshot_every=0, warmup=0)
    corrected = planned.model_copy(update={"updates": 5000, "first_plan": first})
    before, after = (film_updates(settings, 20) for settings in (planned, corrected))
    assert {u for u in after if u <= 300} == {u for u in before if u <= 300}
    assert max(after) == 5000 and len(after) <= 20


def test_its_files_are_the_weights_in_halves_and_training_ignores_them(tmp_path: Path) -> None:
    filmed, plain = ToyRun(tmp_path / "filmed", 20), ToyRun(tmp_path / "plain", 20, {"film": 0})
    for run in (filmed, plain):
        run.train()
    files = sorted((filmed.folder / "film").iterdir())
    assert [int(path.stem) for path in files] == sorted(
        film_updates(TrainingSettings(updates=20), 20)
    )
    assert not (plain.folder / "film").exists()
    for name in ("model", "training/snapshots/00000020"):
        ends = [(run.folder / f"{name}.safetensors").read_bytes() for run in (filmed, plain)]
        assert ends[0] == ends[1]
    last = load_file(plain.folder / "training" / "snapshots" / "00000020.safetensors")
    halves = load_file(files[-1])
    with open_weights(files[-1], filmed=True) as file:
        read = weights_in(file)
        assert file.metadata == {"weights": "last", "update": "20"}
    for name, tensor in last.items():
        assert torch.equal(halves[name], tensor.half())
        assert torch.equal(read[name], tensor.half().float())


def test_a_weight_beyond_fp16_is_cut_off(tmp_path: Path) -> None:
    film = Film(tmp_path / "film", TrainingSettings(), torch.nn.Linear(1, 1))
    film.keep(7, {"w": torch.tensor([1e6, -1e6, 0.5])})
    with open_weights(tmp_path / "film" / "00000007.safetensors", filmed=True) as file:
        kept = weights_in(file)["w"]
    assert kept.tolist() == [65504.0, -65504.0, 0.5]


def test_only_small_models_have_a_film_by_themselves(tmp_path: Path) -> None:
    large = torch.nn.Linear(MOST_PARAMETERS // 10, 10, device="meta")
    small = torch.nn.Linear(MOST_PARAMETERS // 10 - 10, 10, device="meta")
    usual, short = TrainingSettings(), TrainingSettings(film=2)
    assert not Film(tmp_path, usual, large).is_due(0)
    assert Film(tmp_path, usual, small).is_due(0)
    assert Film(tmp_path, short, large).is_due(0) and not Film(tmp_path, short, small).is_due(1)
