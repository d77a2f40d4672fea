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
    found = []
    for one in _MARKUP.finditer(text):
        if one["kept"]:
            found.append(FoundCode(*one.span()))
            continue
        name = re.match(r"</?([\w:\-]+)", one[0])
        assert name is not None, "a tag has a name"
        ends, empty = one[0].startswith("</"), one[0].endswith("/>")
        opens = "" if ends or empty else name[1]
        found.append(FoundCode(*one.span(), opens, name[1] if ends else "", shows=False))
    return found


def unit_of(text: str, found: Sequence[FoundCode], plain: Callable[[str], str] = str) -> Unit:
    """A unit of a text without its codes, which follow their words. ``plain``: unescapes the text
    between codes."""
    begun: dict[str, list[int]] = {}
    codes: list[Code] = []
    made = _Message()
    end = 0
    for number, one in enumerate(found):
        made.add_behind(codes, plain(text[end : one.begin]))
        before, behind = text[one.begin - 1 : one.begin], text[one.end : one.end + 1]
        beside = number > 0 and found[number - 1].end == one.begin
        follows = number + 1 < len(found) and found[number + 1].begin == one.end
        partner = None
        if one.closes and begun.get(one.closes):
            partner = begun[one.closes].pop()
            codes[partner] = replace(codes[partner], partner=len(codes))
        if one.opens:
            begun.setdefault(one.opens, []).append(len(codes))
        codes.append(
            Code(
                made.length,
                text[one.begin : one.end],
                opens=bool(one.opens),
                closes=bool(one.closes),
                apart_before=one.shows and not beside and not before.isalnum(),
                apart_behind=one.shows and not follows and not behind.isalnum(),
                partner=partner,
                repeats=one.repeats,
            )
        )
        end = one.end
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


def spaced(unit: Unit, target: Target) -> Target:
    """A translation with a space at each code that shows text and would otherwise touch a word,
    unless it touched one in the source too and the scripts are alike. In East Asia, particles and
    counters touch the word before them (``{count}개``)."""
    target = _with_spaces(unit, target)
    found: Target = []
    for one, following in pairwise([*target, ""]):
        found.append(one)
        number, text, side = (following, one, -1) if isinstance(one, str) else (one, following, 0)
        if isinstance(number, int) and isinstance(text, str):
            code, beside = unit.tags[number], text[side : side + 1 or None]
            place = max(0, code.place + side)
            touched = is_asian(unit.text[place : code.place + side + 1]) and beside.isalnum()
            if touched and not (is_asian(beside) or code.opens or code.closes):
                found.append(" ")
    return found


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
        one = target[number]
        if isinstance(one, str):
            behind[number] = one[0] if one else behind[number + 1]
        else:
            behind[number] = None if unit.tags[one].apart_behind else behind[number + 1]
    found: Target = []
    last = ""
    for number, one in enumerate(target):
        if isinstance(one, str):
            if one:
                found.append(one)
                last = one[-1]
            continue
        code = unit.tags[one]
        if needs_space_before(code, last):
            found.append(" ")
        found.append(one)
        following = behind[number + 1]
        if code.apart_behind:
            if needs_space_behind(code, following or "", unit.text):
                found.append(" ")
            last = "x" if following is None else ""
        elif code.apart_before:
            last = ""
    return found


def written(unit: Unit, target: Target, escaped: Callable[[str], str] = str) -> str:
    """Write a translation for a file; ``escaped``: escapes its text for the format."""
    return "".join(
        escaped(one) if isinstance(one, str) else unit.tags[one].written
        for one in spaced(unit, target)
    )


def with_links(text: str) -> list[FoundCode]:
    """The web addresses in a text, as codes."""
    return [FoundCode(*one.span()) for one in _URL.finditer(text)]


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


def broken(target: Target, source: str, breaks: Sequence[tuple[int, str]]) -> Target:
    """Replace spaces by line breaks. ``breaks``: the places of spaces in ``source``, in order, and
    what replaces each in the translation. Breaks without a space are dropped."""
    if not breaks:
        return target
    spaces = []  # (place in the text, piece, place in the piece)
    length = 0
    for number, one in enumerate(target):
        if isinstance(one, str):
            spaces += [(length + n, number, n) for n, c in enumerate(one) if c == " "]
            length += len(one)
    as_many = len(spaces) == source.count(" ")
    chosen: dict[int, list[tuple[int, str]]] = {}
    first = before = counted = (
        0  # the number of spaces before the place up to which they were counted
    )
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
    found: Target = []
    for number, one in enumerate(target):
        if isinstance(one, str) and number in chosen:
            text, end = "", 0
            for at, written in chosen[number]:
                text += one[end:at] + written
                end = at + 1
            found.append(text + one[end:])
        else:
            found.append(one)
    return found


def _nearer(spaces: Sequence[tuple[int, int, int]], one: int, other: int, place: float) -> bool:
    return abs(spaces[one][0] - place) < abs(spaces[other][0] - place)
