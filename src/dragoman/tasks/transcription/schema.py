"""What goes in and out where a run transcribes: ``/v1/audio/transcriptions``, as OpenAI has it
(https://platform.openai.com/docs/api-reference/audio), and ``/v1/models``."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.messages import Message
from dragoman.serving.http.uploads import FIELDS_BYTES, WithFiles
from dragoman.serving.service.file_run import Grid, LookedToken, SeenFile

Granularity = Literal["word", "segment"]


class TranscriptionRequest(WithFiles):
    """``POST /v1/audio/transcriptions``: a form with one recording."""

    takes_one: ClassVar[bool] = True

    model: str | None = None
    """Name of the run to use. Without it, or with `whisper-1`, the first that transcribes, in
    `language` if that is given."""
    language: str | None = Field(default=None, max_length=40)
    """Language of the recording, as a code. The run must write it."""
    response_format: Literal["json", "text", "srt", "vtt", "verbose_json"] = "json"
    """`json`: the text. `verbose_json`: with segments and, if asked for, words. `text`, `srt` and
    `vtt`: a file."""
    timestamp_granularities: Annotated[list[Granularity], Field(max_length=2, fail_fast=True)] = (
        Field(default=["segment"], alias="timestamp_granularities[]")
    )
    """What has times in `verbose_json`: `segment`, `word` or both. Words need a run that was
    trained with CTC."""
    stream: bool = False
    """Answer with events, a segment at a time: for `json` and `verbose_json`."""
    seen: bool = False
    """With `verbose_json`: give what the model sees of each segment, when CTC is sure of a token,
    and where the decoder looked while it wrote each. Of a long recording, what the first segments
    tell: 500,000 shares of attention in one answer."""
    hidden: str = ""
    """Cells of what is seen that are hidden from the model, counted from 0, row by row, separated
    by commas: `3,7`. `grid` says how many there are. For a recording of one segment."""
    beam: int | None = Field(default=None, ge=1)
    """The width of the search. Default: the run's own."""
    prompt: str | None = None
    """Read and not used: a run here has no prompt."""
    temperature: float | None = Field(default=None, ge=0, le=1)
    """Read and not used: the text is searched for, not drawn."""
    chunking_strategy: str | None = None
    """Read and not used: recordings are always cut at silences."""
    api_key: str | None = None

    @classmethod
    def most_bytes(cls, limits: LimitSettings) -> int:
        return max(limits.body_bytes, limits.recording_bytes + FIELDS_BYTES)


class Usage(Message):
    """How much was transcribed."""

    type: Literal["duration"] = "duration"
    seconds: float


class TranscribedWord(Message):
    """A word and when it is said."""

    word: str
    start: float
    """Seconds."""
    end: float
    """Seconds."""
    probability: float | None = None
    """How sure the model is of it, given the words before it."""


class Spike(Message):
    """Where CTC is more than half sure of a token."""

    text: str
    second: float
    """From the begin of the segment."""
    probability: float


class Heard(SeenFile):
    """What a model sees of a segment: the bands of its spectrum, time from left to right and low
    sounds at the bottom."""

    grid: Grid | None = None
    """Its cells that can be hidden."""
    spikes: list[Spike] | None = None
    """Of a run that was trained with CTC."""
    tokens: list[LookedToken]

    @property
    def shares(self) -> int:
        """How many numbers tell where the model looked."""
        return sum(len(one.looked) for one in self.tokens)


class TranscribedSegment(Message):
    """A part of the recording. It has the fields that OpenAI's clients read."""

    id: int
    seek: int
    """Where the part begins, in hundredths of a second."""
    start: float
    """Seconds."""
    end: float
    """Seconds."""
    text: str
    tokens: list[int]
    """The text in the vocabulary of the run."""
    temperature: float = 0.0
    avg_logprob: float
    """The mean log-probability of its tokens, the end symbol included, in nats."""
    compression_ratio: float
    """Bytes of the text over its bytes compressed by zlib, as Whisper computes it."""
    no_speech_prob: float = 0.0
    """Always 0: silence is cut away before the model reads."""
    seen: Heard | None = None
    """Only where it was asked for."""


class TranscriptionAnswer(Message):
    """What is said in the recording."""

    text: str
    task: Literal["transcribe"] | None = None
    """This and the fields below: of `verbose_json` only."""
    language: str | None = None
    """In English, as OpenAI names it: `korean`."""
    duration: float | None = None
    """Seconds of the recording."""
    segments: list[TranscribedSegment] | None = None
    words: list[TranscribedWord] | None = None
    usage: Usage


class ListedModel(Message):
    """A run, as OpenAI's clients list models."""

    id: str
    """Its name."""
    object: Literal["model"] = "model"
    created: int
    """When its weights were written, in seconds since 1970."""
    owned_by: str = "dragoman"
    task: str
    """What it does: `transcription` and others, as `/v1/info` has them."""


class ModelList(Message):
    """All runs of the server."""

    object: Literal["list"] = "list"
    data: list[ListedModel]
