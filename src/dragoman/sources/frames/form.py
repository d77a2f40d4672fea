"""Recordings as a form: a raw example is the path of a file, its rows are frames of sound
(``log_mel.py``), or the frames of a feature file of CMU Sphinx, as AN4 comes: mel-frequency
cepstral coefficients.

Shapes: T frames, 13 coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError
from dragoman.sources.frames.log_mel import LogMel, normalised
from dragoman.sources.frames.recording_file import Recording, called, library
from dragoman.sources.frames.recordings import Floats, blocks_of, costly_seconds, samples_of
from dragoman.sources.frames.settings import COEFFICIENTS, FramesSource
from dragoman.sources.shared.files import File, unusable
from dragoman.sources.shared.rows_form import Cells, Extent, Rows, RowsForm, check_count, low

FEATURE_FILE = ".mfc"
"""Ending of a file that holds coefficients."""
_LARGEST = 50 << 20
"""Bytes of a feature file: nearly three hours of sound."""


def read_features(path: Path) -> Floats:
    """(T, 13) of a feature file of Sphinx: the number of floats, and these, in either order of
    bytes. Errors: ``DataError`` for a file that is missing or damaged."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        raise unusable(path, error) from error
    if len(content) > _LARGEST:
        raise DataError(f"{path} has more than the {_LARGEST:,} bytes that are read: cut it")
    count = (len(content) - 4) // 4
    orders = (one for one in "><" if content[:4] == np.array(count, f"{one}i4").tobytes())
    order = next(orders, None)
    if order is None or count <= 0 or count % COEFFICIENTS or len(content) % 4:
        raise DataError(
            f"{path} is damaged or no feature file of {COEFFICIENTS} coefficients a frame: its "
            f"{len(content):,} bytes do not go with the number that they begin with"
        )
    found = np.frombuffer(content[4:], f"{order}f4").astype(np.float32)
    found = found.reshape(-1, COEFFICIENTS)
    if not (right := np.isfinite(found)).all():
        frame = int(np.argwhere(~right)[0][0])
        raise DataError(f"{path}: frame {frame:,} holds what is not a number")
    return found


_WIDEST = 1_024
"""Columns of a picture."""
_SPREAD = 2.5
"""Standard deviations that are told apart in it, on either side of the mean."""


_STRETCH_SECONDS, _MOST_STRETCHES = 0.25, 24
"""Of the cells of a recording, from left to right."""
_RANGES = 4
"""Of bands, from top to bottom."""


@dataclass(frozen=True)
class StretchCells(Cells):
    """Stretches of time, and ranges of bands, the highest at the top."""

    stretch: int
    """Frames of a cell."""

    def without(self, values: Rows, hidden: Sequence[int]) -> Rows:
        found, width = values.copy(), values.shape[1]
        for cell in hidden:
            down, across = divmod(cell, self.columns)
            low, high = (width * (self.rows - down - k) // self.rows for k in (1, 0))
            # Bands are normalised: their mean is 0.
            found[across * self.stretch : (across + 1) * self.stretch, low:high] = 0
        return found

    def row_of(self, cell: int, rows: int) -> int:
        """That of the middle of its stretch."""
        begin = cell % self.columns * self.stretch
        middle = (begin + min(begin + self.stretch, self.read)) // 2
        return min(middle * rows // self.read, rows - 1)

    def spread(self, rows: int) -> tuple[int, int]:
        return 1, rows


class FramesForm(RowsForm):
    """Frames of sound, in float16."""

    settings: FramesSource
    row_type = "float16"

    def __init__(self, settings: FramesSource) -> None:
        self.settings = settings
        self._features = LogMel(settings)

    def rows(self, raw: str) -> Rows:
        if not raw.endswith(FEATURE_FILE):
            return _last(self._of_recording(raw))
        if self.settings.features != "mfcc":
            raise DataError(f'{raw} is a feature file: it goes with source.features = "mfcc"')
        return low(self._normalised([read_features(Path(raw))]))

    def rows_of(self, blocks: Iterable[Floats], name: str) -> Rows:
        """(T, F) of samples of the rate that is read, block by block. ``name``: of what they are,
        for messages. Errors: ``DataError`` for too many."""
        return _last(self._of_blocks(blocks, name))

    def check_library(self) -> None:
        library()

    def extent(self, file: File) -> Extent:
        return Extent(seconds=costly_seconds(file))

    def in_turns(self, file: File, most: int | None = None) -> Iterator[Rows | None]:
        return self._of_recording(file, most)

    def _of_recording(self, raw: Recording, most: int | None = None) -> Iterator[Rows | None]:
        rate, name = self.settings.rate, called(raw)
        check_count(name, self._features.frames(samples_of(raw, rate)), "frames", most)
        yield from self._of_blocks(blocks_of(raw, rate), name, most)

    def _of_blocks(
        self, blocks: Iterable[Floats], name: str, most: int | None = None
    ) -> Iterator[Rows | None]:
        """None after each step, and the rows in the end."""
        if self.settings.features == "mfcc":
            raise DataError(
                f"{name} is a recording, and this model reads feature files of CMU Sphinx (.mfc)"
            )
        parts, count = list[Floats](), 0
        for part in self._features.parts(blocks):
            parts.append(part)
            count += len(part)  # there may be more than the header has promised
            check_count(name, count, "frames", most)
            yield None
        yield low(self._normalised(parts))

    def _normalised(self, parts: Sequence[Floats]) -> Floats:
        axis = 0 if self.settings.normalise == "bands" else None
        return normalised(np.concatenate(parts), axis)

    def picture(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """Time from left to right, low sounds at the bottom; the louder, the lighter. More than
        ``_WIDEST`` frames are put together."""
        together = -(-len(rows) // _WIDEST)
        begins = np.arange(0, len(rows), together)
        columns = np.add.reduceat(rows.astype(np.float32), begins)
        columns /= np.diff(begins, append=len(rows))[:, None]
        shares = np.clip(columns / (2 * _SPREAD) + 0.5, 0, 1)
        return (shares.T[::-1, :, None] * 255).astype(np.uint8)

    def cells(self, read: int) -> StretchCells:
        least = max(1, round(_STRETCH_SECONDS * 1000 / self.settings.hop_ms))
        stretch = max(least, -(-read // _MOST_STRETCHES))
        ranges = _RANGES if self.settings.has_bands else 1
        return StretchCells(ranges, -(-read // stretch), read, stretch)

    def row_labels(self, values: Sequence[int] | Rows, count: int) -> list[str]:
        """The second at which each of ``count`` rows of the model begins, as a word each."""
        step = self._features.hop * self.settings.subsample
        return [f"▁{n * step / self.settings.rate:.2f}s" for n in range(count)]


def _last(steps: Iterator[Rows | None]) -> Rows:
    *_, rows = steps
    assert rows is not None, "they come last"
    return rows
