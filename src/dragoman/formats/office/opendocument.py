"""OpenDocument (ISO/IEC 26300): texts, sheets and slides of LibreOffice.

Paragraphs and headings are units. Deleted text, comments, results of formulas, fields and tables of
contents are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.formats.office.archive import (
    Archive,
    Members,
    PackedDocument,
    XmlPart,
    language_of_xml,
)
from dragoman.formats.units.document import (
    BadDocument,
    SaidLanguage,
    says_something,
)
from dragoman.formats.units.xml import (
    MixedUnit,
    Role,
    Xml,
    XmlToken,
    mixed_unit,
)

_TRANSLATED = ("content.xml", "styles.xml")
_MANIFEST = "META-INF/manifest.xml"
_KEPT = {"tracked-changes", "annotation", "index-body", "alphabetical-index", "scripts", "forms"}
_BREAKS = {"tab", "line-break"}
_PARAGRAPHS = {"p", "h"}
_ROLES: dict[str, Role] = {"span": "mark", "a": "pair"}


@dataclass(frozen=True)
class OpenDocument(PackedDocument[XmlPart]):
    """A file of OpenDocument (text, table or slides)."""

    signed_by = "meta-inf/documentsignatures.xml"

    @classmethod
    def read(cls, data: bytes, name: str) -> OpenDocument:
        archive = Archive.read(data, name)
        members = Members(archive)
        if _MANIFEST in archive.members and b"encryption-data" in members.content(_MANIFEST):
            raise BadDocument(f"{name} is encrypted. Open it and save it without a password")
        parts: dict[str, XmlPart] = {}
        for member in _TRANSLATED:
            if member in archive.members:
                xml = members.xml(member, members.content(member))
                parts[member] = XmlPart(xml, list(_units(xml)))
        if "content.xml" not in parts:
            raise BadDocument(f"{name} is not an OpenDocument file: it has no content.xml")
        return cls(name, archive, parts)

    @property
    def languages(self) -> Sequence[SaidLanguage]:
        xml = (part.xml.source.text for part in self.parts.values())
        return language_of_xml(self.name, xml, self.units)


def _units(xml: Xml) -> Iterator[MixedUnit]:
    kept_until = -1
    for number, token in enumerate(xml.tokens):
        if number < kept_until or token.kind != "start":
            continue
        is_formula = token.name == "table-cell" and "table:formula" in token.attributes
        if token.name in _KEPT or is_formula:
            kept_until = token.partner
        elif token.name in _PARAGRAPHS and token.partner > number + 1:
            for segment in _segments(xml, number):
                made = mixed_unit(xml, segment, _role, collapse=True)
                if says_something(made.unit.text):
                    yield made


def _segments(xml: Xml, paragraph: int) -> Iterator[range]:
    """The stretches between tabs and line breaks, each from its first text to its last."""
    tokens = xml.tokens
    begin, at = paragraph + 1, paragraph + 1
    while at < tokens[paragraph].partner:
        token = tokens[at]
        if token.kind == "start" and token.name in _BREAKS:
            yield from _trim(xml, begin, at)
            begin = token.partner + 1
        if token.kind == "start" and _role(token) == "kept":
            at = token.partner
        at += 1
    yield from _trim(xml, begin, tokens[paragraph].partner)


def _trim(xml: Xml, begin: int, end: int) -> Iterator[range]:
    tokens = xml.tokens
    texts, at = [], begin
    while at < end:
        if tokens[at].kind == "text" and tokens[at].text.strip():
            texts.append(at)
        elif tokens[at].kind == "start" and _role(tokens[at]) == "kept":
            at = tokens[at].partner
        at += 1
    if not texts:
        return
    first, last = texts[0], texts[-1] + 1
    unseen = [(first, last)]
    while unseen:  # include both ends of each element, if both are there
        for token in tokens[slice(*unseen.pop())]:
            if token.kind == "start" and last <= token.partner < end:
                unseen.append((last, token.partner + 1))
                last = token.partner + 1
            elif token.kind == "end" and begin <= token.partner < first:
                unseen.append((token.partner, first))
                first = token.partner
    yield range(first, last)


def _role(token: XmlToken) -> Role:
    return _ROLES.get(token.name, "kept")
