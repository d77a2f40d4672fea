"""Parts of an office document that hold paragraphs, their units in the order of reading, and what
writes WordprocessingML from right to left.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from dragoman.formats.office.runs import RunUnit, name_at, units_in, written
from dragoman.formats.units.document import Splice
from dragoman.formats.units.inline import spaced
from dragoman.formats.units.unit import Target
from dragoman.formats.xml.tokens import Replacement, Xml, put, replaced


@dataclass(frozen=True)
class OfficePart:
    """A file of XML with its units."""

    xml: Xml
    units: Sequence[RunUnit]
    keep_space: bool
    """Whether texts say that their spaces count."""

    @classmethod
    def read(
        cls, data: bytes, name: str, paragraphs: set[str], *, most: int, keep_space: bool = True
    ) -> OfficePart:
        """``paragraphs``: the names of the elements that hold runs. ``most``: tokens that may be
        read."""
        xml = Xml.read(data, name, most)
        kept = _in_fields(xml)
        units: list[RunUnit] = []
        for number, _ in xml.elements(*paragraphs):
            units += units_in(xml, number, kept)
        return cls(xml, units, keep_space)

    @property
    def prefix(self) -> str:
        """That of the names of the format, with its colon; of most files ``w:``."""
        root = self.xml.root
        return name_at(self.xml, root.begin).removesuffix(root.name)

    def without(self, texts: Collection[str]) -> OfficePart:
        """The part, with some texts left as they are."""
        return replace(self, units=[one for one in self.units if one.unit.text not in texts])

    def join(
        self,
        targets: Sequence[Target],
        extra: Sequence[Splice] = (),
        font: Callable[[str, str], str] | None = None,
    ) -> bytes:
        """The part with its translations. ``extra``: what else is replaced. ``font``: makes the
        fonts of what is translated, of a font and the prefix of its name."""
        replacements = [put(*splice) for splice in extra]
        prefix = self.prefix
        for one, target in zip(self.units, targets, strict=True):
            if font is not None and one.text == f"{prefix}t":
                own = _in_font(one, lambda given: font(given, prefix))
                replacements.append(self._replacement(own, target))
            elif target != one.unit.as_it_is:
                replacements.append(self._replacement(one, target))
        return replaced(self.xml, replacements)

    def _replacement(self, one: RunUnit, target: Target) -> Replacement:
        pieces = spaced(one.unit, target)
        return Replacement(
            one.begin, one.end, lambda span: written(one, pieces, span, self.keep_space)
        )


def _in_font(one: RunUnit, font: Callable[[str], str]) -> RunUnit:
    """A unit with other fonts; that of one run takes its run with it."""
    codes = [font(what) if isinstance(what, str) else what for what in one.codes]
    begin, end, first, last = one.runs
    return replace(
        one, begin=begin, end=end, first=first, last=last, base=font(one.base), codes=codes
    )


def _in_fields(xml: Xml) -> set[int]:
    """The texts that a field shows, which the program makes anew: a number of a page, a date, a
    table of contents. The text of a link is no such."""
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
    """The fields that are open in a text, or in a box of it."""

    def __init__(self) -> None:
        self._open: list[list[str] | bool] = []
        """For each its instruction, until what it shows begins; then whether it is a link."""
        self.hidden = 0
        """How many of them are no links."""

    def mark(self, kind: str) -> None:
        """A field begins, shows something from here on, or ends."""
        if kind == "begin":
            self._open.append([])
            self.hidden += 1
        elif self._open and kind == "separate":
            told = self._open[-1]
            if isinstance(told, list):
                is_link = "".join(told).split(maxsplit=1)[:1] == ["HYPERLINK"]
                self._open[-1] = is_link
                self.hidden -= is_link
        elif self._open and kind == "end":
            self.hidden -= self._open.pop() is not True

    def text(self, text: str) -> None:
        """Of its instruction, if one is open."""
        if self._open and isinstance(self._open[-1], list):
            self._open[-1].append(text)


_BEHIND_BIDI = {
    *("adjustRightInd", "snapToGrid", "spacing", "ind", "contextualSpacing", "mirrorIndents"),
    *("suppressOverlap", "jc", "textDirection", "textAlignment", "textboxTightWrap", "outlineLvl"),
    *("divId", "cnfStyle", "rPr", "sectPr", "pPrChange"),
}
"""What stands behind the direction of a paragraph (ECMA-376, CT_PPr is a sequence)."""
_BEHIND_RTL = re.compile(
    r"<(?:\w+:)?(?:cs|em|lang|eastAsianLayout|specVanish|oMath|rPrChange)[\s/>]"
)
_RTL = re.compile(r"<(?:\w+:)?rtl[\s/>]")
_END = re.compile(r"</(?:\w+:)?rPr>|/>\Z")


def bidi_font(font: str, prefix: str) -> str:
    """The properties of a run, from right to left. ``prefix``: that of WordprocessingML."""
    if _RTL.search(font):
        return font
    place = _BEHIND_RTL.search(font) or _END.search(font)
    if place is None or place[0] == "/>":
        return f"<{prefix}rPr><{prefix}rtl/></{prefix}rPr>"
    return f"{font[: place.start()]}<{prefix}rtl/>{font[place.start() :]}"


def bidi_paragraphs(part: OfficePart) -> list[Splice]:
    """What makes each paragraph with text one from right to left."""
    tokens, splices = part.xml.tokens, []
    bidi = f"<{part.prefix}bidi/>"
    properties = f"<{part.prefix}pPr>{bidi}</{part.prefix}pPr>"
    paragraph = f"<{part.prefix}p".encode()  # and no paragraph of a drawing
    begins = sorted(one.begin for one in part.units)
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
            splices.append(Splice(token.end, token.end, properties))
            continue
        inner = list(part.xml.children(first))
        if any(tokens[n].name == "bidi" for n in inner):
            continue
        if part.xml.is_empty(first):
            end = tokens[tokens[first].partner].end
            splices.append(Splice(tokens[first].begin, end, properties))
            continue
        behind = next((n for n in inner if tokens[n].name in _BEHIND_BIDI), tokens[first].partner)
        splices.append(Splice(tokens[behind].begin, tokens[behind].begin, bidi))
    return splices


def _any_between(places: list[int], begin: int, end: int) -> bool:
    at = bisect_left(places, begin)
    return at < len(places) and places[at] < end
