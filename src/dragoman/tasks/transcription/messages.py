"""The messages of transcription: those of OpenAI for ``/v1/audio/transcriptions``
(https://platform.openai.com/docs/api-reference/audio) and ``/v1/models``."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.messages import Message
from dragoman.serving.http.uploads import FIELDS_BYTES, WithFiles
from dragoman.serving.service.file_run import (
    Grid,
    LookedToken,
    SeenFile,
)

Granularity = Literal["word", "segment"]


class TranscriptionRequest(WithFiles):
    """A request to transcribe a recording: `POST /v1/audio/transcriptions`, a form."""

    takes_one: ClassVar[bool] = True

    model: str | None = None
    """The name of the run. Default, and for `whisper-1`: the first run that transcribes, in
    `language` if it is given."""
    language: str | None = Field(default=None, max_length=40)
    """The language of the recording as a code. A run that writes another language refuses it."""
    response_format: Literal["json", "text", "srt", "vtt", "verbose_json"] = "json"
    """The form of the answer. `json`: the text. `verbose_json`: also segments and, if requested,
    words. `text`, `srt` and `vtt`: a plain text or caption file."""
    timestamp_granularities: Annotated[list[Granularity], Field(max_length=2, fail_fast=True)] = (
        Field(default=["segment"], alias="timestamp_granularities[]")
    )
    """The parts that have times in `verbose_json`: `segment`, `word` or both. Words need a run that
    was trained with CTC."""
    stream: bool = False
    """Answer with server-sent events, a segment at a time. For `json` and `verbose_json`."""
    seen: bool = False
    """For `verbose_json`: return the input of the model for each segment, the times at which CTC is
    sure of a token, and the attention of the decoder for each token. For a long recording, only for
    the first segments: at most 500,000 shares of attention."""
    hidden: str = ""
    """The cells of the input to hide from the model, separated by commas, such as `3,7`. They are
    counted from 0, row by row; `grid` in the answer has their number. For a recording of one
    segment."""
    beam: int | None = Field(default=None, ge=1)
    """The number of hypotheses kept at each step of the search. Default: the run's setting."""
    prompt: str | None = None
    """Accepted for clients of OpenAI, and not used."""
    temperature: float | None = Field(default=None, ge=0, le=1)
    """Accepted and not used: the most probable text is searched for."""
    chunking_strategy: str | None = None
    """Accepted and not used: recordings are always cut at silences."""

    @classmethod
    def most_bytes(cls, limits: LimitSettings) -> int:
        return max(limits.body_bytes, limits.recording_bytes + FIELDS_BYTES)


class Usage(Message):
    """The amount of sound that was transcribed."""

    type: Literal["duration"] = "duration"
    """The unit of the amount: always `duration`."""
    seconds: float
    """The duration of the recording in seconds."""


class TranscribedWord(Message):
    """A word, and the times at which it is spoken."""

    word: str
    """The word without the white space around it."""
    start: float
    """The start of the word, in seconds from the beginning of the recording."""
    end: float
    """The end of the word, in seconds from the beginning of the recording."""
    probability: float | None = None
    """The probability of the word given the words before it, from 0 to 1. Absent if it is not
    known."""


class Spike(Message):
    """A time at which CTC gives a token a probability of more than 0.5."""

    text: str
    """The token as the vocabulary writes it."""
    second: float
    """The time in seconds from the beginning of the segment."""
    probability: float
    """The probability of the token, from 0 to 1."""


class Heard(SeenFile):
    """The spectrum of a segment as the model reads it, with time from left to right and low
    frequencies at the bottom."""

    grid: Grid | None = None
    """The grid of cells that can be hidden. Absent if there is none."""
    spikes: list[Spike] | None = None
    """The times at which CTC is sure of a token. Absent if the run was trained without CTC."""
    tokens: list[LookedToken]
    """The tokens of the segment with their attention."""

    @property
    def shares(self) -> int:
        """The number of attention weights in the message."""
        return sum(len(token.looked) for token in self.tokens)


class TranscribedSegment(Message):
    """A segment of the recording, with the fields that the clients of OpenAI read."""

    id: int
    """The number of the segment, from 0."""
    seek: int
    """The start of the segment in hundredths of a second."""
    start: float
    """The start of the segment in seconds."""
    end: float
    """The end of the segment in seconds."""
    text: str
    """The text that is spoken in the segment."""
    tokens: list[int]
    """The numbers of its tokens in the vocabulary of the run."""
    temperature: float = 0.0
    """Always 0: the text is searched for, not sampled."""
    avg_logprob: float
    """The mean log-probability of its tokens, including the end symbol, in nats."""
    compression_ratio: float
    """The number of bytes of the text divided by that after compression with zlib, as in
    Whisper."""
    no_speech_prob: float = 0.0
    """Always 0: silence is removed before the model reads."""
    seen: Heard | None = None
    """The input of the model. Present only if `seen` was set."""


class TranscriptionAnswer(Message):
    """The transcription of a recording, with its duration."""

    text: str
    """The text of the whole recording."""
    task: Literal["transcribe"] | None = None
    """Always `transcribe`. Present only for `verbose_json`."""
    language: str | None = None
    """The English name of the language in lower case, such as `korean`. Present only for
    `verbose_json`."""
    duration: float | None = None
    """The duration of the recording in seconds. Present only for `verbose_json`."""
    segments: list[TranscribedSegment] | None = None
    """The segments of the recording. Present only for `verbose_json`, with the times of
    segments."""
    words: list[TranscribedWord] | None = None
    """The words of the recording. Present only for `verbose_json`, with the times of words."""
    usage: Usage
    """The amount of sound that was transcribed."""


class ListedModel(Message):
    """A run in the form in which OpenAI lists models."""

    id: str
    """The name of the run, for the field `model` of requests."""
    object: Literal["model"] = "model"
    """The type of the object: always `model`."""
    created: int
    """The time at which the weights were saved, in seconds since 1970."""
    owned_by: str = "dragoman"
    """The owner of the model: always `dragoman`."""
    task: str
    """The task of the run, such as `transcription`. Not a field of OpenAI."""


class ModelList(Message):
    """The list of all runs of the server."""

    object: Literal["list"] = "list"
    """The type of the object: always `list`."""
    data: list[ListedModel]
    """The runs of the server, whatever their task."""
