"""Recordings as a form: a raw example is the path of a file, its rows are frames of sound
(``log_mel.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.forms.rows.log_mel import LogMel
from dragoman.forms.rows.recordings import blocks_of, samples_of
from dragoman.forms.rows.rows_form import Rows, RowsForm, check_count, low
from dragoman.forms.rows.settings import FramesSource


class FramesForm(RowsForm):
    """Frames of sound, in float16."""

    settings: FramesSource
    row_type = "float16"

    def __init__(self, settings: FramesSource) -> None:
        self.settings = settings
        self._bands = LogMel(settings)

    def rows(self, raw: str) -> Rows:
        path, rate = Path(raw), self.settings.rate
        check_count(raw, self._bands.frames(samples_of(path, rate)), "frames")
        return low(self._bands(blocks_of(path, rate)))

    def row_labels(self, values: Sequence[int] | Rows, count: int) -> list[str]:
        """The second at which each of ``count`` rows of the model begins, as a word each."""
        step = self._bands.hop * self.settings.subsample
        return [f"▁{n * step / self.settings.rate:.2f}s" for n in range(count)]
