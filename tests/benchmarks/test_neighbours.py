"""What stands between two tokens, beside its definition written down, one sum after the other."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from neighbours import Neighbours

SIZE = 6


def texts() -> list[list[int]]:
    draw = random.Random(1)
    lengths = (0, 1, 2, 3, 40, 60)
    return [[draw.choice([0, 1, 2, 2, 3, 3, 3, 4]) for _ in range(n)] for n in lengths]


def written_down(left: int | None, right: int | None) -> list[float]:
    """The module's docstring, token 5 never seen."""
    every = [token for text in texts() for token in text]
    alone = [(every.count(b) + 1) / (len(every) + SIZE) for b in range(SIZE)]

    def sharper(found: list[int], base: list[float]) -> list[float]:
        kinds = len(set(found))
        if not found:
            return base
        return [(found.count(b) + kinds * base[b]) / (len(found) + kinds) for b in range(SIZE)]

    def after(a: int) -> list[int]:
        return [t[i + 1] for t in texts() for i in range(len(t) - 1) if t[i] == a]

    def before(c: int) -> list[int]:
        return [t[i] for t in texts() for i in range(len(t) - 1) if t[i + 1] == c]

    of_left = alone if left is None else sharper(after(left), alone)
    of_right = alone if right is None else sharper(before(right), alone)
    if left is None:
        return of_right
    if right is None:
        return of_left
    product = [a * c / b for a, c, b in zip(of_left, of_right, alone, strict=True)]
    between = [
        t[i + 1] for t in texts() for i in range(len(t) - 2) if (t[i], t[i + 2]) == (left, right)
    ]
    return sharper(between, [p / sum(product) for p in product])


@pytest.mark.parametrize("left", [None, *range(SIZE)])
def test_probabilities_are_as_written_down(left: int | None) -> None:
    counted = Neighbours.train([np.array(t, np.int32) for t in texts()], SIZE)
    for right in (None, *range(SIZE)):
        found = counted(left, right)
        assert found.sum() == pytest.approx(1)
        assert found == pytest.approx(written_down(left, right))
