"""Warnings about a translation, and the checks of translations that need no model. These cost next
to nothing, so they are always made:

``lost``      a placeholder or an address of the source is not in the translation
``language``  a text is not in the run's language: most of its words were never read in training,
              and its function words, or its script, are those of another language
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from dragoman.base.wording import plural, shorten
from dragoman.formats.units.document import Target, Unit
from dragoman.formats.units.inline import PLACEHOLDER
from dragoman.forms.identification import identify
from dragoman.forms.languages import NAMES, base, name_of
from dragoman.forms.lexicon import Lexicon, Span, words_in

Code = Literal[
    "language", "unknown", "omitted", "coverage", "lost", "repeated", "cut_off", "length"
]
Side = Literal["source", "target"]

_QUOTED = 80
"""The most characters of a text that are quoted."""


@dataclass(frozen=True)
class ProofWarning:
    """A doubt about a translation. ``str`` describes it in English."""

    code: Code
    side: Side
    """The text, source or target, that the doubt is about."""
    begin: int
    end: int
    """The range of the doubtful characters in that text; ``end`` is exclusive."""
    text: str
    """The words between ``begin`` and ``end``."""
    languages: tuple[str, ...] = ()
    """For the code ``language``: the languages that the text may be in, if known."""
    covered: float | None = None
    """For code ``coverage``: the share of the text's words that the translation covers."""
    sentence: int | None = None
    """The number of the sentence, from 1, if a line was split into several."""

    @classmethod
    def at(
        cls, code: Code, side: Side, text: str, place: Span, languages: tuple[str, ...] = ()
    ) -> ProofWarning:
        """Make a warning about the characters ``place`` of ``text``."""
        return cls(code, side, *place, text[slice(*place)], languages)

    def move(self, source: int, target: int, sentence: int | None = None) -> ProofWarning:
        """Move a warning to a longer text, in which the sentence has number ``sentence`` and begins
        at ``source`` in the source and at ``target`` in the translation."""
        by = source if self.side == "source" else target
        return replace(self, begin=self.begin + by, end=self.end + by, sentence=sentence)

    def __str__(self) -> str:
        quoted = f"“{_shorten(self.text)}”"
        match self.code:
            case "language":
                names = " or ".join(map(name_of, self.languages))
                reads = f"reads as {names}" if names else "has few words that were read in training"
                return f"{quoted} {reads}, but this run translates from another language"
            case "unknown":
                return f"{quoted} was never read in training"
            case "omitted":
                return f"{quoted} seems to be left out"
            case "lost":
                return f"{quoted} is lost in translation"
            case "coverage":
                return f"about {100 * (self.covered or 0):.0f} % of the source is covered"
            case "repeated":
                return f"{quoted} is repeated"
            case "cut_off":
                return "the translation reached its greatest length and was cut off"
            case "length":
                return "the translation has an unusual length for such a sentence"


def _shorten(text: str) -> str:
    """Cut the middle out of a long text."""
    half = _QUOTED // 2
    return text if len(text) <= _QUOTED else f"{text[:half].rstrip()} … {text[-half:].lstrip()}"


_OF_ADDRESS = r"!#-&*-;=?-\[\]-_a-~"
"""ASCII without spaces, quotes and brackets: an Asian particle or full stop that follows an address
is not part of it."""
_KEPT = re.compile(
    rf"https?://[{_OF_ADDRESS}]{{1,2000}}(?<![.,;:!?])"
    r"|(?a:(?<![\w.+\-])[\w.+\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,8})"
    rf"|{PLACEHOLDER}"
)
"""Web addresses, mail addresses and placeholders, which a translation must keep."""
_PERCENT = re.compile(r"(?<!\d)(\d{1,2})\s?%")
_BEGINS = re.compile("[%{$@]|://")
"""The characters that begin a placeholder, or are part of an address."""
_STRANGE = 0.6
"""A text with at least this share of words never read may be in another language."""
_TELLING_WORDS = 5
"""The fewest words from which function words identify a language."""
_FEW = 0.02
"""The share of texts in another language that may be chance (docs/experiments.md)."""
_SHOWN = 60


def find_lost(source: str, text: str) -> list[Span]:
    """Return the places of placeholders and addresses of ``source`` that its translation ``text``
    lacks, or has less often."""
    if not _BEGINS.search(source):
        return []
    places = []
    left: dict[str, int] = {}
    for match in _KEPT.finditer(source):
        if match[0] not in left:
            left[match[0]] = text.count(match[0])
            if match[0][1:].isdecimal():  # %50 is 50% in Turkish and in Basque
                left[match[0]] += _PERCENT.findall(text).count(match[0][1:])
        left[match[0]] -= 1
        if left[match[0]] < 0:
            places.append(match.span())
    return places


def warnings_of_lost(source: str, text: str) -> list[ProofWarning]:
    """Return a warning about each place that ``find_lost`` finds in one sentence."""
    return [ProofWarning.at("lost", "source", source, place) for place in find_lost(source, text)]


@dataclass(frozen=True)
class PlainDoubt:
    """A warning about all texts that were translated by one call. ``str`` describes it in
    English."""

    code: Literal["lost", "language"]
    count: int
    of: int
    """The number of doubtful texts, out of ``of``."""
    text: str
    """For ``lost``: the first lost text; for ``language``: the beginning of the first such text."""
    languages: tuple[str, ...] = ()
    """For ``language``: the languages that the texts may be in."""
    wanted: str = ""
    """For ``language``: the source language of the run."""

    def __str__(self) -> str:
        of = plural(self.of, "text")
        if self.code == "lost":
            return (
                f"{self.count:,} of {of}: placeholders or addresses are lost in translation, "
                f"such as {self.text}. Check them"
            )
        named = " or ".join(map(name_of, self.languages)) or "another language"
        return (
            f"{plural(self.count, f'of {of} reads', f'of {of} read')} as {named}, such as "
            f"“{self.text}”, and this run translates from {name_of(self.wanted)}"
        )


class PlainCheck:
    """Checks texts and their translations one after the other, without the model."""

    def __init__(self, language: str, lexicon: Callable[[], Lexicon | None]) -> None:
        """Prepare a check. ``language``: that of the sources; ``lexicon``: a function that is
        called once and returns the run's lexicon."""
        self._language, self._ask = language, lexicon
        self._texts = self._with_lost = self._strange = 0
        self._lost = self._example = ""
        self._languages: Counter[str] = Counter()

    def take(self, source: str, text: str) -> None:
        """Check the next text and its translation."""
        self._texts += 1
        if places := find_lost(source, text):
            self._with_lost += 1
            self._lost = self._lost or shorten(source[slice(*places[0])], _SHOWN)
        if languages := self._other_languages(source):
            self._strange += 1
            self._languages.update(languages)
            self._example = self._example or shorten(source, _SHOWN)

    def take_targets(self, units: Sequence[Unit], targets: Sequence[Target]) -> None:
        """Check all texts of a document and their translations, without the inline codes."""
        for unit, target in zip(units, targets, strict=True):
            self.take(unit.text, "".join(part for part in target if isinstance(part, str)))

    @property
    def counted(self) -> list[Any]:
        """The counts as JSON values, which another check can ``add``."""
        counts = [self._texts, self._with_lost, self._strange]
        return [*counts, self._lost, self._example, dict(self._languages)]

    def add(self, counted: Sequence[Any]) -> None:
        """Add the counts of another check, whose texts come after those of this one."""
        texts, with_lost, strange, lost, example, languages = counted
        self._texts += texts
        self._with_lost += with_lost
        self._strange += strange
        self._lost, self._example = self._lost or lost, self._example or example
        self._languages.update(languages)

    @property
    def doubts(self) -> list[PlainDoubt]:
        """The doubts, one of each kind for all texts."""
        doubts = []
        if self._with_lost:
            doubts.append(PlainDoubt("lost", self._with_lost, self._texts, self._lost))
        if self._strange > _FEW * self._texts:
            most = self._languages.most_common()
            named = tuple(sorted(code for code, count in most if count == most[0][1]))
            known = tuple(code for code in named if code in NAMES)
            doubts.append(
                PlainDoubt(
                    "language", self._strange, self._texts, self._example, known, self._language
                )
            )
        return doubts

    @cached_property
    def _lexicon(self) -> Lexicon | None:
        return self._ask()

    def _other_languages(self, source: str) -> frozenset[str]:
        """Return the languages that a text may be in, if it is certain that the text is not in the
        run's source language; otherwise none."""
        words = [source[slice(*place)] for place in words_in(source)]
        words = [word for word in words if not word[0].isdigit()]
        if not words or base(self._language) not in NAMES:
            return frozenset()
        if self._lexicon is not None:
            never = sum(not self._lexicon.has(word) for word in words)
            if never < _STRANGE * len(words):
                return frozenset()
        read_as = identify([source])
        if base(self._language) in read_as:
            return frozenset()
        is_script = not any(map(str.isascii, words))
        return read_as if len(words) >= _TELLING_WORDS or is_script else frozenset()
