"""The form of recordings: a raw example is the path of a file; its rows are frames of sound
(``log_mel.py``), or the frames of a feature file of CMU Sphinx, as in AN4: mel-frequency
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
from dragoman.sources.frames.log_mel import LogMel
from dragoman.sources.frames.recording_file import Recording, library, name_of
from dragoman.sources.frames.recordings import Floats, blocks_of, costly_seconds, samples_of
from dragoman.sources.frames.settings import COEFFICIENTS, FramesSource
from dragoman.sources.shared.files import File, reading
from dragoman.sources.shared.rows_form import Cells, Extent, Rows, RowsForm, check_count, low

FEATURE_FILE = ".mfc"
"""The ending of a file of coefficients."""
_LARGEST = 50 << 20
"""The most bytes of a feature file: nearly three hours of sound."""


def read_features(path: Path) -> Floats:
    """Return (T, 13) of a feature file of Sphinx, which has the number of floats and the floats,
    in either byte order. Errors: ``DataError`` for a file that is missing or damaged."""
    with reading(path), path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise DataError(f"{path} has more than the {_LARGEST:,} bytes that are allowed. Split it")
    count = (len(content) - 4) // 4
    orders = (sign for sign in "><" if content[:4] == np.array(count, f"{sign}i4").tobytes())
    order = next(orders, None)
    if order is None or count <= 0 or count % COEFFICIENTS or len(content) % 4:
        raise DataError(
            f"{path} is damaged or not a feature file with {COEFFICIENTS} coefficients per "
            f"frame: its {len(content):,} bytes do not match its header"
        )
    features = np.frombuffer(content[4:], f"{order}f4").astype(np.float32)
    features = features.reshape(-1, COEFFICIENTS)
    if not (right := np.isfinite(features)).all():
        frame = int(np.argwhere(~right)[0][0])
        raise DataError(f"{path}: frame {frame:,} contains a value that is not a number")
    return features


_WIDEST = 1_024
"""The most columns of a picture."""
_SPREAD = 2.5
"""A picture shows this many standard deviations on either side of the mean."""


_STRETCH_SECONDS, _MOST_STRETCHES = 0.25, 24
"""The least length of a cell, and the most cells from left to right."""
_RANGES = 4
"""The number of ranges of bands from top to bottom."""


@dataclass(frozen=True)
class StretchCells(Cells):
    """The cells of a recording are stretches of time and ranges of bands, the highest at the
    top."""

    stretch: int
    """The number of frames in a cell."""

    def without(self, values: Rows, hidden: Sequence[int]) -> Rows:
        copy, width = values.copy(), values.shape[1]
        for cell in hidden:
            down, across = divmod(cell, self.columns)
            low, high = (width * (self.rows - down - k) // self.rows for k in (1, 0))
            # Bands are normalised, so their mean is 0.
            copy[across * self.stretch : (across + 1) * self.stretch, low:high] = 0
        return copy

    def row_of(self, cell: int, rows: int) -> int:
        """Return the row at the middle of the cell's stretch."""
        begin = cell % self.columns * self.stretch
        middle = (begin + min(begin + self.stretch, self.read)) // 2
        return min(middle * rows // self.read, rows - 1)

    def spread(self, rows: int) -> tuple[int, int]:
        return 1, rows


class FramesForm(RowsForm):
    """The form of frames of sound, in float16."""

    settings: FramesSource
    row_type = "float16"

    def __init__(self, settings: FramesSource) -> None:
        self.settings = settings
        self._features = LogMel(settings)

    def rows(self, raw: str) -> Rows:
        if not raw.endswith(FEATURE_FILE):
            return _last(self.in_turns(raw))
        if self.settings.features != "mfcc":
            raise DataError(f'{raw} is a feature file. Use it with source.features = "mfcc"')
        return low(self._features.normalise([read_features(Path(raw))]))

    def rows_of(self, blocks: Iterable[Floats], name: str) -> Rows:
        """Return (T, F) of samples at the model's rate, block by block. ``name`` is for
        messages. Errors: ``DataError`` for too many frames."""
        return _last(self._of_blocks(blocks, name))

    def check_library(self) -> None:
        library()

    def extent(self, file: File) -> Extent:
        return Extent(seconds=costly_seconds(file))

    def in_turns(self, file: Recording, most: int | None = None) -> Iterator[Rows | None]:
        rate, name = self.settings.rate, name_of(file)
        check_count(name, self._features.frames(samples_of(file, rate)), "frames", most)
        yield from self._of_blocks(blocks_of(file, rate), name, most)

    def _of_blocks(
        self, blocks: Iterable[Floats], name: str, most: int | None = None
    ) -> Iterator[Rows | None]:
        """Yield None after each step, and finally the rows."""
        if self.settings.features == "mfcc":
            raise DataError(f"{name} is a recording, but this model reads feature files (.mfc)")
        parts, count = list[Floats](), 0
        for part in self._features.parts(blocks):
            parts.append(part)
            count += len(part)  # there may be more than the header says
            check_count(name, count, "frames", most)
            yield None
        yield low(self._features.normalise(parts))

    def picture(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """Return a picture with time from left to right and low sounds at the bottom; louder is
        lighter. More than ``_WIDEST`` frames are averaged."""
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
        """Return the second at which each of ``count`` rows of the model begins, as words."""
        step = self._features.hop * self.settings.subsample
        return [f"▁{n * step / self.settings.rate:.2f}s" for n in range(count)]


def _last(steps: Iterator[Rows | None]) -> Rows:
    *_, rows = steps
    assert rows is not None, "they come last"
    return rows
