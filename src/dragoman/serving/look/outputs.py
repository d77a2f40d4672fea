"""One output of a run as messages of the API: its text, words, tokens and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from dragoman.forms.form import Form
from dragoman.forms.shown_words import words_of
from dragoman.search import hypothesis as search
from dragoman.serving.http.messages import Message


class DetectedLanguage(Message):
    """What language a text is in."""

    confidence: float
    """In percent."""
    language: str


class TranslationWarning(Message):
    """Something that is doubtful about the translation of a sentence."""

    code: Literal[
        "language", "unknown", "omitted", "coverage", "lost", "repeated", "cut_off", "length"
    ]
    """language: the source is of another language than the run's; unknown: a word that the run has
    never read; omitted: words to which the translation owes nothing; coverage: how much of the
    sentence it owes something to, where there are such words; lost: a placeholder or an address
    that does not stand in the translation; repeated: the translation repeats itself; cut_off: it
    reached its greatest length; length: an unusual one."""
    side: Literal["source", "target"]
    """In which text it stands."""
    begin: int
    end: int
    """Characters of the source or target sentence, depending on the kind (Unicode code points): the
    first, and the one behind the last."""
    text: str
    """What stands there."""
    languages: list[str] = Field(default=[])
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
    """Of the best. Where they were not asked for, those of the code lost alone, if there are
    any."""


def texts_of(target: Form, hypotheses: Sequence[search.Hypothesis]) -> list[str]:
    """Decode the texts of some hypotheses."""
    return target.raw([one.tokens for one in hypotheses])


def hypothesis_message(target: Form, hypothesis: search.Hypothesis, text: str) -> Hypothesis:
    """Convert a hypothesis, whose ``text`` is known, with its words and tokens."""
    tokens, values = hypothesis.tokens, hypothesis.token_log_probabilities
    pieces = target.shown(tokens)
    words = words_of(text, pieces, values, spaced=target.spaced)
    return Hypothesis(
        text=text,
        score=hypothesis.score,
        log_probability=hypothesis.log_probability,
        finished=hypothesis.finished,
        words=[Word.model_validate(word, from_attributes=True) for word in words],
        tokens=[
            Token(id=token, piece=piece, log_probability=value)
            for token, piece, value in zip(tokens, pieces, values, strict=False)
        ],
    )
