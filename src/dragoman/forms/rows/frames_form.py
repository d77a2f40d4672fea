"""Recordings as a form: a raw example is the path of a file, its rows are frames of sound
(``log_mel.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dragoman.forms.rows.log_mel import LogMel
from dragoman.forms.rows.recording_file import called
from dragoman.forms.rows.recordings import Floats, blocks_of, samples_of
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
        rate, name = self.settings.rate, called(raw)
        check_count(name, self._bands.frames(samples_of(raw, rate)), "frames")
        return self.rows_of(blocks_of(raw, rate), name)

    def rows_of(self, blocks: Iterable[Floats], name: str) -> Rows:
        """(T, F) of samples of the rate that is read, block by block. ``name``: of what they are,
        for messages. Errors: ``DataError`` for too many."""
        return low(self._bands(self._bounded(blocks, name)))

    def _bounded(self, blocks: Iterable[Floats], name: str) -> Iterator[Floats]:
        """The blocks, for as long as they are no more than is read: a header may lie."""
        samples = 0
        for block in blocks:
            samples += len(block)
            check_count(name, self._bands.frames(samples), "frames")
            yield block

    def row_labels(self, values: Sequence[int] | Rows, count: int) -> list[str]:
        """The second at which each of ``count`` rows of the model begins, as a word each."""
        step = self._bands.hop * self.settings.subsample
        return [f"▁{n * step / self.settings.rate:.2f}s" for n in range(count)]
