"""Plain text: each paragraph between blank lines is a unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.formats.units.document import Splice, Target, Unit, check_pieces, says_something
from dragoman.formats.units.encoding import TextDocument, decode

_PARAGRAPH = re.compile(r"\S[^\n]*+(?:\n[^\S\n]*+\S[^\n]*+)*+")


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
