"""A served run that transcribes.

A recording is processed in four steps: it is opened, which gives its length; measured, which gives
the places to cut; decoded into rows, piece by piece; and each piece is searched for in the queue
that all clients share. The first three steps take turns outside the event loop. Long recordings use
a thread of their own, where the longer ones count as more work, so that short ones never wait for
them. Only some pieces of a recording are in memory at once.

Shapes: S rows of the encoder, V outputs.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from dragoman.engine.ctc_ranking import ctc_log_probabilities
from dragoman.forms.languages import base
from dragoman.forms.text_form import as_text
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.messages import TRANSCRIPTIONS
from dragoman.serving.http.refusals import Refusal, body_too_large, too_much_sound, wrong_field
from dragoman.serving.http.uploads import Upload, readable
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.file_run import (
    FileRun,
    attention,
    grid_of,
    parse_cells,
    png_of,
    token_messages,
    without,
)
from dragoman.sources.frames.cutting import RecordingPiece, Span
from dragoman.sources.frames.form import FramesSource
from dragoman.sources.frames.recordings import Floats, seconds_of
from dragoman.sources.shared.files import InMemory
from dragoman.sources.shared.rows import Rows, RowsForm
from dragoman.tasks.transcription.captions import Segment
from dragoman.tasks.transcription.messages import (
    Heard,
    Spike,
    TranscribedSegment,
    TranscriptionAnswer,
    TranscriptionRequest,
)
from dragoman.tasks.transcription.transcriber import Transcriber

AT_ONCE = 8
"""The most pieces of a recording in the queue at once."""
MOST_SHARES = 500_000
"""The most shares of attention in one answer: about 3 MB, which block all other threads while they
are written."""


class FoundSegment(NamedTuple):
    """A segment, its hypothesis, and the model's view of it if that was requested."""

    segment: Segment
    best: Hypothesis
    seen: Heard | None


class ServedTranscriber(FileRun[Transcriber]):
    """A run that transcribes, loaded by the server."""

    task, path, trained = "transcription", TRANSCRIPTIONS, "dragoman train RECORDINGS"
    does, opens, work = "transcribes recordings", Transcriber, "transcribe"
    kinds = ("recordings", "long recordings")
    sent, gives = TranscriptionRequest, TranscriptionAnswer

    def __init__(self, name: str, transcriber: Transcriber, settings: ServeSettings) -> None:
        super().__init__(name, transcriber, settings)
        self.times_words = transcriber.times_words

    def writes(self, language: str) -> bool:
        """Return True if the run writes ``language``, or if the language that it writes is not
        known."""
        return self.target == "und" or base(self.target) == base(language.lower())

    # ---- The next methods raise Refusal 400.

    def check(self, request: TranscriptionRequest) -> Upload:
        """Check a request, and return its recording, which has not been decoded yet."""
        uploads, limits = request.uploads, self.settings.limits
        self.check_files(uploads, 1)
        if request.language and not self.writes(request.language):
            raise Refusal(
                "language_not_supported",
                f"{self.name} writes {self.target}, not {request.language}. Leave language out, "
                "or use another run.",
                language=request.language,
                side="target",
                pairs=[self.target],
            )
        wants_words = "word" in request.timestamp_granularities
        if wants_words and request.response_format != "verbose_json":
            problem = "the times of words need response_format=verbose_json"
            raise wrong_field("timestamp_granularities[]", problem)
        if wants_words and not self.predictor.times_words:
            raise Refusal(
                "no_word_times",
                f"{self.name} was trained without CTC, which gives the times of words. Leave "
                "timestamp_granularities[]=word out.",
                run=self.name,
            )
        if request.stream and request.response_format not in ("json", "verbose_json"):
            raise wrong_field("stream", "a stream needs response_format=json or verbose_json")
        if request.seen and request.response_format != "verbose_json":
            raise wrong_field("seen", "seen works only with response_format=verbose_json")
        parse_cells(request.hidden)
        if request.beam is not None:
            self.check_width(request.beam)
        (upload,) = uploads
        if len(upload.content) > limits.recording_bytes * 4 / 3 + 4:  # of base64, at the most
            raise body_too_large(limits.recording_bytes)
        return upload

    async def open_recording(self, upload: Upload, client: str) -> tuple[InMemory, float]:
        """Open an uploaded recording. Return the file, and its length in seconds according to its
        header."""
        opening = self.open_files([upload], self.settings.limits.recording_bytes)
        (opened,) = await self.opening.all(client, opening)
        return opened.file, await self.opening.do(client, partial(seconds_of, opened.file))

    async def transcribe(
        self, file: InMemory, seconds: float, client: str, request: TranscriptionRequest
    ) -> AsyncGenerator[FoundSegment]:
        """Transcribe a recording. Yield each segment that has words, with its hypothesis, in order.
        ``seconds``: the length according to the header."""
        executor, places = self.for_size(seconds)
        with executor.places.occupy(client, places):
            spans: list[Span] = []
            async for measured, _ in executor.turns(client, self._measure_spans(file)):
                spans = measured[-1] if measured else spans
            if request.hidden and len(spans) > 1:
                text = f"hidden is for a recording of one segment, and this one has {len(spans):,}"
                raise wrong_field("hidden", text)
            waiting: list[RecordingPiece] = []
            shares = 0
            async for some, is_last in executor.turns(client, self._pieces(file, spans)):
                waiting += some
                while len(waiting) >= AT_ONCE or (is_last and waiting):
                    together, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
                    is_seen = request.seen and shares < MOST_SHARES
                    for result in await self._search(together, client, request, is_seen):
                        if result.segment.text.strip():
                            shares += 0 if result.seen is None else result.seen.shares
                            yield result if shares <= MOST_SHARES else result._replace(seen=None)

    def _measure_spans(self, file: InMemory) -> Iterator[list[Span]]:
        """Yield an empty list after each step of measuring a recording, and at the end the spans at
        which to cut it."""
        most, cutter = self.settings.limits.sound_seconds, self.predictor.cutter
        measured, seconds = list[Floats](), 0.0
        with readable(file):
            for levels, seconds in cutter.measuring(file):
                if seconds > most:  # the header may have promised less
                    raise too_much_sound(seconds, most)
                measured.append(levels)
                yield []
        yield cutter.spans_of(measured, seconds)[0]

    def _pieces(self, file: InMemory, spans: Sequence[Span]) -> Iterator[RecordingPiece]:
        with readable(file):
            yield from self.predictor.cutter.pieces(file, spans)

    async def _search(
        self, some: Sequence[RecordingPiece], client: str, request: TranscriptionRequest, seen: bool
    ) -> list[FoundSegment]:
        words = "word" in request.timestamp_granularities
        cells, most = parse_cells(request.hidden), self.predictor.engine.longest
        pieces = [replace(part, rows=without(self.form, part.rows, cells, most)) for part in some]
        searches = [self.predictor.ask(piece.rows, request.beam) for piece in pieces]
        results = await self.queue.search(searches, client)

        def segments() -> Iterator[FoundSegment]:
            for piece, hypotheses in zip(pieces, results, strict=True):
                best = self.predictor.best(piece.rows, hypotheses)
                segment = self.predictor.segment(piece, best, words=words)
                is_shown = seen and segment.text.strip()
                looks = view_of(self.predictor, self.form, piece.rows, best) if is_shown else None
                yield FoundSegment(segment, best, looks)

        return await self.asking.all(client, segments())

    def message(
        self, number: int, segment: Segment, best: Hypothesis, seen: Heard | None = None
    ) -> TranscribedSegment:
        """Return a segment as a message of the API. ``number``: its number in the recording, from
        0."""
        text = segment.text.strip()
        raw = text.encode()
        each = best.token_log_probabilities
        return TranscribedSegment(
            id=number,
            seek=int(segment.begin * 100),
            start=round(segment.begin, 3),
            end=round(segment.end, 3),
            text=text,
            tokens=list(best.tokens),
            avg_logprob=round(sum(each) / max(1, len(each)), 5),
            compression_ratio=round(len(raw) / len(zlib.compress(raw)), 3),
            seen=seen,
        )


_SURE = 0.5
"""The probability above which CTC is sure of a token."""


def view_of(transcriber: Transcriber, form: RowsForm, rows: Rows, best: Hypothesis) -> Heard:
    """Return what the model reads of a segment (``rows``), the times at which CTC is sure of a
    token, and the attention of each token of its hypothesis ``best``."""
    names = as_text(transcriber.run.target).names_of(best.tokens)
    shares = attention(transcriber.engine, rows, best.tokens)
    return Heard(
        **png_of(form, rows), grid=grid_of(form, len(rows)),
        spikes=_spikes(transcriber, form, rows), tokens=token_messages(names, shares),
    )  # fmt: skip


def _spikes(transcriber: Transcriber, form: RowsForm, rows: Rows) -> list[Spike] | None:
    """Return a spike for each stretch of rows in which CTC is sure of a token, at the row with the
    highest probability. Return None if the model was trained without CTC."""
    if transcriber.engine.network.ctc is None:
        return None
    settings = FramesSource.of(form.settings)
    known = ctc_log_probabilities(transcriber.engine, rows).exp().numpy()  # (S, V + 1)
    surest, blank = known.argmax(axis=1), known.shape[1] - 1
    seconds = settings.hop_ms / 1000 * settings.subsample
    text = as_text(transcriber.run.target)
    ends = np.flatnonzero(np.diff(surest, append=-1)) + 1
    spikes = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        token = int(surest[begin])
        place = begin + int(known[begin:end, token].argmax())
        sure = float(known[place, token])
        if token == blank or sure <= _SURE:
            continue
        (name,) = text.names_of([token])
        spikes.append(
            Spike(text=name, second=round((place + 0.5) * seconds, 3), probability=round(sure, 4))
        )
    return spikes
