"""A run that transcribes and is served.

A recording goes through four hands: it is opened, which tells how long it is; measured, which tells
where it is cut; decoded into rows, piece by piece; and each piece is searched for in the queue that
all clients share. The first three are done in turns beside the event loop: of a long recording in a
thread of its own, in as many places as it costs, so that short ones never wait for it. No more than
some pieces of a recording are in memory.

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
from dragoman.engine.settings import EngineSettings, TranslatorSettings
from dragoman.forms.languages import base
from dragoman.forms.text_form import as_text
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.messages import TRANSCRIPTIONS
from dragoman.serving.http.refusals import Refusal, body_too_large, too_much_sound, wrong_field
from dragoman.serving.http.uploads import Upload, readable
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.file_run import (
    FileRun,
    drawn,
    grid_of,
    hidden_cells,
    looked,
    looked_tokens,
    without,
)
from dragoman.sources.frames.cutting import RecordingPiece, Span
from dragoman.sources.frames.recordings import Floats, seconds_of
from dragoman.sources.frames.settings import FramesSource
from dragoman.sources.shared.files import InMemory
from dragoman.sources.shared.rows_form import Rows, RowsForm
from dragoman.tasks.transcription.captions import Segment
from dragoman.tasks.transcription.schema import (
    Heard,
    Spike,
    TranscribedSegment,
    TranscriptionRequest,
)
from dragoman.tasks.transcription.transcriber import Transcriber

AT_ONCE = 8
"""Pieces of a recording that are in the queue together."""
MOST_SHARES = 500_000
"""Numbers of one answer that tell where the model looked: about 3 MB, which no other thread can
interrupt while they are written."""


class FoundSegment(NamedTuple):
    """A segment, how it was found, and what was seen of it, where that was asked for."""

    segment: Segment
    best: Hypothesis
    seen: Heard | None


class ServedTranscriber(FileRun[Transcriber]):
    """A run that transcribes and is served."""

    task, path, trained = "transcription", TRANSCRIPTIONS, "dragoman train RECORDINGS"
    does, work = "transcribes recordings", "transcribe"
    kinds = ("recordings", "long recordings")
    sent = TranscriptionRequest

    def __init__(self, name: str, transcriber: Transcriber, settings: ServeSettings) -> None:
        super().__init__(name, transcriber, settings)
        self.times_words = transcriber.times_words

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedTranscriber:
        """Errors: ``RunError``, and ``DataError`` where what decodes recordings is missing."""
        engine = settings.model_dump(include=set(EngineSettings.model_fields))
        return cls(name, Transcriber(run, TranslatorSettings(**engine)), settings)

    def writes(self, language: str) -> bool:
        """Whether its texts are in a language, as far as is known."""
        return self.target == "und" or base(self.target) == base(language.lower())

    # ---- each raises Refusal 400

    def check(self, request: TranscriptionRequest) -> Upload:
        """The recording. Raises for what needs no recording to be read."""
        uploads, limits = request.uploads, self.settings.limits
        self.check_files(uploads, 1)
        if request.language and not self.writes(request.language):
            raise Refusal(
                "language_not_supported",
                f"{self.name} writes {self.target}, not {request.language}: leave language out, or "
                "name another run.",
                language=request.language,
                side="target",
                pairs=[self.target],
            )
        wants_words = "word" in request.timestamp_granularities
        if wants_words and request.response_format != "verbose_json":
            told = "words have times in response_format=verbose_json only"
            raise wrong_field("timestamp_granularities[]", told)
        if wants_words and not self.predictor.times_words:
            raise Refusal(
                "no_word_times",
                f"{self.name} was trained without CTC, which says when each word is said: leave "
                "timestamp_granularities[]=word out.",
                run=self.name,
            )
        if request.stream and request.response_format not in ("json", "verbose_json"):
            raise wrong_field("stream", "a stream is json or verbose_json (response_format)")
        if request.seen and request.response_format != "verbose_json":
            raise wrong_field("seen", "what is seen is told in response_format=verbose_json only")
        hidden_cells(request.hidden)
        if request.beam is not None:
            self.check_width(request.beam)
        (upload,) = uploads
        if len(upload.content) > limits.recording_bytes * 4 / 3 + 4:  # of base64, at the most
            raise body_too_large(limits.recording_bytes)
        return upload

    async def opened_recording(self, upload: Upload, client: str) -> tuple[InMemory, float]:
        """The recording, and how many seconds it has by its header."""
        opening = self.opened([upload], self.settings.limits.recording_bytes)
        (opened,) = await self.opening.all(client, opening)
        return opened.file, await self.opening.do(client, partial(seconds_of, opened.file))

    async def heard(
        self, file: InMemory, seconds: float, client: str, request: TranscriptionRequest
    ) -> AsyncGenerator[FoundSegment]:
        """Each segment in which something is said, with how it was found, in their order."""
        executor, places = self.for_size(seconds)
        words = "word" in request.timestamp_granularities
        with executor.held(client, places):
            measured: list[tuple[Floats, float]] = []
            async for found, _ in executor.turns(client, self._measured(file)):
                measured += found
            spans, _ = await executor.turn(client, partial(self._spans, measured))
            if request.hidden and len(spans) > 1:
                told = f"hidden is for a recording of one segment, and this one has {len(spans):,}"
                raise wrong_field("hidden", told)
            waiting: list[RecordingPiece] = []
            shares = 0
            async for some, is_last in executor.turns(client, self._pieces(file, spans)):
                waiting += some
                while len(waiting) >= AT_ONCE or (is_last and waiting):
                    together, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
                    is_seen = request.seen and shares < MOST_SHARES
                    for one in await self._searched(together, client, request, words, is_seen):
                        if one.segment.text.strip():
                            shares += 0 if one.seen is None else one.seen.shares
                            yield one if shares <= MOST_SHARES else one._replace(seen=None)

    def _measured(self, file: InMemory) -> Iterator[tuple[Floats, float]]:
        most = self.settings.limits.sound_seconds
        with readable(file):
            for levels, seconds in self.predictor.cutter.measuring(file):
                if seconds > most:  # there may be more than the header has promised
                    raise too_much_sound(seconds, most)
                yield levels, seconds

    def _spans(self, measured: Sequence[tuple[Floats, float]]) -> tuple[list[Span], float]:
        return self.predictor.cutter.spans_of([levels for levels, _ in measured], measured[-1][1])

    def _pieces(self, file: InMemory, spans: Sequence[Span]) -> Iterator[RecordingPiece]:
        with readable(file):
            yield from self.predictor.cutter.pieces(file, spans)

    async def _searched(
        self,
        given: Sequence[RecordingPiece],
        client: str,
        request: TranscriptionRequest,
        words: bool,
        is_seen: bool,
    ) -> list[FoundSegment]:
        cells, longest = hidden_cells(request.hidden), self.predictor.engine.longest
        pieces = [replace(one, rows=without(self.form, one.rows, cells, longest)) for one in given]
        asked = [self.predictor.ask(one.rows, request.beam) for one in pieces]
        found = await self.queue.search(asked, client)

        def told() -> Iterator[FoundSegment]:
            for piece, hypotheses in zip(pieces, found, strict=True):
                best = self.predictor.best(piece.rows, hypotheses)
                segment = self.predictor.segment(piece, best, words=words)
                seen = None
                if is_seen and segment.text.strip():
                    seen = heard(self.predictor, self.form, piece.rows, best)
                yield FoundSegment(segment, best, seen)

        return await self.asking.all(client, told())

    def message(
        self, number: int, segment: Segment, best: Hypothesis, seen: Heard | None = None
    ) -> TranscribedSegment:
        """A segment as the API tells it."""
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
"""Probability from which on CTC is sure of a token."""


def heard(transcriber: Transcriber, form: RowsForm, rows: Rows, best: Hypothesis) -> Heard:
    """Of the rows of a part, and what was written of it."""
    names = as_text(transcriber.run.target).shown(best.tokens)
    shares = looked(transcriber.engine, rows, best.tokens)
    return Heard(
        **drawn(form, rows), grid=grid_of(form, len(rows)),
        spikes=_spikes(transcriber, form, rows), tokens=looked_tokens(names, shares),
    )  # fmt: skip


def _spikes(transcriber: Transcriber, form: RowsForm, rows: Rows) -> list[Spike] | None:
    """One for each run of rows in which CTC is sure of the same token, where it is the surest."""
    if transcriber.engine.network.ctc is None:
        return None
    settings = FramesSource.of(form.settings)
    known = ctc_log_probabilities(transcriber.engine, rows).exp().numpy()  # (S, V + 1)
    surest, blank = known.argmax(axis=1), known.shape[1] - 1
    seconds = settings.hop_ms / 1000 * settings.subsample
    text = as_text(transcriber.run.target)
    ends = np.flatnonzero(np.diff(surest, append=-1)) + 1
    found = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        token = int(surest[begin])
        place = begin + int(known[begin:end, token].argmax())
        sure = float(known[place, token])
        if token == blank or sure <= _SURE:
            continue
        (name,) = text.shown([token])
        found.append(
            Spike(text=name, second=round((place + 0.5) * seconds, 3), probability=round(sure, 4))
        )
    return found
