"""XML cut into tags and text, each with its place, and the units of mixed content (text and tags).

Expat gives the place of each token (``CurrentByteIndex``), so unchanged parts of a document are
never rewritten. Other encodings are read as UTF-8 and written back. Declared entities are refused:
bombs consist of them, and no document of an office program has one. XLIFF, TMX and OpenDocument
have mixed content.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Literal, NamedTuple, TypeAlias
from xml.parsers import expat

from dragoman.formats.units.document import BadDocument, Code, Target, Unit, line_of
from dragoman.formats.units.encoding import Encoded, decode
from dragoman.formats.units.inline import Joined, add_spaces, codes_in

_DECLARED = re.compile(r"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w\-.:]{1,40})")
MOST_NESTED = 500
"""The deepest nesting of elements. Word nests some dozens."""
MOST_BYTES = 100_000_000
"""The maximum size of one file of XML."""
MOST_TOKENS = 2_000_000
"""The most tags and texts of one document. Each takes some 150 bytes of memory."""
_TOO_MANY = f"more than {MOST_TOKENS:,} tags and texts. Split the document into parts"
_NONE: dict[str, str] = {}

_SPACES = re.compile(r"[ \t\r\n]+")
Role = Literal["pair", "mark", "kept", "begins", "ends"]
"""The role of an element in running text. pair: around text; mark: a pair that may be repeated;
kept: kept as a whole; begins, ends: the two ends of a span without an element around it."""


@dataclass(slots=True)
class XmlToken:
    """A tag, a text, or another token, with its place."""

    kind: str
    """The kind: start, end, text, cdata or other."""
    begin: int
    end: int
    name: str = ""
    """The name of a tag, without its prefix."""
    text: str = ""
    """The characters of a text, unescaped."""
    attributes: dict[str, str] = field(default_factory=lambda: _NONE)
    """The attributes, by name as written."""
    partner: int = -1
    """The number of the tag at the other end of the element."""


@dataclass(frozen=True)
class Xml:
    """A file of XML, cut into tokens."""

    name: str
    data: bytes
    """The content of the file in UTF-8."""
    source: Encoded
    tokens: list[XmlToken]

    @classmethod
    def read(cls, data: bytes, name: str, most: int = MOST_TOKENS) -> Xml:
        """Parse a file with at most ``most`` tokens. Errors: ``BadDocument``, with the line."""
        if len(data) > MOST_BYTES:
            raise BadDocument(f"{name} has {len(data):,} bytes of XML, more than {MOST_BYTES:,}")
        declared = _DECLARED.match(data[:400].decode("latin-1"))
        source = decode(data, name, declared[1] if declared else None)
        utf8 = source.text.encode()
        if utf8.count(b"<") > most:  # before parsing, which would take half a minute
            raise BadDocument(f"{name}: the document has {_TOO_MANY}")
        return cls(name, utf8, source, _tokens(utf8, name, most))

    @property
    def root(self) -> XmlToken:
        """The start tag of the first element; Expat accepts no file without one."""
        return next(token for token in self.tokens if token.kind == "start")

    def elements(self, *names: str) -> Iterator[tuple[int, XmlToken]]:
        """The start tags with these names, with their numbers, in the order of the file."""
        for number, token in enumerate(self.tokens):
            if token.kind == "start" and token.name in names:
                yield number, token

    def children(self, number: int) -> Iterator[int]:
        """The numbers of the start tags of an element's children; ``number``: its own."""
        at, end = number + 1, self.tokens[number].partner
        while at < end:
            if self.tokens[at].kind == "start":
                yield at
                at = self.tokens[at].partner
            at += 1

    def text_between(self, begin: int, end: int) -> str:
        """The text of the file between two places."""
        return self.data[begin:end].decode()

    def inside(self, number: int) -> tuple[int, int]:
        """The begin and end of an element's content; ``number``: that of its start tag."""
        start = self.tokens[number]
        return start.end, self.tokens[start.partner].begin

    def is_empty(self, number: int) -> bool:
        """True for an element that is a single tag: ``<x/>``."""
        start = self.tokens[number]
        return self.data[start.end - 2 : start.end] == b"/>"

    def line(self, place: int) -> int:
        return line_of(self.data, place)


def local(name: str) -> str:
    """Return a name without its namespace prefix."""
    return name.rpartition(":")[2]


_ATTRIBUTE = re.compile(r"\s([\w:.\-]+)\s*=\s*(?:\"[^\"]*\"|'[^']*')")


def with_attribute(tag: str, name: str, value: str) -> str:
    """A start tag with an attribute set."""
    written = f' {name}="{escape(value)}"'
    for match in _ATTRIBUTE.finditer(tag):
        if match[1] == name:
            return tag[: match.start()] + written + tag[match.end() :]
    end = len(tag) - (2 if tag.endswith("/>") else 1)
    return tag[:end].rstrip() + written + tag[end:]


def escape(text: str) -> str:
    """Escape text for XML, without the characters that it cannot contain."""
    text = _NO_CHARACTER.sub("", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _tokens(data: bytes, name: str, most: int) -> list[XmlToken]:
    parser = expat.ParserCreate("UTF-8")
    parser.buffer_text = False
    parser.ordered_attributes = True
    tokens: list[XmlToken] = []
    begun: list[int] = []

    def add(kind: str, **more: object) -> None:
        place = parser.CurrentByteIndex
        if tokens:
            tokens[-1].end = place
        if len(tokens) >= most:
            raise BadDocument(
                f"{name}, line {parser.CurrentLineNumber}: the document has {_TOO_MANY}"
            )
        tokens.append(XmlToken(kind, place, place, **more))  # type: ignore[arg-type]

    def start(tag: str, attributes: list[str]) -> None:
        if len(begun) >= MOST_NESTED:
            raise BadDocument(
                f"{name}, line {parser.CurrentLineNumber}: more than {MOST_NESTED} nested levels"
            )
        begun.append(len(tokens))
        pairs = dict(zip(attributes[::2], attributes[1::2], strict=True)) if attributes else _NONE
        add("start", name=intern(local(tag)), attributes=pairs)

    def end(tag: str) -> None:
        first = begun.pop()
        tokens[first].partner = len(tokens)
        add("end", name=intern(local(tag)), partner=first)

    def entity(*_: object) -> None:
        raise BadDocument(
            f"{name}, line {parser.CurrentLineNumber}: it declares an entity, which is not "
            "supported. Save the file without its DOCTYPE"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda text: add("text", text=text)
    parser.CommentHandler = lambda _: add("other")
    parser.ProcessingInstructionHandler = lambda *_: add("other")
    parser.StartCdataSectionHandler = lambda: add("cdata")
    parser.EndCdataSectionHandler = lambda: add("cdata")
    parser.SkippedEntityHandler = lambda *_: add("other")
    parser.EntityDeclHandler = entity
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise BadDocument(f"{name}, line {error.lineno}: it is damaged ({problem})") from None
    if tokens:
        tokens[-1].end = len(data.rstrip())
    return tokens


Rendered: TypeAlias = Callable[[int, int], str]
"""Renders a span of the file, with its replacements."""


class Replacement(NamedTuple):
    """A span and its replacement, which may contain rendered parts of the span."""

    begin: int
    end: int
    made: Callable[[Rendered], str]


def splice_xml(xml: Xml, replacements: Iterable[Replacement]) -> bytes:
    """The file with its spans replaced, in its own encoding."""
    # Insertions come before spans that begin at the same place, and outer spans before inner ones.
    every = sorted(replacements, key=lambda span: (span.begin, span.end > span.begin, -span.end))
    begins = [span.begin for span in every]

    def render(begin: int, end: int) -> str:
        out, at = [], begin
        for number in range(bisect_left(begins, begin), len(every)):
            span = every[number]
            if span.begin >= end:
                break
            # A unit may begin with a code of its own, and an insertion may come before it.
            is_around = span.end > end or (span.begin == span.end == begin > 0)
            if span.begin >= at and not is_around:
                out += [xml.text_between(at, span.begin), span.made(render)]
                at = span.end
        return "".join(out) + xml.text_between(at, end)

    text = render(0, len(xml.data)) if every else xml.source.text
    return xml.source.back(text, xml.name, references=True)


def put(begin: int, end: int, text: str) -> Replacement:
    """Replace a span by a text."""
    return Replacement(begin, end, lambda _: text)


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

    def replacement(self, target: Target) -> Replacement:
        """The replacement that puts a translation in the place of the unit."""
        return Replacement(self.begin, self.end, lambda span: self.write(target, span))


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
