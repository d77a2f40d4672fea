"""Books (EPUB 2 and 3): an archive of XHTML pages, which its package lists.

https://www.w3.org/TR/epub-33/. Only pages and the navigation (nav and NCX) are translated; the
package gets the language and the direction of the translation.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from dragoman.formats.html.document import HtmlPage
from dragoman.formats.office.archive import Archive, Members, PackedDocument, XmlPart
from dragoman.formats.units.document import (
    BadDocument,
    OutputOptions,
    SaidLanguage,
    Target,
    check_pieces,
    says_something,
)
from dragoman.formats.units.xml import (
    Replacement,
    Xml,
    escape,
    mixed_unit,
    put,
    splice_xml,
    with_attribute,
)

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_CONTENTS = "application/x-dtbncx+xml"
MOST_BYTES = 50_000_000
"""The maximum unpacked size of all pages: an archive of 50 kB may contain as much."""


@dataclass(frozen=True)
class Book(PackedDocument[HtmlPage | XmlPart]):
    """An electronic book (EPUB) as a document."""

    signed_by = "meta-inf/signatures.xml"

    package: str
    """The member that lists the others."""
    of_package: Xml

    @classmethod
    def read(cls, data: bytes, name: str) -> Book:
        archive = Archive.read(data, name)
        members = _Pages(archive, MOST_BYTES)
        roots = members.whole(_CONTAINER).elements("rootfile")
        package = next((token.attributes.get("full-path", "") for _, token in roots), "")
        of_package = members.whole(package)
        locked = _locked_members(members)
        parts: dict[str, HtmlPage | XmlPart] = {}
        for _, token in of_package.elements("item"):
            kind = token.attributes.get("media-type", "")
            href = unquote(token.attributes.get("href", ""))
            member = posixpath.normpath(posixpath.join(posixpath.dirname(package), href))
            is_kept = kind not in (*_PAGES, _CONTENTS)
            if is_kept or member not in archive.members or member in parts:
                continue
            if member in locked:
                raise BadDocument(f"{name}, {member}: it is encrypted (DRM) and cannot be read")
            where = f"{name}, {member}"
            if kind == _CONTENTS:
                parts[member] = _contents(members.content(member), where)
            else:
                parts[member] = HtmlPage.read(members.content(member), where)
        if not parts:
            raise BadDocument(f"{name} has no text: its package {package} lists no page")
        return cls(name, archive, parts, package, of_package)

    @property
    def languages(self) -> Sequence[SaidLanguage]:
        package = self.of_package
        codes = [package.text_between(*package.inside(n)).strip() for n in _languages(package)]
        where = f"{self.name}, {self.package}: dc:language"
        return [SaidLanguage("source", code, f"{where} {code}", is_binding=False) for code in codes]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        new = self.new_members(targets, wanted)
        if wanted.language != "und":
            new[self.package] = splice_xml(self.of_package, _in_language(self.of_package, wanted))
        changed = {
            member: content
            for member, content in new.items()
            if content != self.archive.member(member, MOST_BYTES)
        }
        return self.archive.with_members(changed)


def _contents(content: bytes, name: str) -> XmlPart:
    """The labels of the table of contents of EPUB 2 (NCX)."""
    xml = Xml.read(content, name)
    labels = []
    for number, token in xml.elements("text"):
        inside = range(number + 1, token.partner)
        if inside and all(xml.tokens[n].kind == "text" for n in inside):
            label = mixed_unit(xml, inside, lambda _: "kept")
            if says_something(label.unit.text):
                labels.append(label)
    return XmlPart(xml, labels)


class _Pages(Members):
    """The members of a book; their tags are counted together."""

    _tags = 0

    def content(self, member: str) -> bytes:
        if member not in self.archive.members:
            raise BadDocument(f"{self.archive.name} is not an EPUB: it has no member {member!r}")
        content = super().content(member)
        self._tags += content.count(b"<")
        check_pieces(self._tags, self.archive.name)
        return content

    def whole(self, member: str) -> Xml:
        """Cut a whole member into tokens."""
        return self.xml(member, self.content(member))


def _locked_members(members: _Pages) -> frozenset[str]:
    """The members that are encrypted; these are often fonts, which are not read."""
    if _ENCRYPTION not in members.archive.members:
        return frozenset()
    locked = members.whole(_ENCRYPTION).elements("CipherReference")
    return frozenset(unquote(token.attributes.get("URI", "")) for _, token in locked)


def _languages(package: Xml) -> list[int]:
    """The numbers of the tags that declare the languages of a book."""
    return [number for number, _ in package.elements("language") if not package.is_empty(number)]


def _in_language(package: Xml, wanted: OutputOptions) -> list[Replacement]:
    """Set the language of the book, and the direction in which its pages are turned."""
    language = escape(wanted.language)
    changed = [put(*package.inside(number), language) for number in _languages(package)]
    for _, token in package.elements("spine"):
        direction = token.attributes.get("page-progression-direction")
        if wanted.from_right or direction == "rtl":
            tag = with_attribute(
                package.text_between(token.begin, token.end),
                "page-progression-direction",
                "rtl" if wanted.from_right else "ltr",
            )
            changed.append(put(token.begin, token.end, tag))
    return changed
