"""The cells of a file, each of which can be hidden: together they are all of it; no two meet."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.sources.frames.form import FramesForm, FramesSource
from dragoman.sources.line import LinesForm, LineSource
from dragoman.sources.picture.form import PicturesForm, PictureSource
from dragoman.sources.shared.rows import MOST_CELLS, RowsForm

FORMS = {
    "frames": (FramesForm(FramesSource(bands=10)), 203),
    "coefficients": (FramesForm(FramesSource(features="mfcc")), 40),
    "patches": (PicturesForm(PictureSource(height=8, width=12, patch=4)), 6),
    "patches in colour, of which some are read": (
        PicturesForm(PictureSource(height=8, width=12, patch=4, channels=3)), 4,
    ),
}  # fmt: skip


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> tuple[RowsForm, int]:
    return FORMS[request.param]


def test_each_value_that_is_read_is_of_one_cell(form: tuple[RowsForm, int]) -> None:
    source, read = form
    cells = source.cells(read)
    assert cells is not None and cells.count == cells.rows * cells.columns >= cells.count_read
    drawn = np.random.default_rng(0).integers(1, 100, (read, source.width))
    values = drawn.astype(source.row_type)
    values[0] = 200  # that no mean is what stands there
    hidden = np.zeros(values.shape, np.int64)
    for cell in range(cells.count):
        found = cells.without(values, [cell])
        changed = found != values
        hidden += changed
        assert changed.any() == (cell < cells.count_read)
    assert hidden.max() == 1 and hidden.mean() > 0.9  # a mean may be what stood there


def test_a_row_of_the_model_stands_for_each_cell(form: tuple[RowsForm, int]) -> None:
    source, read = form
    cells = source.cells(read)
    assert cells is not None
    rows = -(-read // source.settings.shortens)
    stand = [cells.row_of(cell, rows) for cell in range(cells.count_read)]
    assert all(0 <= row < rows for row in stand)
    first = stand[: min(cells.columns, len(stand))]
    assert first == sorted(first)
    down, across = cells.spread(rows)
    assert down * across >= rows


def test_what_has_no_cells_says_so() -> None:
    many = PictureSource(height=128, width=132, patch=4)
    assert many.patches > MOST_CELLS and PicturesForm(many).cells(many.patches) is None
    assert LinesForm(LineSource()).cells(100) is None
