"""The predictor of recordings: a recording in, what is said in it out, with times.

    transcriber = dragoman.Transcriber("runs/talks")
    print(transcriber("talk.wav"))
    transcriber("talk.wav").captions("srt")

Each part of a recording is read by itself (``recordings/cutting.py``): an hour takes the memory of
some parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from dragoman.data.word_links import starts_of, words_of
from dragoman.engine.engine import Engine
from dragoman.engine.search_settings import with_beams
from dragoman.engine.settings import TranslatorSettings
from dragoman.engine.streaming import parts
from dragoman.errors import RunError
from dragoman.forms.rows.recordings import Floats
from dragoman.forms.rows.rows_form import Rows
from dragoman.forms.rows.settings import FramesSource
from dragoman.recordings.captions import CaptionFormat, Segment, SpokenWord, captions
from dragoman.recordings.cutting import CuttingSettings, RecordingCutter, RecordingPiece, Span
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.tasks.translation.ctc_ranking import CtcRanking, ctc_log_probabilities

Progress = Callable[[float, float], None]
"""Is told how many seconds of how many are done."""

_AT_ONCE = 32
"""Parts of a recording that are searched for together."""


@dataclass(frozen=True)
class Transcription:
    """What is said in one recording. ``str(transcription)`` is its text."""

    recording: str
    """Its file; "-" is standard input."""
    segments: tuple[Segment, ...]
    """Its parts in their order, each with its text and when it begins and ends, in seconds."""
    seconds: float
    """How long it is."""
    language: str | None = None
    """The language of the text, as the recipe names it; None where it names none."""

    @property
    def text(self) -> str:
        """All that is said, on one line."""
        return " ".join(filter(None, (one.text.strip() for one in self.segments)))

    def captions(self, layout: CaptionFormat = "srt") -> str:
        """The content of a file: text (a line for each segment), srt, vtt, tsv or json."""
        return captions(self.segments, layout, self.language)

    def __str__(self) -> str:
        return self.text


class Transcriber:
    """A trained model, ready to hear. Not for several threads at once."""

    def __init__(
        self,
        run: Run | str | Path,
        settings: TranslatorSettings | None = None,
        search_settings: SearchSettings | None = None,
        cutting: CuttingSettings | None = None,
    ) -> None:
        """``run``: of the task translation that reads recordings (``source.kind = "frames"``).
        ``cutting``: where recordings are cut; left out, parts are as long as recordings that the
        model has learned from may be, and 20 seconds at most.

        Errors: ``RunError`` for a run that writes nothing of recordings.
        """
        self.run = run if isinstance(run, Run) else Run.open(run)
        recipe = self.run.recipe
        if self.run.task.name != "translation" or not isinstance(recipe.source, FramesSource):
            raise RunError(
                f"{self.run.folder} is a {self.run.task.called}, which does not transcribe "
                f"recordings: {self.run.use}"
            )
        self.settings = settings or TranslatorSettings()
        self.engine = Engine.open(self.run, self.settings, search_settings, None, ())
        self._ctc = CtcRanking.of(self.engine, recipe, self.settings.ctc_weight)
        cutter = RecordingCutter.of(self.engine.source, recipe, cutting)
        assert cutter is not None, "the run reads recordings"
        self.cutter = cutter

    @property
    def times_words(self) -> bool:
        """Whether it can tell when each word is said."""
        return bool(self.run.recipe.training.ctc_weight)

    @property
    def description(self) -> str:
        """One line: what runs the model on this machine, and why."""
        return self.engine.description

    def __call__(
        self,
        recording: str | Path,
        *,
        beam: int | None = None,
        words: bool = False,
        progress: Progress = lambda *_: None,
    ) -> Transcription:
        """Transcribe a file of any rate and any number of channels: WAV, FLAC, OGG, Opus or MP3.
        "-" is standard input. ``beam`` changes the run's own. With ``words``, each segment has its
        words with their times and how sure the model is of each.

        Errors: ``DataError`` for a file that cannot be used; ``RunError`` for ``words`` of a run
        that was trained without CTC.
        """
        if words and not self.times_words:
            raise RunError(
                f"{self.run.folder} was trained without CTC, which says when each word is said: "
                "set training.ctc_weight = 0.3 and train again, or leave out the words"
            )
        raw = str(recording)
        spans, seconds = self.cutter.spans(raw)
        segments = list[Segment]()
        progress(0.0, seconds)
        for segment in self._heard(raw, spans, beam, words):
            segments.append(segment)
            progress(segment.end, seconds)
        progress(seconds, seconds)
        language = self.run.recipe.languages.target
        return Transcription(raw, tuple(segments), seconds, None if language == "und" else language)

    def requests(self, pieces: Iterable[RecordingPiece], beam: int | None = None) -> list[Request]:
        """The searches for what is said in some pieces."""
        settings = with_beams(self.engine.search_settings, beam, None)
        asked = settings if self._ctc is None else self._ctc.asked(settings)
        return [self.engine.request(one.rows, asked) for one in pieces]

    def best(self, piece: RecordingPiece, found: Sequence[Hypothesis]) -> Hypothesis:
        """What is said in a piece. ``found``: by its search."""
        return found[0] if self._ctc is None else self._ctc(piece.rows, found)[0]

    def segment(self, piece: RecordingPiece, best: Hypothesis, *, words: bool) -> Segment:
        """A piece with its text, and with its words if they are wanted."""
        (text,) = self.engine.target.raw([best.tokens])
        own = self._words(piece.span, piece.samples, piece.rows, best) if words else ()
        return Segment(text, piece.span.begin, piece.span.end, own)

    def _heard(
        self, raw: str, spans: Sequence[Span], beam: int | None, words: bool
    ) -> Iterator[Segment]:
        """The segment of each span, in their order."""
        for window in parts(self.cutter.pieces(raw, spans), _AT_ONCE):
            found = self.engine.search(self.requests(window, beam))
            for piece, hypotheses in zip(window, found, strict=True):
                yield self.segment(piece, self.best(piece, hypotheses), words=words)

    def _words(
        self, span: Span, samples: Floats, values: Rows, best: Hypothesis
    ) -> list[SpokenWord]:
        """The words of a span; none where CTC has no room for them."""
        from dragoman.tasks.translation.word_times import HeardWord, best_rows, timed

        source, tokens = self.run.recipe.source, best.tokens
        assert isinstance(source, FramesSource)
        rows = best_rows(ctc_log_probabilities(self.engine, values).numpy(), tokens)
        if rows is None or not tokens:
            return []
        numbers = words_of(tokens, starts_of(self.engine.target))
        begins = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(tokens)]
        written = self.engine.target.raw([tokens[a:b] for a, b in pairwise(begins)])
        heard = [
            HeardWord(text.strip(), slice(a, b), math.exp(sum(best.token_log_probabilities[a:b])))
            for text, (a, b) in zip(written, pairwise(begins), strict=True)
        ]
        row = source.hop_ms / 1000 * source.subsample
        return timed(heard, rows, row, samples, source.rate, span)
