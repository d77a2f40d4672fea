"""Recordings as a source: the settings, and the form. A raw example is the path of a file; its rows
are frames of sound (``LogMel``), or the frames of a feature file of CMU Sphinx, as in AN4:
mel-frequency cepstral coefficients.

A frame of sound is the logarithm of the energy in bands of its spectrum. The filter bank is
Kaldi's: the mean of each frame is subtracted, pre-emphasis of 0.97, a Hann window to the power of
0.85 ("Povey"), the power spectrum, and triangles evenly spaced on the mel scale,

    mel(f) = 1127 ln(1 + f / 700),

leave some of 80 bands with a single point. Each band of a recording is then normalised to mean 0
and standard deviation 1, which removes its loudness and the effect of the microphone; or all
bands together, which removes the loudness alone.

Shapes: N samples, T frames, F bands, 13 coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from dragoman.base.errors import DataError
from dragoman.sources.frames.recordings import (
    Floats,
    Recording,
    blocks_of,
    costly_seconds,
    library,
    name_of,
    samples_of,
)
from dragoman.sources.shared.files import File, reading
from dragoman.sources.shared.rows import (
    Cells,
    Extent,
    FrontEndKind,
    Rows,
    RowsForm,
    RowsSource,
    check_count,
    low,
)

FEATURE_FILE = ".mfc"
"""The ending of a file of coefficients."""
_LARGEST = 50 << 20
"""The most bytes of a feature file: nearly three hours of sound."""
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
COEFFICIENTS = 13
"""The numbers in a frame of CMU Sphinx."""


class FramesSource(RowsSource):
    """Recordings, as the energy in the mel bands of their spectrum, frame by frame."""

    kind: Literal["frames"] = "frames"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""
    features: Literal["log-mel", "mfcc"] = "log-mel"
    """The content of a frame. log-mel: the logarithm of the energy in each band; mfcc: the 13
    cepstral coefficients of CMU Sphinx, for corpora that come as its feature files (.mfc), which
    such a model reads instead of recordings. For mfcc, rate, bands, window_ms and hop_ms keep their
    defaults."""
    rate: int = Field(16_000, ge=1_000, le=192_000)
    """The sample rate of the recordings, in Hz."""
    bands: int = Field(80, ge=4, le=512)
    """The number of bands, evenly spaced on the mel scale; each frame has one number per band."""
    window_ms: float = Field(25.0, ge=1, le=1_000)
    """The length of a frame, in milliseconds."""
    hop_ms: float = Field(10.0, ge=1, le=1_000)
    """The distance between the beginnings of two frames, in milliseconds."""
    normalise: Literal["bands", "recording"] = "bands"
    """The way in which a recording is normalised to mean 0 and standard deviation 1. bands: each
    band separately, which removes the effect of the microphone and everything that does not change
    over time; recording: all bands together, which keeps both. Use bands for speech, and recording
    for sounds that differ in pitch or timbre."""
    subsample: Literal[2, 4] = 4
    """The number of frames that are combined into one row of the model, by one convolution for each
    factor of two."""
    channels: int = Field(32, ge=1, le=1_024)
    """The number of channels of these convolutions."""
    band_heads: int = Field(0, ge=0, le=64)
    """Heads of an attention over the frames, before the convolutions. Each head reads its own slice
    of the bands: with 80 bands and 4 heads, 20 bands. Its memory grows with the square of the
    frames of a recording. 0: there is none."""

    units: ClassVar[str] = "frames"
    noun_of_row: ClassVar[str] = "frame"
    raws: ClassVar[str] = "recordings"
    listed_as: ClassVar[str | None] = "spoken"
    without_groups: ClassVar[str] = (
        "warning: the speakers are not known, so a speaker may be in training and in test, and "
        "scores may be too high. Set --groups PATTERN to find the speaker in the file name"
    )
    varied_by: ClassVar[frozenset[str]] = frozenset({"spec_augment", "synthetic_voices"})
    allows_ctc: ClassVar[bool] = True
    drawn_for: ClassVar[frozenset[bool]] = frozenset({True})
    of_front_end: ClassVar[frozenset[str]] = frozenset({"subsample", "channels", "band_heads"})
    hub_tags: ClassVar[Mapping[bool, str]] = {
        True: "automatic-speech-recognition",
        False: "audio-classification",
    }

    @property
    def row_width(self) -> int:
        return self.bands if self.has_bands else COEFFICIENTS

    @property
    def has_bands(self) -> bool:
        return self.features == "log-mel"

    def tells(self, source: str, target: str) -> bool:
        return True

    @property
    def takes(self) -> Mapping[str, int]:
        return {"rate": self.rate}

    def most_rows(self, longest: int, seconds: float) -> int:
        """Return the rows of all these seconds, because a header may be wrong."""
        return 1 + int(seconds * 1000 / self.hop_ms)

    @property
    def shortens(self) -> int:
        return self.subsample

    @property
    def front_end(self) -> FrontEndKind:
        sizes = {"channels": self.channels, "subsample": self.subsample, "heads": self.band_heads}
        return FrontEndKind("frames", {"row_width": self.row_width, **sizes})

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.hop_ms > self.window_ms:
            raise ValueError(
                f"frames of {self.window_ms:g} ms every {self.hop_ms:g} ms skip sound between "
                "them. Set hop_ms to at most window_ms"
            )
        if self.band_heads and self.features == "mfcc":
            raise ValueError(
                'band_heads needs bands, which features = "mfcc" does not have. Set it to 0, or '
                'features to "log-mel"'
            )
        if self.band_heads and self.bands % self.band_heads:
            raise ValueError(
                f"{self.bands} bands cannot be divided among {self.band_heads} heads. Set "
                "band_heads to a number that divides bands"
            )
        for name in ("rate", "bands", "window_ms", "hop_ms"):
            default = type(self).model_fields[name].default
            if self.features == "mfcc" and getattr(self, name) != default:
                raise ValueError(
                    f'{name} has no effect with features = "mfcc", which CMU Sphinx defines. '
                    "Leave it out"
                )
        return self


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
