"""The common part of documents that are archives: office documents and books.

Each text of an office document has two languages, one for Western and one for East Asian scripts.
Programs that generate documents leave English in both, and office programs leave the language of
their menus in one. So a document declares a language only if all of its texts and styles have the
same one, and it is not English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Generic, Protocol, TypeVar

from dragoman.formats.office.archive import MOST_BYTES, Archive
from dragoman.formats.units.document import Document, OutputOptions, SaidLanguage, Target, Unit
from dragoman.formats.units.inline import is_asian
from dragoman.formats.xml.tokens import MOST_TOKENS, Xml


class Members:
    """Reads members of an archive within limits: bytes and tokens are counted over all of them,
    since a small archive may contain a lot."""

    def __init__(self, archive: Archive, most: int = MOST_BYTES) -> None:
        self.archive = archive
        self._bytes, self._tokens = most, MOST_TOKENS

    def content(self, member: str) -> bytes:
        """Unpack a member of the archive. Errors: ``BadDocument``."""
        content = self.archive.member(member, self._bytes)
        self._bytes -= len(content)
        return content

    def xml(self, member: str, content: bytes) -> Xml:
        """The content of a member, cut into tokens. Errors: ``BadDocument``."""
        xml = Xml.read(content, f"{self.archive.name}, {member}", self._tokens)
        self._tokens -= len(xml.tokens)
        return xml


class PackedPart(Protocol):
    """A member of the archive that is translated."""

    @property
    def units(self) -> Sequence[Unit]:
        """The units of the member, in reading order."""

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes | None:
        """The member with a translation for each unit; None if it stays as it is."""


Part = TypeVar("Part", bound=PackedPart)


@dataclass(frozen=True)
class PackedDocument(Document, Generic[Part]):
    """An archive and its members that are translated, by name, in reading order."""

    signed_by: ClassVar[str]
    """The prefix, in lower case, of the names of members that sign such a document."""

    name: str
    archive: Archive
    parts: dict[str, Part]

    @property
    def units(self) -> Sequence[Unit]:
        return [unit for part in self.parts.values() for unit in part.units]

    @property
    def notes(self) -> Sequence[str]:
        if any(member.lower().startswith(self.signed_by) for member in self.archive.members):
            return [f"{self.name} is signed. The signature of the translation is invalid"]
        return ()

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        return self.archive.with_members(self.new_members(targets, wanted))

    def new_members(self, targets: Sequence[Target], wanted: OutputOptions) -> dict[str, bytes]:
        """The members that change, with their new content."""
        new, every = dict[str, bytes](), iter(targets)
        for member, part in self.parts.items():
            own = list(islice(every, len(part.units)))
            if (content := part.join(own, wanted)) is not None:
                new[member] = content
        return new


_WESTERN, _ASIAN = (
    re.compile(
        rf"(?:<w:lang(?=\s)[^<>]{{0,200}}?\sw:{word}|<a:rPr(?=\s)[^<>]{{0,200}}?\slang|\s{written})"
        r'="([a-z]{2,3})\b'
    )
    for word, written in (("val", "fo:language"), ("eastAsia", "style:language-asian"))
)
"""The Western and the East Asian language, as Word, PowerPoint and OpenDocument write them."""
_OF_ASIA = {"ja", "ko", "zh"}
_LOOKED_AT = 1_000
"""The number of letters that decide which of the two counts."""


def language_of_xml(name: str, xml: Iterable[str], units: Iterable[Unit]) -> list[SaidLanguage]:
    """The language that a document's XML declares for its units; empty if it is not certain."""
    letters = (letter for unit in units for letter in unit.text if letter.isalpha())
    looked_at = list(islice(letters, _LOOKED_AT))
    of_asia = 2 * sum(map(is_asian, looked_at)) > len(looked_at)
    codes = {code for text in xml for code in (_ASIAN if of_asia else _WESTERN).findall(text)}
    code = codes.pop() if len(codes) == 1 else "en"
    if code == "en" or (code in _OF_ASIA) != of_asia:
        return []
    where = f"{name}: the language of its text, {code},"
    return [SaidLanguage("source", code, where, is_binding=False)]
