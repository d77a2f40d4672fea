"""A served run that transcribes, and its endpoints, which are compatible with OpenAI's clients.

A recording is processed in four steps: it is opened, which gives its length; measured, which gives
the places to cut; decoded into rows, piece by piece; and each piece is searched for in the queue
that all clients share. The first three steps take turns outside the event loop. Long recordings use
a thread of their own, where the longer ones count as more work, so that short ones never wait for
them. Only some pieces of a recording are in memory at once.

Shapes: S rows of the encoder, V outputs.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from dragoman.engine.ctc_ranking import ctc_log_probabilities
from dragoman.forms.languages import base, name_of
from dragoman.forms.text_form import as_text
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.messages import (
    MODELS,
    OPENAI_REFUSALS,
    TRANSCRIPTIONS,
    OpenAiErrorBody,
    json_of,
    json_response,
    openai_error,
)
from dragoman.serving.http.refusals import Refusal, too_much_sound, wrong_field
from dragoman.serving.http.uploads import Upload, readable
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.endpoints import Endpoints, Whole
from dragoman.serving.service.file_run import (
    FileRun,
    attention,
    grid_of,
    parse_cells,
    png_of,
    token_messages,
    without,
)
from dragoman.serving.service.service import Service
from dragoman.sources.frames.cutting import RecordingPiece, Span
from dragoman.sources.frames.form import FramesSource
from dragoman.sources.frames.recordings import Floats, seconds_of
from dragoman.sources.shared.files import InMemory
from dragoman.sources.shared.rows import Rows, RowsForm
from dragoman.tasks.transcription.captions import Segment, captions, word_record
from dragoman.tasks.transcription.messages import (
    Heard,
    ListedModel,
    ModelList,
    Spike,
    TranscribedSegment,
    TranscribedWord,
    TranscriptionAnswer,
    TranscriptionRequest,
    Usage,
)
from dragoman.tasks.transcription.transcriber import Transcriber

AT_ONCE = 8
"""The most pieces of a recording in the queue at once."""
MOST_SHARES = 500_000
"""The most shares of attention in one answer: about 3 MB, which block all other threads while they
are written."""
ANY = "whisper-1"
"""A model name that is built into clients: it stands for any run that transcribes."""


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
            raise Refusal("body_too_large", most=limits.recording_bytes)
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


def endpoints(service: Service) -> Endpoints:
    """Make the transcription endpoints of one server."""
    routes = Endpoints(service, "", "OpenAI", OPENAI_REFUSALS, _error_event)
    routes.bodies.append(OpenAiErrorBody)

    @routes.streams(
        ServedTranscriber,
        "Transcribe a recording",
        "The text; with `stream`, the events transcript.text.delta, transcript.text.segment and "
        "transcript.text.done",
        also=("text/plain",),
        seconds=service.settings.limits.file_seconds,
    )
    async def transcriptions(
        request: TranscriptionRequest, client: str, http: Request
    ) -> Whole | AsyncGenerator[bytes, None]:
        """Works with the clients of OpenAI. The recording is the field `file` of a form: WAV, FLAC,
        OGG, Opus or MP3. A long recording is cut at silences. It is kept in memory until the
        request ends, and is never logged.

        With `stream`, each segment is sent as soon as it is transcribed: `transcript.text.delta`
        with its text, for `verbose_json` also `transcript.text.segment` with its times and words,
        and at the end `transcript.text.done` with the whole text.
        """
        run = _choose_run(service, request)
        work = run.open_recording(run.check(request), client)
        file, length = await service.finish(http, work)
        hearing = _Hearing(run, request, client, file, length)
        return hearing.events() if request.stream else hearing.whole()

    @routes.get(MODELS, summary="List the runs", responses={200: {"model": ModelList}})
    async def models(http: Request) -> Response:
        """Returns all runs in the form in which OpenAI lists models."""
        with service.admit(http):
            models = [
                ListedModel(id=run.name, created=run.run.written, task=run.task)
                for run in service.catalogue.runs
            ]
            return await service.json_once(http, lambda: json_of(ModelList(data=models)))

    return routes


def _choose_run(service: Service, request: TranscriptionRequest) -> ServedTranscriber:
    """Return the named run, or else one that writes the language. Raises Refusal 400 or 404."""
    named = None if request.model == ANY else request.model
    runs = service.catalogue.every(ServedTranscriber, named)
    writing = [run for run in runs if request.language and run.writes(request.language)]
    return (writing or runs)[0]


def _error_event(status: int, body: dict[str, Any]) -> bytes:
    return _event(openai_error(status, body))


def _event(values: dict[str, Any]) -> bytes:
    """Make an event in OpenAI's form, whose data contain its type."""
    return f"data: {json.dumps(values, ensure_ascii=False, allow_nan=False)}\n\n".encode()


@dataclass(frozen=True)
class _Hearing:
    """A recording that is being transcribed for a client."""

    run: ServedTranscriber
    request: TranscriptionRequest
    client: str
    file: InMemory
    seconds: float

    def _hear(self) -> AsyncGenerator[FoundSegment]:
        return self.run.transcribe(self.file, self.seconds, self.client, self.request)

    async def whole(self) -> Response:
        """Transcribe the whole recording, and return the answer."""
        async with aclosing(self._hear()) as heard:
            results = [result async for result in heard]
        segments = [result.segment for result in results]
        layout = self.request.response_format
        if layout in ("text", "srt", "vtt"):
            return PlainTextResponse(captions(segments, layout))
        answer = TranscriptionAnswer(text=_text(segments), usage=self._usage)
        if layout == "verbose_json":
            wanted = self.request.timestamp_granularities
            answer.task, answer.language = "transcribe", name_of(self.run.target).lower()
            answer.duration = round(self.seconds, 3)
            if "segment" in wanted:
                answer.segments = [self.run.message(n, *result) for n, result in enumerate(results)]
            if "word" in wanted:
                words = (word for segment in segments for word in segment.words)
                answer.words = [TranscribedWord(**word_record(word)) for word in words]
        if self.request.seen:  # some MB of pictures and numbers: written outside the event loop
            return json_response(await self.run.asking.do(self.client, partial(json_of, answer)))
        return json_response(json_of(answer))

    @property
    def _usage(self) -> Usage:
        return Usage(seconds=round(self.seconds, 3))

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Transcribe the recording, and yield an event for each segment and one at the end."""
        segments: list[Segment] = []
        async with aclosing(self._hear()) as heard:
            async for result in heard:
                before = " " if segments else ""
                delta = before + result.segment.text.strip()
                yield _event({"type": "transcript.text.delta", "delta": delta})
                if self.request.response_format == "verbose_json":
                    yield _event(self._segment(len(segments), result))
                segments.append(result.segment)
        done = {"type": "transcript.text.done", "text": _text(segments)}
        yield _event({**done, "usage": self._usage.model_dump()})

    def _segment(self, number: int, result: FoundSegment) -> dict[str, Any]:
        fields = self.run.message(number, *result).model_dump(exclude_none=True)
        words = list(map(word_record, result.segment.words))
        kind = {"type": "transcript.text.segment", **fields, "id": str(number)}
        return {**kind, "words": words} if "word" in self.request.timestamp_granularities else kind


def _text(segments: Sequence[Segment]) -> str:
    return " ".join(segment.text.strip() for segment in segments)
