"""Translation memories (TMX 1.4): entries without the language of the translation get it.

https://www.gala-global.org/tmx-14b.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from dragoman.formats.units.xml import (
    MixedUnit,
    Role,
    Xml,
    XmlToken,
    escape,
    mixed_unit,
    put,
    splice_xml,
)
from dragoman.forms.languages import code_among

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
        for entry in self.entries:
            own = code_among(entry.texts, source) if source else entry.own
            if own and says_something(entry.texts[own].unit.text):
                chosen.append(replace(entry, own=own))
        if source and not chosen and self.entries:
            languages = ", ".join(sorted({code for entry in self.entries for code in entry.texts}))
            raise BadDocument(
                f"{self.name} has no text in {source}: its languages are {languages}. Use a run "
                "that translates from one of them"
            )
        lacks = [entry for entry in chosen if code_among(entry.texts, target) is None]
        return replace(self, entries=lacks, source=source or self.source)

    @property
    def units(self) -> Sequence[Unit]:
        return [entry.texts[entry.own].unit for entry in self.entries]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        made_by = "" if wanted.final else f' creationid="{MACHINE}"'
        tag = f'<tuv xml:lang="{escape(wanted.language)}"{made_by}>'
        new = []
        for entry, target in zip(self.entries, targets, strict=True):
            if code_among(entry.texts, wanted.language) is None:
                text = entry.texts[entry.own].write(target, self.xml.text_between)
                new.append(put(entry.end, entry.end, f"{entry.indent}{tag}<seg>{text}</seg></tuv>"))
        return splice_xml(self.xml, new)


def _entry(xml: Xml, number: int, source: str) -> _TmxEntry | None:
    tokens = xml.tokens
    texts: dict[str, MixedUnit] = {}
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
            texts.setdefault(language.lower(), mixed_unit(xml, inside, _role, _IDS))
            at = token.partner
        at += 1
    if not texts:
        return None
    return _TmxEntry(texts, code_among(texts, source) or next(iter(texts)), end, indent)


def _role(token: XmlToken) -> Role:
    return _ROLES.get(token.name, "kept")
