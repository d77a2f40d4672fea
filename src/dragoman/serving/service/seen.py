"""What a run reads of a file: as a picture, as cells that can be hidden, and where it looked while
it wrote.

A picture is divided into its patches, sound into stretches of time and four ranges of bands. A
hidden cell has the mean of the picture, or for sound that of its band (Zeiler and Fergus, 2014,
section 4.2), so it works for every kind of model; what is said of what is left shows what the cell
had to do with it.

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
from dragoman.sources.frames.settings import FramesSource
from dragoman.sources.picture.settings import PictureSource
from dragoman.sources.shared.rows_form import Rows, RowsForm

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


MOST_PATCHES = 1_024
"""Of a picture whose patches are cells."""
_STRETCH_SECONDS, _MOST_STRETCHES = 0.25, 24
_RANGES = 4
"""Of bands."""


class Grid(Message):
    """How what is seen is divided into cells that can be hidden: a picture into its patches, sound
    into stretches of time and four ranges of bands, the highest at the top."""

    rows: int
    columns: int


def grid_of(form: RowsForm, count: int) -> Grid | None:
    """The cells of a file of which so many rows are read; None where none could be hidden."""
    settings = form.settings
    if isinstance(settings, PictureSource) and settings.patches <= MOST_PATCHES:
        down, across = settings.grid
        return Grid(rows=down, columns=across)
    if isinstance(settings, FramesSource):
        ranges = _RANGES if settings.features == "log-mel" else 1
        return Grid(rows=ranges, columns=-(-count // _stretch(settings, count)))
    return None


def hidden_cells(told: str) -> tuple[int, ...]:
    """The numbers of cells, separated by commas. Raises Refusal 400."""
    parts = [part.strip() for part in told.split(",")] if told.strip() else []
    if len(parts) > MOST_PATCHES or not all(
        part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts
    ):
        raise _bad_cells("numbers of cells, from 0, separated by commas, such as 3,7")
    return tuple(sorted({int(part) for part in parts}))


def without(form: RowsForm, rows: Rows, cells: Sequence[int], longest: int) -> Rows:
    """The rows, of which ``longest`` are read, with some cells hidden. Raises Refusal 400 for a
    cell that there is not."""
    if not cells:
        return rows
    read = min(len(rows), longest)
    grid = grid_of(form, read)
    if grid is None:
        raise _bad_cells("nothing: this run reads its files in no cells")
    count = grid.rows * grid.columns
    if cells[-1] >= count:
        raise _bad_cells(f"numbers from 0 to {count - 1}, since this file has {count} cells")
    found = rows.copy()
    settings = form.settings
    if isinstance(settings, PictureSource):
        shown = [cell for cell in cells if cell < read]
        by_channel = rows.reshape(-1, settings.channels).mean(axis=0).round()
        found[shown] = np.tile(by_channel, rows.shape[1] // settings.channels)
        return found
    assert isinstance(settings, FramesSource)
    stretch, width = _stretch(settings, read), rows.shape[1]
    for cell in cells:
        down, across = divmod(cell, grid.columns)
        # The highest bands are at the top.
        low, high = (width * (grid.rows - down - k) // grid.rows for k in (1, 0))
        found[across * stretch : (across + 1) * stretch, low:high] = 0  # they are normalised
    return found


def row_of(form: RowsForm, cell: int, read: int, rows: int) -> int:
    """Which of ``rows``, which a model makes of ``read`` patches or frames, stands for a cell: that
    of the patch, or that of the middle of a stretch of sound. Raises Refusal 400 for a cell that is
    not there, or that is behind what is read."""
    grid = grid_of(form, read)
    assert grid is not None
    is_picture = isinstance(form.settings, PictureSource)
    count = min(grid.rows * grid.columns, rows) if is_picture else grid.rows * grid.columns
    if cell >= count:
        raise _bad_cells(f"a number from 0 to {count - 1}, since {count} cells are read", "at")
    if is_picture:
        return cell
    assert isinstance(form.settings, FramesSource)
    stretch = _stretch(form.settings, read)
    begin = cell % grid.columns * stretch
    middle = (begin + min(begin + stretch, read)) // 2
    return min(middle * rows // read, rows - 1)


def _stretch(settings: FramesSource, frames: int) -> int:
    """The frames of a cell."""
    least = max(1, round(_STRETCH_SECONDS * 1000 / settings.hop_ms))
    return max(least, -(-frames // _MOST_STRETCHES))


def _bad_cells(wanted: str, field: str = "hidden") -> Refusal:
    return invalid_request(field, f"{field} takes {wanted}")
