"""What goes in and out where a run parses: ``/v1/parse``."""

from __future__ import annotations

from pydantic import Field

from dragoman.serving.http.messages import Message, Texts


class ParseRequest(Message):
    """``POST /v1/parse``."""

    text: Texts
    """A sentence, or several: its words between spaces, cut as in the treebank that the run has
    learned from."""
    run: str | None = None
    """Name of the run to use, where several parse."""
    beam: int | None = Field(default=None, ge=1)
    """Hypotheses kept at each step; the run's own if not given."""
    n_best: int = Field(default=1, ge=1)
    """Trees of each sentence to give, best first."""
    attention: bool = False
    """Say where the model looked when it opened each bracket of the best tree."""
    api_key: str | None = None


class TreeWord(Message):
    """A word of a tree."""

    text: str
    """As treebanks write it: -LRB- for a parenthesis."""
    tag: str | None = None
    """Its part of speech, where tags were learned."""
    parent: int
    """Number of the bracket that holds it."""


class Bracket(Message):
    """A bracket, and what it holds."""

    label: str
    parent: int | None
    """Number of the bracket that holds it; left out of the outermost."""
    first: int
    count: int
    """Its words: number of the first, and how many."""
    attention: list[float] | None = None
    """Only where it was asked for: of each word of the sentence, the share that the model looked at
    when it opened the bracket. What is missing to 1 went to the end of the sentence."""


class ParsedTree(Message):
    """One tree of a sentence."""

    text: str
    """In brackets, on one line."""
    score: float
    """Log-probability over length penalty: higher is better."""
    log_probability: float
    words: list[TreeWord]
    brackets: list[Bracket]
    """Each before those that it holds, from left to right."""


class ParsedSentence(Message):
    """The trees of one sentence, best first."""

    trees: list[ParsedTree]


class ParseAnswer(Message):
    """One for each sentence, in their order."""

    run: str
    sentences: list[ParsedSentence]
