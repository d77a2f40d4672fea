"""HTML whose text is translated and whose tags all stay as they were written.

A document is cut into parts that are kept, character for character (tags of blocks, comments,
scripts), and running text between them; the tags inside running text (``<b>``, ``<a>``) are
recorded with their places, so that a sentence is translated as a whole and its tags are put back
(``tag_projection``). Tags keep their order, so nesting cannot change. Tags and open elements are
determined as in browsers (``tokens.py``, ``open_elements.py``); nothing is repaired.

``HtmlPage`` is a file of HTML, or of XHTML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dragoman.formats.html.open_elements import (
    ENDS_TEXT,
    HIDES_TITLE,
    KEPT,
    NEVER,
    RAW,
    SHOWN,
    OpenElements,
)
from dragoman.formats.html.tokens import Attribute, HtmlToken, Reader, unescape
from dragoman.formats.units.document import (
    Code,
    Document,
    Insert,
    OutputOptions,
    SaidLanguage,
    Target,
    Unit,
    check_pieces,
    is_address,
)
from dragoman.formats.units.encoding import Encoded, decode
from dragoman.formats.units.inline import add_spaces

_SPACE = " \t\n\f\r"
_SPACES = re.compile(f"[{_SPACE}]+")
_PICTURE = re.compile(r"<(?:img|input|image|embed)\b", re.IGNORECASE)
_UNSEEN = re.compile(r"<(?:!|wbr\b)", re.IGNORECASE)
_CHARSET = re.compile(
    r"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w\-.:]{1,40})|<\?xml[^>]{0,200}encoding=[\"']([\w\-.:]{1,40})",
    re.IGNORECASE,
)
_XHTML = re.compile(
    r"\A\s*<\?xml\s|<html\s[^>]{0,1000}http://www\.w3\.org/1999/xhtml", re.IGNORECASE
)
_LOOKED_AT = 4096
"""The bytes in which a page may declare its encoding; browsers read 1,024."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of an HTML document."""

    kind: str
    """The kind: text; tag: within running text; element: within running text, with text of its own;
    block: ends running text."""
    written: str
    opens: bool = False
    closes: bool = False
    inserts: tuple[Insert, ...] = ()

    @property
    def shown(self) -> str:
        """The characters of a text, without space around them."""
        return unescape(self.written).strip() if self.kind == "text" else ""


@dataclass
class HtmlDocument:
    """An HTML text, cut into parts. ``texts`` are to be translated; ``join`` replaces them."""

    texts: list[Unit] = field(default_factory=list)
    _parts: list[_Part | int] = field(default_factory=list)
    """The kept parts, and numbers of texts."""
    _written: dict[int, list[_Part]] = field(default_factory=dict)
    """For each text, its parts as written."""

    def reading(self, source: str, *, is_xml: bool = False) -> Iterator[None]:
        """Cut any string, part by part; anything that is not HTML is text. The document is complete
        at the end. ``is_xml``: XHTML, where any element may close itself (``<script/>``)."""
        gathered: list[_Part] = []
        for part in _cut_up(source, self.texts, is_xml=is_xml):
            yield
            if part.kind != "block":
                gathered.append(part)
                continue
            self._add(gathered)
            gathered = []
            self._parts.append(part)
        self._add(gathered)

    def join(self, targets: Sequence[Target]) -> str:
        """Write the document with its texts replaced, in order, and escaped. A text that is its own
        translation stays as it was written."""
        assert len(targets) == len(self.texts), "one translation for each text"
        joined: list[str] = []
        for part in self._parts:
            if not isinstance(part, int):
                joined.append(_fill(part, targets))
            elif targets[part] == self.texts[part].as_it_is:
                joined += [_fill(piece, targets) for piece in self._written[part]]
            else:
                unit = self.texts[part]
                joined += [
                    html.escape(piece, quote=False)
                    if isinstance(piece, str)
                    else _fill(unit.tags[piece], targets)
                    for piece in add_spaces(unit, targets[part])
                ]
        return "".join(joined)

    def _add(self, gathered: Sequence[_Part]) -> None:
        """Add the gathered parts as one unit; those before the first text and after the last one
        are kept as they are written."""
        shown = [part.shown for part in gathered]
        filled = [place for place, text in enumerate(shown) if text]
        begin, end = (filled[0], filled[-1] + 1) if filled else (len(gathered), len(gathered))
        self._parts += gathered[:begin]
        inner = gathered[begin:end]
        said = "".join(shown)
        if any(map(str.isalnum, said)) and not is_address(said):
            first, last = inner[0].written, inner[-1].written
            before = len(first) - len(first.lstrip(_SPACE))
            behind = len(last.rstrip(_SPACE))
            if before:
                self._parts.append(_Part("text", first[:before]))
            self._parts.append(len(self.texts))
            if behind < len(last):
                self._parts.append(_Part("text", last[behind:]))
            cut = [*inner]  # without the space around it
            cut[-1] = replace(cut[-1], written=cut[-1].written[:behind])
            cut[0] = replace(cut[0], written=cut[0].written[before:])
            self._written[len(self.texts)] = cut
            self.texts.append(_running(inner))
        else:  # marks and symbols are the same in every language
            self._parts += inner
        self._parts += gathered[end:]


def _cut_up(source: str, texts: list[Unit], *, is_xml: bool) -> Iterator[_Part]:
    """Cut a document; consecutive parts that are not translated are one part. The texts of
    attributes are added to ``texts``."""
    reader, elements = Reader(source), OpenElements()
    kept = _KeptRun()
    translates = True
    while token := reader.next(foreign=elements.foreign or is_xml):
        before, was_foreign = translates, elements.foreign
        opened = raw = None
        inserts: tuple[Insert, ...] = ()
        if token.kind == "text":
            elements.text(token.written)
            before = elements.translates(NEVER)
        elif token.kind == "start":
            attributes = {attribute.name: attribute for attribute in token.attributes()}
            marked = _translate_mark(attributes)
            says = False if marked is None and token.name in KEPT else marked
            opened = elements.start(token, says)
            if shown := _visible_attributes(token.name, attributes):
                around = elements.translates(NEVER, around=opened is not None)
                if marked or (around and marked is None):
                    inserts = tuple(_inserts(shown, texts))
            if opened and is_xml and token.closes_itself:
                elements.end(token.name)
                opened = None
            if opened and not opened.foreign:
                is_raw = token.name in RAW or token.name == "plaintext"
                raw = reader.raw(token.name) if is_raw else None
        elif token.kind == "end":
            elements.end(token.name)
        translates = elements.translates(NEVER)
        is_block = token.name in ENDS_TEXT and not was_foreign
        is_block |= token.kind == "comment" and token.written[:3].lower() == "<!d"
        if before and translates:
            kind = "text" if token.kind == "text" else "block" if is_block else "tag"
            opens, closes = opened is not None, token.kind == "end"
            yield _Part(kind, token.written, opens, closes, inserts)
        else:
            kept.add(token, is_block, opened is not None, inserts)
            if translates:
                yield kept.part()
                kept = _KeptRun()
        if raw and translates:
            yield _Part("text", raw.written)
        elif raw:
            kept.add(raw, False, False, ())
    if kept:
        yield kept.part()


class _KeptRun:
    """Consecutive tokens that are not translated."""

    def __init__(self) -> None:
        self._written: list[str] = []
        self._length = 0
        self._inserts: list[Insert] = []
        self._is_block = self._opens = self._closes = False

    def __bool__(self) -> bool:
        return bool(self._written)

    def add(self, token: HtmlToken, is_block: bool, opens: bool, inserts: Sequence[Insert]) -> None:
        """Append a token that is not translated."""
        if not self._written:
            self._closes = token.kind == "end"
        at = self._length
        self._inserts += [replace(new, begin=at + new.begin, end=at + new.end) for new in inserts]
        self._written.append(token.written)
        self._length += len(token.written)
        self._is_block |= is_block
        self._opens = opens

    def part(self) -> _Part:
        """Return all tokens as one part."""
        kind = "block" if self._is_block else "element"
        return _Part(kind, "".join(self._written), self._opens, self._closes, tuple(self._inserts))


def _translate_mark(attributes: dict[str, Attribute]) -> bool | None:
    """The element's own mark: True to translate it, False not to, None without a mark."""
    if "class" in attributes and "notranslate" in attributes["class"].value.split():
        return False
    said = attributes["translate"].value.lower() if "translate" in attributes else "without"
    return {"no": False, "yes": True, "": True}.get(said)


def _visible_attributes(name: str, attributes: dict[str, Attribute]) -> list[Attribute]:
    """The attributes of a tag that a reader sees as text."""
    if name in HIDES_TITLE:
        return []
    shown = [attribute for attribute in attributes.values() if attribute.name in SHOWN]
    return [attribute for attribute in shown if any(map(str.isalnum, attribute.value))]


def _inserts(shown: Sequence[Attribute], texts: list[Unit]) -> Iterator[Insert]:
    """The texts in attributes of a tag; they are added to ``texts``."""
    for attribute in shown:
        yield Insert(attribute.begin, attribute.end, attribute.value, len(texts))
        texts.append(Unit(_SPACES.sub(" ", attribute.value)))


def _running(parts: Sequence[_Part]) -> Unit:
    """Return the unit of ``parts``, of which the first and the last are texts."""
    behind = [""] * len(parts)  # the first character of the next text
    for number in range(len(parts) - 2, -1, -1):
        following = parts[number + 1]
        is_text = following.kind == "text"
        behind[number] = unescape(following.written[:32])[:1] if is_text else behind[number + 1]
    text, tags = "", list[Code]()
    for part, next_character in zip(parts, behind, strict=True):
        if part.kind == "text":
            plain = unescape(_SPACES.sub(" ", part.written))
            # Spaces on both sides of a tag are one space, as a browser shows them.
            is_second = plain.startswith(" ") and text[-1:] in ("", " ")
            text += plain[1:] if is_second else plain
            if is_second and tags and tags[-1].place == len(text) - len(plain) + 1:
                tags[-1] = _with_space(tags[-1])
            continue
        is_element = part.kind == "element"
        tags.append(
            Code(
                len(text),
                part.written,
                opens=part.opens,
                closes=part.closes,
                apart_before=is_element and not text[-1:].isalnum(),
                apart_behind=is_element and not next_character.isalnum(),
                inserts=part.inserts,
                shows=not _UNSEEN.match(part.written),
            )
        )
    return Unit(text.rstrip(_SPACE), tuple(tags))


def _with_space(tag: Code) -> Code:
    """Return a picture with the space after it; other tags stay as they are."""
    is_shown = _PICTURE.match(tag.written) is not None
    return replace(tag, written=f"{tag.written} ") if is_shown else tag


def _fill(tag: _Part | Code, targets: Sequence[Target]) -> str:
    """A tag with the translations of its attributes; quotes stay as they were."""
    written, filled, end = tag.written, "", 0
    for insert in sorted(tag.inserts, key=lambda insert: insert.begin):
        translation = "".join(map(str, targets[insert.text]))
        if translation != insert.value:
            quote = written[insert.begin] if written[insert.begin] in "\"'" else '"'
            value = translation.replace("&", "&amp;").replace("<", "&lt;")
            value = value.replace(quote, "&quot;" if quote == '"' else "&#39;")
            filled += written[end : insert.begin] + quote + value + quote
            end = insert.end
    return filled + written[end:]


@dataclass(frozen=True)
class HtmlPage(Document):
    """A file of HTML as a document."""

    name: str
    source: Encoded
    page: HtmlDocument

    @classmethod
    def read(cls, data: bytes, name: str) -> HtmlPage:
        declared = _CHARSET.search(data[:_LOOKED_AT].decode("latin-1"))
        charset = (declared[1] or declared[2]) if declared else None
        # A page that declares UTF-16 in its own text is not UTF-16; browsers use UTF-8.
        if charset and charset.lower().startswith("utf-16"):
            charset = None
        if charset and charset.lower() in ("iso-8859-1", "latin1", "latin-1"):
            charset = "latin-1"
        source = decode(data, name, charset)
        check_pieces(source.text.count("<"), name)
        page = HtmlDocument()
        is_xml = _XHTML.search(source.text[:_LOOKED_AT]) is not None
        for number, _ in enumerate(page.reading(source.text, is_xml=is_xml)):
            check_pieces(number, name)
        return cls(name, source, page)

    @property
    def units(self) -> Sequence[Unit]:
        return self.page.texts

    @property
    def languages(self) -> Sequence[SaidLanguage]:
        _, tag = _html(self.source.text)
        attributes = {item.name: item.value for item in tag.attributes()} if tag else {}
        code = attributes.get("lang") or attributes.get("xml:lang")
        where = f'{self.name}: lang="{code}"'
        return [SaidLanguage("source", code, where, is_binding=False)] if code else []

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        text = self.page.join(targets)
        if wanted.language != "und":
            text = _in_language(text, wanted)
        return self.source.back(text, self.name, references=True)


def _html(text: str) -> tuple[int, HtmlToken | None]:
    """The start tag of the element html, if it is the first, and its place."""
    reader, place = Reader(text), 0
    while token := reader.next(foreign=False):
        if token.kind == "start":
            return place, token if token.name == "html" else None
        place += len(token.written)
    return place, None


def _in_language(text: str, wanted: OutputOptions) -> str:
    """Set the language of the page, if it declares one, and the direction of the text."""
    place, token = _html(text)
    if token is None:
        return text
    tag = token.written
    attributes = {attribute.name: attribute for attribute in token.attributes()}
    values = dict.fromkeys(attributes.keys() & {"lang", "xml:lang"}, wanted.language)
    if wanted.from_right or ("dir" in attributes and attributes["dir"].value.lower() == "rtl"):
        values["dir"] = "rtl" if wanted.from_right else "ltr"
    places = {name: (there.begin, there.end) for name, there in attributes.items()}
    new = len("<html"), len("<html")
    for name in sorted(values, key=lambda name: places.get(name, new), reverse=True):
        begin, end = places.get(name, new)
        before = tag[:begin] if name in places else f"{tag[:begin]} {name}"
        equals = "" if before.rstrip().endswith("=") else "="
        tag = f'{before}{equals}"{values[name]}"{tag[end:]}'
    return text[:place] + tag + text[place + len(token.written) :]
