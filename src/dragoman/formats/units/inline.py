"""Inline codes of messages: placeholders and tags of HTML, which are kept as they are.

A program fills in ``%(count)d`` and ``{name}`` when it runs; a message without them, or with them
twice, breaks it. They are taken out of the text that is translated and put back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

from dragoman.formats.units.document import Code, Target, Unit, check_pieces

_NO_WORD = r"(?![0-9A-Za-z_À-ɏ])"
"""No Latin word continues a placeholder, but a particle may follow (``%d개``, ``$name님``)."""
PLACEHOLDER = (
    r"%(?!(?<=\d%)p)(?:\d+\$)?(?:\([\w.\-]{1,64}\))?[#0+\-]{0,3}(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?"
    rf"(?:hh?|ll?|[qjzt])?[diouxXeEfgGcrsaAp@]{_NO_WORD}"
    r"|%%|%\{[\w.\-]{1,64}\}|%<[\w.\-]{1,64}>(?:[#0+\-]{0,3}\d{0,4}(?:\.\d{1,4})?[a-zA-Z](?!\w))?"
    rf"|%[0-9A-Za-z_]{{1,32}}%|%L?[1-9]\d?(?!%){_NO_WORD}"
    rf"|\$\{{[^{{}}\s]{{1,64}}\}}|(?<![\w$])\$[A-Za-z_][0-9A-Za-z_]{{0,63}}(?!\(){_NO_WORD}"
    r"|\{\{[^{}\n]{1,64}\}\}|\{\$?[\w.\-]{0,64}(?:[:!][^{}\n]{0,32})?\}"
    r"|\{\s?\w{1,64}\s?,\s?(?:number|date|time|spellout|ordinal|duration)\s?(?:,[^{}\n]{0,64})?\}"
    r"|\$t\([^()\n]{1,64}\)"
)
"""Placeholders of printf, Python, Ruby, KDE and Qt (``%1``), shells, templates, and ICU with a
type. The p in ``5%p`` is no placeholder: it stands for percentage points."""
_TAG = r"</?[A-Za-z][\w:\-]{0,32}(?:\s[^<>]{0,500})?/?>"
_MARKUP = re.compile(rf"(?P<kept>{PLACEHOLDER}|&(?:#\w{{1,8}}|\w{{2,32}});)|(?P<tag>{_TAG})")
_BEGINS = re.compile("[%{$&<]")
"""The first characters of placeholders and tags."""
_URL = re.compile(r"https?://[^\s<>()\"']*[^\s<>()\"'.,;:!?]")


_ENDS = tuple(".,;:!?)")


class FoundCode(NamedTuple):
    """A code in a text, and its place."""

    begin: int
    end: int
    opens: str = ""
    """The name of the element that it begins, or ""."""
    closes: str = ""
    """The name of the element that it ends, or ""."""
    shows: bool = True
    """True if it shows text of its own."""
    repeats: bool = False


def message_unit(text: str) -> Unit:
    """The text of a message, with its placeholders and tags as codes."""
    return unit_of(text, codes_in(text)) if _BEGINS.search(text) else Unit(text, ordered=False)


def check_codes(text: str, name: str, begin: str = "%{$&<") -> None:
    """Check the number of codes in the ``text`` of a file, by their first characters, ``begin``:
    each takes some 400 bytes of memory. Errors: ``BadDocument`` for more than allowed."""
    check_pieces(sum(map(text.count, begin)), name)


def codes_in(text: str) -> list[FoundCode]:
    """The placeholders and tags of a text."""
    codes = []
    for match in _MARKUP.finditer(text):
        if match["kept"]:
            codes.append(FoundCode(*match.span()))
            continue
        name = re.match(r"</?([\w:\-]+)", match[0])
        assert name is not None, "a tag has a name"
        ends, empty = match[0].startswith("</"), match[0].endswith("/>")
        opens = "" if ends or empty else name[1]
        codes.append(FoundCode(*match.span(), opens, name[1] if ends else "", shows=False))
    return codes


def unit_of(text: str, spans: Sequence[FoundCode], plain: Callable[[str], str] = str) -> Unit:
    """A unit of a text without its codes, which follow their words. ``plain``: unescapes the text
    between codes."""
    begun: dict[str, list[int]] = {}
    codes: list[Code] = []
    made = _Message()
    end = 0
    for number, span in enumerate(spans):
        made.add_behind(codes, plain(text[end : span.begin]))
        before, behind = text[span.begin - 1 : span.begin], text[span.end : span.end + 1]
        beside = number > 0 and spans[number - 1].end == span.begin
        follows = number + 1 < len(spans) and spans[number + 1].begin == span.end
        partner = None
        if span.closes and begun.get(span.closes):
            partner = begun[span.closes].pop()
            codes[partner] = replace(codes[partner], partner=len(codes))
        if span.opens:
            begun.setdefault(span.opens, []).append(len(codes))
        codes.append(
            Code(
                made.length,
                text[span.begin : span.end],
                opens=bool(span.opens),
                closes=bool(span.closes),
                apart_before=span.shows and not beside and not before.isalnum(),
                apart_behind=span.shows and not follows and not behind.isalnum(),
                partner=partner,
                repeats=span.repeats,
            )
        )
        end = span.end
    made.add_behind(codes, plain(text[end:]))
    return Unit("".join(made.pieces), tuple(codes), ordered=False)


class Joined:
    """A text that is built piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self.last = ""
        """The last character of the joined text."""

    def add(self, more: str) -> None:
        """Append some text to the pieces."""
        if more:
            self.pieces.append(more)
            self.length += len(more)
            self.last = more[-1]


class _Message(Joined):
    """The text of a message and its codes."""

    def add_behind(self, codes: list[Code], more: str) -> None:
        """Append text after a code; two spaces with only a code between them become one."""
        follows = codes and codes[-1].place == self.length and codes[-1].apart_before
        if follows and self.last in ("", " "):
            more = more.removeprefix(" ")
        is_alone = len(codes) < 2 or codes[-2].place < self.length
        if follows and self.last == " " and more[:1] in _ENDS and is_alone:
            # A space that is left before a full stop would confuse a model.
            self.pieces[-1] = self.pieces[-1][:-1]
            self.length -= 1
            codes[-1] = replace(codes[-1], place=self.length)
        self.add(more)


def add_spaces(unit: Unit, target: Target) -> Target:
    """A translation with a space at each code that shows text and would otherwise touch a word,
    unless it touched one in the source too and the scripts are alike. In East Asia, particles and
    counters touch the word before them (``{count}개``)."""
    target = _with_spaces(unit, target)
    parts: Target = []
    for part, after in pairwise([*target, ""]):
        parts.append(part)
        number, text, side = (after, part, -1) if isinstance(part, str) else (part, after, 0)
        if isinstance(number, int) and isinstance(text, str):
            code, beside = unit.tags[number], text[side : side + 1 or None]
            place = max(0, code.place + side)
            touched = is_asian(unit.text[place : code.place + side + 1]) and beside.isalnum()
            if touched and code.shows and not (is_asian(beside) or code.opens or code.closes):
                parts.append(" ")
    return parts


def is_asian(character: str) -> bool:
    """True for a letter or digit of an East Asian script."""
    return character.isalnum() and east_asian_width(character) in "WF"


def _with_spaces(unit: Unit, target: Target) -> Target:
    """Add a space at each code that shows text and touched no word in the source."""
    if not unit.tags or not any(code.apart_before or code.apart_behind for code in unit.tags):
        return target
    behind: list[str | None] = [None] * (len(target) + 1)
    # The first character after each piece; None before a code that shows text of its own.
    behind[-1] = ""
    for number in range(len(target) - 1, -1, -1):
        part = target[number]
        if isinstance(part, str):
            behind[number] = part[0] if part else behind[number + 1]
        else:
            behind[number] = None if unit.tags[part].apart_behind else behind[number + 1]
    parts: Target = []
    last = ""
    for number, part in enumerate(target):
        if isinstance(part, str):
            if part:
                parts.append(part)
                last = part[-1]
            continue
        code = unit.tags[part]
        if needs_space_before(code, last):
            parts.append(" ")
        parts.append(part)
        following = behind[number + 1]
        if code.apart_behind:
            if needs_space_behind(code, following or "", unit.text):
                parts.append(" ")
            last = "x" if following is None else ""
        elif code.apart_before:
            last = ""
    return parts


def write_unit(unit: Unit, target: Target, escape: Callable[[str], str] = str) -> str:
    """Write a translation for a file; ``escape``: escapes its text for the format."""
    return "".join(
        escape(part) if isinstance(part, str) else unit.tags[part].written
        for part in add_spaces(unit, target)
    )


def with_links(text: str) -> list[FoundCode]:
    """The web addresses in a text, as codes."""
    return [FoundCode(*match.span()) for match in _URL.finditer(text)]


_JOINED_BEFORE = {",", ";", ":", ".", "!", "?", ")"}
"""The marks after which a space comes before the next word."""
_JOINED_BEHIND = set(" \r\n\t.,;:!?)]}\"'»”’%…-/")
"""The characters before which no space comes."""


def needs_space_before(code: Code, last: str) -> bool:
    """True if a space is missing before a code. ``last``: the character before it."""
    return code.apart_before and (last.isalnum() or last in _JOINED_BEFORE)


def needs_space_behind(code: Code, following: str, source: str) -> bool:
    """True if a space is missing before ``following``, the character after a code."""
    if not code.apart_behind or not following:
        return False
    had_space = code.place == 0 or source[code.place - 1] == " "
    return following.isalnum() or (had_space and following not in _JOINED_BEHIND)


def break_lines(target: Target, source: str, breaks: Sequence[tuple[int, str]]) -> Target:
    """Replace spaces by line breaks. ``breaks``: the places of spaces in ``source``, in order, and
    what replaces each in the translation. Breaks without a space are dropped."""
    if not breaks:
        return target
    spaces = []  # (place in the text, piece, place in the piece)
    length = 0
    for number, part in enumerate(target):
        if isinstance(part, str):
            spaces += [(length + n, number, n) for n, c in enumerate(part) if c == " "]
            length += len(part)
    as_many = len(spaces) == source.count(" ")
    chosen: dict[int, list[tuple[int, str]]] = {}
    # ``before``: the number of spaces before ``counted``, the place up to which they were counted.
    first = before = counted = 0
    for number, (place, written) in enumerate(breaks):
        last = len(spaces) - (len(breaks) - number - 1)  # each of the others needs one
        nearest, wanted = first, place / max(1, len(source)) * length
        if as_many:
            before += source.count(" ", counted, place)
            nearest, counted = before, place
        else:
            while nearest + 1 < last and _nearer(spaces, nearest + 1, nearest, wanted):
                nearest += 1
        if nearest < min(last, len(spaces)):
            _, piece, at = spaces[nearest]
            chosen.setdefault(piece, []).append((at, written))
            first = nearest + 1
    parts: Target = []
    for number, part in enumerate(target):
        if isinstance(part, str) and number in chosen:
            text, end = "", 0
            for at, written in chosen[number]:
                text += part[end:at] + written
                end = at + 1
            parts.append(text + part[end:])
        else:
            parts.append(part)
    return parts


def _nearer(spaces: Sequence[tuple[int, int, int]], first: int, second: int, place: float) -> bool:
    return abs(spaces[first][0] - place) < abs(spaces[second][0] - place)
