"""Markdown: paragraphs, headings, items and cells are units; all marks stay.

CommonMark (https://spec.commonmark.org/0.31.2/) with tables and strikethrough. markdown-it-py says
which blocks there are and what is marked in each; it keeps no places within a block, so marks are
found again by walking through the text beside it. What has been written is read once more: where
other marks would be seen than before, a block is written again with more escapes, and at last
without its marks.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError
from dragoman.formats.units.breaks import broken
from dragoman.formats.units.document import BadDocument, Document, Splice, Wanted, spliced
from dragoman.formats.units.encoding import Encoded, decoded
from dragoman.formats.units.inline import Found, spaced, unit_of, with_links
from dragoman.formats.units.unit import Target, Unit, says_something

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT = re.compile(
    r"\A---[ \t]*\r?\n(?=[ \t]*[\w\"'#-]+[ \t]*:)(?s:.*?)\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)
"""Settings in front of a page."""
_ESCAPE = re.compile(
    r"\\([!-/:-@\[-`{-~])|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z0-9]{2,32});"
)
_SPECIAL = re.compile(r"[\\`*_\[\]<>~&]")
_BEGINS_BLOCK = re.compile(
    r"(\s*)(#{1,6}(?=\s|\Z)|[-+*](?=\s|\Z)|\d{1,9}(?=[.)](?:\s|\Z))|>|[=|]|-{2,}|`{3}|~{3})"
)
_TICKS = re.compile(r"`+")
_BREAK = "\x1f"
"""Stands for a line break while a block is read: one character, as the space that it becomes."""


@dataclass(frozen=True)
class _Segment:
    """Text between two breaks that are seen as such."""

    unit: Unit
    breaks: tuple[tuple[int, str], ...]
    """The spaces at which its lines end, and what stands there."""
    behind: str
    """The break behind it."""


@dataclass(frozen=True)
class _Block:
    """The text of a block, and where its lines stand."""

    segments: tuple[_Segment, ...]
    content: str
    """As markdown-it has it: without what stands before each line."""
    begin: int
    end: int
    gaps: tuple[str, ...]
    """What stands between its lines, as it is written."""
    in_table: bool
    escaped: frozenset[str]
    """Characters that it has escaped."""
    kinds: tuple[str, ...]
    """Of what is marked in it."""


@dataclass(frozen=True)
class Markdown(Document):
    """A text in Markdown."""

    name: str
    source: Encoded
    front: int
    """Where the text begins, behind the settings."""
    blocks: Sequence[_Block]
    tokens: Sequence[Token]
    of_block: Sequence[int]
    """For each block the number of its token."""

    @classmethod
    def read(cls, data: bytes, name: str) -> Markdown:
        source = decoded(data, name)
        front = _FRONT.match(source.text)
        begin = front.end() if front else 0
        text = source.text[begin:]
        tokens = _parser().parse(text, {})
        lines = _LineStarts(text)
        blocks, of_block = [], []
        for number, token in enumerate(tokens):
            if token.type == "inline" and token.map and token.children:
                in_table = tokens[number - 1].type in ("td_open", "th_open")
                block = _block(lines, token, begin, in_table=in_table)
                if block is not None and any(says_something(s.unit.text) for s in block.segments):
                    blocks.append(block)
                    of_block.append(number)
        return cls(name, source, begin, blocks, tokens, of_block)

    @property
    def units(self) -> Sequence[Unit]:
        return [segment.unit for block in self.blocks for segment in block.segments]

    def join(self, targets: Sequence[Target], wanted: Wanted) -> bytes:
        written: list[str | None] = []
        kinds = [_kinds(token.children or ()) for token in self.tokens]
        every = iter(targets)
        for block, number in zip(self.blocks, self.of_block, strict=True):
            own = [next(every) for _ in block.segments]
            if own == [segment.unit.as_it_is for segment in block.segments]:
                written.append(None)
            else:
                text, kinds[number] = self._best(block, own)
                written.append(text)
        for _ in range(_TRIES):
            splices = [
                Splice(block.begin, block.end, text)
                for block, text in zip(self.blocks, written, strict=True)
                if text is not None
            ]
            text = spliced(self.source.text, splices)
            wrong = self._first_difference(text[self.front :], kinds)
            if wrong is None:
                return self.source.back(text, self.name)
            # A block that is another one in its place stays as it was.
            place = next((n for n in range(len(written)) if self.of_block[n] >= wrong), 0)
            if written[place] is None:
                break
            written[place], kinds[self.of_block[place]] = None, self.blocks[place].kinds
        raise BadDocument(f"{self.name}: its marks cannot be kept in the translation")

    def _best(self, block: _Block, targets: Sequence[Target]) -> tuple[str, tuple[str, ...]]:
        """The first way to write a block in which its marks are as before; and what they are."""
        bare: list[Target] = [
            ["".join(one for one in target if isinstance(one, str))] for target in targets
        ]
        breaks = tuple(kind for kind in block.kinds if kind in ("softbreak", "hardbreak"))
        ways = ((targets, False, block.kinds), (targets, True, block.kinds), (bare, True, breaks))
        for pieces, fully, kinds in ways:
            text = _written(block, pieces, fully=fully)
            inline = text
            for gap in block.gaps:
                inline = inline.replace(gap, _gap_itself(gap), 1)
            found = _kinds(self._parser.parseInline(inline, self._links)[0].children or ())
            if found == kinds:
                return text, kinds
        return text, found

    @cached_property
    def _parser(self) -> MarkdownIt:
        return _parser()

    @property
    def _links(self) -> dict[str, Any]:
        """What links may name."""
        links: dict[str, Any] = {}
        self._parser.parse(self.source.text[self.front :], links)
        return links

    def _first_difference(self, text: str, kinds: Sequence[tuple[str, ...]]) -> int | None:
        """The first token of a text that is not of the kind that it was."""
        tokens = self._parser.parse(text, {})
        for number, (new, old) in enumerate(zip(tokens, self.tokens, strict=False)):
            if new.type != old.type or new.tag != old.tag:
                return number
            if _kinds(new.children or ()) != kinds[number]:
                return number
        return None if len(tokens) == len(self.tokens) else min(len(tokens), len(self.tokens)) - 1


_TRIES = 8


def _parser() -> MarkdownIt:
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise DragomanError(
            "Markdown needs markdown-it-py: pip install 'dragoman[documents]'"
        ) from None
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _kinds(children: Sequence[Token]) -> tuple[str, ...]:
    """What is marked in a block, in its order."""
    return tuple(one.type for one in children if one.type not in ("text", "text_special"))


class _LineStarts:
    """A text by its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        place = text.find("\n")
        while place >= 0:
            self.starts.append(place + 1)
            place = text.find("\n", place + 1)
        self.starts.append(len(text) + 1)
        self.used: dict[int, int] = {}
        """Up to where a line has been taken by the cells before."""


def _block(lines: _LineStarts, token: Token, begin: int, *, in_table: bool) -> _Block | None:
    """None for a block that is not found as it is written; it stays as it is."""
    assert token.map is not None and token.children, "checked by who asks"
    places: list[tuple[int, int]] = []
    content = token.content
    for number, line in enumerate(content.split("\n"), token.map[0]):
        wanted = line.strip()
        if in_table:
            wanted = wanted.replace("|", "\\|")
        if number + 1 >= len(lines.starts):
            return None
        first = lines.used.get(number, lines.starts[number])
        found = lines.text.find(wanted, first, lines.starts[number + 1] - 1)
        if found < 0 or not wanted:
            return None
        places.append((found, found + len(wanted)))
        lines.used[number] = found + len(wanted)
    stripped = "\n".join(line.strip() for line in content.split("\n"))
    gaps = tuple(lines.text[a:b] for (_, a), (b, _) in pairwise(places))
    walked = _Walk(content).codes(token.children)
    if walked is None:
        return None
    codes, cuts = walked
    breaks = [one.type for one in token.children if one.type in ("softbreak", "hardbreak")]
    if len(breaks) != len(gaps):  # a line ends within a code
        return None
    soft = iter([gap for gap, kind in zip(gaps, breaks, strict=True) if kind == "softbreak"])
    hard = [gap for gap, kind in zip(gaps, breaks, strict=True) if kind == "hardbreak"]
    segments = []
    begins = [0, *(end for _, end in cuts)]
    ends = [*(begin for begin, _ in cuts), len(content)]
    for first, last, behind in zip(begins, ends, [*hard, ""], strict=True):
        own = [
            one._replace(begin=one.begin - first, end=one.end - first)
            for one in codes
            if first <= one.begin < last
        ]
        unit = unit_of(content[first:last], own, _plain)
        at = [place for place, character in enumerate(unit.text) if character == _BREAK]
        broken_at = tuple((place, next(soft)) for place in at)
        unit = replace(unit, text=unit.text.replace(_BREAK, " "))
        segments.append(_Segment(unit, broken_at, behind))
    escaped = frozenset(one[1] or "&" for one in _ESCAPE.finditer(content))
    return _Block(
        tuple(segments), stripped, begin + places[0][0], begin + places[-1][1], gaps,
        in_table, escaped, _kinds(token.children),
    )  # fmt: skip


def _gap_itself(gap: str) -> str:
    """What breaks a line, without what stands before the next one."""
    return gap[: gap.rindex("\n") + 1]


class _Walk:
    """Finds what the parser has marked in the text of a block."""

    def __init__(self, content: str) -> None:
        self._content = content
        self._place = 0
        self._found: list[Found] = []
        self._cuts: list[tuple[int, int]] = []
        self._open: list[str] = []

    def codes(self, children: Sequence[Token]) -> tuple[list[Found], list[tuple[int, int]]] | None:
        """The codes, and where breaks stand that are seen as such; None where the text is not as
        expected."""
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
        self._found.append(Found(self._place, end, shows=shows))
        self._place = end
        return True

    def _begin(self, end: int, name: str) -> bool:
        self._open.append(f"{name}{len(self._open)}")
        self._found.append(Found(self._place, end, opens=self._open[-1], shows=False))
        self._place = end
        return True

    def _end(self, end: int) -> bool:
        if not self._open:
            return False
        self._found.append(Found(self._place, end, closes=self._open.pop(), shows=False))
        self._place = end
        return True

    def _text(self, text: str) -> bool:
        """Go over text, whose escapes the parser has resolved."""
        begin, said = self._place, 0
        while said < len(text):
            if self._content.startswith(text[said], self._place) and not (
                text[said] in "\\&" and _ESCAPE.match(self._content, self._place)
            ):
                self._place, said = self._place + 1, said + 1
                continue
            escape = _ESCAPE.match(self._content, self._place)
            if escape is None or not text.startswith(_character(escape), said):
                return False
            self._place, said = escape.end(), said + len(_character(escape))
        links = with_links(self._content[begin : self._place])
        if not any(name.startswith("auto") for name in self._open):
            self._found += [
                one._replace(begin=begin + one.begin, end=begin + one.end) for one in links
            ]
        elif self._place > begin:
            self._found.append(Found(begin, self._place))
        return True

    def _link_end(self, place: int) -> int:
        """Behind ``](address)``, ``][name]`` or ``]``; 0 where none stands."""
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


def _over_space(text: str, place: int) -> int:
    while text[place : place + 1] in (" ", "\t", "\n"):
        place += 1
    return place


def _text_end(content: str, place: int) -> int:
    """Of the ``]`` that ends what begins at ``place``."""
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
    """Behind the ticks that end the code at ``place``: as many as it begins with."""
    ticks = _TICKS.match(content, place)
    if ticks is None:
        return place
    ends = (one for one in _TICKS.finditer(content, ticks.end()) if len(one[0]) == len(ticks[0]))
    end = next(ends, None)
    return end.end() if end else place


def _character(escape: re.Match[str]) -> str:
    return escape[1] or html.unescape(escape[0])


def _plain(text: str) -> str:
    lines = _ESCAPE.sub(_character, text).split("\n")
    lines[1:] = [line.lstrip(" \t") for line in lines[1:]]
    lines[:-1] = [line.rstrip(" \t") for line in lines[:-1]]
    return _BREAK.join(lines)


def _written(block: _Block, targets: Sequence[Target], *, fully: bool) -> str:
    text = ""
    for segment, target in zip(block.segments, targets, strict=True):
        escaped: Target = [
            _escaped(one.replace("\n", " "), block.escaped, fully=fully)
            if isinstance(one, str)
            else one
            for one in target
        ]
        written = broken(escaped, segment.unit.text, segment.breaks)
        for one in spaced(segment.unit, written):
            text += one if isinstance(one, str) else segment.unit.tags[one].written
        text += segment.behind
    text = _guarded(text, block)
    return text.replace("|", "\\|") if block.in_table else text


def _escaped(text: str, characters: frozenset[str], *, fully: bool) -> str:
    def escape(one: re.Match[str]) -> str:
        if one[0] == "&":
            begins = _ESCAPE.match(text, one.start()) is not None
            return "&amp;" if begins or "&" in characters else "&"
        return f"\\{one[0]}" if fully or one[0] in characters else one[0]

    return _SPECIAL.sub(escape, text)


def _guarded(text: str, block: _Block) -> str:
    """No line begins a block of another kind."""
    lines = text.split("\n")
    before = block.content.split("\n")
    for number, line in enumerate(lines):
        prefix = _common_prefix(line, block.gaps, number)
        bare = line[len(prefix) :]
        begins = _BEGINS_BLOCK.match(bare)
        source = before[number] if number < len(before) else ""
        if begins and not _BEGINS_BLOCK.match(source):
            at = begins.end() if begins[2].isdigit() else begins.end(1)
            lines[number] = f"{prefix}{bare[:at]}\\{bare[at:]}"
    return "\n".join(lines)


def _common_prefix(line: str, gaps: Sequence[str], number: int) -> str:
    """What stands before a line in its block: ``> ``, or the space of an item."""
    if not number or number > len(gaps):
        return ""
    prefix = gaps[number - 1].rpartition("\n")[2]
    return prefix if line.startswith(prefix) else ""
