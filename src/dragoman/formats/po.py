"""Catalogues of messages (gettext, ``.po`` and ``.pot``): messages without a translation get one.

https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html. Entries with a translation,
even a fuzzy one, stay as they are, and so do obsolete ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from gettext import c2py

from dragoman.formats.units.document import (
    BadDocument,
    Document,
    OutputOptions,
    SaidLanguage,
    Splice,
    Target,
    Unit,
    says_something,
    teaches,
)
from dragoman.formats.units.encoding import Encoded, decode
from dragoman.formats.units.inline import check_codes, message_unit, write_unit

_CHARSET = re.compile(r"Content-Type:[^\n]{0,80}charset=([\w\-.:]+)", re.IGNORECASE)
_LANGUAGE = re.compile(r"^Language:[ \t]{0,20}([A-Za-z]{2,3})(?![A-Za-z])[^\n]{0,20}", re.MULTILINE)
_PLURALS = re.compile(r"nplurals\s*=\s*(\d{1,2})")
_FORM_OF = re.compile(r"plural\s*=\s*([^;\n]{1,500})")
_KEYWORD = re.compile(r'[ \t]*(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d{1,3})\])?)[ \t]*(?=")')
_STRING = re.compile(r'[ \t]*"((?:[^"\\\n]|\\.)*+)"[ \t]*\r?(?:\n|\Z)')
_ESCAPE = re.compile(r"\\([abfnrtv\"\\]|[0-7]{1,3}|x[0-9a-fA-F]{1,2})")
_MEANS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WRITES = {ord(character): f"\\{letter}" for letter, character in _MEANS.items()}
_WRITES |= {ord('"'): '\\"', ord("\\"): "\\\\"}
_MOST_PLURALS = 10
_LOOKED_AT = 65_536
"""The bytes in which the header may declare the encoding."""


@dataclass(slots=True)
class _PoMessage:
    """A message, with the places of its parts."""

    begin: int = -1
    """The place of its first keyword."""
    previous: int = -1
    """The place of the comment with the previous message; -1 without one."""
    flags: int = -1
    """The place after the first ``#,`` of its flags; -1 without any."""
    is_fuzzy: bool = False
    end: int = 0
    line: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    """The text of each keyword, unquoted and joined, once the entry is complete."""
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The place of the strings of each keyword, without the last newline."""

    @property
    def translations(self) -> list[str]:
        return [text for keyword, text in self.texts.items() if keyword.startswith("msgstr")]

    @property
    def pair(self) -> tuple[str, str] | None:
        """The message and its translation, if it has one form and may be learned from."""
        source, target = self.texts["msgid"], self.texts.get("msgstr")
        is_done = teaches("fuzzy" if self.is_fuzzy else "")
        return (source, target) if source and target and is_done else None

    def forget_texts(self) -> None:
        """Keep only what is needed to write a translation: there may be half a million entries."""
        self.texts = {}
        self.places = {k: place for k, place in self.places.items() if k.startswith("msgstr")}


@dataclass(frozen=True, slots=True)
class _MessageSlot:
    """A unit, and the keywords of its translations."""

    entry: _PoMessage
    keywords: tuple[str, ...]
    unit: Unit


@dataclass(frozen=True)
class MessageCatalogue(Document):
    """A catalogue of messages as a document."""

    name: str
    source: Encoded
    slots: Sequence[_MessageSlot]
    pairs: Sequence[tuple[str, str]]
    """The messages with translations that may be learned from, of entries with one form."""
    languages: Sequence[SaidLanguage] = ()

    @classmethod
    def read(cls, data: bytes, name: str) -> MessageCatalogue:
        declared = _CHARSET.search(data[:_LOOKED_AT].decode("latin-1"))
        charset = declared[1] if declared else None
        source = decode(data, name, None if charset == "CHARSET" else charset)
        check_codes(source.text, name)
        header = next((e for e in _entries(source.text, name) if e.texts["msgid"] == ""), None)
        plurals = _PLURALS.search("".join(header.translations)) if header else None
        if plurals and not 1 <= int(plurals[1]) <= _MOST_PLURALS:
            raise BadDocument(
                f"{name}, line {header.line if header else 1}: nplurals={plurals[1]}. Use a number "
                f"from 1 to {_MOST_PLURALS}"
            )
        of_one = _form_of_one("".join(header.translations)) if header else 0
        slots: list[_MessageSlot] = []
        pairs: list[tuple[str, str]] = []
        for entry in _entries(source.text, name):
            if pair := entry.pair:
                pairs.append(pair)
            if entry.texts["msgid"] and not any(entry.translations):
                slots += _slots(entry, int(plurals[1]) if plurals else None, of_one)
                entry.forget_texts()
        says = _LANGUAGE.search("".join(header.translations)) if header else None
        languages = [SaidLanguage("target", says[1], f"{name}: {says[0]}")] if says else []
        return cls(name, source, slots, pairs, languages)

    @property
    def units(self) -> Sequence[Unit]:
        return [slot.unit for slot in self.slots]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        splices = []
        new: dict[int, tuple[_PoMessage, dict[str, str]]] = {}  # forms that the entry lacks
        marked: set[int] = set()
        for slot, target in zip(self.slots, targets, strict=True):
            text = f'"{write_unit(slot.unit, target).translate(_WRITES)}"'
            entry = slot.entry
            for keyword in slot.keywords:
                if keyword in entry.places:
                    splices.append(Splice(*entry.places[keyword], text))
                else:
                    new.setdefault(id(entry), (entry, {}))[1][keyword] = text
            if not wanted.final and id(entry) not in marked:
                marked.add(id(entry))
                splices.append(self._fuzzy(entry))
        for entry, forms in new.values():
            begins = "" if self.source.text[entry.end - 1 : entry.end] == "\n" else self._newline
            lines = [f"{keyword} {text}{self._newline}" for keyword, text in sorted(forms.items())]
            splices.append(Splice(entry.end, entry.end, begins + "".join(lines)))
        return self.source.splice(splices, self.name)

    @cached_property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.source.text[:10_000] else "\n"

    def _fuzzy(self, entry: _PoMessage) -> Splice:
        if entry.flags >= 0:
            return Splice(entry.flags, entry.flags, "" if entry.is_fuzzy else " fuzzy,")
        place = entry.previous if entry.previous >= 0 else entry.begin
        return Splice(place, place, f"#, fuzzy{self._newline}")


def _form_of_one(header: str) -> int:
    """The number of the form for one thing: in Arabic it is not the first."""
    match = _FORM_OF.search(header)
    try:
        return c2py(match[1])(1) if match else 0
    except (ValueError, ZeroDivisionError):
        return 0


def _slots(entry: _PoMessage, plurals: int | None, of_one: int) -> Iterator[_MessageSlot]:
    """The slots of an entry. ``of_one``: the number of the form for one thing."""
    if "msgid_plural" not in entry.texts:
        if says_something(entry.texts["msgid"]):
            yield _MessageSlot(entry, ("msgstr",), message_unit(entry.texts["msgid"]))
        return
    forms = plurals or sum(keyword.startswith("msgstr[") for keyword in entry.texts)
    keywords = [f"msgstr[{number}]" for number in range(forms)]
    # A single form for all numbers is that of many.
    singular = [keywords.pop(of_one)] if forms > 1 and 0 <= of_one < forms else []
    for source, into in (("msgid", singular), ("msgid_plural", keywords)):
        if into and says_something(entry.texts[source]):
            yield _MessageSlot(entry, tuple(into), message_unit(entry.texts[source]))


def _entries(text: str, name: str) -> Iterator[_PoMessage]:
    entry, keyword = _PoMessage(), ""
    strings: dict[str, list[str]] = {}
    is_translated = False  # True after a msgstr of the entry
    place, line = 0, 0

    def whole() -> _PoMessage:
        if "msgid" not in strings or not is_translated:
            raise BadDocument(f"{name}, line {entry.line}: a message has no msgid or no msgstr")
        entry.texts = {keyword: "".join(every) for keyword, every in strings.items()}
        return entry

    def begin_anew() -> None:
        nonlocal entry, strings, is_translated
        entry, strings, is_translated = _PoMessage(), {}, False

    while place < len(text):
        end = text.find("\n", place) + 1 or len(text)
        line += 1
        match = _KEYWORD.match(text, place, end)
        start = "" if match else text[place:end].lstrip(" \t")
        if match is not None:
            new = match[1]
            translates = new.startswith("msgstr")
            if is_translated and not translates:
                yield whole()
                begin_anew()
            is_translated |= translates
            if entry.begin < 0:
                entry.begin, entry.line = place, line
            if new in strings:
                raise BadDocument(f"{name}, line {line}: {new} occurs twice in one message")
            keyword = new
            strings[keyword] = []
            place = match.end()
            entry.places[keyword] = (place, place)
        if match is not None or start.startswith('"'):
            string = _STRING.match(text, place, end)
            if string is None or not keyword:
                raise BadDocument(
                    f"{name}, line {line}: a string is not closed, or belongs to no message"
                )
            strings[keyword].append(_ESCAPE.sub(_character, string[1]))
            begin, _ = entry.places[keyword]
            entry.places[keyword] = (begin, string.end(1) + 1)
            entry.end = end
        elif start.startswith("#"):
            if is_translated:
                yield whole()
                begin_anew()
            keyword = ""
            if start.startswith("#,"):
                if entry.flags < 0:
                    entry.flags = text.index("#,", place) + 2
                entry.is_fuzzy |= "fuzzy" in start
            elif start.startswith("#|") and entry.previous < 0:
                entry.previous = place
        elif start.strip():
            raise BadDocument(
                f"{name}, line {line}: {start.strip()[:40]!r} does not belong in a PO file"
            )
        elif not strings:
            entry = _PoMessage()  # comments without a message
        place = end
    if strings:
        yield whole()


def _character(escape: re.Match[str]) -> str:
    said = escape[1]
    if said[0] == "x":
        return chr(int(said[1:], 16))
    if said.isdigit():
        return chr(int(said, 8))
    return _MEANS.get(said, said)
