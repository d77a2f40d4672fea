"""This module cuts a recording at its silences, by its loudness, and reads the parts.

A frame of 10 ms is loud if its level is above a threshold between the noise of the recording and
its speech, or if it and the frames around it are clearly above the noise of their half minute:
so a speaker who is far quieter than others is kept. Loud frames that are no more than
``silence`` apart belong to one span. A span that is longer than ``longest`` is cut at its
quietest place. An hour is read in flat memory: only one number is kept for each frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view
from pydantic import Field

from dragoman.base.settings import Settings
from dragoman.forms.form import Form, Passage, Piece
from dragoman.sources.frames.form import FEATURE_FILE, FramesForm
from dragoman.sources.frames.recordings import Floats, Recording, blocks_of, name_of
from dragoman.sources.shared.rows import Rows

_FRAME = 0.01
"""The length of a frame in seconds, rounded to whole samples."""
_FAINTEST = -80.0
"""The level in dB of full scale below which a frame is silent in any recording, even one of
digital silence."""
_ABOVE_NOISE = 15.0
"""Speech is above the noise by this many dB, or by ``_SHARE`` of the difference to the speech
level if that is less."""
_SHARE = 0.4
_NOISE, _SPEECH = 10, 95
"""The percentiles of the levels that estimate noise and speech."""
_STEADY = 8.0
"""The median of ``_NEAR`` frames is speech if it is this many dB above the noise of its block,
however quiet it is compared with the rest. The median of steady noise, such as rumble, stays
below."""
_NEAR = 9
_BLOCK = 3_000
"""The number of frames in a block."""
_CLICK = 5
"""Fewer loud frames than this between two silences are no speech."""
_AROUND = 10
"""The quietest place is the middle of this many frames; no silence within a word is as long."""
_END = 1 / 3
"""A span is cut no nearer to its ends than this share of the longest span."""


class CuttingSettings(Settings):
    """The places at which long recordings are cut."""

    longest: float = Field(20.0, ge=1, le=3_600)
    """Seconds of a span at most."""
    silence: float = Field(0.5, ge=0.05, le=60)
    """Seconds between two spans at least."""
    margin: float = Field(0.2, ge=0, le=5)
    """Seconds of silence that are kept before and behind what is loud."""


class Span(NamedTuple):
    """A part of a recording, between two times."""

    begin: float
    """The beginning of the part, in seconds."""
    end: float
    """The end of the part, in seconds."""


def levels_of(blocks: Iterable[Floats], rate: int) -> Floats:
    """Return (T,) the level of each frame in dB of full scale. ``blocks``: samples from -1 to 1
    in their order, ``rate`` per second. An incomplete frame at the end counts."""
    levels = list(levels_in_turns(blocks, rate))
    return np.concatenate(levels) if levels else np.empty(0, np.float32)


def levels_in_turns(blocks: Iterable[Floats], rate: int) -> Iterator[Floats]:
    """Yield what ``levels_of`` returns, block by block."""
    size = _frame(rate)
    kept = np.empty(0, np.float32)
    for block in blocks:
        kept = np.concatenate([kept, block])
        whole = len(kept) // size * size
        yield _levels(kept[:whole].reshape(-1, size))
        kept = kept[whole:]
    if len(kept):
        yield _levels(kept[None])


def _levels(frames: Floats) -> Floats:
    power = np.mean(frames.astype(np.float64) ** 2, axis=1)
    decibels: Floats = (10 * np.log10(np.maximum(power, 1e-12))).astype(np.float32)
    return decibels


def _frame(rate: int) -> int:
    """Return the number of samples in a frame."""
    return max(1, round(rate * _FRAME))


def spans_of(levels: Floats, rate: int, settings: CuttingSettings | None = None) -> list[Span]:
    """Return the spans of a recording with these levels (``levels_of`` at the same ``rate``), in
    their order and without overlaps; none for a silent recording."""
    settings, frame = settings or CuttingSettings(), _frame(rate) / rate
    longest, silence = max(1, int(settings.longest / frame)), round(settings.silence / frame)
    spans = _pad(_loud(levels, silence), round(settings.margin / frame), len(levels))
    return [
        Span(begin * frame, end * frame)
        for first, last in spans
        for begin, end in pairwise([first, *_cuts(levels, first, last, longest), last])
    ]


def threshold_of(levels: Floats) -> float:
    """Return the level in dB above which a frame is loud."""
    heard = levels[levels > _FAINTEST]
    if not len(heard):
        return math.inf
    noise, speech = np.percentile(heard, [_NOISE, _SPEECH])
    if len(heard) < len(levels) * (1 - _NOISE / 100):  # the noise is silence
        noise = _FAINTEST
    above = min(_ABOVE_NOISE, _SHARE * (speech - noise))
    return max(_FAINTEST, float(noise + above))


def _loud(levels: Floats, silence: int) -> list[tuple[int, int]]:
    """Return the first frame and the end of each loud span, with silences of at most ``silence``
    inside."""
    (loud,) = np.nonzero(_is_loud(levels))
    if not len(loud):
        return []
    (apart,) = np.nonzero(np.diff(loud) > silence)
    first = [0, *(apart + 1).tolist()]
    last = [*apart.tolist(), len(loud) - 1]
    return [
        (int(loud[begin]), int(loud[end]) + 1)
        for begin, end in zip(first, last, strict=True)
        if end - begin + 1 >= _CLICK
    ]


def _is_loud(levels: Floats) -> npt.NDArray[np.bool_]:
    """Return (T,) flags, True for a frame that is loud in the whole recording, or in its block."""
    threshold = threshold_of(levels)
    loud = levels >= threshold
    if math.isinf(threshold):
        return loud
    near = np.pad(levels, _NEAR // 2, mode="edge")
    for begin in range(0, len(levels), _BLOCK):
        some = near[begin : begin + _BLOCK + _NEAR - 1]
        medians = np.median(sliding_window_view(some, _NEAR), axis=1)
        noise = float(np.percentile(medians, _NOISE))
        loud[begin : begin + _BLOCK] |= medians > max(_FAINTEST, noise + _STEADY)
    return loud


def _pad(spans: Sequence[tuple[int, int]], margin: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield spans with ``margin`` on both sides, or half of the silence if that is less."""
    ends = [0, *(end for _, end in spans)]
    begins = [*(begin for begin, _ in spans), length]
    for number, (begin, end) in enumerate(spans):
        before = begin - ends[number] if number == 0 else (begin - ends[number]) // 2
        behind = begins[number + 1] - end
        behind = behind if number + 1 == len(spans) else behind // 2
        yield begin - min(margin, before), end + min(margin, behind)


def _cuts(levels: Floats, begin: int, end: int, longest: int) -> Iterator[int]:
    """Yield the frames at which a span is cut so that no part is longer than ``longest``."""
    while end - begin > longest:
        least = max(1, int(longest * _END))
        low = begin + least
        high = min(begin + longest, end - least)
        begin = _quietest(levels, low, max(low, high))
        yield begin


def _quietest(levels: Floats, low: int, high: int) -> int:
    """Return the frame from ``low`` to ``high`` with the quietest surroundings; the last of
    equals."""
    reach = _AROUND // 2
    near = levels[max(0, low - reach) : high + reach + 1].astype(np.float64)
    near = np.pad(near, (max(0, reach - low), max(0, high + reach + 1 - len(levels))), mode="edge")
    around = np.convolve(near, np.ones(2 * reach + 1), mode="valid")
    return high - int(np.argmin(around[::-1]))


def cut(blocks: Iterable[Floats], spans: Iterable[Span], rate: int) -> Iterator[Floats]:
    """Yield the samples of each span. ``blocks``: the whole recording in its order, ``rate``
    samples per second; ``spans``: in their order, without overlaps. Only one span and one block
    are held."""
    source, kept, at = iter(blocks), np.empty(0, np.float32), 0
    for span in spans:
        begin, end = round(span.begin * rate), round(span.end * rate)
        parts = list[Floats]()
        while at < end:
            if not len(kept):
                block = next(source, None)
                if block is None:
                    break
                kept = block
            used = min(len(kept), (begin if at < begin else end) - at)
            if at >= begin:
                parts.append(kept[:used])
            kept, at = kept[used:], at + used
        yield np.concatenate(parts) if parts else np.empty(0, np.float32)


@dataclass(frozen=True)
class RecordingPiece:
    """A part of a recording with its samples and its rows."""

    span: Span
    samples: Floats = field(repr=False)
    rows: Rows = field(repr=False)


class RecordingCutter:
    """This class cuts recordings for one run. ``transcribe``, the server, ``evaluate``,
    ``compare`` and ``translate`` all cut with it, so that what is measured is what is served.

    A recording within the length of the training examples is read whole; a longer one is cut at
    its silences. A silent recording has no parts.
    """

    def __init__(self, form: FramesForm, settings: CuttingSettings) -> None:
        self._form = form
        self.settings = settings

    @classmethod
    def of(
        cls, form: Form, longest: int, settings: CuttingSettings | None = None
    ) -> RecordingCutter | None:
        """Return the cutter of a form; None for a form that reads no recordings. Without
        ``settings``, parts have at most the length of training examples, ``longest`` frames, and
        at most 20 seconds."""
        if not isinstance(form, FramesForm):
            return None
        seconds = longest * form.settings.hop_ms / 1000
        return cls(form, settings or CuttingSettings(longest=min(20.0, max(1.0, seconds))))

    def spans(self, recording: Recording) -> tuple[list[Span], float]:
        """Return the parts of a recording, and its seconds. A silent recording has no parts."""
        measured = list(self.measuring(recording))
        return self.spans_of([levels for levels, _ in measured], measured[-1][1])

    def measuring(self, recording: Recording) -> Iterator[tuple[Floats, float]]:
        """Yield, block by block, the level of each frame, and the seconds that have been read."""
        rate = self._form.settings.rate
        samples = 0

        def read_blocks() -> Iterator[Floats]:
            nonlocal samples
            for block in blocks_of(recording, rate):
                samples += len(block)
                yield block

        for levels in levels_in_turns(read_blocks(), rate):
            yield levels, samples / rate

    def spans_of(self, measured: Sequence[Floats], seconds: float) -> tuple[list[Span], float]:
        """Return the parts of a recording with these levels."""
        levels = np.concatenate(measured)
        if seconds > self.settings.longest:
            spans = spans_of(levels, self._form.settings.rate, self.settings)
            # The last frame may be incomplete.
            return [Span(span.begin, min(span.end, seconds)) for span in spans], seconds
        is_silent = math.isinf(threshold_of(levels))
        return [] if is_silent else [Span(0.0, seconds)], seconds

    def pieces(self, recording: Recording, spans: Sequence[Span]) -> Iterator[RecordingPiece]:
        """Yield the samples and rows of each span, in their order."""
        rate, name = self._form.settings.rate, name_of(recording)
        of_spans = cut(blocks_of(recording, rate), spans, rate)
        for span, samples in zip(spans, of_spans, strict=True):
            yield RecordingPiece(span, samples, self._form.rows_of([samples], name))

    def passage(self, raw: str) -> Passage:
        """Return a recording as pieces for a search. A feature file, which has no samples to
        find silences in, is one piece."""
        if raw.endswith(FEATURE_FILE):
            return Passage("", (Piece(raw, "", self._form.rows(raw)),))
        spans, _ = self.spans(raw)
        pieces = tuple(Piece(raw, "", piece.rows) for piece in self.pieces(raw, spans))
        return Passage("", pieces, spoken=True)
