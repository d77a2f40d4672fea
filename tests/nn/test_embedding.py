"""Position encodings, against the formulas of their papers."""

from __future__ import annotations

import math

import pytest
import torch

from dragoman.nn.embedding import marian, sinusoidal


def test_sinusoidal_is_the_papers_formula() -> None:
    """§3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d)), PE(pos, 2i + 1) = cos of the same."""
    width, places = 6, [0, 1, 7, 300]
    found = sinusoidal(torch.tensor(places), width)
    for row, pos in zip(found.tolist(), places, strict=True):
        for i in range(width // 2):
            angle = pos / 10000 ** (2 * i / width)
            assert row[2 * i] == pytest.approx(math.sin(angle), abs=1e-12)
            assert row[2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-12)


@pytest.mark.parametrize("width", [2, 6, 7, 512])
def test_marians_positions_are_those_of_its_source(width: int) -> None:
    """``sinusoidalPositionEmbeddings`` of Marian, in loops."""
    places, half = [0, 1, 40, 200], width // 2
    found = marian(torch.tensor(places), width).tolist()
    increment = math.log(10000) / (half - 1) if half > 1 else 0.0
    for row, place in zip(found, places, strict=True):
        for i in range(half):
            angle = place * math.exp(i * -increment)
            assert row[i] == pytest.approx(math.sin(angle), abs=1e-12)
            assert row[half + i] == pytest.approx(math.cos(angle), abs=1e-12)
        assert row[2 * half :] == [0.0] * (width % 2)
