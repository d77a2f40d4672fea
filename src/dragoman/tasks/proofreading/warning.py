"""What a warning about a translation says, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dragoman.forms.languages import name_of
from dragoman.forms.lexicon import Span

Code = Literal["language", "unknown", "omitted", "repeated", "cut_off", "length"]
Side = Literal["source", "target"]


@dataclass(frozen=True)
class TranslationWarning:
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

    @classmethod
    def at(
        cls, code: Code, side: Side, text: str, place: Span, languages: tuple[str, ...] = ()
    ) -> TranslationWarning:
        """A warning about the characters ``place`` of ``text``."""
        return cls(code, side, *place, text[slice(*place)], languages)

    def moved(self, source: int, target: int) -> TranslationWarning:
        """The same warning where the two sentences begin at ``source`` and ``target`` of a text."""
        by = source if self.side == "source" else target
        return TranslationWarning(
            self.code, self.side, self.begin + by, self.end + by, self.text, self.languages
        )

    def __str__(self) -> str:
        quoted = f"“{self.text}”"
        match self.code:
            case "language":
                names = " or ".join(map(name_of, self.languages))
                reads = f"reads as {names}" if names else "has few words that were read in training"
                return f"{quoted} {reads}: another language than this run translates from?"
            case "unknown":
                return f"{quoted} was never read in training"
            case "omitted":
                return f"{quoted} seems to be left out"
            case "repeated":
                return f"{quoted} stands there again and again"
            case "cut_off":
                return "the translation reached its greatest length and was cut off"
            case "length":
                return "the translation has an unusual length for such a sentence"
