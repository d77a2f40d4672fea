"""The parts of a recording that a run reads, each by itself. ``transcribe``, the server,
``evaluate``, ``compare`` and ``translate`` all cut by this class, so that what is measured is what
is served.

A recording that is no longer than what the model has learned from is read as a whole. A longer one
is cut at its silences (``cutting.py``). Nothing is read where all is silent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dragoman.forms.form import Form
from dragoman.forms.passage import Passage, Piece
from dragoman.forms.rows.frames_form import FramesForm
from dragoman.forms.rows.mfcc import FEATURE_FILE
from dragoman.forms.rows.recording_file import Recording, called
from dragoman.forms.rows.recordings import blocks_of
from dragoman.forms.rows.resampling import Floats
from dragoman.forms.rows.rows_form import Rows
from dragoman.recipe import Recipe
from dragoman.recordings.cutting import (
    CuttingSettings,
    Span,
    cut,
    levels_in_turns,
    spans_of,
    threshold_of,
)


@dataclass(frozen=True)
class RecordingPiece:
    """A part of a recording, as it is read."""

    span: Span
    samples: Floats = field(repr=False)
    rows: Rows = field(repr=False)


class RecordingCutter:
    """Cuts recordings for one run."""

    def __init__(self, form: FramesForm, settings: CuttingSettings) -> None:
        self._form = form
        self.settings = settings

    @classmethod
    def of(
        cls, form: Form, recipe: Recipe, settings: CuttingSettings | None = None
    ) -> RecordingCutter | None:
        """None for a run that reads no recordings. Without ``settings``, parts are as long as
        recordings that the model has learned from may be, and 20 seconds at most."""
        if not isinstance(form, FramesForm):
            return None
        seconds = recipe.bounded_plan.max_source * form.settings.hop_ms / 1000
        return cls(form, settings or CuttingSettings(longest=min(20.0, max(1.0, seconds))))

    def spans(self, recording: Recording) -> tuple[list[Span], float]:
        """The parts of a recording that are read, and how many seconds it has. Nothing is read
        where all is silent."""
        measured = list(self.measuring(recording))
        return self.spans_of([levels for levels, _ in measured], measured[-1][1])

    def measuring(self, recording: Recording) -> Iterator[tuple[Floats, float]]:
        """Block by block the level of each frame, and how many seconds have been read."""
        rate = self._form.settings.rate
        samples = 0

        def counted() -> Iterator[Floats]:
            nonlocal samples
            for block in blocks_of(recording, rate):
                samples += len(block)
                yield block

        for levels in levels_in_turns(counted(), rate):
            yield levels, samples / rate

    def spans_of(self, measured: Sequence[Floats], seconds: float) -> tuple[list[Span], float]:
        """The parts that are read of a recording with these levels."""
        levels = np.concatenate(measured)
        if seconds > self.settings.longest:
            spans = spans_of(levels, self._form.settings.rate, self.settings)
            # The last frame may not be whole.
            return [Span(one.begin, min(one.end, seconds)) for one in spans], seconds
        is_silent = math.isinf(threshold_of(levels))
        return [] if is_silent else [Span(0.0, seconds)], seconds

    def pieces(self, recording: Recording, spans: Sequence[Span]) -> Iterator[RecordingPiece]:
        """What is read of each span, in their order."""
        rate, name = self._form.settings.rate, called(recording)
        of_spans = cut(blocks_of(recording, rate), spans, rate)
        for span, samples in zip(spans, of_spans, strict=True):
            yield RecordingPiece(span, samples, self._form.rows_of([samples], name))

    def passage(self, raw: str) -> Passage:
        """A recording as the pieces that are searched for. A feature file, which has no samples to
        tell silence by, is one piece."""
        if raw.endswith(FEATURE_FILE):
            return Passage("", (Piece(raw, "", self._form.rows(raw)),))
        spans, _ = self.spans(raw)
        pieces = tuple(Piece(raw, "", piece.rows) for piece in self.pieces(raw, spans))
        return Passage("", pieces, spoken=True)
