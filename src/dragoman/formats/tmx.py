"""Translation memories (TMX 1.4): entries without the language of the translation get it.

https://www.gala-global.org/tmx-14b.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from dragoman.formats.units.document import (
    MACHINE,
    BadDocument,
    Document,
    OutputOptions,
    Target,
    Unit,
    says_something,
)
from dragoman.formats.units.inline import check_codes
from dragoman.formats.xml.inline import MixedUnit, Role, mixed_unit
from dragoman.formats.xml.tokens import Xml, XmlToken, escaped, put, replaced
from dragoman.forms.languages import base

_IDS = ("i",)
_ROLES: dict[str, Role] = {"hi": "pair", "bpt": "begins", "ept": "ends"}


@dataclass(frozen=True, slots=True)
class _TmxEntry:
    """An entry: its texts by language, and the place for a new one."""

    texts: dict[str, MixedUnit]
    own: str
    """The language in ``texts`` of the text that is translated."""
    end: int
    indent: str


@dataclass(frozen=True)
class TranslationMemory(Document):
    """A translation memory as a document."""

    name: str
    xml: Xml
    entries: Sequence[_TmxEntry]
    source: str | None
    """The declared source language, or the one that was chosen."""

    @classmethod
    def read(cls, data: bytes, name: str) -> TranslationMemory:
        xml = Xml.read(data, name)
        check_codes(xml.source.text, name, "%{$")
        root = xml.root
        if root.name != "tmx":
            raise BadDocument(f"{name} is not TMX: its first element is not tmx")
        header = next((token for _, token in xml.elements("header")), root)
        source = header.attributes.get("srclang", "*all*").lower()
        entries: list[_TmxEntry] = []
        for number, token in xml.elements("tu"):
            own = token.attributes.get("srclang", source).lower()
            if entry := _entry(xml, number, own):
                entries.append(entry)
        said = None if source == "*all*" else source
        return cls(name, xml, entries, said).between(None, "und")

    @property
    def source_language(self) -> str | None:
        return self.source

    def between(self, source: str | None, target: str) -> TranslationMemory:
        chosen = []
        for one in self.entries:
            own = key_of(one.texts, source) if source else one.own
            if own and says_something(one.texts[own].unit.text):
                chosen.append(replace(one, own=own))
        if source and not chosen and self.entries:
            languages = ", ".join(sorted({code for one in self.entries for code in one.texts}))
            raise BadDocument(
                f"{self.name} has no text in {source}: its languages are {languages}. Use a run "
                "that translates from one of them"
            )
        lacks = [one for one in chosen if key_of(one.texts, target) is None]
        return replace(self, entries=lacks, source=source or self.source)

    @property
    def units(self) -> Sequence[Unit]:
        return [one.texts[one.own].unit for one in self.entries]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        made_by = "" if wanted.final else f' creationid="{MACHINE}"'
        tag = f'<tuv xml:lang="{escaped(wanted.language)}"{made_by}>'
        new = []
        for one, target in zip(self.entries, targets, strict=True):
            if key_of(one.texts, wanted.language) is None:
                text = one.texts[one.own].written(target, self.xml.written)
                new.append(put(one.end, one.end, f"{one.indent}{tag}<seg>{text}</seg></tuv>"))
        return replaced(self.xml, new)


def key_of(texts: Collection[str], language: str) -> str | None:
    """The code of a language among those of some texts: en matches en-GB too."""
    wanted = language.lower()
    if wanted in texts:
        return wanted
    return next((one for one in texts if base(one) == base(wanted)), None)


def _entry(xml: Xml, number: int, source: str) -> _TmxEntry | None:
    tokens = xml.tokens
    found: dict[str, MixedUnit] = {}
    end, indent = tokens[number].end, ""
    variant: XmlToken | None = None
    at = number + 1
    while at < tokens[number].partner:
        token = tokens[at]
        if token.kind == "start" and token.name == "tuv":
            variant = token
            end = tokens[token.partner].end
            before = tokens[at - 1]
            indent = before.text if before.kind == "text" else ""
            indent = indent[indent.rfind("\n") :] if "\n" in indent else ""
        elif token.kind == "start" and token.name == "seg" and variant is not None:
            attributes = variant.attributes
            language = attributes.get("xml:lang") or attributes.get("lang") or ""
            inside = range(at + 1, token.partner)
            found.setdefault(language.lower(), mixed_unit(xml, inside, _role, _IDS))
            at = token.partner
        at += 1
    if not found:
        return None
    return _TmxEntry(found, key_of(found, source) or next(iter(found)), end, indent)


def _role(token: XmlToken) -> Role:
    return _ROLES.get(token.name, "kept")
