"""Markdown: paragraphs, headings, items and cells are units; all marks stay.

CommonMark (https://spec.commonmark.org/0.31.2/) with tables and strikethrough. markdown-it-py finds
the blocks and the marks in each; it gives no places within a block, so marks are located by going
through the text in parallel. The output is parsed again: if its marks differ from those before, a
block is written with more escapes, and finally without its marks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import needing
from dragoman.formats.markdown_codes import BREAK, ESCAPE, Walk, plain
from dragoman.formats.units.document import (
    BadDocument,
    Document,
    OutputOptions,
    Splice,
    Target,
    Unit,
    check_pieces,
    says_something,
    splice,
)
from dragoman.formats.units.encoding import Encoded, decode
from dragoman.formats.units.inline import add_spaces, break_lines, unit_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_FRONT = re.compile(
    r"\A(?:---[ \t]*\r?\n(?=[ \t]*[\w\"'#-]+[ \t]*:)(?s:.*?)\n(?:---|\.\.\.)"
    r"|\+\+\+[ \t]*\r?\n(?s:.*?)\n\+\+\+)[ \t]*(?:\r?\n|\Z)"
)
"""The delimiters of front matter: YAML, or TOML."""
MOST_MARKS = 200_000
"""The most blocks and marks of one text; each takes some 40 µs and two kilobytes of memory."""
_SPECIAL = re.compile(r"[\\`*_\[\]<>~&]")
_BEGINS_BLOCK = re.compile(
    r"(\s*)(#{1,6}(?=\s|\Z)|[-+*](?=\s|\Z)|\d{1,9}(?=[.)](?:\s|\Z))|>|[=|]|-{2,}|`{3}|~{3})"
)


@dataclass(frozen=True)
class _MarkdownSegment:
    """The text between two hard breaks."""

    unit: Unit
    breaks: tuple[tuple[int, str], ...]
    """The places of the spaces at which its lines end, and what is written there."""
    behind: str
    """The hard line break after the text."""


@dataclass(frozen=True)
class _Block:
    """The text of a block, with the places of its lines."""

    segments: tuple[_MarkdownSegment, ...]
    content: str
    """The content as in markdown-it, without the prefix of each line."""
    begin: int
    end: int
    gaps: tuple[str, ...]
    """The text between its lines, as written: the line end and the prefix of the next line."""
    in_table: bool
    escaped: frozenset[str]
    """The characters that the source escapes with backslashes."""
    kinds: tuple[str, ...]
    """The kinds of its marks, in order."""


@dataclass(frozen=True)
class Markdown(Document):
    """A file of Markdown as a document."""

    name: str
    source: Encoded
    front: int
    """The place of the text after the front matter."""
    blocks: Sequence[_Block]
    tokens: Sequence[Token]
    of_block: Sequence[int]
    """For each block, the number of its token."""

    @classmethod
    def read(cls, data: bytes, name: str) -> Markdown:
        source = decode(data, name)
        front = _FRONT.match(source.text)
        begin = front.end() if front else 0
        text = source.text[begin:]
        check_pieces(text.count("\n"), name)
        try:
            tokens = _parser().parse(text, {})
        except BadDocument as error:
            raise BadDocument(f"{name} has {error}") from None
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

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
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
            text = splice(self.source.text, splices)
            wrong = self._first_difference(text[self.front :], kinds)
            if wrong is None:
                return self.source.back(text, self.name)
            # A block that is parsed differently in its place stays as it was.
            place = next((n for n in range(len(written)) if self.of_block[n] >= wrong), 0)
            if written[place] is None:
                break
            written[place], kinds[self.of_block[place]] = None, self.blocks[place].kinds
        raise BadDocument(f"{self.name}: its markup cannot be kept in the translation")

    def _best(self, block: _Block, targets: Sequence[Target]) -> tuple[str, tuple[str, ...]]:
        """The first way of writing a block that keeps its marks; returns its text and the marks."""
        bare: list[Target] = [
            ["".join(piece for piece in target if isinstance(piece, str))] for target in targets
        ]
        breaks = tuple(kind for kind in block.kinds if kind in ("softbreak", "hardbreak"))
        ways = ((targets, False, block.kinds), (targets, True, block.kinds), (bare, True, breaks))
        for pieces, fully, kinds in ways:
            text = _write_block(block, pieces, fully=fully)
            inline = text
            for gap in block.gaps:  # What follows the line break is the prefix of the next line.
                inline = inline.replace(gap, gap[: gap.rindex("\n") + 1], 1)
            marks = _kinds(self._parser.parseInline(inline, self._links)[0].children or ())
            if marks == kinds:
                return text, kinds
        return text, marks

    @cached_property
    def _parser(self) -> MarkdownIt:
        return _parser()

    @cached_property
    def _links(self) -> dict[str, Any]:
        """The link definitions of the text."""
        links: dict[str, Any] = {}
        self._parser.parse(self.source.text[self.front :], links)
        return links

    def _first_difference(self, text: str, kinds: Sequence[tuple[str, ...]]) -> int | None:
        """The number of the first token of a text that differs in kind from that of the source."""
        tokens = self._parser.parse(text, {})
        for number, (new, old) in enumerate(zip(tokens, self.tokens, strict=False)):
            if new.type != old.type or new.tag != old.tag:
                return number
            if _kinds(new.children or ()) != kinds[number]:
                return number
        return None if len(tokens) == len(self.tokens) else min(len(tokens), len(self.tokens)) - 1


_TRIES = 8


def _parser() -> MarkdownIt:
    with needing("documents", "Markdown needs markdown-it-py"):
        from markdown_it import MarkdownIt
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    within = ["paragraph", "blockquote", "list"]  # the blocks that a container ends
    parser.block.ruler.before("fence", "container", _container, {"alt": within})
    parser.block.ruler.before("table", "bounds", _is_in_bounds)
    parser.inline.ruler.before("text", "bounds", _is_in_bounds)
    return parser


def _is_in_bounds(state: StateBlock | StateInline, *_: object) -> bool:
    """Count the parsed items, and match nothing. Errors: ``BadDocument``."""
    env = state.env
    env["read"] = env.get("read", 0) + 1
    if env["read"] > MOST_MARKS:
        raise BadDocument(f"it has more than {MOST_MARKS:,} blocks and tags. Split it into parts")
    return False


def _container(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Parse lines that CommonMark would read as text: those that begin or end a container
    (``:::note``), and a formula (``$$``) of several lines."""
    first, after = _line(state, line), line + 1
    if not (first.startswith(":::") or first == "$$") or state.is_code_block(line):
        return False
    if first == "$$":
        while after < end and _line(state, after) != first:
            after += 1
        after += 1
        if after > end:
            return False
    if not silent:
        state.line = after
        state.push("container", "", 0).map = [line, after]
    return True


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()


def _kinds(children: Sequence[Token]) -> tuple[str, ...]:
    """The kinds of the marks in a block, in order."""
    return tuple(child.type for child in children if child.type not in ("text", "text_special"))


class _LineStarts:
    """A text with the places of its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]
        self.used: dict[int, int] = {}
        """For each line, the end of the cells that were found in it."""


def _block(lines: _LineStarts, token: Token, begin: int, *, in_table: bool) -> _Block | None:
    """The block of a token, or None if the text as written does not contain it."""
    assert token.map is not None and token.children, "the caller has checked it"
    places: list[tuple[int, int]] = []
    content = token.content
    for number, line in enumerate(content.split("\n"), token.map[0]):
        wanted = line.strip()
        if in_table:
            wanted = wanted.replace("|", "\\|")
        if number + 1 >= len(lines.starts):
            return None
        first = lines.used.get(number, lines.starts[number])
        start = lines.text.find(wanted, first, lines.starts[number + 1] - 1)
        if start < 0 or not wanted:
            return None
        places.append((start, start + len(wanted)))
        lines.used[number] = start + len(wanted)
    stripped = "\n".join(line.strip() for line in content.split("\n"))
    gaps = tuple(lines.text[a:b] for (_, a), (b, _) in pairwise(places))
    walked = Walk(content).codes(token.children)
    if walked is None:
        return None
    codes, cuts = walked
    breaks = [child.type for child in token.children if child.type in ("softbreak", "hardbreak")]
    if len(breaks) != len(gaps):  # a line ends within a code
        return None
    soft = iter([gap for gap, kind in zip(gaps, breaks, strict=True) if kind == "softbreak"])
    hard = [gap for gap, kind in zip(gaps, breaks, strict=True) if kind == "hardbreak"]
    segments = []
    begins = [0, *(end for _, end in cuts)]
    ends = [*(begin for begin, _ in cuts), len(content)]
    for first, last, behind in zip(begins, ends, [*hard, ""], strict=True):
        own = [
            code._replace(begin=code.begin - first, end=code.end - first)
            for code in codes
            if first <= code.begin < last
        ]
        unit = unit_of(content[first:last], own, plain)
        at = [place for place, character in enumerate(unit.text) if character == BREAK]
        broken_at = tuple((place, next(soft)) for place in at)
        unit = replace(unit, text=unit.text.replace(BREAK, " "))
        segments.append(_MarkdownSegment(unit, broken_at, behind))
    escaped = frozenset(match[1] or "&" for match in ESCAPE.finditer(content))
    return _Block(
        tuple(segments), stripped, begin + places[0][0], begin + places[-1][1], gaps,
        in_table, escaped, _kinds(token.children),
    )  # fmt: skip


def _write_block(block: _Block, targets: Sequence[Target], *, fully: bool) -> str:
    text = ""
    for segment, target in zip(block.segments, targets, strict=True):
        escaped: Target = [
            _escape(piece.replace("\n", " "), block.escaped, fully=fully)
            if isinstance(piece, str)
            else piece
            for piece in target
        ]
        written = break_lines(escaped, segment.unit.text, segment.breaks)
        for piece in add_spaces(segment.unit, written):
            text += piece if isinstance(piece, str) else segment.unit.tags[piece].written
        text += segment.behind
    text = _guard(text, block)
    return text.replace("|", "\\|") if block.in_table else text


def _escape(text: str, characters: frozenset[str], *, fully: bool) -> str:
    def escape(match: re.Match[str]) -> str:
        if match[0] == "&":
            begins = ESCAPE.match(text, match.start()) is not None
            return "&amp;" if begins or "&" in characters else "&"
        return f"\\{match[0]}" if fully or match[0] in characters else match[0]

    return _SPECIAL.sub(escape, text)


def _guard(text: str, block: _Block) -> str:
    """Escape lines that would begin a block of another kind."""
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
    """The prefix of a line in its block: ``> ``, or the space of an item."""
    if not number or number > len(gaps):
        return ""
    prefix = gaps[number - 1].rpartition("\n")[2]
    return prefix if line.startswith(prefix) else ""
