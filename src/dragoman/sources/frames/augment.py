"""Recordings are varied in training, so that a model learns to rely on what is left. One number
determines all changes, so that a recording of an update is varied alike in any batch and
process, and after a resume.

SpecAugment (Park et al., 2019) hides stretches of time and runs of bands. Hidden values become
0, the mean of a normalised recording. Each mask has a width drawn uniformly from 0 to its limit,
and a uniform place; masks may overlap. The time warp of the paper moves one place and keeps the
length; here a whole recording may be stretched instead, as if it were spoken faster or more
slowly (Ko et al., 2015, "Audio Augmentation for Speech Recognition"), but with its pitch.

Shapes: T frames, F bands of a recording.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from dragoman.base.settings import Settings
from dragoman.forms.form import Values


class SpecAugmentSettings(Settings):
    """SpecAugment: parts of recordings are hidden in training (Park et al., 2019), and recordings
    are varied."""

    time_masks: int = Field(default=0, ge=0, le=100)
    """The number of stretches of time that are hidden in each recording (usually 2). 0: none."""
    time_width: int = Field(default=40, ge=1, le=10_000)
    """The maximum width of such a stretch, in frames."""
    time_share: float = Field(default=0.2, gt=0, le=1)
    """The maximum share of a recording that one stretch hides. Protects short recordings."""
    band_masks: int = Field(default=0, ge=0, le=100)
    """The number of runs of neighbouring bands that are hidden in each recording (usually 2). 0:
    none."""
    band_width: int = Field(default=15, ge=1, le=512)
    """The maximum width of such a run, in bands."""
    stretch: float = Field(default=0.0, ge=0, le=0.5)
    """The largest change of length, as a share (usually 0.1): a recording becomes as much longer or
    shorter, as if it were spoken more slowly or faster. Its pitch stays. 0: none."""

    @property
    def is_on(self) -> bool:
        """True if anything is hidden or varied."""
        return bool(self.time_masks or self.band_masks or self.stretch)


def mask(rows: Values, settings: SpecAugmentSettings, seed: int) -> Values:
    """Return a copy of a recording (T, F), varied and with parts hidden, by ``seed``, from 0."""
    draw = np.random.default_rng(seed)
    copy = np.array(rows)
    if settings.stretch:
        longer = 1 + float(draw.uniform(-settings.stretch, settings.stretch))
        copy = stretch(copy, max(1, round(len(copy) * longer)))
    frames, bands = copy.shape
    longest = min(settings.time_width, int(frames * settings.time_share))
    for _ in range(settings.time_masks):
        begin, end = _span(draw, frames, longest)
        copy[begin:end] = 0
    for _ in range(settings.band_masks):
        begin, end = _span(draw, bands, min(settings.band_width, bands))
        copy[:, begin:end] = 0
    return copy


def stretch(rows: Values, length: int) -> Values:
    """Interpolate (T, F) linearly to (length, F); both ends stay."""
    at = np.linspace(0, len(rows) - 1, length)
    before = at.astype(np.intp)
    after = np.minimum(before + 1, len(rows) - 1)
    share = (at - before)[:, None]
    values = rows[before] * (1 - share) + rows[after] * share
    return values.astype(rows.dtype)


def _span(draw: np.random.Generator, length: int, widest: int) -> tuple[int, int]:
    """Return the beginning of a mask, and its end, excluded."""
    width = int(draw.integers(0, widest + 1))
    begin = int(draw.integers(0, length - width + 1))
    return begin, begin + width
