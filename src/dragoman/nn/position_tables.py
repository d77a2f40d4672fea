"""The tables of ``positions.py`` in numpy, for who translates without torch.

Shapes: n positions from 0 on, D width.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dragoman.nn.settings import PositionSettings

Floats = npt.NDArray[np.float64]


def table(settings: PositionSettings, count: int, width: int) -> npt.NDArray[np.float32]:
    """(count, width): the rows of an encoding that is neither learned nor told a length."""
    made = _TABLES[settings.kind](np.arange(count), width)
    found: npt.NDArray[np.float32] = made.astype(np.float32)
    return found


def _sinusoidal(positions: npt.NDArray[np.int64], width: int) -> Floats:
    """Paper §3.5, sine in the even dimensions, cosine in the odd ones."""
    even = np.arange(0, width, 2, dtype=np.float64)
    angles = positions[:, None] * np.exp(even * (-math.log(10000.0) / width))
    rows = np.zeros((len(positions), width))
    rows[:, 0::2] = np.sin(angles)
    rows[:, 1::2] = np.cos(angles)[:, : width // 2]
    return rows


def _binary(positions: npt.NDArray[np.int64], width: int) -> Floats:
    """Binary digits, lowest first; zeros beyond the 63rd."""
    digits = np.arange(min(width, 63))
    rows = np.zeros((len(positions), width))
    rows[:, : len(digits)] = (positions[:, None] >> digits) & 1
    return rows


def _index(positions: npt.NDArray[np.int64], width: int) -> Floats:
    rows = np.zeros((len(positions), width))
    rows += positions[:, None]
    return rows


def _none(positions: npt.NDArray[np.int64], width: int) -> Floats:
    return np.zeros((len(positions), width))


_TABLES = {"sinusoidal": _sinusoidal, "binary": _binary, "index": _index, "none": _none}
