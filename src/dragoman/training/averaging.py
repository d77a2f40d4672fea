"""Averages of weights: over the last snapshots (paper §6.1), and moving along with training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from dragoman.errors import RunError
from dragoman.training.weights import load_weights


def average_weights(files: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of several weights files, summed in fp64; one of them is in memory at a time.

    Raises RunError when there is none, or when their names or shapes differ.
    """
    if not files:
        raise RunError("there are no weights to average: no snapshot was kept.")
    sums: dict[str, Tensor] = {}
    for number, path in enumerate(files):
        tensors = load_weights(path).tensors
        if number == 0:
            sums = {name: tensor.double() for name, tensor in tensors.items()}
            continue
        if {n: t.shape for n, t in tensors.items()} != {n: t.shape for n, t in sums.items()}:
            raise RunError(f"{path} and {files[0]} are weights of different models.")
        for name, tensor in tensors.items():
            sums[name] += tensor
    return {name: (total / len(files)).float() for name, total in sums.items()}


class MovingAverage:
    """An exponential moving average of the flat values: ema ← d · ema + (1 - d) · values.

    The decay grows to its final value as (1 + t) / (10 + t), so that the first weights, which
    are noise, are soon forgotten.
    """

    def __init__(self, values: Tensor, decay: float) -> None:
        """Begins as ``values`` (E,)."""
        self.values = values.clone()
        self.decay = decay

    def follow(self, values: Tensor, step: int) -> None:
        """Take in the ``values`` (E,) after step ``step`` (from 1)."""
        decay = min(self.decay, (1 + step) / (10 + step))
        self.values.lerp_(values, 1 - decay)


def swap(one: Tensor, other: Tensor) -> None:
    """Exchange the contents of two buffers (E,)."""
    kept = one.clone()
    one.copy_(other)
    other.copy_(kept)
