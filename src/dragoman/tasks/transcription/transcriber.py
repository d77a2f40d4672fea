"""The predictor of recordings: it writes the words of a recording, with their times.

    transcriber = dragoman.Transcriber(dragoman.Run.open("runs/talks"))
    print(transcriber("talk.wav"))
    transcriber("talk.wav").captions("srt")

The parts of a recording are read one by one (``sources/frames/cutting.py``), so an hour needs only
as much memory as a few parts.

The times of words come from CTC, which gives their order, and from the loudness of the recording.
Dynamic programming finds the most probable assignment of the tokens to the rows of the encoder
(``training/losses/objectives.py``). CTC shows where a token is surest, but hardly where it begins:
therefore two words meet at the quietest place between the last row of one and the first row of the
next, and silence at both ends of a word is removed.

Shapes: T rows, V outputs of the decoder; output V is the blank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import RunError
from dragoman.data.word_links import starts_of, words_of
from dragoman.engine.ctc_ranking import CtcRanking, ctc_log_probabilities
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor, Shown, parts
from dragoman.engine.settings import EngineSettings, TranslatorSettings, with_beams
from dragoman.forms.form import Values
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.sources.frames.cutting import (
    CuttingSettings,
    RecordingCutter,
    RecordingPiece,
    Span,
    levels_of,
    threshold_of,
)
from dragoman.sources.frames.form import FramesSource
from dragoman.sources.frames.recordings import Floats
from dragoman.sources.shared.rows import Rows
from dragoman.tasks.transcription.captions import CaptionFormat, Segment, SpokenWord, captions

Progress = Callable[[float, float], None]
"""A function that receives the seconds of a recording that are done, and all its seconds."""

_AT_ONCE = 32
"""The number of parts of a recording that are searched for together."""


@dataclass(frozen=True)
class Transcription:
    """The words of one recording. ``str(transcription)`` is its text."""

    recording: str
    """The file; "-" is standard input."""
    segments: tuple[Segment, ...]
    """The parts in order, each with its text, begin and end in seconds."""
    seconds: float
    """The length of the recording in seconds."""
    language: str | None = None
    """The language of the text by the recipe; None if the recipe names none."""

    @property
    def text(self) -> str:
        """The whole text on one line."""
        return " ".join(filter(None, (segment.text.strip() for segment in self.segments)))

    def captions(self, layout: CaptionFormat = "srt") -> str:
        """Format the content of a file: text (a line for each segment), srt, vtt, tsv or json."""
        return captions(self.segments, layout, self.language)

    def __str__(self) -> str:
        return self.text


class Transcriber(Predictor[Transcription]):
    """A trained model, opened to transcribe. It must not be used by several threads at once."""

    def __init__(
        self,
        run: Run,
        settings: EngineSettings | None = None,
        search_settings: SearchSettings | None = None,
        cutting: CuttingSettings | None = None,
    ) -> None:
        """Open a run for transcription. ``run`` must read recordings (``source.kind = "frames"``).
        ``cutting`` sets how recordings are cut; without it, a part is at most 20 seconds long, and
        not longer than the training recordings.

        Errors: ``RunError`` for a run that does not transcribe recordings.
        """
        run.require_task("transcription", "which does not transcribe recordings")
        self.settings = TranslatorSettings.of(settings)
        super().__init__(run, Engine.open(run, self.settings, search_settings))
        self._ctc = CtcRanking.of(self.engine, run.recipe, self.settings.ctc_weight)
        longest = run.recipe.bounded_plan.max_source
        cutter = RecordingCutter.of(self.engine.source, longest, cutting)
        assert cutter is not None, "the run reads recordings"
        self.cutter = cutter

    @property
    def times_words(self) -> bool:
        """True if the run can give the times of words."""
        return bool(self.run.recipe.training.ctc_weight)

    def each(
        self,
        given: Iterable[str],
        *,
        beam: int | None = None,
        words: bool = False,
        progress: Progress = lambda *_: None,
    ) -> Iterator[Transcription]:
        """Transcribe files of any rate and any number of channels: WAV, FLAC, OGG, Opus or MP3. "-"
        is standard input. ``beam`` replaces the run's own. With ``words``, each segment has its
        words with their times and confidence. ``progress`` is called for each file.

        Errors: ``DataError`` for an unusable file; ``RunError`` for ``words`` of a run that was
        trained without CTC.
        """
        if words and not self.times_words:
            raise RunError(
                f"{self.run.folder} was trained without CTC, which gives the times of words. Set "
                "training.ctc_weight = 0.3 and train again, or leave out --words"
            )
        language = self.run.recipe.languages.target
        for raw in given:
            spans, seconds = self.cutter.spans(raw)
            segments = list[Segment]()
            progress(0.0, seconds)
            for window in parts(self.cutter.pieces(raw, spans), _AT_ONCE):
                results = self.engine.search(self.ask(piece.rows, beam) for piece in window)
                for piece, hypotheses in zip(window, results, strict=True):
                    best = self.best(piece.rows, hypotheses)
                    segments.append(self.segment(piece, best, words=words))
                    progress(piece.span.end, seconds)
            progress(seconds, seconds)
            known = None if language == "und" else language
            yield Transcription(raw, tuple(segments), seconds, known)

    def ask(self, rows: Values, beam: int | None = None, begun: Sequence[int] = ()) -> Request:
        """Make the search request for the ``rows`` of a part. The output begins with the tokens
        ``begun``."""
        settings = with_beams(self.engine.search_settings, beam, None)
        return self.engine.request(rows, self._ctc.with_n_best(settings), begun)

    def best(self, rows: Values, hypotheses: Sequence[Hypothesis]) -> Hypothesis:
        """Return the best of the ``hypotheses`` that the search for ``rows`` has given."""
        return self._ctc(rows, hypotheses)[0]

    def segment(self, piece: RecordingPiece, best: Hypothesis, *, words: bool) -> Segment:
        """Return the segment of a part of a recording, from its best hypothesis, with ``words``
        including the times of its words."""
        (text,) = self.engine.target.raw([best.tokens])
        own = self._words(piece.span, piece.samples, piece.rows, best) if words else ()
        return Segment(text, piece.span.begin, piece.span.end, own)

    # ---- looking

    def own_output(self, text: str, prefix: str = "") -> Shown:
        """Transcribe the recording in the file ``text`` for figures. It is read whole, not in
        parts, however long it is. The output begins with ``prefix``."""
        (rows,) = self.engine.source.read([text])
        begun = self.engine.target.tokens([prefix])[0] if prefix else ()
        (hypotheses,) = self.engine.search([self.ask(rows, begun=begun)])
        best = self.best(rows, hypotheses)
        (transcript,) = self.engine.target.raw([best.tokens])
        return Shown(transcript, best.tokens, best.score)

    # ---- inside

    def _words(
        self, span: Span, samples: Floats, values: Rows, best: Hypothesis
    ) -> list[SpokenWord]:
        """Return the words of a span with their times; no words if CTC has too few rows for the
        tokens."""
        source, tokens = FramesSource.of(self.run.recipe.source), best.tokens
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
        return time_words(heard, rows, row, samples, source.rate, span)


class HeardWord(NamedTuple):
    """A word, as the decoder wrote it."""

    text: str
    tokens: slice
    """The range of its tokens among those of the text."""
    confidence: float
    """The probability of the word, given the words before it."""


def best_rows(
    log_probabilities: npt.NDArray[Any], tokens: Sequence[int]
) -> list[tuple[int, int]] | None:
    """Align ``tokens`` with the T rows of CTC by the most probable path. Return for each token the
    number of its first row and of the row after its last, or None if there are fewer rows than the
    tokens need.

    ``log_probabilities`` (T, V + 1): those of CTC.
    """
    rows, outputs = log_probabilities.shape
    states = np.full(2 * len(tokens) + 1, outputs - 1)  # a blank around each token
    states[1::2] = tokens
    count = len(states)
    # A path may skip the blank between two tokens, unless they are equal.
    skips = np.zeros(count, np.bool_)
    skips[3::2] = states[3::2] != states[1:-2:2]
    best = np.full(count, -np.inf)
    best[:2] = log_probabilities[0, states[:2]]
    came = np.zeros((rows, count), np.int8)
    for row in range(1, rows):
        ways = np.full((3, count), -np.inf)
        ways[0] = best
        ways[1, 1:] = best[:-1]
        ways[2, 2:] = np.where(skips[2:], best[:-2], -np.inf)
        came[row] = ways.argmax(axis=0)
        best = ways.max(axis=0) + log_probabilities[row, states]
    ends = best[-2:] if tokens else best
    if not np.isfinite(ends).any():
        return None
    state = count - len(ends) + int(ends.argmax())
    path = [state]
    for row in range(rows - 1, 0, -1):
        state -= int(came[row, state])
        path.append(state)
    places = np.array(path[::-1])
    spans = []
    for number in range(len(tokens)):
        (own,) = np.nonzero(places == 2 * number + 1)
        spans.append((int(own[0]), int(own[-1]) + 1))
    return spans


def time_words(
    words: Sequence[HeardWord],
    rows: Sequence[tuple[int, int]],
    seconds_of_row: float,
    samples: Floats,
    rate: int,
    span: Span,
) -> list[SpokenWord]:
    """Return the words of a span with times in the whole recording, in seconds. ``rows``: the rows
    of each token (``best_rows``); ``seconds_of_row``: the duration of a row; ``samples``: those of
    the span, at ``rate`` Hz."""
    levels = levels_of([samples], rate)
    frame = (span.end - span.begin) / max(1, len(levels))
    loud = levels >= threshold_of(levels)
    first = [rows[word.tokens.start][0] * seconds_of_row / frame for word in words]
    last = [rows[word.tokens.stop - 1][1] * seconds_of_row / frame for word in words]
    meets = [0]
    for end, begin in zip(last, first[1:], strict=False):
        low = min(max(meets[-1], math.floor(min(end, begin))), len(levels) - 1)
        high = max(low + 1, math.ceil(max(end, begin)))
        meets.append(low + int(levels[low:high].argmin()))
    meets.append(len(levels))
    spoken = []
    for word, begin, end in zip(words, meets, meets[1:], strict=False):
        (own,) = np.nonzero(loud[begin:end])
        if len(own):
            begin, end = begin + int(own[0]), begin + int(own[-1]) + 1
        spoken.append(
            SpokenWord(
                word.text, span.begin + begin * frame, span.begin + end * frame, word.confidence
            )
        )
    return spoken
