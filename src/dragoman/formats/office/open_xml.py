"""Documents of Office Open XML (ECMA-376): Word, PowerPoint and Excel.

The content type of a part determines what it contains, not its name. Text in headers, footers,
notes, text boxes, charts and diagrams is translated like that of the body; comments, properties and
the layouts of slides are kept.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from dragoman.formats.office.archive import Archive, Members, PackedDocument, language_of_xml
from dragoman.formats.office.runs import RunUnit, name_at, units_in, write_runs
from dragoman.formats.units.document import BadDocument, OutputOptions, SaidLanguage, Target, Unit
from dragoman.formats.units.inline import add_spaces
from dragoman.formats.units.xml import Replacement, Xml, put, splice_xml

_TYPES = "[Content_Types].xml"
_STYLES = "word/styles.xml"
_PREFIX = re.compile(
    r"\Aapplication/vnd\.(?:ms-(?:office|word)\."
    r"|openxmlformats-officedocument\.(?:(?:wordprocessing|presentation|spreadsheet)ml\.)?)"
)
"""The beginning of the content types of parts, which ends before the words in ``_PARTS``."""
_WORD = (
    *("document.main", "template.main", "header", "footer", "footnotes", "endnotes"),
    *("document.macroEnabled.main", "template.macroEnabledTemplate.main"),
)
_DRAWN = ("drawingml.chart", "drawingml.diagramData", "drawingml.diagramDrawing", "drawing")
_SLIDES = ("slide", "notesSlide")
_SHEETS = ("sharedStrings", "worksheet")


@dataclass(frozen=True)
class _Kind:
    """The kind of a part: the elements that are its paragraphs."""

    paragraphs: frozenset[str]
    keep_space: bool


_PARTS = {
    **dict.fromkeys(_WORD, _Kind(frozenset({"p"}), True)),
    **dict.fromkeys((*_DRAWN, *_SLIDES), _Kind(frozenset({"p"}), False)),
    **dict.fromkeys(_SHEETS, _Kind(frozenset({"si", "is"}), True)),
}
"""The end of a content type, without ``+xml`` -> the kind of the part."""


@dataclass(frozen=True)
class OfficePart:
    """A file of XML with its units."""

    xml: Xml
    runs: Sequence[RunUnit]
    keep_space: bool
    """True if texts are marked to keep their spaces."""
    is_word: bool
    """True if its paragraphs may be written from right to left."""

    @property
    def units(self) -> Sequence[Unit]:
        return [run.unit for run in self.runs]

    @property
    def prefix(self) -> str:
        """The prefix of the format's names, with its colon; in most files ``w:``."""
        root = self.xml.root
        return name_at(self.xml, root.begin).removesuffix(root.name)

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes | None:
        bidi, prefix = wanted.from_right and self.is_word, self.prefix
        replacements = _bidi_paragraphs(self) if bidi else []
        for run, target in zip(self.runs, targets, strict=True):
            if bidi and run.text == f"{prefix}t":
                own = _in_font(run, lambda font: _bidi_font(font, prefix))
                replacements.append(self._replacement(own, target))
            elif target != run.unit.as_it_is:
                replacements.append(self._replacement(run, target))
        return splice_xml(self.xml, replacements) if replacements or bidi else None

    def _replacement(self, run: RunUnit, target: Target) -> Replacement:
        pieces = add_spaces(run.unit, target)
        return Replacement(
            run.begin, run.end, lambda span: write_runs(run, pieces, span, self.keep_space)
        )


@dataclass(frozen=True)
class OfficeDocument(PackedDocument[OfficePart]):
    """A document of Word, PowerPoint or Excel."""

    signed_by = "_xmlsignatures/sig"

    styles: str
    """The styles of a Word document, as XML."""

    @classmethod
    def read(cls, data: bytes, name: str) -> OfficeDocument:
        archive = Archive.read(data, name)
        if _TYPES not in archive.members:
            raise BadDocument(f"{name} is not an Office document: it has no {_TYPES}")
        members = Members(archive)
        types = Xml.read(members.content(_TYPES), f"{name}, {_TYPES}")
        styles = members.content(_STYLES) if _STYLES in archive.members else b""
        kinds = {m: kind for m, kind in _kinds_of_members(types) if m in archive.members}
        contents = {member: members.content(member) for member in kinds}
        headings = _headings(members)
        parts = {
            member: _part(members.xml(member, content), kinds[member], member, headings)
            for member, content in contents.items()
            if _may_hold(content, kinds[member])
        }
        if not kinds:
            raise BadDocument(f"{name} has no text: it contains no document, slide or sheet")
        return cls(name, archive, parts, styles.decode("utf-8", "replace"))

    @property
    def languages(self) -> Sequence[SaidLanguage]:
        xml = [self.styles, *(part.xml.source.text for part in self.parts.values())]
        return language_of_xml(self.name, xml, self.units)


def _part(xml: Xml, kind: _Kind, member: str, headings: Collection[str]) -> OfficePart:
    """Make the part of a member. ``headings``: texts that are left as they are."""
    kept = _in_fields(xml)
    every = (run for n, _ in xml.elements(*kind.paragraphs) for run in units_in(xml, n, kept))
    runs = [run for run in every if run.unit.text not in headings]
    return OfficePart(xml, runs, kind.keep_space, kind.keep_space and member.startswith("word/"))


def _may_hold(content: bytes, kind: _Kind) -> bool:
    """True if a part may contain text: most sheets contain only numbers of texts elsewhere."""
    starts = [f"{before}{name}".encode() for name in kind.paragraphs for before in ("<", ":")]
    return b"\0" in content[:100] or any(start in content for start in starts)


def _kinds_of_members(types: Xml) -> list[tuple[str, _Kind]]:
    """The members that are translated, with their kinds."""
    members = []
    for _, token in types.elements("Override"):
        kind = token.attributes.get("ContentType", "").removesuffix("+xml")
        name = _PARTS.get(_PREFIX.sub("", kind))
        if name is not None:
            members.append((token.attributes.get("PartName", "").lstrip("/"), name))
    return members


def _headings(members: Members) -> frozenset[str]:
    """The headings of tables in sheets, which Excel requires to be the same in two places."""
    headings = set()
    for member in members.archive.members:
        if member.startswith("xl/tables/") and member.endswith(".xml"):
            xml = Xml.read(members.content(member), f"{members.archive.name}, {member}")
            for _, token in xml.elements("tableColumn"):
                headings.add(token.attributes.get("name", ""))
    return frozenset(headings)


def _in_font(run: RunUnit, font: Callable[[str], str]) -> RunUnit:
    """A unit with other fonts; a unit of a single run then includes that run."""
    codes = [font(what) if isinstance(what, str) else what for what in run.codes]
    begin, end, first, last = run.runs
    return replace(
        run, begin=begin, end=end, first=first, last=last, base=font(run.base), codes=codes
    )


def _in_fields(xml: Xml) -> set[int]:
    """The texts that a field shows, which the program generates: a page number, a date, a table of
    contents. The text of a link is not among them."""
    kept: set[int] = set()
    fields = [_Fields()]
    for number, token in enumerate(xml.tokens):
        if token.name == "txbxContent":
            if token.kind == "start":
                fields.append(_Fields())
            elif len(fields) > 1:
                fields.pop()
        elif token.kind != "start":
            if token.kind == "text":
                fields[-1].text(token.text)
        elif token.name == "fldChar":
            kind = next((v for k, v in token.attributes.items() if k.endswith("fldCharType")), "")
            fields[-1].mark(kind)
        elif token.name == "t" and fields[-1].hidden:
            kept.add(number)
    return kept


class _Fields:
    """The open fields of a text, or of one of its boxes."""

    def __init__(self) -> None:
        self._open: list[list[str] | bool] = []
        """For each field its instruction, until its result begins; then True if it is a link."""
        self.hidden = 0
        """The number of open fields that are not links."""

    def mark(self, kind: str) -> None:
        """Process the beginning of a field, of its result, or its end."""
        if kind == "begin":
            self._open.append([])
            self.hidden += 1
        elif self._open and kind == "separate":
            instruction = self._open[-1]
            if isinstance(instruction, list):
                is_link = "".join(instruction).split(maxsplit=1)[:1] == ["HYPERLINK"]
                self._open[-1] = is_link
                self.hidden -= is_link
        elif self._open and kind == "end":
            self.hidden -= self._open.pop() is not True

    def text(self, text: str) -> None:
        """Add text to the instruction of the open field, if there is one."""
        if self._open and isinstance(self._open[-1], list):
            self._open[-1].append(text)


_BEHIND_BIDI = {
    *("adjustRightInd", "snapToGrid", "spacing", "ind", "contextualSpacing", "mirrorIndents"),
    *("suppressOverlap", "jc", "textDirection", "textAlignment", "textboxTightWrap", "outlineLvl"),
    *("divId", "cnfStyle", "rPr", "sectPr", "pPrChange"),
}
"""Elements after the direction in a paragraph's properties (ECMA-376: CT_PPr is a sequence)."""
_BEHIND_RTL = re.compile(
    r"<(?:\w+:)?(?:cs|em|lang|eastAsianLayout|specVanish|oMath|rPrChange)[\s/>]"
)
_RTL = re.compile(r"<(?:\w+:)?rtl[\s/>]")
_END = re.compile(r"</(?:\w+:)?rPr>|/>\Z")


def _bidi_font(font: str, prefix: str) -> str:
    """The properties of a run, from right to left. ``prefix``: that of WordprocessingML."""
    if _RTL.search(font):
        return font
    place = _BEHIND_RTL.search(font) or _END.search(font)
    if place is None or place[0] == "/>":
        return f"<{prefix}rPr><{prefix}rtl/></{prefix}rPr>"
    return f"{font[: place.start()]}<{prefix}rtl/>{font[place.start() :]}"


def _bidi_paragraphs(part: OfficePart) -> list[Replacement]:
    """The insertions that set each paragraph with text from right to left."""
    tokens, replacements = part.xml.tokens, list[Replacement]()
    bidi = f"<{part.prefix}bidi/>"
    properties = f"<{part.prefix}pPr>{bidi}</{part.prefix}pPr>"
    paragraph = f"<{part.prefix}p".encode()  # but not a paragraph of a drawing
    begins = sorted(run.begin for run in part.runs)
    if not begins:
        return []
    for number, token in part.xml.elements("p"):
        if part.xml.is_empty(number):
            continue
        end = tokens[token.partner].begin
        if part.xml.data[token.begin : token.begin + len(paragraph)] != paragraph:
            continue
        if not _any_between(begins, token.end, end):
            continue
        first = next(part.xml.children(number), -1)
        if first < 0 or tokens[first].name != "pPr":
            replacements.append(put(token.end, token.end, properties))
            continue
        inner = list(part.xml.children(first))
        if any(tokens[n].name == "bidi" for n in inner):
            continue
        if part.xml.is_empty(first):
            end = tokens[tokens[first].partner].end
            replacements.append(put(tokens[first].begin, end, properties))
            continue
        behind = next((n for n in inner if tokens[n].name in _BEHIND_BIDI), tokens[first].partner)
        replacements.append(put(tokens[behind].begin, tokens[behind].begin, bidi))
    return replacements


def _any_between(places: list[int], begin: int, end: int) -> bool:
    at = bisect_left(places, begin)
    return at < len(places) and places[at] < end
