"""Documents of Office Open XML (ECMA-376): Word, PowerPoint and Excel.

What a part holds its content type says, not its name. Text in headers, footers, notes, text boxes,
charts and diagrams is translated as that of the body; comments, properties and the layouts of
slides are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.formats.office.archive import MOST_BYTES, Archive
from dragoman.formats.office.languages import said_languages
from dragoman.formats.office.parts import OfficePart, bidi_font, bidi_paragraphs
from dragoman.formats.units.document import BadDocument, Document, OutputOptions, SaidLanguage
from dragoman.formats.units.unit import Target, Unit
from dragoman.formats.xml.tokens import MOST_TOKENS, Xml

_TYPES = "[Content_Types].xml"
_STYLES = "word/styles.xml"
_PREFIX = re.compile(
    r"\Aapplication/vnd\.(?:ms-(?:office|word)\."
    r"|openxmlformats-officedocument\.(?:(?:wordprocessing|presentation|spreadsheet)ml\.)?)"
)
"""application/vnd.openxmlformats-officedocument.wordprocessingml.document.main: before its end."""
_WORD = (
    *("document.main", "template.main", "header", "footer", "footnotes", "endnotes"),
    *("document.macroEnabled.main", "template.macroEnabledTemplate.main"),
)
_DRAWN = ("drawingml.chart", "drawingml.diagramData", "drawingml.diagramDrawing", "drawing")
_SLIDES = ("slide", "notesSlide")
_SHEETS = ("sharedStrings", "worksheet")


@dataclass(frozen=True)
class _Kind:
    """What is translated of a part."""

    paragraphs: frozenset[str]
    keep_space: bool


_PARTS = {
    **dict.fromkeys(_WORD, _Kind(frozenset({"p"}), True)),
    **dict.fromkeys((*_DRAWN, *_SLIDES), _Kind(frozenset({"p"}), False)),
    **dict.fromkeys(_SHEETS, _Kind(frozenset({"si", "is"}), True)),
}
"""The end of a content type, without ``+xml`` -> what such a part holds."""


@dataclass(frozen=True)
class OfficeDocument(Document):
    """A document of Word, PowerPoint or Excel."""

    name: str
    archive: Archive
    parts: dict[str, OfficePart]
    styles: str
    """Of Word, as XML."""

    @classmethod
    def read(cls, data: bytes, name: str) -> OfficeDocument:
        archive = Archive.read(data, name)
        if _TYPES not in archive.members:
            raise BadDocument(f"{name} is no Office document: it has no {_TYPES}")
        left = MOST_BYTES
        types = archive.member(_TYPES, left)
        left -= len(types)
        styles = archive.member(_STYLES, left) if _STYLES in archive.members else b""
        left -= len(styles)
        parts: dict[str, OfficePart] = {}
        found: list[tuple[str, bytes, _Kind]] = []
        for member, kind in _translated(Xml.read(types, f"{name}, {_TYPES}")):
            if member in archive.members and member not in parts:
                content = archive.member(member, left)
                left -= len(content)
                found.append((member, content, kind))
        headings = _headings(archive, name, left)
        most = MOST_TOKENS
        for member, content, kind in found:
            if not _may_hold(content, kind):
                continue
            where, names = f"{name}, {member}", set(kind.paragraphs)
            part = OfficePart.read(content, where, names, most=most, keep_space=kind.keep_space)
            most -= len(part.xml.tokens)
            parts[member] = part.without(headings) if headings else part
        if not found:
            raise BadDocument(f"{name} holds no text: no document, slide or sheet is in it")
        return cls(name, archive, parts, styles.decode("utf-8", "replace"))

    @property
    def units(self) -> Sequence[Unit]:
        return [one.unit for part in self.parts.values() for one in part.units]

    @property
    def languages(self) -> Sequence[SaidLanguage]:
        xml = [self.styles, *(part.xml.source.text for part in self.parts.values())]
        return said_languages(self.name, xml, self.units)

    @property
    def notes(self) -> Sequence[str]:
        return self.archive.signature_notes("_xmlsignatures/sig")

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        new = {}
        first = 0
        for member, part in self.parts.items():
            own = targets[first : first + len(part.units)]
            first += len(part.units)
            if wanted.from_right and part.keep_space and member.startswith("word/"):
                content = part.join(own, bidi_paragraphs(part), bidi_font)
            elif all(t == one.unit.as_it_is for one, t in zip(part.units, own, strict=True)):
                continue
            else:
                content = part.join(own)
            new[member] = content
        return self.archive.replaced(new)


def _may_hold(content: bytes, kind: _Kind) -> bool:
    """Whether a part may hold text: most sheets hold the numbers of texts that stand elsewhere."""
    starts = [f"{before}{name}".encode() for name in kind.paragraphs for before in ("<", ":")]
    return b"\0" in content[:100] or any(start in content for start in starts)


def _translated(types: Xml) -> list[tuple[str, _Kind]]:
    """The members that are translated."""
    found = []
    for _, token in types.elements("Override"):
        kind = token.attributes.get("ContentType", "").removesuffix("+xml")
        name = _PARTS.get(_PREFIX.sub("", kind))
        if name is not None:
            found.append((token.attributes.get("PartName", "").lstrip("/"), name))
    return found


def _headings(archive: Archive, name: str, left: int) -> frozenset[str]:
    """The headings of tables in sheets, which Excel wants to be the same in two places."""
    found = set()
    for member in archive.members:
        if member.startswith("xl/tables/") and member.endswith(".xml"):
            content = archive.member(member, left)
            left -= len(content)
            for _, token in Xml.read(content, f"{name}, {member}").elements("tableColumn"):
                found.add(token.attributes.get("name", ""))
    return frozenset(found)
