"""The interface of documents: they consist of units, and are written with a translation of each.

A unit is a text that is translated as a whole, with its inline codes. A format reads a file into
units and writes translations in their places; translators see only units. A code is any part of
running text that is kept: a tag, a placeholder, a change of font. The translation of a unit is a
``Target``: its text in pieces, with the numbers of its codes between them.

Everything outside of units is written byte for byte, and so is a unit that is its own translation.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from dragoman.base.errors import DataError

Target: TypeAlias = list[str | int]
"""Pieces of text, with the numbers of the unit's codes between them."""


@dataclass(frozen=True, slots=True)
class Insert:
    """A text inside a code: the value of an attribute."""

    begin: int
    end: int
    """From ``begin`` to ``end``: its place in the code, with the quotes."""
    value: str
    text: int
    """Its number among the units of the document."""


@dataclass(frozen=True, slots=True)
class Code:
    """A part of running text that is kept: a tag, a comment, or a whole kept element."""

    place: int
    """The number of characters of the text before the code."""
    written: str = ""
    """The code as written in the file, if its format keeps it here."""
    opens: bool = False
    """True if an element begins with it."""
    closes: bool = False
    """True if an element ends with it."""
    apart_before: bool = False
    """True if it shows text of its own (``<code>ls</code>``) and no word comes right before it."""
    apart_behind: bool = False
    """True if it shows text of its own and no word comes right after it."""
    shows: bool = True
    """False if a reader sees nothing of it, as of a comment."""
    inserts: tuple[Insert, ...] = ()
    partner: int | None = None
    """The number of the code at the other end of the element; None without one."""
    repeats: bool = False
    """True if the element may be repeated or left out, as a font may."""

    def move(self, by: int) -> Code:
        """A copy whose place is moved by some characters."""
        return replace(self, place=self.place + by)


@dataclass(frozen=True, slots=True)
class Unit:
    """Running text, with its inline codes in order."""

    text: str
    """The plain text of the unit, unescaped."""
    tags: tuple[Code, ...] = ()
    ordered: bool = True
    """True if its codes keep their order; otherwise each follows its own words."""

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


def target_of(parts: Sequence[str]) -> Target:
    """Join the parts of a translation that is cut at its codes -> a target."""
    target: Target = []
    for number, part in enumerate(parts):
        if number:
            target.append(number - 1)
        if part:
            target.append(part)
    return target


_ADDRESS = re.compile(r"\s*(?:https?:\S+|www\.\S+|\S+@\S+)\s*\Z")


def says_something(text: str) -> bool:
    """True if a text has a letter and is not just an address: numbers, marks and addresses are the
    same in every language."""
    return any(map(str.isalpha, text)) and not is_address(text)


def is_address(text: str) -> bool:
    """True if a text is an address of the web or of mail, and nothing else."""
    return _ADDRESS.match(text) is not None


class BadDocument(DataError):
    """A file that is not of its format, is damaged, or is larger than allowed."""


@dataclass(frozen=True)
class OutputOptions:
    """Options for writing a translated document."""

    language: str = "und"
    """The language of the translation as a code."""
    final: bool = False
    """True if translations count as final; otherwise formats with states mark them for review."""

    @property
    def from_right(self) -> bool:
        """True if the language is written from right to left."""
        return self.language.partition("-")[0] in _FROM_RIGHT


_FROM_RIGHT = {"ar", "arc", "ckb", "dv", "fa", "he", "iw", "ps", "sd", "ug", "ur", "yi"}


Side: TypeAlias = Literal["source", "target"]


class SaidLanguage(NamedTuple):
    """A declaration in a document of one of its languages."""

    side: Side
    """The side: the language of the text, or that into which it is to be translated."""
    code: str
    where: str
    """The file, the place and the words of the declaration."""
    is_binding: bool = True
    """False for a declaration that is often wrong, such as the ``lang`` of a page."""


class Document(ABC):
    """A file that has been read."""

    @property
    @abstractmethod
    def units(self) -> Sequence[Unit]:
        """The units to translate, in reading order."""

    @abstractmethod
    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        """Write the file with a translation for each unit. Errors: ``BadDocument`` if the format
        cannot hold a translation."""

    def in_columns(self, columns: Sequence[str]) -> Document:
        """The document with only some columns to translate: their names in the first row, which is
        then not translated, or their numbers from 1. Errors: ``BadDocument`` for a document without
        such columns."""
        raise BadDocument("--columns works only with a table (.csv, .tsv). Leave it out")

    @property
    def languages(self) -> Sequence[SaidLanguage]:
        """The languages that the document declares."""
        return ()

    @property
    def source_language(self) -> str | None:
        """The declared language of its text, if the declaration is binding."""
        binding = (entry for entry in self.languages if entry.side == "source" and entry.is_binding)
        return next((entry.code for entry in binding), None)

    def between(self, source: str | None, target: str) -> Document:
        """The document with only the units that lack a translation from ``source`` (None: the
        declared language) into ``target``. Errors: ``BadDocument`` for a document without text in
        ``source``."""
        return self

    @property
    def notes(self) -> Sequence[str]:
        """The losses that translation causes, one line each."""
        return ()


MOST_PIECES = 1_000_000
"""The most texts, cells, marks or tags of one document: each takes much memory."""


def check_pieces(count: int, name: str) -> None:
    """Errors: ``BadDocument`` for more pieces than a document may have."""
    if count > MOST_PIECES:
        raise BadDocument(
            f"{name} has more than {MOST_PIECES:,} pieces of text and tags. Split it into parts"
        )


class Splice(NamedTuple):
    """A replacement for a span of a file."""

    begin: int
    end: int
    written: str


def splice(source: str, splices: Iterable[Splice]) -> str:
    """Replace spans of a text that do not overlap."""
    written, end = [], 0
    for span in sorted(splices, key=lambda span: (span.begin, span.end)):
        assert span.begin >= end, "spans of a document do not overlap"
        written += [source[end : span.begin], span.written]
        end = span.end
    return "".join([*written, source[end:]])


def line_of(source: str | bytes, place: int) -> int:
    """The number of the line of a place, from 1."""
    newline = "\n" if isinstance(source, str) else b"\n"
    return source.count(newline, 0, place) + 1  # type: ignore[arg-type]


WAITS = {"", "new", "needs-translation", "initial"}
"""The states of a text that waits for its translation."""
_REVIEWED = {"final", "signed-off", "reviewed"}
"""The states of a translation that a person has reviewed, whoever made it."""
_DONE = {"", "translated"}
"""The states of a translation that a person has reviewed."""
MACHINE = "dragoman"
"""The mark of a translation of ours in formats without a state for it: in TMX the ``creationid``,
in XLIFF 2 the prefix before a colon."""
_MACHINES = {MACHINE, "leveraged-mt", "mt-suggestion", "mt!", "mt"}
"""The marks of machine translations by other programs."""
_DOUBTS = re.compile(r"fuzzy-match|rejected-\w+")
"""The values in XLIFF 1.2 for a translation of a similar text, and for a rejected one."""


def teaches(state: str, origin: str = "") -> bool:
    """True if a translation may be learned from. ``state``: "" if the file has none; in PO, fuzzy
    or "". ``origin``: the origin that the file gives: ``state-qualifier`` of XLIFF 1.2, the prefix
    of ``subState`` of XLIFF 2, ``creationid`` of TMX."""
    stands = origin.lower() not in _MACHINES and not _DOUBTS.fullmatch(origin)
    return state in _REVIEWED or (state in _DONE and stands)
