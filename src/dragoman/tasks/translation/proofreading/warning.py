"""What a warning about a translation says, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from dragoman.forms.languages import name_of
from dragoman.forms.lexicon import Span

Code = Literal[
    "language", "unknown", "omitted", "coverage", "lost", "repeated", "cut_off", "length"
]
Side = Literal["source", "target"]

_QUOTED = 80
"""Characters of a text that are quoted."""


@dataclass(frozen=True)
class ProofWarning:
    """One thing that is doubtful about a translation. ``str`` says it in English."""

    code: Code
    side: Side
    """Which text the doubt is about."""
    begin: int
    end: int
    """``begin`` and ``end``: the first character of that text, and the one behind the last."""
    text: str
    """The words between ``begin`` and ``end``."""
    languages: tuple[str, ...] = ()
    """For code ``language``: those that the text may be in, if that can be told."""
    covered: float | None = None
    """For code ``coverage``: the share of the text's words that the translation covers."""
    sentence: int | None = None
    """Of a line that was cut into several sentences: which one, counted from 1."""

    @classmethod
    def at(
        cls, code: Code, side: Side, text: str, place: Span, languages: tuple[str, ...] = ()
    ) -> ProofWarning:
        """A warning about the characters ``place`` of ``text``."""
        return cls(code, side, *place, text[slice(*place)], languages)

    def moved(self, source: int, target: int, sentence: int | None = None) -> ProofWarning:
        """The same warning where the two sentences begin at ``source`` and ``target`` of a text,
        of which they are number ``sentence``."""
        by = source if self.side == "source" else target
        return replace(self, begin=self.begin + by, end=self.end + by, sentence=sentence)

    def __str__(self) -> str:
        quoted = f"“{_shortened(self.text)}”"
        match self.code:
            case "language":
                names = " or ".join(map(name_of, self.languages))
                reads = f"reads as {names}" if names else "has few words that were read in training"
                return f"{quoted} {reads}: another language than this run translates from?"
            case "unknown":
                return f"{quoted} was never read in training"
            case "omitted":
                return f"{quoted} seems to be left out"
            case "lost":
                return f"{quoted} is lost in translation"
            case "coverage":
                return f"about {100 * (self.covered or 0):.0f} % of the source is covered"
            case "repeated":
                return f"{quoted} stands there again and again"
            case "cut_off":
                return "the translation reached its greatest length and was cut off"
            case "length":
                return "the translation has an unusual length for such a sentence"


def _shortened(text: str) -> str:
    """Without its middle, if it is long."""
    half = _QUOTED // 2
    return text if len(text) <= _QUOTED else f"{text[:half].rstrip()} … {text[-half:].lstrip()}"
