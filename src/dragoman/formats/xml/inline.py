"""Units of XML with mixed content (text and tags): XLIFF, TMX, OpenDocument."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Literal

from dragoman.formats.units.document import Code, Target, Unit
from dragoman.formats.units.inline import Joined, add_spaces, codes_in
from dragoman.formats.xml.tokens import Rendered, Xml, XmlToken, escape

_SPACES = re.compile(r"[ \t\r\n]+")
Role = Literal["pair", "mark", "kept", "begins", "ends"]
"""The role of an element in running text. pair: around text; mark: a pair that may be repeated;
kept: kept as a whole; begins, ends: the two ends of a span without an element around it."""


@dataclass(frozen=True, slots=True)
class MixedUnit:
    """A unit of mixed content, and its place."""

    unit: Unit
    begin: int
    end: int
    spans: tuple[tuple[int, int] | None, ...]
    """The places of its codes; None for codes inside a text."""

    def write(self, target: Target, span: Rendered) -> str:
        """A translation as it is written to the file."""
        out = ""
        for piece in add_spaces(self.unit, target):
            place = None if isinstance(piece, str) else self.spans[piece]
            if isinstance(piece, str):
                out += escape(piece)
            else:
                out += self.unit.tags[piece].written if place is None else span(*place)
        return out


def mixed_unit(
    xml: Xml,
    numbers: range,
    role_of: Callable[[XmlToken], Role],
    ids: Collection[str] = (),
    *,
    placeholders: bool = False,
    collapse: bool = False,
) -> MixedUnit:
    """Make the unit of some tokens. ``ids``: the names of attributes that pair elements of the
    roles begins and ends. ``placeholders``: placeholders of messages are codes too. ``collapse``:
    several spaces count as one."""
    tokens = xml.tokens
    text, codes, spans = Joined(), list[Code](), list[tuple[int, int] | None]()
    open_pairs: list[int] = []
    open_ids: dict[str, int] = {}
    ordered = False  # tags without their other end must stay in their places

    def add(begin: int, end: int, **more: bool | int | None) -> int:
        codes.append(Code(text.length, **more))  # type: ignore[arg-type]
        spans.append((begin, end))
        return len(codes) - 1

    def pair(first: int, second: int) -> None:
        codes[first] = replace(codes[first], partner=second)
        codes[second] = replace(codes[second], partner=first)

    at = numbers.start
    while at < numbers.stop:
        token = tokens[at]
        if token.kind == "text":
            first = at
            while at + 1 < numbers.stop and tokens[at + 1].kind == "text":
                at += 1
            plain = "".join(part.text for part in tokens[first : at + 1])
            if collapse:
                plain = _SPACES.sub(" ", plain)
                plain = plain.removeprefix(" ") if text.last == " " else plain
            if placeholders and ("%" in plain or "{" in plain or "<" in plain or "&" in plain):
                _with_placeholders(plain, text, codes)
                spans += [None] * (len(codes) - len(spans))
            else:
                text.add(plain)
        elif token.kind == "start":
            role = role_of(token)
            stop = tokens[token.partner]
            if role in ("pair", "mark") and not xml.is_empty(at):
                repeats = role == "mark"
                open_pairs.append(add(token.begin, token.end, opens=True, repeats=repeats))
                at += 1
                continue
            key = next((token.attributes[i] for i in ids if i in token.attributes), "")
            number = add(token.begin, stop.end, opens=role == "begins", closes=role == "ends")
            if role == "begins":
                open_ids[key] = number
            elif role == "ends" and key in open_ids:
                pair(open_ids.pop(key), number)
            at = token.partner
        elif token.kind == "end" and open_pairs:
            first = open_pairs.pop()
            pair(first, add(token.begin, token.end, closes=True, repeats=codes[first].repeats))
        elif token.kind == "end":  # the element begins before the unit
            add(token.begin, token.end, closes=True)
            ordered = True
        elif token.kind == "other":
            add(token.begin, token.end)
        at += 1
    begin = tokens[numbers.start].begin if numbers else 0
    end = tokens[numbers.stop - 1].end if numbers else 0
    ordered = ordered or bool(open_pairs)
    return MixedUnit(Unit("".join(text.pieces), tuple(codes), ordered), begin, end, tuple(spans))


def _with_placeholders(plain: str, text: Joined, codes: list[Code]) -> None:
    end = 0
    for code in codes_in(plain):
        text.add(plain[end : code.begin])
        before, behind = plain[code.begin - 1 : code.begin], plain[code.end : code.end + 1]
        codes.append(
            Code(
                text.length,
                escape(plain[code.begin : code.end]),
                apart_before=code.shows and not before.isalnum(),
                apart_behind=code.shows and not behind.isalnum(),
            )
        )
        end = code.end
    rest = plain[end:]
    follows = codes and codes[-1].place == text.length and codes[-1].apart_before
    if follows and text.last in ("", " ") and rest.startswith(" "):
        rest = rest[1:]
    text.add(rest)
