"""What an autoencoder of pictures learns from in an update, and what it minimises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from dragoman.data.batches import Values, join_rows, rows_of
from dragoman.data.store import TokenStore
from dragoman.forms.sides import Forms
from dragoman.models.interface import Network
from dragoman.models.picture_codes import scaled
from dragoman.nn.layout import Layout, Sequences
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.training.losses.objectives import Sums


@dataclass(frozen=True)
class PictureBatch:
    """One micro-batch: whole pictures."""

    source: Sequences
    """(P, F) bytes of their patches."""
    ids: tuple[int, ...]
    """Which example of the store each picture is."""

    def __len__(self) -> int:
        """B, the number of pictures."""
        return len(self.ids)

    def to(self, device: torch.device | str) -> PictureBatch:
        """The same batch on another device."""
        return PictureBatch(self.source.to(device), self.ids)

    def split(self) -> tuple[PictureBatch, PictureBatch]:
        """Two batches with half of the pictures each. Raises ValueError if there is but one."""
        if len(self) < 2:
            raise ValueError("a batch of one example cannot be split")
        cut = len(self) // 2
        return self._part(0, cut), self._part(cut, len(self))

    def summary(self) -> str:
        """How large it is."""
        patches = plural(self.source.layout.total, "patch", "patches")
        return f"{plural(len(self), 'picture')}, {patches}"

    def _part(self, first: int, last: int) -> PictureBatch:
        return PictureBatch(rows_of(self.source, first, last), self.ids[first:last])


def picture_batch(pictures: Sequence[Values], ids: Sequence[int] | None = None) -> PictureBatch:
    """Join the patches of B pictures."""
    numbers = range(len(pictures)) if ids is None else (int(one) for one in ids)
    layout = Layout([len(one) for one in pictures])
    return PictureBatch(Sequences(join_rows(pictures), layout), tuple(numbers))


class Pictures:
    """Pictures alone: see ``tasks.shared.examples.Examples``."""

    def __init__(self, store: TokenStore, recipe: Recipe, forms: Forms) -> None:
        self.corpora = store.corpora
        self.lengths: dict[str, npt.NDArray[np.int32]] = {"target": store.lengths["source"] - 1}
        self.sums = None
        self._store = store

    def batch(self, update: int, examples: Sequence[int]) -> PictureBatch:
        return picture_batch([self._store.values("source", one) for one in examples], examples)


class SquaredError:
    """The mean squared error of a picture's pixels, which count from -1 to 1."""

    def __call__(self, model: Network, batch: PictureBatch) -> Sums:
        told = model.project(model.encode(batch.source).rows).float()
        error = F.mse_loss(told, scaled(batch.source.values, told.dtype))
        loss = error * len(batch)
        return Sums(loss, loss.detach(), len(batch))


def squared_error(model: Any, smoothing: float) -> SquaredError:
    """What training minimises; there are no labels to smooth."""
    return SquaredError()
