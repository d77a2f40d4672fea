"""A document: units to translate, and a way to write it with their translations.

A unit is what is translated at once: a text, and the inline codes that stand in it. A format reads
a file into units and writes translations where they stood; who translates sees units alone. A code
is whatever stands within running text and is kept: a tag, a placeholder, a change of font. The
translation of a unit is a ``Target``: its text in pieces, with the numbers of its codes between
them.

All that is not a unit comes out byte for byte, and so does a unit that is its own translation.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from dragoman.base.errors import DataError

Target: TypeAlias = list[str | int]
"""Text in pieces, and the numbers of the unit's codes where they stand between them."""


@dataclass(frozen=True, slots=True)
class Insert:
    """A text inside a code: the value of an attribute."""

    begin: int
    end: int
    """Where it stands in the code, its quotes included."""
    value: str
    text: int
    """Its number among the units of the document."""


@dataclass(frozen=True, slots=True)
class Code:
    """Something inside running text that is kept: a tag, a comment, or a whole kept element."""

    place: int
    """How many characters of the text stand before it."""
    written: str = ""
    """As it stands in the file, where its format keeps it here."""
    opens: bool = False
    """Whether an element begins with it."""
    closes: bool = False
    """Whether one ends with it."""
    apart_before: bool = False
    """Whether it shows text of its own (``<code>ls</code>``) that no word stands right before."""
    apart_behind: bool = False
    """The same of the word behind."""
    inserts: tuple[Insert, ...] = ()
    partner: int | None = None
    """The number of the code that ends the element, or began it; None: it has none."""
    repeats: bool = False
    """Whether the element may stand several times or not at all, as a font may."""

    def moved(self, by: int) -> Code:
        """The code, its place counted from elsewhere."""
        return replace(self, place=self.place + by)


@dataclass(frozen=True, slots=True)
class Unit:
    """Running text, with the codes inside it in their order."""

    text: str
    """Plain: characters unescaped."""
    tags: tuple[Code, ...] = ()
    ordered: bool = True
    """Whether its codes keep their order. Otherwise each goes where its own words go."""

    @property
    def as_it_is(self) -> Target:
        """The unit as its own translation."""
        target: Target = []
        end = 0
        for number, code in enumerate(self.tags):
            if code.place > end:
                target.append(self.text[end : code.place])
            target.append(number)
            end = code.place
        if end < len(self.text):
            target.append(self.text[end:])
        return target


def parts_of(target: Target) -> list[str]:
    """A translation whose codes stand in their order, cut where they stand: one part more than
    there are codes."""
    parts = [""]
    for one in target:
        if isinstance(one, str):
            parts[-1] += one
        else:
            parts.append("")
    return parts


def target_of(parts: Sequence[str]) -> Target:
    """What ``parts_of`` cuts."""
    target: Target = []
    for number, part in enumerate(parts):
        if number:
            target.append(number - 1)
        if part:
            target.append(part)
    return target


_ADDRESS = re.compile(r"\s*(?:https?:\S+|www\.\S+|\S+@\S+)\s*\Z")


def says_something(text: str) -> bool:
    """Whether a text has a letter and is no address alone: numbers, marks and addresses say the
    same in every language."""
    return any(map(str.isalpha, text)) and not is_address(text)


def is_address(text: str) -> bool:
    """Whether a text is an address of the web or of mail, and nothing else."""
    return _ADDRESS.match(text) is not None


class BadDocument(DataError):
    """A file that is not of its format, is damaged, or holds more than it may."""


@dataclass(frozen=True)
class OutputOptions:
    """How a translated document is wanted."""

    language: str = "und"
    """Of the translation."""
    final: bool = False
    """Whether translations count as done. Otherwise formats that can say so mark them as to be
    looked over."""

    @property
    def from_right(self) -> bool:
        """Whether the language is written from right to left."""
        return self.language.partition("-")[0] in _FROM_RIGHT


_FROM_RIGHT = {"ar", "arc", "ckb", "dv", "fa", "he", "iw", "ps", "sd", "ug", "ur", "yi"}


Side: TypeAlias = Literal["source", "target"]


class SaidLanguage(NamedTuple):
    """What a document says of its languages."""

    side: Side
    """Whether it is what it is written in, or what it is to be translated into."""
    code: str
    where: str
    """The file, the place, and the words that say it."""
    is_binding: bool = True
    """Whether it was made to be right. The ``lang`` of a page is often left over from another."""


class Document(ABC):
    """A file that has been read."""

    @property
    @abstractmethod
    def units(self) -> Sequence[Unit]:
        """What is to be translated, in the order of reading."""

    @abstractmethod
    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        """The file with a translation for each unit. Errors: ``BadDocument`` where it cannot hold
        one."""

    def in_columns(self, columns: Sequence[str]) -> Document:
        """The document, of which some columns are translated alone: their names in the first row,
        which is not translated then, or their numbers from 1. Errors: ``BadDocument`` for one that
        has no such."""
        raise BadDocument("--columns is for a table (.csv, .tsv), and this document is none")

    @property
    def languages(self) -> Sequence[SaidLanguage]:
        """The languages that it says it is of."""
        return ()

    @property
    def source_language(self) -> str | None:
        """The language of its text, if it says one that was made to be right."""
        said = (one for one in self.languages if one.side == "source" and one.is_binding)
        return next((one.code for one in said), None)

    def between(self, source: str | None, target: str) -> Document:
        """The document with the units alone that lack a translation from ``source`` (None: the
        language that it says) into ``target``. Errors: ``BadDocument`` for one that has no text in
        ``source``."""
        return self

    @property
    def notes(self) -> Sequence[str]:
        """What is lost by translating it, one line each."""
        return ()


MOST_PIECES = 1_000_000
"""Texts, cells, marks or tags of one document: each takes far more memory than its bytes."""


def check_pieces(count: int, name: str) -> None:
    """Errors: ``BadDocument`` for more pieces than a document may have."""
    if count > MOST_PIECES:
        raise BadDocument(
            f"{name} has more than {MOST_PIECES:,} pieces of text and marks: cut it into parts"
        )


class Splice(NamedTuple):
    """What takes the place of a span of a file."""

    begin: int
    end: int
    written: str


def spliced(source: str, splices: Iterable[Splice]) -> str:
    """A text with some of its spans replaced; they do not overlap."""
    written, end = [], 0
    for one in sorted(splices, key=lambda one: (one.begin, one.end)):
        assert one.begin >= end, "spans of a document do not overlap"
        written += [source[end : one.begin], one.written]
        end = one.end
    return "".join([*written, source[end:]])


def line_of(source: str | bytes, place: int) -> int:
    """The line, from 1, of a place."""
    newline = "\n" if isinstance(source, str) else b"\n"
    return source.count(newline, 0, place) + 1  # type: ignore[arg-type]


WAITS = {"", "new", "needs-translation", "initial"}
"""States of a text that waits for its translation."""
_REVIEWED = {"final", "signed-off", "reviewed"}
"""A person has read the translation, whoever made it."""
_DONE = {"", "translated"}
"""It is done, unless a machine has made it, or it is of a similar text, or refused."""
MACHINE = "dragoman"
"""How a translation of ours is marked where a format has no state that says so: in TMX as the name
of who made it, in XLIFF 2 before a colon."""
_MACHINES = {MACHINE, "leveraged-mt", "mt-suggestion", "mt!", "mt"}
"""By what other programs mark the translations of machines."""
_DOUBTS = re.compile(r"fuzzy-match|rejected-\w+")
"""What XLIFF 1.2 says of a translation of a similar text, and of one that was refused."""


def teaches(state: str, origin: str = "") -> bool:
    """Whether a translation is learned from. ``state``: "" where the file says none; of PO fuzzy or
    "". ``origin``: how the file says that it came about: ``state-qualifier`` of XLIFF 1.2, the
    prefix of ``subState`` of XLIFF 2, ``creationid`` of TMX."""
    stands = origin.lower() not in _MACHINES and not _DOUBTS.fullmatch(origin)
    return state in _REVIEWED or (state in _DONE and stands)
