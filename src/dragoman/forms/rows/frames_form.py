"""Recordings as a form: a raw example is the path of a file, its rows are frames of sound
(``log_mel.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dragoman.errors import DataError
from dragoman.forms.rows.log_mel import LogMel, normalised
from dragoman.forms.rows.mfcc import FEATURE_FILE, Mfcc, read_features
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
        is_mfcc = settings.features == "mfcc"
        self._features: LogMel | Mfcc = Mfcc() if is_mfcc else LogMel(settings)

    def rows(self, raw: str) -> Rows:
        rate, name = self.settings.rate, called(raw)
        if raw.endswith(FEATURE_FILE):
            if self.settings.features != "mfcc":
                raise DataError(f'{raw} is a feature file: it goes with source.features = "mfcc"')
            return low(self._normalised(read_features(Path(raw))))
        check_count(name, self._features.frames(samples_of(raw, rate)), "frames")
        return self.rows_of(blocks_of(raw, rate), name)

    def rows_of(self, blocks: Iterable[Floats], name: str) -> Rows:
        """(T, F) of samples of the rate that is read, block by block. ``name``: of what they are,
        for messages. Errors: ``DataError`` for too many."""
        rows = self._features(self._bounded(blocks, name))
        return low(rows if self.settings.features == "log-mel" else self._normalised(rows))

    def _normalised(self, coefficients: Floats) -> Floats:
        return normalised(coefficients, 0 if self.settings.normalise == "bands" else None)

    def _bounded(self, blocks: Iterable[Floats], name: str) -> Iterator[Floats]:
        """The blocks, for as long as they are no more than is read: a header may lie."""
        samples = 0
        for block in blocks:
            samples += len(block)
            check_count(name, self._features.frames(samples), "frames")
            yield block

    def row_labels(self, values: Sequence[int] | Rows, count: int) -> list[str]:
        """The second at which each of ``count`` rows of the model begins, as a word each."""
        step = self._features.hop * self.settings.subsample
        return [f"▁{n * step / self.settings.rate:.2f}s" for n in range(count)]
