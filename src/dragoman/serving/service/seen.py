"""How the API tells what a run reads of a file: as a picture, with the cells that can be hidden,
and where the run looked while it wrote.

Shapes: S rows of the encoder, N tokens that were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.engine.engine import Engine
from dragoman.pictures.bitmaps import png_base64
from dragoman.serving.http.messages import Message
from dragoman.serving.http.refusals import Refusal, invalid_request
from dragoman.sources.shared.rows_form import MOST_CELLS, Cells, Rows, RowsForm

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


def drawn(form: RowsForm, rows: Rows) -> dict[str, Any]:
    """What is read, as the fields of a ``SeenFile``."""
    pixels = form.picture(rows)
    return {"width": pixels.shape[1], "height": pixels.shape[0], "png": png_base64(pixels)}


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


class Grid(Message):
    """How what is seen is divided into cells that can be hidden: a picture into its patches, sound
    into stretches of time and four ranges of bands, the highest at the top."""

    rows: int
    columns: int


def grid_of(form: RowsForm, count: int) -> Grid | None:
    """The cells of a file of which so many rows are read; None where none could be hidden."""
    cells = form.cells(count)
    return None if cells is None else Grid(rows=cells.rows, columns=cells.columns)


def hidden_cells(told: str) -> tuple[int, ...]:
    """The numbers of cells, separated by commas. Raises Refusal 400."""
    parts = [part.strip() for part in told.split(",")] if told.strip() else []
    if len(parts) > MOST_CELLS or not all(
        part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts
    ):
        raise _bad_cells("numbers of cells, from 0, separated by commas, such as 3,7")
    return tuple(sorted({int(part) for part in parts}))


def without(form: RowsForm, rows: Rows, cells: Sequence[int], longest: int) -> Rows:
    """The rows, of which ``longest`` are read, with some cells hidden. Raises Refusal 400 for a
    cell that there is not."""
    if not cells:
        return rows
    grid = form.cells(min(len(rows), longest))
    if grid is None:
        raise _bad_cells("nothing: this run reads its files in no cells")
    if cells[-1] >= grid.count:
        raise _bad_cells(
            f"numbers from 0 to {grid.count - 1}, since this file has {grid.count} cells"
        )
    return grid.without(rows, cells)


def row_of(cells: Cells, cell: int, rows: int) -> int:
    """Which of ``rows``, which a model makes of what it reads, stands for a cell. Raises Refusal
    400 for a cell that is not there, or that is behind what is read."""
    count = cells.count_read
    if cell >= count:
        raise _bad_cells(f"a number from 0 to {count - 1}, since {count} cells are read", "at")
    return cells.row_of(cell, rows)


def _bad_cells(wanted: str, field: str = "hidden") -> Refusal:
    return invalid_request(field, f"{field} takes {wanted}")
