"""Sound -> mel-frequency cepstral coefficients as CMU Sphinx computes them, frame by frame, and the
feature files in which it keeps them.

Each sample less 0.97 of the one before, over the whole recording; frames of 410 samples every 160
in a Hamming window; the power spectrum of 512 points; 40 triangles of unit area, evenly spaced from
130 to 6,800 Hz on the mel scale

    mel(f) = 2595 log10(1 + f / 700),

whose corners are rounded to points of the spectrum; the logarithm; and of its cosine transform
("legacy": the first band counts half) the first 13. All of it at 16,000 samples a second
(https://github.com/cmusphinx/sphinxbase, src/libsphinxbase/fe).

Shapes: N samples, T frames, 13 coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.errors import DataError
from dragoman.forms.rows.log_mel import frames_in_turns
from dragoman.forms.rows.resampling import Floats
from dragoman.forms.rows.settings import COEFFICIENTS
from dragoman.forms.rows.settings import MFCC_RATE as RATE
from dragoman.forms.rows.unusable import unusable

FEATURE_FILE = ".mfc"
"""Ending of a file that holds coefficients."""
_WINDOW, _HOP, _POINTS = 410, 160, 512
_BANDS, _LOWEST, _HIGHEST = 40, 130.0, 6_800.0
_EMPHASIS = 0.97
_FULL_SCALE = 32_768
"""Of samples of 16 bits."""
_FLOOR = 1e-5
"""Of an energy: the logarithm of silence stays finite."""
_LARGEST = 50 << 20
"""Bytes of a feature file: nearly three hours of sound."""


class Mfcc:
    """The coefficients of recordings."""

    hop = _HOP

    def __init__(self) -> None:
        self._shape = np.hamming(_WINDOW)
        self._filters = _triangles()

    def frames(self, samples: int) -> int:
        """T of so many samples: whole frames, one at least."""
        return 1 + max(0, samples - _WINDOW) // _HOP

    def __call__(self, blocks: Iterable[Floats]) -> Floats:
        """A recording in blocks of samples from -1 to 1, in their order -> (T, 13). One that is
        shorter than a frame has zeros behind."""
        return np.concatenate(list(self.parts(blocks)))

    def parts(self, blocks: Iterable[Floats]) -> Iterator[Floats]:
        """The same as it is computed: what each block completes."""
        return map(self._some, frames_in_turns(_emphasised(blocks), _WINDOW, _HOP))

    def _some(self, frames: npt.NDArray[np.float64]) -> Floats:
        """The coefficients of some frames (T, 410)."""
        spectrum = np.fft.rfft(frames * self._shape, _POINTS)
        power = spectrum.real**2 + spectrum.imag**2
        logarithms = np.log(np.maximum(power @ self._filters, _FLOOR))
        found: Floats = (logarithms @ _COSINES).astype(np.float32)
        return found


def _emphasised(blocks: Iterable[Floats]) -> Iterator[npt.NDArray[np.float64]]:
    before = 0.0
    for block in blocks:
        if len(block):
            loud = block.astype(np.float64) * _FULL_SCALE
            yield loud - _EMPHASIS * np.append(before, loud[:-1])
            before = loud[-1]


def _triangles() -> npt.NDArray[np.float64]:
    """(257, 40): how much each point of a spectrum counts in each band. The corners of triangles
    are rounded to points."""
    low, high = 2595 * np.log10(1 + np.array([_LOWEST, _HIGHEST]) / 700)
    edges = 700 * (10 ** (np.linspace(low, high, _BANDS + 2) / 2595) - 1)
    step = RATE / _POINTS
    edges = np.floor(edges / step + 0.5) * step
    begin, middle, end = edges[:-2], edges[1:-1], edges[2:]
    at = (np.arange(_POINTS // 2 + 1) * step)[:, None]
    rising, falling = (at - begin) / (middle - begin), (end - at) / (end - middle)
    found: npt.NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling)) * 2 / (end - begin)
    return found


def _cosines() -> npt.NDArray[np.float64]:
    """(40, 13): the transform of bands into coefficients."""
    middles = (np.arange(_BANDS) + 0.5) * np.pi / _BANDS
    cosines: npt.NDArray[np.float64] = np.cos(np.outer(middles, np.arange(COEFFICIENTS)))
    cosines[0] /= 2
    return cosines / _BANDS


_COSINES = _cosines()


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
