"""What goes in and out of the API, and the words of its documentation.

The LibreTranslate interface keeps the names of LibreTranslate; our own is under ``/v1``.
Probabilities are in nats where a name says ``log_probability``, else from 0 to 1.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.serving.uses import TaskName


class Message(BaseModel):
    """A part of a request or an answer. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


Texts = str | Annotated[list[str], Field(fail_fast=True)]
"""One text, or several. In a list that is wrong the first mistake is enough, here and in every
other request: to list all mistakes of a megabyte would hold up everybody for seconds."""


class ErrorBody(Message):
    """Every error has this shape, whatever its status."""

    error: str
    """What was wrong, and what to do."""
    code: str
    """Which refusal it is, by a name that stays: docs/serve.md lists them all."""
    values: dict[str, str | int | float | list[str]]
    """The numbers and names that stand in the sentence."""


# ---- LibreTranslate


def _number(value: object) -> object:
    """Form fields are strings; an empty one is not given."""
    return 0 if value == "" else value


class LibreTranslateRequest(BaseModel):
    """``POST /translate``. Unknown keys are ignored, as LibreTranslate does."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    q: Texts
    """Text to translate, or several."""
    source: str = "auto"
    """Language of the text, or "auto"."""
    target: str
    """Language to translate into."""
    format: Literal["text", "html"] = "text"
    """html: tags and nesting are kept, and only text is translated."""
    alternatives: Annotated[int, BeforeValidator(_number)] = Field(default=0, ge=0)
    """How many further translations to give."""
    api_key: str | None = None


class DetectedLanguage(Message):
    """What language a text is in."""

    confidence: float
    """In percent."""
    language: str


class LibreTranslateAnswer(Message):
    """Lists where ``q`` was a list."""

    translatedText: str | list[str]
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None
    """Only for the source "auto"."""
    alternatives: list[str] | list[list[str]] | None = None
    """Only where some were asked for."""


class DetectRequest(BaseModel):
    """``POST /detect``."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    q: str
    """Text whose language is asked for."""
    api_key: str | None = None


class Language(Message):
    """A source language and what it can be translated into."""

    code: str
    name: str
    targets: list[str]


class LanguageChoice(Message):
    code: str
    name: str


class LanguagePair(Message):
    source: LanguageChoice
    target: LanguageChoice


class FrontendSettings(Message):
    """What LibreTranslate's clients ask a server about itself."""

    apiKeys: bool
    charLimit: int
    filesTranslation: bool = False
    frontendTimeout: int = 200
    keyRequired: bool
    language: LanguagePair
    suggestions: bool = False
    supportedFilesFormat: list[str] = []


class Health(Message):
    status: Literal["ok"] = "ok"


class Readiness(Message):
    ready: bool
    runs: list[str]


# ---- our own


class TranslateRequest(Message):
    """``POST /v1/translate``."""

    text: Texts
    """Text to translate, or several."""
    source: str = "auto"
    """Language of the text, or "auto"."""
    target: str | None = None
    """Language to translate into; needed where the server has several to offer."""
    run: str | None = None
    """Name of the run to use, where several translate between the same languages."""
    whole: bool = False
    """Do not cut texts into sentences."""
    beam: int | None = Field(default=None, ge=1)
    """Hypotheses kept at each step; 1 is greedy search. The run's own if not given."""
    n_best: int = Field(default=1, ge=1)
    """Translations of each sentence to give, best first."""
    alternatives: bool = False
    """The n best differ in their first token (after a prefix: the first free one), each completed
    by a search of its own: what else could stand there."""
    prefix: str = ""
    """How the translation of the first sentence must begin."""
    prefix_tokens: (
        Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=1000, fail_fast=True)] | None
    ) = None
    """The same as token numbers, as an earlier answer gave them."""
    length_penalty: float | None = Field(default=None, ge=0, le=10)
    min_length: int | None = Field(default=None, ge=0, le=1000)
    """At least so many tokens in each sentence."""
    max_length: int | None = Field(default=None, ge=1, le=1000)
    """At most so many tokens in each sentence."""
    no_repeat_ngram: int | None = Field(default=None, ge=0, le=100)
    """No run of so many tokens stands twice in a sentence; 0: no limit."""
    sampling: SamplingSettings | None = None
    """Draw tokens by chance in place of searching for the most probable."""
    stream: bool = False
    """Answer with server-sent events: each sentence as it grows."""
    warnings: bool = False
    """Say what is doubtful about the best translation of each sentence, and which words of the
    source its words come from. Takes several times as long, by the plain model."""
    api_key: str | None = None


class TranslationWarning(Message):
    """Something that is doubtful about the translation of a sentence."""

    code: Literal["language", "unknown", "omitted", "coverage", "repeated", "cut_off", "length"]
    """language: the source is of another language than the run's; unknown: a word that the run has
    never read; omitted: words to which the translation owes nothing; coverage: how much
    of the sentence it owes something to, where there are such words; repeated: the translation
    repeats itself; cut_off: it reached its greatest length; length: an unusual one."""
    side: Literal["source", "target"]
    """In which text it stands."""
    begin: int
    end: int
    """Characters of the sentence on that side (Unicode code points): the first, and the one behind
    the last."""
    text: str
    """What stands there."""
    languages: list[str] = []
    """Of language: those that the source may be in, if that can be told."""
    covered: float | None = None
    """Of coverage: the share of the words, from 0 to 1."""
    message: str
    """The same in English."""


class Word(Message):
    """A word of a translation, or marks that stand beside one."""

    before: str
    """The space in front; ``before`` and ``text`` of all words joined are the translation."""
    text: str
    probability: float
    """How probable the model held it, given the source and the words before it."""
    first: int
    """Number of its first token."""
    count: int
    """How many tokens it has."""
    source: list[tuple[int, int]] | None = None
    """Only where warnings were asked for: the words of the source sentence that it comes from, by
    the model's attention, each by its first character and the one behind its last."""


class Token(Message):
    """What the model chose in one step."""

    id: int
    piece: str
    """As the vocabulary writes it: ▁ for a space."""
    log_probability: float


class Hypothesis(Message):
    """One translation of one sentence."""

    text: str
    score: float
    """Log-probability over length penalty: higher is better."""
    log_probability: float
    """Of the whole, its end included."""
    finished: bool
    """False where it was cut at its greatest length."""
    words: list[Word]
    tokens: list[Token]
    warnings: list[TranslationWarning] | None = None
    """Only where they were asked for, and of the best."""


class Sentence(Message):
    """A sentence of a text. Joined, ``text`` and ``behind`` of all are the text again."""

    source: str
    behind: str
    """What follows it and is kept: spaces, newlines, the marker of the next item of a list."""
    hypotheses: list[Hypothesis]
    """Best first."""


class Translation(Message):
    """The translation of one text."""

    text: str
    source: str
    """Its language."""
    target: str
    run: str
    detected: DetectedLanguage | None = None
    """Only for the source "auto"."""
    before: str = ""
    """What stands in front of the first sentence: space, the marker of a list."""
    sentences: list[Sentence]


class TranslateAnswer(Message):
    """One translation for each text, in their order."""

    translations: list[Translation]


class Knowledge(Message):
    """What a run has learned from."""

    notice: str
    """What must be said first, as that the text was generated."""
    pairs: int | None
    """Examples that it was trained on, where that is known."""
    words: int | None
    """Different words of the source among them, where they were written down."""
    commonest: list[str]
    """The commonest of these, at most 300."""
    longest: int | None
    """Words that all but one in a thousand of its training sources have at most, where that is
    known. Of longer sentences it may leave parts out."""
    examples: list[str]
    """Sentences to try: such as it was measured on, and has not learned."""
    label_smoothing: float
    """Share of the probability that training told it to leave to other words even where it is
    certain. So 1 less this share, and a little more, is as sure as it gets."""


class RunInfo(Message):
    """A run that the server has."""

    name: str
    task: TaskName
    """What it does, and so where it is asked: translation (/v1/translate), language-model
    (/v1/write), masked (/v1/fill), classification (/v1/classify), parsing (/v1/parse)."""
    look: bool
    """Whether it can be looked into (/v1/look)."""
    source: str
    target: str
    source_name: str
    target_name: str
    precision: str
    """How it is run on this machine."""
    knows: Knowledge


class ServerInfo(Message):
    """What this server has and allows."""

    version: str
    runs: list[RunInfo]
    key_required: bool
    characters: int
    """Most characters of one request."""
    items: int
    """Most texts of one request."""


def search_settings(request: TranslateRequest, default: SearchSettings) -> SearchSettings:
    """The settings of a request over those of the run. Raises ``ValidationError``."""
    asked = request.model_dump(
        include={"beam", "length_penalty", "min_length", "max_length", "no_repeat_ngram"},
        exclude_none=True,
    )
    values = {**default.model_dump(), "n_best": request.n_best, "sampling": None, **asked}
    values["alternatives"] = request.alternatives
    if request.sampling is not None:
        values["sampling"] = request.sampling.model_dump()
    elif not request.alternatives and request.beam is None:
        values["beam"] = max(values["beam"], request.n_best)
    return SearchSettings.model_validate(values)
