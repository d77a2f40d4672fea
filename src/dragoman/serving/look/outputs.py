"""The messages of the API that describe one output of a run: its text, words, tokens and
warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from dragoman.forms.form import Form
from dragoman.forms.shown_words import words_of
from dragoman.search import hypothesis as search
from dragoman.serving.http.messages import Message


class DetectedLanguage(Message):
    """A language that was detected from a text."""

    confidence: float
    """The confidence in percent, from 0 to 100."""
    language: str
    """The code of the language, such as `en`."""


class TranslationWarning(Message):
    """A possible problem in the translation of a sentence."""

    code: Literal[
        "language", "unknown", "omitted", "coverage", "lost", "repeated", "cut_off", "length"
    ]
    """The kind of problem. `language`: the source is not in the run's source language. `unknown`: a
    word that did not occur in the training text. `omitted`: source words without a counterpart in
    the translation. `coverage`: the share of the source that the translation covers, given if words
    were omitted or the length is unusual. `lost`: a placeholder or address is missing from the
    translation. `repeated`: the translation repeats itself. `cut_off`: the translation was cut at
    the maximum length. `length`: the length is unusual for this source."""
    side: Literal["source", "target"]
    """The sentence that the warning is about: the source or its translation (target)."""
    begin: int
    """The position of the first character in that sentence, from 0, in Unicode code points."""
    end: int
    """The position after the last character, in Unicode code points."""
    text: str
    """The characters from `begin` to `end`."""
    languages: list[str] = Field(default=[])
    """For `language`: the languages that the source may be in. Empty if they cannot be
    recognised."""
    covered: float | None = None
    """For `coverage`: the share of the source words that are covered, from 0 to 1."""
    message: str
    """The warning as an English sentence."""


class Word(Message):
    """A word of a translation, or the punctuation between words."""

    before: str
    """The white space before the word. The `before` and `text` of all words in order, joined, give
    the translation."""
    text: str
    """The word without the white space around it."""
    probability: float
    """The probability of the word given the source and the words before it, from 0 to 1."""
    first: int
    """The number of the first token of the word, from 0."""
    count: int
    """The number of tokens of the word."""
    source: list[tuple[int, int]] | None = None
    """The positions of the source words that this word was translated from, by the model's
    attention: for each, the first character and the position after the last. Empty if it has no
    clear source. Present only with `warnings`."""


class Token(Message):
    """A token that the model chose in one step of the search."""

    id: int
    """The number of the token in the vocabulary."""
    piece: str
    """The token as the vocabulary writes it, with ▁ for a space."""
    log_probability: float
    """The log-probability of the token given the source and the tokens before it, in nats."""


class Hypothesis(Message):
    """A translation of one sentence, with its words."""

    text: str
    """The text of the translated sentence."""
    score: float
    """The log-probability divided by the length penalty. A higher score is better."""
    log_probability: float
    """The log-probability of all tokens, including the end symbol, in nats."""
    finished: bool
    """True if the model ended the sentence; false if it was cut at the maximum length."""
    words: list[Word]
    """The words of the text, in order."""
    tokens: list[Token]
    """The tokens of the text, in order."""
    warnings: list[TranslationWarning] | None = None
    """The possible problems of the best hypothesis. Without `warnings` in the request, only those
    with the code `lost`, if any. Absent for the other hypotheses."""


def texts_of(target: Form, hypotheses: Sequence[search.Hypothesis]) -> list[str]:
    """Decode the tokens of each hypothesis into text."""
    return target.raw([hypothesis.tokens for hypothesis in hypotheses])


def hypothesis_message(target: Form, hypothesis: search.Hypothesis, text: str) -> Hypothesis:
    """Convert a hypothesis, with its words and tokens, into a message. ``text`` is its decoded
    text."""
    tokens, values = hypothesis.tokens, hypothesis.token_log_probabilities
    pieces = target.names_of(tokens)
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
