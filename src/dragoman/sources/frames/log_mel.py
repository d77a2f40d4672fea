"""The logarithm of the energy in bands of the spectrum of a sound, frame by frame.

The filter bank is Kaldi's: the mean of each frame is subtracted, pre-emphasis of 0.97, a Hann
window to the power of 0.85 ("Povey"), the power spectrum, and triangles evenly spaced on the mel
scale,

    mel(f) = 1127 ln(1 + f / 700),

leave some of 80 bands with a single point. Each band of a recording is then normalised to mean 0
and standard deviation 1, which removes its loudness and the effect of the microphone; or all
bands together, which removes the loudness alone.

Shapes: N samples, T frames, F bands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.sources.frames.recordings import Floats
from dragoman.sources.frames.settings import FramesSource

_LOWEST = 20.0
"""The lowest frequency of the bands, in Hz."""
_EMPHASIS = 0.97
_POINTS = 512
_FLOOR = float(np.finfo(np.float32).eps)
"""The least energy, which keeps the logarithm of silence finite."""
_FULL_SCALE = 32_768
"""The scale of 16-bit samples, at which the floor is far below their noise."""
_TOGETHER = 4_096
"""The number of frames whose spectra are computed together."""
_STILL = 1e-3
"""A band with a smaller standard deviation does not change, and is not scaled up."""


class LogMel:
    """This class computes the bands of recordings for one source."""

    def __init__(self, settings: FramesSource) -> None:
        self.window = max(2, _samples(settings.rate, settings.window_ms))
        self.hop = max(1, _samples(settings.rate, settings.hop_ms))
        self._points = max(_POINTS, 1 << (self.window - 1).bit_length())
        shape = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(self.window) / (self.window - 1))
        self._shape = (shape**0.85).astype(np.float32)
        self._axis = 0 if settings.normalise == "bands" else None
        self._filters = _triangles(settings.bands, self._points, settings.rate)

    def frames(self, samples: int) -> int:
        """Return T for this many samples: whole frames, and at least one."""
        return 1 + max(0, samples - self.window) // self.hop

    def parts(self, blocks: Iterable[Floats]) -> Iterator[Floats]:
        """Yield (T, F) logarithms of energies, not normalised, of a recording in blocks of samples
        from -1 to 1. A recording that is shorter than a frame is padded with zeros."""
        loud = (block * np.float32(_FULL_SCALE) for block in blocks)
        return map(self._some, frames_in_turns(loud, self.window, self.hop))

    def _some(self, frames: Floats) -> Floats:
        """Return the energies of some frames (T, window)."""
        frames = frames - frames.mean(axis=1, keepdims=True)
        before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
        shaped = (frames - _EMPHASIS * before) * self._shape
        spectrum = np.fft.rfft(shaped, self._points)[:, :-1]
        power = spectrum.real**2 + spectrum.imag**2
        energies = power.astype(np.float32) @ self._filters
        logarithms: Floats = np.log(np.maximum(energies, _FLOOR))
        return logarithms

    def normalise(self, parts: Sequence[Floats]) -> Floats:
        """Return the (T, F) of a whole recording with each band normalised to mean 0 and standard
        deviation 1, or all bands together."""
        energies = np.concatenate(parts)
        spread = np.asarray(energies.std(axis=self._axis))
        scaled = (energies - energies.mean(axis=self._axis)) / np.where(spread < _STILL, 1, spread)
        normalised: Floats = scaled.astype(np.float32)
        return normalised


def frames_in_turns(blocks: Iterable[npt.NDArray[Any]], window: int, hop: int) -> Iterator[Any]:
    """Yield whole frames (T, window) of samples that come in blocks, one every ``hop``, some
    thousands together. Without a whole frame, one is padded with zeros."""
    kept, is_empty = np.empty(0, np.float32), True
    for block in blocks:
        kept = np.concatenate([kept, block])
        whole = 1 + (len(kept) - window) // hop if len(kept) >= window else 0
        for first in range(0, whole, _TOGETHER):
            last = min(whole, first + _TOGETHER)
            some = kept[first * hop : (last - 1) * hop + window]
            yield np.lib.stride_tricks.sliding_window_view(some, window)[::hop]
            is_empty = False
        kept = kept[whole * hop :]
    if is_empty:
        yield np.pad(kept, (0, window - len(kept)))[None]


def _samples(rate: int, milliseconds: float) -> int:
    """Return the number of whole samples in that time, as Kaldi counts them."""
    return int(rate * milliseconds / 1000 + 1e-6)  # 18.4 ms of 6,250 Hz: 115, not 114.999...


def _triangles(bands: int, points: int, rate: int) -> Floats:
    """Return (points / 2, F): the weight of each point of a spectrum in each band."""
    edges = np.linspace(_mel(_LOWEST), _mel(rate / 2), bands + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    at = _mel(np.arange(points // 2) * rate / points)[:, None]
    rising, falling = (at - low) / (middle - low), (high - at) / (high - middle)
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


def _mel(hertz: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)
