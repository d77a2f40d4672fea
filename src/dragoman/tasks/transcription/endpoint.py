"""The transcription endpoints, compatible with OpenAI's clients."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from dragoman.forms.languages import name_of
from dragoman.serving.http.messages import (
    MODELS,
    OPENAI_REFUSALS,
    OpenAiErrorBody,
    json_of,
    json_response,
    openai_error,
)
from dragoman.serving.service.endpoints import Endpoints, Whole
from dragoman.serving.service.service import Service
from dragoman.sources.shared.files import InMemory
from dragoman.tasks.transcription.captions import Segment, captions, word_record
from dragoman.tasks.transcription.messages import (
    ListedModel,
    ModelList,
    TranscribedWord,
    TranscriptionAnswer,
    TranscriptionRequest,
    Usage,
)
from dragoman.tasks.transcription.served import FoundSegment, ServedTranscriber

ANY = "whisper-1"
"""A model name that is built into clients: it stands for any run that transcribes."""


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
