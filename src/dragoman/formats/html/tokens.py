"""HTML cut into tags, comments and text in the same places as in browsers.

https://html.spec.whatwg.org/multipage/parsing.html#tokenization. Any string is HTML; every
character belongs to one token, so nothing is lost or repaired. ``open_elements`` determines the
elements that are open at a token.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from html.entities import html5
from typing import Literal

_S = r"\t\n\f\r "
# One attribute: a name, and its value in quotes or bare. A value without a closing quote takes the
# rest. Possessive quantifiers keep the time linear in the length for any input.
_ATTRIBUTE = (
    rf"([^{_S}/>][^{_S}/>=]*+)"
    rf"(?:[{_S}]*+=[{_S}]*+(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|([^{_S}>\"'][^{_S}>]*+)|(?=>|\Z)))?+"
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_GROUPLESS = re.sub(r"(?<!\\)\((?!\?)", "(?:", _ATTRIBUTE)
_TAG = re.compile(rf"<(/?)([A-Za-z][^{_S}/>]*+)((?:[{_S}/]++|{_GROUPLESS})*+)>")
_COMMENT = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/(?![A-Za-z]))[^>]*+(?:>|\Z)", re.DOTALL
)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
_MARKUP = re.compile(r"<(?=[A-Za-z!?]|/.)", re.DOTALL)
"""The beginning of markup, which ends text."""
_SCRIPT = re.compile(rf"<!(?=--)|-->|<(/?)script(?=[{_S}/>])", re.IGNORECASE | re.ASCII)
_LONG_NUMBER = re.compile(r"&#([0-9]{20,})")
_REFERENCE = re.compile(r"&(#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z0-9]+;|[A-Za-z0-9]+(?!=))")

Kind = Literal["text", "start", "end", "comment"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a start tag. Of several with one name, the first counts."""

    name: str
    value: str
    """The value with its character references replaced."""
    begin: int
    end: int
    """From ``begin`` to ``end``: the place of the value in its tag, with the quotes."""


@dataclass(frozen=True, slots=True)
class HtmlToken:
    """A tag, a comment (or declaration, or instruction), or text, as it was written."""

    kind: Kind
    written: str
    name: str = ""
    """The name of a tag, in lower case."""
    closes_itself: bool = False
    """True for ``<x/>``, which counts only in SVG and MathML."""

    def attributes(self) -> list[Attribute]:
        """The attributes of a start tag."""
        by_name: dict[str, Attribute] = {}
        for match in _ATTRIBUTES.finditer(self.written, 1 + len(self.name), len(self.written) - 1):
            group = next((n for n in (2, 3, 4) if match[n] is not None), None)
            quotes = group in (2, 3)
            begin, end = (match.end(), match.end()) if group is None else match.span(group)
            value = "" if group is None else _REFERENCE.sub(_character, match[group])
            name = _lower(match[1])
            by_name.setdefault(name, Attribute(name, value, begin - quotes, end + quotes))
        return list(by_name.values())


class Reader:
    """Cuts a document, token by token, from its beginning."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._place = 0

    def next(self, *, foreign: bool) -> HtmlToken | None:
        """The next token, or None at the end. ``foreign``: True inside SVG or MathML."""
        source, place = self._source, self._place
        if place == len(source):
            return None
        if foreign and (data := _CDATA.match(source, place)):
            return self._take("comment", data.end())
        if _MARKUP.match(source, place) is None:
            following = _MARKUP.search(source, place)
            return self._take("text", following.start() if following else len(source))
        if comment := _COMMENT.match(source, place):
            return self._take("comment", comment.end())
        tag = _TAG.match(source, place)
        if tag is None:  # browsers show nothing of a tag that never ends
            return self._take("comment", len(source))
        self._place = tag.end()
        inside = tag[3]
        closes_itself = inside.endswith("/") and not _ends_in_value(inside)
        return HtmlToken("end" if tag[1] else "start", tag[0], _lower(tag[2]), closes_itself)

    def raw(self, name: str) -> HtmlToken | None:
        """The content of an element of ``RAW`` after its start tag, or None if it is empty; of
        plaintext, which never ends, the rest of the document."""
        end = _script_end(self._source, self._place) if name == "script" else self._raw_end(name)
        return self._take("text", end) if end > self._place else None

    def _raw_end(self, name: str) -> int:
        if name == "plaintext":
            return len(self._source)
        close = re.compile(rf"</{name}(?=[{_S}/>])", re.IGNORECASE | re.ASCII)
        match = close.search(self._source, self._place)
        return match.start() if match else len(self._source)

    def _take(self, kind: Kind, end: int) -> HtmlToken:
        begin, self._place = self._place, end
        return HtmlToken(kind, self._source[begin:end])


def _lower(name: str) -> str:
    """Convert a name to lower case as HTML does: only ASCII letters. No known name has others."""
    return name.lower() if name.isascii() else name


def unescape(text: str) -> str:
    """Text with each character reference replaced by its character.

    ``html.unescape`` fails at a number with thousands of digits. Eight significant digits are
    enough: such a number is beyond the last character, which gives U+FFFD.
    """
    return html.unescape(_LONG_NUMBER.sub(_shorten, text))


def _shorten(reference: re.Match[str]) -> str:
    return "&#" + (reference[1].lstrip("0")[:8] or "0")


def _character(reference: re.Match[str]) -> str:
    """The character of a reference in an attribute, except in cases like ``?a=1&copy=2``."""
    is_known = reference[1].startswith("#") or reference[1] in html5
    return unescape(reference[0]) if is_known else reference[0]


def _ends_in_value(inside: str) -> bool:
    """True if the last ``/`` of a tag belongs to a bare value: ``<a href=x/>``."""
    ends = [match.end() for match in _ATTRIBUTES.finditer(inside)]
    return ends[-1:] == [len(inside)]


def _script_end(source: str, place: int) -> int:
    """The end of a script: after ``<!-- <script>`` the next end tag does not end it."""
    state = 0  # 0: script; 1: in a comment; 2: in a script in a comment
    for match in _SCRIPT.finditer(source, place):
        written = match[0]
        if written == "<!":
            state = state or 1
        elif written == "-->":
            state = 0
        elif match[1] and state < 2:
            return match.start()
        elif state:
            state = 1 if match[1] else 2
    return len(source)
