"""What goes in and out where runs translate, and the words of its documentation.

The LibreTranslate interface keeps the names of LibreTranslate; our own is under ``/v1``.
Probabilities are in nats where a name says ``log_probability``, else from 0 to 1.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dragoman.search.settings import SamplingSettings
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.messages import Message, Texts
from dragoman.serving.http.uploads import FIELDS_BYTES, WithFiles
from dragoman.serving.look.outputs import DetectedLanguage, Hypothesis


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


class LibreTranslateAnswer(Message):
    """Lists where ``q`` was a list."""

    translatedText: str | list[str]
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None
    """Only for the source "auto"."""
    alternatives: list[str] | list[list[str]] | None = None
    """Only where some were asked for."""


class DetectLanguageRequest(BaseModel):
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
    supportedFilesFormat: list[str] = Field(default=[])


class DocumentRequest(WithFiles):
    """``POST /translate_file``: a form with one document. Other fields are passed over."""

    model_config = ConfigDict(extra="ignore")
    takes_one: ClassVar[bool] = True

    source: str
    """Language of the document, or "auto"."""
    target: str
    columns: str | None = None
    """The columns of a table (CSV, TSV) that are translated, such as "text,note" (names in the
    first row) or "2,3" (numbers). Default: all."""
    stream: bool = False
    """Whether the answer is events that tell how far it is."""
    api_key: str | None = None

    @classmethod
    def most_bytes(cls, limits: LimitSettings) -> int:
        return max(limits.body_bytes, limits.file_bytes + FIELDS_BYTES)


class TranslatedFile(Message):
    """Where a translated document waits for ten minutes."""

    translatedFileUrl: str
    warnings: list[str] | None = None
    """What is doubtful about it, in English: a language that the document says and that is another,
    texts in another language, placeholders and addresses that are lost. None: nothing."""


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
    """The fewest tokens in each sentence."""
    max_length: int | None = Field(default=None, ge=1, le=1000)
    """The most tokens in each sentence."""
    no_repeat_ngram: int | None = Field(default=None, ge=0, le=100)
    """No sequence of this many tokens occurs twice in a sentence. 0: no limit."""
    sampling: SamplingSettings | None = None
    """Draw samples instead of searching for the most probable output."""
    stream: bool = False
    """Answer with server-sent events: each sentence as it grows."""
    warnings: bool = False
    """Say what is doubtful about the best translation of each sentence, and which words of the
    source its words come from. Takes several times as long, by the plain model."""
    api_key: str | None = None


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
