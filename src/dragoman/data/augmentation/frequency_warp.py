"""Another vocal tract (Jaitly and Hinton, 2013, "Vocal Tract Length Perturbation"): the frequencies
of a recording are moved up or down, as if a smaller or a larger person said the same.

What stood at frequency f stands at αf, up to a knee; from there on a line leads to the highest
frequency, which stays:

    g(f) = αf                            where f ≤ k = 4,800 / 8,000 · h · min(α, 1) / α
    g(f) = h - (h - αk) / (h - k) (h - f)   above

A band takes what lies between the two bands around the frequency that was moved to its middle.
Cepstral coefficients are a cosine transform of bands: they are turned back to bands, moved, and
transformed again, which is one matrix of 13 x 13.

Recordings are normalised before they are stored. Where each band or coefficient was normalised by
itself, it is so again after the move. How far each coefficient had spread is then no longer known;
to put what is usual in speech in its place is not nearer to recordings that are played faster.

Shapes: T frames, F numbers in each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dragoman.forms.form import Values
from dragoman.forms.rows import log_mel, mfcc
from dragoman.forms.rows.settings import FramesSource

_KNEE = 0.6
"""Of the highest frequency: their 4,800 Hz of 8,000."""

Floats64 = npt.NDArray[np.float64]


class FrequencyWarp:
    """Moves the frequencies of recordings of one kind."""

    def __init__(self, source: FramesSource) -> None:
        self._is_mfcc = source.features == "mfcc"
        self._of_bands = source.normalise == "bands"
        self._middles = mfcc.MIDDLES if self._is_mfcc else log_mel.middles(source)
        self._highest = source.rate / 2
        self._into_bands = np.linalg.pinv(mfcc.COSINES)

    def __call__(self, rows: Values, alpha: float) -> Values:
        """(T, F) normalised rows -> the same with every frequency ``alpha`` times as high."""
        moved = rows.astype(np.float32) @ self.matrix(alpha).astype(np.float32)
        return (log_mel.normalised(moved) if self._of_bands else moved).astype(rows.dtype)

    def matrix(self, alpha: float) -> Floats64:
        """(F, F): by which a row is multiplied from the right."""
        bands = self._of_moved_bands(alpha)
        if not self._is_mfcc:
            return bands
        return self._into_bands @ bands @ mfcc.COSINES

    def _of_moved_bands(self, alpha: float) -> Floats64:
        """(F, F): each column a band, as the sum of the two from between which it was moved."""
        middles, count = self._middles, len(self._middles)
        at = np.interp(middles, moved(middles, alpha, self._highest), np.arange(count))
        before = np.minimum(at.astype(np.intp), count - 2) if count > 1 else np.zeros(1, np.intp)
        share = at - before
        found = np.zeros((count, count))
        found[before, np.arange(count)] = 1 - share
        found[before + 1, np.arange(count)] += share
        return found


def moved(frequencies: Floats64, alpha: float, highest: float) -> Floats64:
    """g(f) of each frequency, in Hz."""
    knee = _KNEE * highest * min(alpha, 1) / alpha
    above = highest - (highest - alpha * knee) / (highest - knee) * (highest - frequencies)
    return np.where(frequencies <= knee, alpha * frequencies, above)
