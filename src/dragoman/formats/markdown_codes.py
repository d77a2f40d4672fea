"""Locates the marks of a block of Markdown in its text.

The parser gives the order of marks and texts, but not their places; going through the text in
parallel finds them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dragoman.formats.units.inline import FoundCode, with_links

if TYPE_CHECKING:
    from markdown_it.token import Token

ESCAPE = re.compile(
    r"\\([!-/:-@\[-`{-~])|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z0-9]{2,32});"
)
_TICKS = re.compile(r"`+")
_EXTENSION = re.compile(
    r"\[\^[^\]\s]{1,64}\]:?"
    r"|(?<![\w$\\])\$[^\s$](?:[^$\n]{0,300}[^\s$\\])?\$(?![\w$])|\$\$[^$]{1,1000}\$\$"
)
"""Footnotes and formulas, which CommonMark reads as text."""
_LEADING = re.compile(
    r"\[(?:[ xX]|!\w{1,20})\](?=\s|\Z)"
    r"|(?:!!!|\?\?\?\+?)[ \t]+[\w\-]{1,40}(?:[ \t]+\"[^\"\n]{0,200}\")?"
)
"""The mark at the beginning of a task or a call-out."""
BREAK = "\x1f"
"""A placeholder for a line break while a block is read: one character, as the later space."""


class Walk:
    """Locates the parser's marks in the text of a block."""

    def __init__(self, content: str) -> None:
        self._content = content
        self._place = 0
        self._found: list[FoundCode] = []
        self._cuts: list[tuple[int, int]] = []
        self._open: list[str] = []

    def codes(
        self, children: Sequence[Token]
    ) -> tuple[list[FoundCode], list[tuple[int, int]]] | None:
        """The codes, and the places of hard breaks; None if the text is not as expected."""
        for child in children:
            if not self._step(child):
                return None
        return (self._found, self._cuts) if not self._content[self._place :].strip() else None

    def _step(self, child: Token) -> bool:
        content, place = self._content, self._place
        kind = child.type
        if kind in ("text", "text_special"):
            return self._text(child.content)
        if kind == "softbreak":
            end = content.find("\n", place)
            self._place = end + 1
            while content[self._place : self._place + 1] in (" ", "\t"):
                self._place += 1
            return end >= 0 and not content[place:end].strip()
        if kind == "hardbreak":
            end = content.find("\n", place)
            self._cuts.append((place, end + 1))
            self._place = end + 1
            return end >= 0 and content[place:end].strip() in ("", "\\")
        if kind == "html_inline":
            return content.startswith(child.content, place) and self._take(
                place + len(child.content), shows=False
            )
        if kind == "code_inline":
            end = _code_end(content, place)
            return end > place and self._take(end)
        if kind == "image":
            end = self._link_end(_text_end(content, place + 2))
            return content.startswith("![", place) and end > 0 and self._take(end)
        if kind == "link_open" and child.info == "auto":
            return content.startswith("<", place) and self._begin(place + 1, "auto")
        if kind == "link_close" and child.info == "auto":
            return content.startswith(">", place) and self._end(place + 1)
        if kind == "link_open":
            return content.startswith("[", place) and self._begin(place + 1, "link")
        if kind == "link_close":
            end = self._link_end(place)
            return end > 0 and self._end(end)
        if kind.endswith("_open"):
            return content.startswith(child.markup, place) and self._begin(
                place + len(child.markup), kind[:-5]
            )
        if kind.endswith("_close"):
            return content.startswith(child.markup, place) and self._end(place + len(child.markup))
        return False

    def _take(self, end: int, *, shows: bool = True) -> bool:
        self._found.append(FoundCode(self._place, end, shows=shows))
        self._place = end
        return True

    def _begin(self, end: int, name: str) -> bool:
        self._open.append(f"{name}{len(self._open)}")
        self._found.append(FoundCode(self._place, end, opens=self._open[-1], shows=False))
        self._place = end
        return True

    def _end(self, end: int) -> bool:
        if not self._open:
            return False
        self._found.append(FoundCode(self._place, end, closes=self._open.pop(), shows=False))
        self._place = end
        return True

    def _text(self, text: str) -> bool:
        """Go over text whose escapes the parser has resolved."""
        begin, said = self._place, 0
        while said < len(text):
            if self._content.startswith(text[said], self._place) and not (
                text[said] in "\\&" and ESCAPE.match(self._content, self._place)
            ):
                self._place, said = self._place + 1, said + 1
                continue
            escape = ESCAPE.match(self._content, self._place)
            if escape is None or not text.startswith(_character(escape), said):
                return False
            self._place, said = escape.end(), said + len(_character(escape))
        if not any(name.startswith("auto") for name in self._open):
            self._found += [
                code._replace(begin=begin + code.begin, end=begin + code.end)
                for code in _codes_in(self._content[begin : self._place], is_first=not begin)
            ]
        elif self._place > begin:
            self._found.append(FoundCode(begin, self._place))
        return True

    def _link_end(self, place: int) -> int:
        """The end of ``](address)``, ``][name]`` or ``]``; 0 without one."""
        content = self._content
        if not content.startswith("]", place):
            return 0
        if content.startswith("(", place + 1):
            from markdown_it.helpers import parseLinkDestination, parseLinkTitle

            at = _over_space(content, place + 2)
            address = parseLinkDestination(content, at, len(content))
            if address.ok:
                at = _over_space(content, address.pos)
                title = parseLinkTitle(content, at, len(content))
                if title.ok:
                    at = _over_space(content, title.pos)
            if content.startswith(")", at):
                return at + 1
        if content.startswith("[", place + 1):
            end = _text_end(content, place + 2)
            if end < len(content):
                return end + 1
        return place + 1


def _codes_in(text: str, *, is_first: bool) -> Iterator[FoundCode]:
    """The codes that are text for the parser: addresses, footnotes, formulas, and marks at the
    beginning of a block."""
    leading = _LEADING.match(text) if is_first else None
    codes = [FoundCode(*leading.span())] if leading else []
    codes += [*with_links(text), *(FoundCode(*match.span()) for match in _EXTENSION.finditer(text))]
    end = 0
    for code in sorted(codes):
        if code.begin >= end:
            yield code
            end = code.end


def _over_space(text: str, place: int) -> int:
    while text[place : place + 1] in (" ", "\t", "\n"):
        place += 1
    return place


def _text_end(content: str, place: int) -> int:
    """The place of the ``]`` that matches a bracket before ``place``."""
    depth = 1
    while place < len(content):
        character = content[place]
        if character == "\\":
            place += 1
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if not depth:
                break
        place += 1
    return place


def _code_end(content: str, place: int) -> int:
    """The place after the backticks that end the code at ``place``: as many as begin it."""
    ticks = _TICKS.match(content, place)
    if ticks is None:
        return place
    ends = (run for run in _TICKS.finditer(content, ticks.end()) if len(run[0]) == len(ticks[0]))
    end = next(ends, None)
    return end.end() if end else place


def _character(escape: re.Match[str]) -> str:
    return escape[1] or html.unescape(escape[0])


def plain(text: str) -> str:
    lines = ESCAPE.sub(_character, text).split("\n")
    lines[1:] = [line.lstrip(" \t") for line in lines[1:]]
    lines[:-1] = [line.rstrip(" \t") for line in lines[:-1]]
    return BREAK.join(lines)
