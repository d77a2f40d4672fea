"""A file of HTML, or of XHTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.formats.html.text import HtmlDocument
from dragoman.formats.html.tokens import HtmlToken, Reader
from dragoman.formats.units.document import (
    Document,
    OutputOptions,
    SaidLanguage,
    Target,
    Unit,
    check_pieces,
)
from dragoman.formats.units.encoding import Encoded, decode

_CHARSET = re.compile(
    r"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w\-.:]{1,40})|<\?xml[^>]{0,200}encoding=[\"']([\w\-.:]{1,40})",
    re.IGNORECASE,
)
_XHTML = re.compile(
    r"\A\s*<\?xml\s|<html\s[^>]{0,1000}http://www\.w3\.org/1999/xhtml", re.IGNORECASE
)
_LOOKED_AT = 4096
"""The bytes in which a page may declare its encoding; browsers read 1,024."""


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
