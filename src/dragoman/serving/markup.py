"""HTML whose text is translated and whose every tag stays as it was written.

A document is cut into what is kept, character for character (tags of blocks, comments, scripts),
and running text between; the tags inside running text (``<b>``, ``<a>``) are noted with their
places, so that a sentence is translated as a whole and its tags are put back (``tag_projection``).
Tags keep their order, so nesting cannot change. Nothing is parsed into a tree and nothing repaired.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

# One token of HTML: a comment, a declaration or instruction, a tag with quoted values, or text.
# Possessive quantifiers keep the time linear in the length, whatever is sent.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<[!?][^>]*+(?:>|\Z)"
    r"|</?+[A-Za-z](?:[^\"'<>]|\"[^\"]*+\"|'[^']*+')*+>"
    r"|(?:[^<]|<(?!/?[A-Za-z]|[!?]))++|<",
    re.DOTALL,
)
_NAME = re.compile(r"</?+([A-Za-z][^\s/>]*+)")
_SPACE = " \t\n\r\f"
_SPACES = re.compile(f"[{_SPACE}]+")
_NOT_TO_TRANSLATE = re.compile(
    r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*(?:"[^"]*?\bnotranslate\b|'[^']*?\bnotranslate\b"""
    r"|notranslate\b)",
    re.IGNORECASE,
)

BLOCKS = {
    *("address", "article", "aside", "audio", "blockquote", "body", "br", "button", "canvas"),
    *("caption", "center", "col", "colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt"),
    *("embed", "fieldset", "figcaption", "figure", "footer", "form", "frame", "frameset", "h1"),
    *("h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "iframe", "input"),
    *("legend", "li", "link", "main", "menu", "meta", "nav", "noframes", "noscript", "object"),
    *("ol", "optgroup", "option", "p", "param", "pre", "rp", "rt", "ruby", "script", "search"),
    *("section", "select", "style", "summary", "table", "tbody", "td", "template", "textarea"),
    *("tfoot", "th", "thead", "title", "tr", "track", "ul", "video"),
}
"""Elements at which running text begins and ends. All others, unknown ones too, stand within it."""

KEPT = {
    *("code", "kbd", "math", "noscript", "pre", "samp", "script", "style", "svg", "template"),
    *("textarea", "var"),
}
"""Elements whose inside is not running text."""

RAW = {"script", "style", "textarea"}
"""Elements in which tags do not count: only their own end tag ends them."""

VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
    *("source", "track", "wbr"),
}
"""Elements without an inside."""


@dataclass(frozen=True)
class Tag:
    """Something inside running text that is kept: a tag, a comment, or a whole kept element."""

    place: int
    """How many characters of the text stand before it."""
    written: str
    closes: bool = False
    """Whether it is an end tag."""
    apart_before: bool = False
    """Whether it shows text of its own (``<code>ls</code>``) that no word stands right before."""
    apart_behind: bool = False
    """The same of the word behind."""

    def moved(self, by: int) -> Tag:
        """The tag, its place counted from elsewhere."""
        return replace(self, place=self.place + by)


@dataclass(frozen=True)
class Running:
    """Running text, with the tags inside it in their order."""

    text: str
    """Plain: characters unescaped, spaces as one."""
    tags: tuple[Tag, ...] = ()


@dataclass
class Markup:
    """An HTML text, cut up. ``texts`` are to be translated; ``join`` puts translations back."""

    texts: list[Running] = field(default_factory=list)
    _parts: list[str | int] = field(default_factory=list)
    """Kept characters, or the number of a text."""

    @classmethod
    def cut(cls, source: str) -> Markup:
        """Any string: what is not HTML is text."""
        markup = cls()
        gathered: list[_Part] = []
        for part in _cut_up(source):
            if part.kind != "block":
                gathered.append(part)
                continue
            markup._add(gathered)
            gathered = []
            markup._parts.append(part.written)
        markup._add(gathered)
        return markup

    def join(self, translations: Sequence[Sequence[str]]) -> str:
        """The document with its texts replaced, in their order; they are escaped here.

        Each translation is cut where its tags stand: one part more than there are tags.
        """
        assert len(translations) == len(self.texts), "one translation for each text"
        return "".join(
            part
            if isinstance(part, str)
            else "".join(_with_tags(self.texts[part].tags, translations[part]))
            for part in self._parts
        )

    def _add(self, gathered: Sequence[_Part]) -> None:
        """Running text with its tags; what stands around its first and last character is kept."""
        begin, end = 0, len(gathered)
        while begin < end and not gathered[begin].shown:
            begin += 1
        while begin < end and not gathered[end - 1].shown:
            end -= 1
        self._parts += [part.written for part in gathered[:begin]]
        inner = gathered[begin:end]
        if any(character.isalnum() for part in inner for character in part.shown):
            first, last = inner[0].written, inner[-1].written
            self._parts.append(first[: len(first) - len(first.lstrip(_SPACE))])
            self._parts.append(len(self.texts))
            self._parts.append(last[len(last.rstrip(_SPACE)) :])
            self.texts.append(_running(inner))
        else:  # marks and symbols say the same in every language
            self._parts += [part.written for part in inner]
        self._parts += [part.written for part in gathered[end:]]


@dataclass(frozen=True)
class _Part:
    """A piece of a document. ``kind``: text, a tag within running text, or what ends it."""

    kind: str
    written: str

    @property
    def shown(self) -> str:
        """The characters of a text that are not mere space."""
        return html.unescape(self.written).strip() if self.kind == "text" else ""


def _cut_up(source: str) -> Iterator[_Part]:
    """Cut a document; adjacent texts come as one, and a kept element comes whole."""
    place, text_from = 0, 0
    while place < len(source):
        found = _TOKEN.match(source, place)
        assert found is not None, "every character is a token"
        token = found[0]
        tag = _NAME.match(token) if len(token) > 1 and token[0] == "<" else None
        if tag is None and not token.startswith(("<!", "<?")):
            place = found.end()
            continue
        if text_from < place:
            yield _Part("text", source[text_from:place])
        name = tag[1].lower() if tag else ""
        end = found.end()
        kind = "block" if name in BLOCKS or token.startswith(("<!D", "<!d")) else "tag"
        if tag and _opens(token, name) and (name in KEPT or _NOT_TO_TRANSLATE.search(token)):
            end = _end_of(source, name, end)
            kind = "block" if name in BLOCKS else "element"
        yield _Part(kind, source[place:end])
        place = text_from = end
    if text_from < place:
        yield _Part("text", source[text_from:place])


def _opens(token: str, name: str) -> bool:
    return not token.startswith("</") and not token.endswith("/>") and name not in VOID


def _end_of(source: str, name: str, place: int) -> int:
    """Where an element ends that is kept whole; elements of its name may stand inside."""
    if name in RAW:
        close = re.compile(rf"</{name}\b[^>]*>?", re.IGNORECASE).search(source, place)
        return close.end() if close else len(source)
    depth = 1
    while depth and place < len(source):
        found = _TOKEN.match(source, place)
        assert found is not None, "every character is a token"
        token, place = found[0], found.end()
        tag = _NAME.match(token) if len(token) > 1 and token[0] == "<" else None
        if tag and tag[1].lower() == name:
            depth += 1 if _opens(token, name) else -token.startswith("</")
    return place


def _running(parts: Sequence[_Part]) -> Running:
    """Text and tags, the first and the last a text -> the text with the tags' places."""
    behind = [""] * len(parts)  # the first character of the next text
    for number in range(len(parts) - 2, -1, -1):
        following = parts[number + 1]
        behind[number] = following.written[0] if following.kind == "text" else behind[number + 1]
    text, tags = "", []
    for part, next_character in zip(parts, behind, strict=True):
        if part.kind == "text":
            plain = html.unescape(_SPACES.sub(" ", part.written))
            # Spaces on both sides of a tag are one space, as a browser shows them.
            is_second = plain.startswith(" ") and text[-1:] in ("", " ")
            text += plain[1:] if is_second else plain
            continue
        shows = part.kind == "element"
        tags.append(
            Tag(
                len(text),
                part.written,
                closes=part.written.startswith("</"),
                apart_before=shows and not text[-1:].isalnum(),
                apart_behind=shows and not next_character.isalnum(),
            )
        )
    return Running(text.rstrip(_SPACE), tuple(tags))


def _with_tags(tags: Sequence[Tag], parts: Sequence[str]) -> Iterator[str]:
    """A translation cut at its tags, escaped, with the tags between."""
    assert len(parts) == len(tags) + 1, "one part more than tags"
    behind = [""] * len(parts)  # the first character that follows each part's beginning
    for number in range(len(parts) - 1, -1, -1):
        following = behind[number + 1] if number + 1 < len(parts) else ""
        behind[number] = parts[number][:1] or following
    last = parts[0][-1:]
    yield html.escape(parts[0], quote=False)
    for tag, part, following in zip(tags, parts[1:], behind[1:], strict=True):
        if tag.apart_before and (last.isalnum() or last in _JOINED_BEFORE):
            yield " "
        yield tag.written
        if tag.apart_behind and following.isalnum():
            yield " "
        yield html.escape(part, quote=False)
        last = part[-1:] or last


_JOINED_BEFORE = {",", ";", ":", ".", "!", "?", ")"}
"""Marks after which a space stands before the next word."""
