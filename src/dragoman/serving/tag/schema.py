"""What goes in and out where a run tags words: ``/v1/tag``."""

from __future__ import annotations

from pydantic import Field

from dragoman.serving.http.messages import Message, Texts


class TagRequest(Message):
    """``POST /v1/tag``."""

    text: Texts
    """A sentence, or several: its words between spaces, cut as in the text that the run has learned
    from."""
    run: str | None = None
    """Name of the run to use, where several tag."""
    top: int = Field(default=1, ge=1)
    """How many tags to give for each word, the most probable first."""
    api_key: str | None = None


class TagChoice(Message):
    """One of the tags that a word may have."""

    tag: str
    probability: float


class TaggedWord(Message):
    """A word of a text. ``before`` and ``text`` of all words joined are the text, but for space
    behind its last word."""

    before: str
    """Space in front."""
    text: str
    tag: str
    """The most probable one."""
    probability: float
    tags: list[TagChoice] | None = None
    """The most probable first; left out where one alone was asked for."""


class TaggedSpan(Message):
    """Words that belong together."""

    kind: str
    """X, where its words have the tags B-X and I-X."""
    first: int
    count: int
    """Its words: number of the first, and how many."""


class TaggedText(Message):
    """What a run says of one text."""

    parts: int
    """In how many parts it was read: a text with more tokens than are read at once in several, each
    without what stands around it."""
    spans: list[TaggedSpan] | None = None
    """Where the tags of the run are of the kinds B-X, I-X and O."""
    words: list[TaggedWord]


class TagAnswer(Message):
    """One for each text, in their order."""

    run: str
    longest: int
    """Tokens that are read at once, one symbol counted."""
    texts: list[TaggedText]
