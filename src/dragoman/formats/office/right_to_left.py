"""Paragraphs and runs of WordprocessingML in the direction of a language from right to left."""

from __future__ import annotations

import re
from bisect import bisect_left

from dragoman.formats.office.parts import OfficePart
from dragoman.formats.units.document import Splice

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
    for number, token in enumerate(tokens):
        if token.kind != "start" or token.name != "p" or part.xml.is_empty(number):
            continue
        end = tokens[token.partner].begin
        if part.xml.data[token.begin : token.begin + len(paragraph)] != paragraph:
            continue
        if not _any_between(begins, token.end, end):
            continue
        first = next((n for n in range(number + 1, token.partner) if tokens[n].kind == "start"), -1)
        if first < 0 or tokens[first].name != "pPr":
            splices.append(Splice(token.end, token.end, properties))
            continue
        inner = [
            n
            for n in range(first + 1, tokens[first].partner)
            if tokens[n].kind == "start" and _is_child(part, n, first)
        ]
        if any(tokens[n].name == "bidi" for n in inner):
            continue
        if part.xml.is_empty(first):
            end = tokens[tokens[first].partner].end
            splices.append(Splice(tokens[first].begin, end, properties))
            continue
        behind = next((n for n in inner if tokens[n].name in _BEHIND_BIDI), tokens[first].partner)
        splices.append(Splice(tokens[behind].begin, tokens[behind].begin, bidi))
    return splices


def _is_child(part: OfficePart, number: int, parent: int) -> bool:
    """Whether nothing is open between two elements."""
    tokens = part.xml.tokens
    at = parent + 1
    while at < number:
        at = tokens[at].partner + 1 if tokens[at].kind == "start" else at + 1
    return at == number


def _any_between(places: list[int], begin: int, end: int) -> bool:
    at = bisect_left(places, begin)
    return at < len(places) and places[at] < end
