"""Pictures of one line of text as a form: a raw example is the path of a file, or a text to be
drawn, ``drawn:A dog runs.``. Its rows are the columns of pixels, from left to right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dragoman.forms.rows.drawn_text import DRAWN, drawn
from dragoman.forms.rows.idx import Bytes
from dragoman.forms.rows.in_memory import File
from dragoman.forms.rows.picture_file import library, line_of, picture_size
from dragoman.forms.rows.rows_form import MOST_ROWS, Rows, RowsForm
from dragoman.forms.rows.settings import LineSource
from dragoman.forms.rows.zipped import file_of

_PAPER = 128
"""A picture that is darker than it, for the most part, has light letters on dark paper."""
_WIDEST = 2_048
"""Columns of a picture that is looked at."""


class LinesForm(RowsForm):
    """Columns of pixels, in bytes: paper is 0, ink 255."""

    settings: LineSource
    row_type = "uint8"

    def __init__(self, settings: LineSource) -> None:
        self.settings = settings

    def rows(self, raw: str) -> Rows:
        if not raw.startswith(DRAWN):
            return self._of_file(file_of(raw))
        text = raw.removeprefix(DRAWN)
        return _columns(drawn(text, self.settings.height, self.settings.drawing))

    def check_library(self) -> None:
        library()

    def size_of(self, file: File) -> float:
        """Its pixels."""
        height, width = picture_size(file)
        return height * width

    def in_turns(self, file: File, most: int | None = None) -> Iterator[Rows | None]:
        yield self._of_file(file, most)

    def _of_file(self, file: File, most: int | None = None) -> Rows:
        return _columns(line_of(file, self.settings.height, MOST_ROWS if most is None else most))

    def picture(self, rows: Rows) -> Bytes:
        """The line as it is read, dark on light; its end is left out where it is very long."""
        return np.ascontiguousarray(255 - rows[:_WIDEST].T[:, :, None].astype(np.uint8))

    def row_labels(self, values: Sequence[int] | Rows, count: int) -> list[str]:
        """The column of pixels at which each of ``count`` rows of the model begins, as a word
        each."""
        return [f"▁{n * self.settings.subsample}px" for n in range(count)]


def _columns(pixels: Bytes) -> Bytes:
    """(H, W) of light and dark -> (W, H) of paper and ink."""
    is_dark = np.median(pixels) < _PAPER
    found: Bytes = np.ascontiguousarray((pixels if is_dark else 255 - pixels).T)
    return found
