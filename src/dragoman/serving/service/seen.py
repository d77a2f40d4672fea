"""What a run reads of a file, as a picture, and where it looked while it wrote.

Shapes: S rows of the encoder, N tokens that were written.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.engine.engine import Engine
from dragoman.forms.rows.rows_form import Rows, RowsForm
from dragoman.pictures.bitmaps import png_base64
from dragoman.serving.http.messages import Message

MOST_LOOKED = 1_024
"""Rows that are read, and tokens that are written, of what is looked into: weights are kept of each
pair of them."""


class SeenFile(Message):
    """What a model reads of a file, drawn."""

    width: int
    height: int
    png: str
    """The picture in base64."""


class LookedToken(Message):
    """A token that was written."""

    text: str
    looked: list[float]
    """The share of the attention of the last layer that each row of the encoder gets."""


def drawn(form: RowsForm, rows: Rows) -> tuple[int, int, str]:
    """The width, height and PNG of what is read."""
    pixels = form.picture(rows)
    return pixels.shape[1], pixels.shape[0], png_base64(pixels)


def looked(engine: Engine, rows: Rows, tokens: Sequence[int]) -> NDArray[np.float32] | None:
    """(N, S) the shares of the attention of the last layer, the mean of its heads, while each token
    was written; None of a model that attends to nothing, and of what is too long."""
    read = engine.network.memory_length(len(rows))
    if max(read, len(tokens)) > MOST_LOOKED or not engine.network.attentions_of("cross"):
        return None
    shares: NDArray[np.float32] = engine.attention.record(rows, tokens).cross[-1].mean(axis=0)
    return shares[: len(tokens)]


def looked_tokens(names: Sequence[str], shares: NDArray[np.float32] | None) -> list[LookedToken]:
    """Each token with its share of each row, as the API tells it."""
    each = [[]] * len(names) if shares is None else shares.tolist()
    return [LookedToken(text=name, looked=told(row)) for name, row in zip(names, each, strict=True)]


def told(shares: Sequence[float]) -> list[float]:
    """Shares with as many digits as a picture of them needs."""
    return [float(f"{share:.3g}") for share in shares]
