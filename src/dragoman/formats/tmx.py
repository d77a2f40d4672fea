"""Translation memories (TMX 1.4): entries that lack the language of a translation get it.

https://www.gala-global.org/tmx-14b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.formats.units.document import BadDocument, Document, OutputOptions
from dragoman.formats.units.inline import check_codes
from dragoman.formats.units.states import MACHINE
from dragoman.formats.units.unit import Target, Unit, says_something
from dragoman.formats.xml.inline import MixedUnit, Role, mixed_unit
from dragoman.formats.xml.nested import put, replaced
from dragoman.formats.xml.tokens import Xml, XmlToken, escaped

_IDS = ("i",)


@dataclass(frozen=True, slots=True)
class _TmxEntry:
    """An entry: its source, the languages that it has, and where a new one goes."""

    mixed: MixedUnit
    languages: frozenset[str]
    end: int
    indent: str


@dataclass(frozen=True)
class TranslationMemory(Document):
    """A translation memory."""

    name: str
    xml: Xml
    entries: Sequence[_TmxEntry]

    @classmethod
    def read(cls, data: bytes, name: str) -> TranslationMemory:
        xml = Xml.read(data, name)
        check_codes(xml.source.text, name, "%{$")
        root = next((token for token in xml.tokens if token.kind == "start"), None)
        if root is None or root.name != "tmx":
            raise BadDocument(f"{name} is no TMX: its first element is not tmx")
        header = next((t for t in xml.tokens if t.kind == "start" and t.name == "header"), root)
        source = header.attributes.get("srclang", "*all*").lower()
        entries: list[_TmxEntry] = []
        for number, token in enumerate(xml.tokens):
            if token.kind == "start" and token.name == "tu":
                own = token.attributes.get("srclang", source).lower()
                entry = _entry(xml, number, own)
                if entry is not None and says_something(entry.mixed.unit.text):
                    entries.append(entry)
        return cls(name, xml, entries)

    @property
    def units(self) -> Sequence[Unit]:
        return [one.mixed.unit for one in self.entries]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        language = wanted.language.lower().partition("-")[0]
        new = []
        for one, target in zip(self.entries, targets, strict=True):
            if not any(had.partition("-")[0] == language for had in one.languages):
                text = one.mixed.written(target, self.xml.written)
                made_by = "" if wanted.final else f' creationid="{MACHINE}"'
                tag = f'<tuv xml:lang="{escaped(wanted.language)}"{made_by}>'
                written = f"{one.indent}{tag}<seg>{text}</seg></tuv>"
                new.append(put(one.end, one.end, written))
        return replaced(self.xml, new)


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
    own = next((name for name in found if name == source), "")
    own = own or next((n for n in found if n.partition("-")[0] == source.partition("-")[0]), "")
    own = own or next(iter(found))
    return _TmxEntry(found[own], frozenset(found), end, indent)


def _role(token: XmlToken) -> Role:
    if token.name == "hi":
        return "pair"
    if token.name == "bpt":
        return "begins"
    return "ends" if token.name == "ept" else "kept"
