"""Plain text: each paragraph between blank lines is a unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.formats.units.document import (
    Document,
    OutputOptions,
    Splice,
    Target,
    Unit,
    check_pieces,
    says_something,
)
from dragoman.formats.units.encoding import Encoded, decoded

_PARAGRAPH = re.compile(r"\S[^\n]*+(?:\n[^\S\n]*+\S[^\n]*+)*+")


@dataclass(frozen=True)
class PlainText(Document):
    """A text file as a document."""

    name: str
    source: Encoded
    places: Sequence[tuple[int, int]]

    @classmethod
    def read(cls, data: bytes, name: str) -> PlainText:
        source = decoded(data, name)
        places = []
        for one in _PARAGRAPH.finditer(source.text):
            if says_something(one[0]):
                places.append(one.span())
                check_pieces(len(places), name)
        return cls(name, source, places)

    @property
    def units(self) -> Sequence[Unit]:
        return [Unit(self.source.text[begin:end]) for begin, end in self.places]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        texts = ("".join(map(str, target)) for target in targets)
        splices = [Splice(*place, text) for place, text in zip(self.places, texts, strict=True)]
        return self.source.spliced(splices, self.name)
