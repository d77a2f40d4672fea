"""Decoding the bytes of a text file, encoding them without loss, and text files as documents: the
base class of several formats, and plain text, of which each paragraph is a unit.
"""

from __future__ import annotations

import codecs
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from dragoman.formats.units.document import (
    BadDocument,
    Document,
    OutputOptions,
    Splice,
    Target,
    Unit,
    check_pieces,
    line_of,
    says_something,
    splice,
)

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""The byte order marks, each with its encoding."""
_TEXT = {"utf-8", "us-ascii", "ascii", "utf8"}
_CHARACTERS = re.compile(
    r"ascii|utf-(?:8(?:-sig)?|(?:16|32)(?:-[bl]e)?)|iso8859-\d+|cp\d+|(?:koi8|mac)-\w+"
    r"|big5(?:hkscs)?|gb\w+|euc_\w+|shift_jis\w*|iso2022_\w+|hz|johab|hp-roman8|kz1048|ptcp154"
    r"|tis-620"
)
"""The codecs of Python that are character encodings, by their names in Python. Others, such as
idna, punycode and unicode-escape, are not, and some take a time that grows with the square of the
text."""
_PARAGRAPH = re.compile(r"\S[^\n]*+(?:\n[^\S\n]*+\S[^\n]*+)*+")


def encoding_named(name: str) -> str | None:
    """Python's name of the character encoding that a file or a request names, or None."""
    try:
        encoding = codecs.lookup(name).name
    except LookupError:
        return None
    return encoding if _CHARACTERS.fullmatch(encoding) else None


@dataclass(frozen=True)
class Encoded:
    """A decoded text and its encoding."""

    text: str
    encoding: str
    mark: bytes
    """The byte order mark before it, or nothing."""

    def splice(self, splices: Iterable[Splice], name: str) -> bytes:
        """Encode the text with some spans replaced. Errors: as ``back``."""
        return self.back(splice(self.text, splices), name)

    def back(self, text: str, name: str, *, references: bool = False) -> bytes:
        """Encode another text in the same encoding. ``references``: write characters that it lacks
        as references of XML. Errors: ``BadDocument`` for such characters otherwise."""
        errors = "xmlcharrefreplace" if references else "strict"
        try:
            return self.mark + text.encode(self.encoding, errors)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise BadDocument(
                f"{name} is in {self.encoding}, which has no {character!r} (line "
                f"{line_of(text, error.start)} of the translation). Save it as UTF-8 first"
            ) from None


class _HasUnit(Protocol):
    @property
    def unit(self) -> Unit: ...


Slot = TypeVar("Slot", bound=_HasUnit)


@dataclass(frozen=True)
class TextDocument(Document, Generic[Slot]):
    """A text file whose units are replaced in their places."""

    name: str
    source: Encoded
    slots: Sequence[Slot]
    """The units that are translated, with their places."""

    @property
    def units(self) -> Sequence[Unit]:
        return [slot.unit for slot in self.slots]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        splices: list[Splice] = []
        for slot, unit, target in zip(self.slots, self.units, targets, strict=True):
            if target != unit.as_it_is:
                splices += self.splices(slot, unit, target)
        return self.source.splice(splices, self.name)

    @abstractmethod
    def splices(self, slot: Slot, unit: Unit, target: Target) -> Iterable[Splice]:
        """Yield the replacements that write a translation of one of the slots."""


def decode(data: bytes, name: str, declared: str | None = None) -> Encoded:
    """Decode a file. ``declared``: the encoding that it names; UTF-8 without one. Errors:
    ``BadDocument``, with the line, for bytes that are not valid."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return Encoded(_decode(data[len(mark) :], encoding, name), encoding, mark)
    encoding = _encoding_of(declared, name)
    for unmarked in ("utf-16-le", "utf-16-be"):
        if data[:4].decode(unmarked, "replace") == "<?":
            encoding = unmarked
    return Encoded(_decode(data, encoding, name), encoding, b"")


def _encoding_of(declared: str | None, name: str) -> str:
    if declared is None or declared.lower() in _TEXT:
        return "utf-8"
    encoding = encoding_named(declared)
    if encoding is None:
        raise BadDocument(f"{name} states the unknown encoding {declared[:40]!r}. Save it as UTF-8")
    return encoding


def _decode(data: bytes, encoding: str, name: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadDocument(
            f"{name}, line {line_of(data, error.start)}: byte {error.start:,} is not "
            f"{encoding.upper()}. Save the file as UTF-8, for example with iconv -f WINDOWS-1252 "
            "-t UTF-8"
        ) from None
    if text.encode(encoding, "replace") != data:
        raise BadDocument(f"{name} is not valid {encoding.upper()}")
    return text


class _Paragraph(NamedTuple):
    begin: int
    end: int
    unit: Unit


class PlainText(TextDocument[_Paragraph]):
    """A text file as a document."""

    @classmethod
    def read(cls, data: bytes, name: str) -> PlainText:
        source = decode(data, name)
        paragraphs = []
        for match in _PARAGRAPH.finditer(source.text):
            if says_something(match[0]):
                paragraphs.append(_Paragraph(*match.span(), Unit(match[0])))
                check_pieces(len(paragraphs), name)
        return cls(name, source, paragraphs)

    def splices(self, slot: _Paragraph, unit: Unit, target: Target) -> Iterator[Splice]:
        yield Splice(slot.begin, slot.end, "".join(map(str, target)))
