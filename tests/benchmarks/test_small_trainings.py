"""Trainings of ``benchmarks/small_trainings.py``, and what Send the request to them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import depth  # noqa: E402
import longer  # noqa: E402
from small_trainings import FIRST, Pair, Plan, heldout, train  # noqa: E402

SIZES = {
    "model_dim": 32, "ffn_dim": 32, "encoder_layers": 1, "decoder_layers": 1,
    "attention": {"num_heads": 2}, "dropout": 0.0,
}  # fmt: skip


def drawn(random: np.random.Generator, count: int) -> list[Pair]:
    """The same letter four times: soon learned."""
    letters = random.integers(FIRST, FIRST + 3, count).astype(np.int32)
    return [(np.full(2, letter), np.full(4, letter)) for letter in letters]


def test_it_learns_and_follows_from_its_seed_alone() -> None:
    plan = Plan(updates=60, pairs=16, peak=1e-2, warmup=10)
    asked = drawn(np.random.default_rng(9), 20)
    first, again, other = (train(SIZES, FIRST + 3, plan, seed, drawn) for seed in (1, 1, 2))
    untrained = train(SIZES, FIRST + 3, Plan(1, 16, 1e-9, 0), 1, drawn)
    assert heldout(first, asked) < 0.1 < heldout(untrained, asked)
    assert heldout(first, asked, at_once=3) == pytest.approx(heldout(first, asked), rel=1e-4)
    for one, same, different in zip(
        first.parameters(), again.parameters(), other.parameters(), strict=True
    ):
        assert torch.equal(one, same)
        assert one.numel() < 40 or not torch.equal(one, different)
    letters, whole = longer.right(first, asked)
    assert letters == whole == 1.0
    assert longer.right(untrained, asked)[1] < 1.0


def test_a_loss_of_frequencies_is_their_entropy() -> None:
    pairs = [(np.array([3], np.int32), np.array(t, np.int32)) for t in ([3, 3], [4])]
    # Of five tokens, ends counted, two are 3, one is 4 and two are ends.
    expected = -(4 * np.log(2 / 5) + np.log(1 / 5)) / 5
    assert depth.of_frequencies(pairs, pairs) == pytest.approx(expected)


def test_every_kind_gets_a_row_and_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(longer, "SIZES", SIZES)
    to = tmp_path / "longer.json"
    monkeypatch.setattr(sys, "argv", ["longer.py", "--tiny", "--to", str(to)])
    longer.main()
    rows = json.loads(to.read_text(encoding="utf-8"))["rows"]
    assert {(row["task"], row["positions"]) for row in rows} == {
        (task, kind) for task in longer.TASKS for kind in longer.KINDS[:2]
    }
    assert all(set(row["letters"]) == set(map(str, longer.LENGTHS)) for row in rows)
    assert "sinusoidal" in to.with_suffix(".svg").read_text(encoding="utf-8")
    assert str(to.with_suffix(".svg")) in capsys.readouterr().out
