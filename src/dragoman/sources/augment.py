"""Examples are varied in training. One number determines all changes of an example, so that it is
varied alike in any batch and process, and after a resume.

*Noise in source text*, so that a translator learns to read what people type: typing errors, other
case, and missing punctuation, accents and words. It needs no table of a keyboard or of a language:
a wrong letter is one of the other letters of the text, so it belongs to the same script.

*Pictures* are moved, turned, made larger or smaller, sheared, bent, mirrored, lighter or darker,
partly hidden, or mixed, so that a model learns what stays the same. All moves of pixels are one map
from the places of the new picture to those of the old one, which is interpolated (bilinear; places
outside have the nearest pixel of the border).

*Recordings*: SpecAugment (Park et al., 2019) hides stretches of time and runs of bands, so that a
model learns to rely on what is left. Hidden values become 0, the mean of a normalised recording.
Each mask has a width drawn uniformly from 0 to its limit, and a uniform place; masks may overlap.
The time warp of the paper moves one place and keeps the length; here a whole recording may be
stretched instead, as if it were spoken faster or more slowly (Ko et al., 2015, "Audio Augmentation
for Speech Recognition"), but with its pitch.

Shapes: H, W, C of a picture; T frames, F bands of a recording.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dragoman.base.settings import Settings
from dragoman.forms.form import Values
from dragoman.forms.lexicon import words_in
from dragoman.sources.picture.idx import Bytes

Floats = npt.NDArray[np.float32]
_ERASED = 0.5
"""The share of pictures that have a part hidden."""
_BENDS = 4
"""The number of places along each side that are bent independently; others are interpolated."""
_SHORTEST = 3
"""The letters of the shortest word that gets a typing error."""
_ACCENTS = frozenset({202, 220, 230})
"""The combining classes of marks that are attached to a letter, below it or above it. Vowel signs
and tone marks of scripts such as Devanagari and Thai have other classes and are kept."""


class NoiseSettings(Settings):
    """Noise in the source text of training (Belinkov and Bisk, 2018). Targets stay as they are."""

    typos: float = Field(default=0.0, ge=0, le=1)
    """The share of words with a typing error: two letters exchanged, or one letter left out,
    doubled or replaced. Words of one or two letters have none."""
    words: float = Field(default=0.0, ge=0, lt=1)
    """The share of words that are left out (word dropout)."""
    case: float = Field(default=0.0, ge=0, le=1)
    """The share of texts in lower case."""
    punctuation: float = Field(default=0.0, ge=0, le=1)
    """The share of texts without punctuation."""
    accents: float = Field(default=0.0, ge=0, le=1)
    """The share of texts whose letters have no accents."""
    texts: float = Field(default=0.5, gt=0, le=1)
    """The share of texts that may have noise; all other texts are read as they are."""

    KINDS: ClassVar = ("typos", "words", "case", "punctuation", "accents")

    @property
    def is_on(self) -> bool:
        """True if any text gets noise."""
        return any(getattr(self, kind) for kind in self.KINDS)


def with_noise(text: str, settings: NoiseSettings, seed: int) -> str:
    """Return a text with the noise that ``seed``, from 0, selects. A text that would be empty is
    returned as it is."""
    draw = np.random.default_rng(seed)
    if draw.random() >= settings.texts:
        return text
    noisy = text
    if draw.random() < settings.accents:
        noisy = without_accents(noisy)
    if draw.random() < settings.punctuation:
        noisy = without_punctuation(noisy)
    if draw.random() < settings.case:
        noisy = noisy.lower()
    if settings.words:
        noisy = _change_words(noisy, settings.words, draw, lambda word: "")
        noisy = " ".join(noisy.split())
    if settings.typos:
        letters = sorted({letter for letter in noisy if letter.isalpha()})
        noisy = _change_words(noisy, settings.typos, draw, lambda word: typo(word, letters, draw))
    return noisy if noisy.strip() else text


def typo(word: str, letters: list[str], draw: np.random.Generator) -> str:
    """Return a word with one typing error; ``letters`` are those that may replace another. A word
    of fewer than three letters is returned as it is. The first letter is never changed, because
    people rarely mistype it."""
    if len(word) < _SHORTEST:
        return word
    place = int(draw.integers(1, len(word)))
    kind = draw.integers(4)
    if kind == 0 and place + 1 < len(word) and word[place] != word[place + 1]:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if kind == 1:
        return word[:place] + word[place] + word[place:]
    others = [letter for letter in letters if letter not in (word[place], word[place].upper())]
    if kind == 2 and others:
        return word[:place] + others[int(draw.integers(len(others)))] + word[place + 1 :]
    return word[:place] + word[place + 1 :]


def without_accents(text: str) -> str:
    """Return a text whose letters have no accents: é becomes e. Signs that are letters of their own
    script, such as the vowels of Devanagari and the syllables of Korean, stay."""
    marks = unicodedata.normalize("NFD", text)
    kept = "".join(mark for mark in marks if unicodedata.combining(mark) not in _ACCENTS)
    return unicodedata.normalize("NFC", kept)


def without_punctuation(text: str) -> str:
    """Return a text without punctuation. Signs inside a word or a number (don't, 3.5) stay."""
    inside = {place for begin, end in words_in(text) for place in range(begin, end)}
    kept = (
        sign
        for place, sign in enumerate(text)
        if place in inside or not unicodedata.category(sign).startswith("P")
    )
    return " ".join("".join(kept).split())


def _change_words(
    text: str, share: float, draw: np.random.Generator, change: Callable[[str], str]
) -> str:
    """Change a share of the words of a text, each chosen by a draw. Numbers stay as they are."""
    parts, behind = [], 0
    for begin, end in words_in(text):
        word = text[begin:end]
        is_changed = draw.random() < share and not word[0].isdigit()
        changed = change(word) if is_changed else word
        parts += [text[behind:begin], changed]
        behind = end
    return "".join([*parts, text[behind:]])


class PictureAugmentSettings(Settings):
    """Pictures are varied in training. Each limit is that of a number drawn evenly for each picture
    and update."""

    shift: float = Field(default=0.0, ge=0, le=1)
    """The farthest that a picture is moved, across and down, as a share of its size (usually 0.1).
    0: not at all."""
    rotation: float = Field(default=0.0, ge=0, le=180)
    """The largest rotation, in degrees, in both directions (usually 10)."""
    scale: float = Field(default=0.0, ge=0, lt=1)
    """The largest change of size, as a share, larger or smaller (usually 0.1)."""
    shear: float = Field(default=0.0, ge=0, le=1)
    """The largest shear, as a share (usually 0.1)."""
    bend: float = Field(default=0.0, ge=0, le=1)
    """The farthest that parts of a picture are moved against each other, as a share of its size
    (usually 0.05 for handwriting; Simard et al., 2003)."""
    flip: bool = False
    """Mirror every second picture, left to right. Not for digits, letters, or whatever else has a
    left and a right."""
    contrast: float = Field(default=0.0, ge=0, lt=1)
    """The largest change of contrast, as a share (usually 0.3)."""
    brightness: float = Field(default=0.0, ge=0, lt=1)
    """The largest change of brightness, as a share of white (usually 0.1)."""
    erase: float = Field(default=0.0, ge=0, le=1)
    """The largest share of a picture that a rectangle of noise hides, in every second picture
    (usually 0.2; Zhong et al., 2020)."""
    mixup: float = Field(default=0.0, ge=0, le=4)
    """Mix each picture with another one, and their labels in the same shares, which are drawn from
    a beta distribution with this parameter (usually 0.2; Zhang et al., 2018). For labels alone. 0:
    not at all."""

    @property
    def is_on(self) -> bool:
        """True if any property of pictures is varied."""
        others = self.flip, self.contrast, self.brightness, self.erase, self.mixup
        return self.moves or any(others)

    @property
    def moves(self) -> bool:
        """True if pixels are moved, other than by mirroring."""
        return any((self.shift, self.rotation, self.scale, self.shear, self.bend))


def vary(pixels: Bytes, settings: PictureAugmentSettings, seed: int) -> Bytes:
    """Return a copy of a picture (H, W, C), varied by ``seed``, from 0."""
    draw = np.random.default_rng(seed)
    picture = pixels
    if settings.moves:
        picture = read_at(picture, *_places(picture.shape[:2], settings, draw))
    if settings.flip and draw.random() < 0.5:
        picture = picture[:, ::-1]
    if settings.contrast or settings.brightness:
        picture = _lit(picture, settings, draw)
    if settings.erase and draw.random() < _ERASED:
        picture = _erase(picture, settings.erase, draw)
    return np.array(picture)


def _places(
    size: tuple[int, int], settings: PictureAugmentSettings, draw: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return (H, W) rows and (H, W) columns of the old picture for each pixel of the new one."""
    height, width = size
    down, across = _centred_axes(height, width)
    angle = np.deg2rad(_even(draw, settings.rotation))
    larger = (1 + settings.scale) ** _even(draw, 1.0)
    shear = _even(draw, settings.shear)
    cosine, sine = np.cos(angle) / larger, np.sin(angle) / larger
    rows = cosine * down + sine * across
    columns = (cosine * shear - sine) * down + (cosine + sine * shear) * across
    rows += (height - 1) / 2 + height * _even(draw, settings.shift)
    columns += (width - 1) / 2 + width * _even(draw, settings.shift)
    if settings.bend:
        bends = draw.uniform(-settings.bend, settings.bend, (2, _BENDS, _BENDS))
        by_row, by_column = _spread(height), _spread(width)
        rows += height * (by_row @ bends[0] @ by_column.T)
        columns += width * (by_row @ bends[1] @ by_column.T)
    return rows.astype(np.float32), columns.astype(np.float32)


def _even(draw: np.random.Generator, most: float) -> float:
    return float(draw.uniform(-most, most)) if most else 0.0


@lru_cache(maxsize=8)
def _centred_axes(height: int, width: int) -> tuple[Floats, Floats]:
    """Return (H, 1) rows and (1, W) columns, counted from the middle."""
    down = np.arange(height, dtype=np.float32)[:, None] - (height - 1) / 2
    across = np.arange(width, dtype=np.float32)[None] - (width - 1) / 2
    return down, across


def read_at(pixels: Bytes, rows: Floats, columns: Floats) -> Bytes:
    """Return the picture at places (H, W) between its pixels."""
    height, width, _ = pixels.shape
    rows = np.clip(rows, 0, height - 1)
    columns = np.clip(columns, 0, width - 1)
    top, left = rows.astype(np.intp), columns.astype(np.intp)
    down, across = (rows - top)[..., None], (columns - left)[..., None]
    below, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    values = pixels.astype(np.float32)
    above = values[top, left] * (1 - across) + values[top, right] * across
    under = values[below, left] * (1 - across) + values[below, right] * across
    return _in_bytes(above * (1 - down) + under * down)


def _in_bytes(values: Floats) -> Bytes:
    """Return the values rounded and clipped to bytes."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


@lru_cache(maxsize=8)
def _spread(size: int) -> Floats:
    """Return (size, bends): the weight of each bend at each place, interpolated linearly."""
    at = np.linspace(0, _BENDS - 1, size)
    felt: Floats = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(_BENDS))).astype(np.float32)
    return felt


def _lit(pixels: Bytes, settings: PictureAugmentSettings, draw: np.random.Generator) -> Bytes:
    values = pixels.astype(np.float32)
    middle = values.mean()
    more = 1 + _even(draw, settings.contrast)
    return _in_bytes((values - middle) * more + middle + 255 * _even(draw, settings.brightness))


def _erase(pixels: Bytes, most: float, draw: np.random.Generator) -> Bytes:
    """Return a picture with a rectangle of noise, of any shape between 1 to 3 and 3 to 1."""
    height, width, _ = pixels.shape
    share, stretch = draw.uniform(0, most), 3 ** _even(draw, 1.0)
    tall = min(height, round(height * np.sqrt(share * stretch)))
    wide = min(width, round(width * np.sqrt(share / stretch)))
    top, left = (int(draw.integers(0, room + 1)) for room in (height - tall, width - wide))
    copy = np.array(pixels)
    part = copy[top : top + tall, left : left + wide]
    part[:] = draw.integers(0, 256, part.shape, dtype=np.uint8)
    return copy


def mix(pixels: Bytes, others: Bytes, share: float) -> Bytes:
    """Mix ``share`` of one picture with the rest of another of the same size."""
    first, second = pixels.astype(np.float32), others.astype(np.float32)
    return _in_bytes(second + np.float32(share) * (first - second))


def mixing(alpha: float, count: int, seed: int) -> tuple[float, int]:
    """Return the share of a picture, and which of ``count`` examples it is mixed with, by
    ``seed``."""
    draw = np.random.default_rng(seed)
    return float(draw.beta(alpha, alpha)), int(draw.integers(count))


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
