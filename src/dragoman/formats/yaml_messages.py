"""Messages in YAML: texts are translated; keys, comments and layout are kept.

PyYAML gives the place of each text, but does not write the file. A text is written in its former
quotes, or in double quotes if it had none and would otherwise be read as another value. The
paragraphs of a block (``|``, ``>``) are separate texts, on as many lines as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from dragoman.base.errors import needing
from dragoman.formats.units.document import (
    BadDocument,
    Splice,
    Target,
    Unit,
    check_pieces,
    says_something,
)
from dragoman.formats.units.encoding import TextDocument, decode
from dragoman.formats.units.inline import break_lines, check_codes, message_unit, write_unit

_MOST_NESTED = 200
MOST_EVENTS = 300_000
"""The most keys, values and collections of a file. PyYAML takes some 25 µs for each."""
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
"""The anchor and the tag before a text."""
_LINE = re.compile(r"[^\r\n]*(?:\r?\n|\Z)")
_LISTED = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s")
"""The beginning of a list item, which is a paragraph of its own in a block."""
_SIMPLE = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)*\Z")
_BREAK = "\x1f"
"""A placeholder for the end of a line while a paragraph is read."""
_TEXT = "tag:yaml.org,2002:str"


@dataclass(frozen=True)
class _YamlSlot:
    begin: int
    end: int
    style: str | None
    unit: Unit
    breaks: tuple[tuple[int, str], ...] = ()
    """The line ends of a paragraph of a block: the place of each, and what is written there."""


class YamlMessages(TextDocument[_YamlSlot]):
    """A file of YAML messages as a document."""

    @classmethod
    def read(cls, data: bytes, name: str) -> YamlMessages:
        source = decode(data, name)
        check_codes(source.text, name)
        yaml = _yaml()
        slots: list[_YamlSlot] = []
        try:
            for event in _values(yaml, source.text, name):
                begin, end = event.start_mark.index, event.end_mark.index
                begin += len(_PROPERTIES.match(source.text, begin, end)[0])  # type: ignore[index]
                check_pieces(len(slots), name)
                if event.style in ("|", ">"):
                    for slot in _block(source.text, begin, end, event.style):
                        slots.append(slot)
                        check_pieces(len(slots), name)
                elif says_something(event.value):
                    slots.append(_YamlSlot(begin, end, event.style, message_unit(event.value)))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f", line {mark.line + 1}" if mark else ""
            problem = getattr(error, "problem", None) or "cannot be read"
            raise BadDocument(f"{name}{line}: it is not valid YAML ({problem})") from None
        return cls(name, source, slots)

    def splices(self, slot: _YamlSlot, unit: Unit, target: Target) -> Iterator[Splice]:
        yield Splice(slot.begin, slot.end, _write_slot(slot, target))


def _block(text: str, begin: int, end: int, style: str) -> Iterator[_YamlSlot]:
    """The paragraphs of a block: lines with one indent, between empty ones."""
    header = _LINE.match(text, begin, end)
    assert header is not None, "there is always a line"
    place = header.end()
    paragraph: list[tuple[int, int]] = []
    indent = 0
    while place < end:
        line = _LINE.match(text, place, end)
        assert line is not None, "there is always a line"
        bare = line[0].strip()
        at = place + (line[0].index(bare) if bare else 0)
        listed = _LISTED.match(bare)
        if paragraph and (not bare or at - place != indent or listed):
            yield from _paragraph(text, paragraph, style)
            paragraph = []
        if bare:
            end_of_line = at + len(bare)
            at += listed.end() if listed else 0
            indent = at - place
            paragraph.append((at, end_of_line))
        place = line.end()
    if paragraph:
        yield from _paragraph(text, paragraph, style)


def _paragraph(text: str, lines: Sequence[tuple[int, int]], style: str) -> Iterator[_YamlSlot]:
    joined = _BREAK.join(text[begin:end] for begin, end in lines)
    unit = message_unit(joined)
    gaps = [text[before[1] : after[0]] for before, after in pairwise(lines)]
    at = [place for place, character in enumerate(unit.text) if character == _BREAK]
    # A line may end within a tag: such a paragraph stays as it is.
    if says_something(unit.text) and len(at) == len(gaps):
        unit = replace(unit, text=unit.text.replace(_BREAK, " "))
        yield _YamlSlot(lines[0][0], lines[-1][1], style, unit, tuple(zip(at, gaps, strict=True)))


def _write_slot(slot: _YamlSlot, target: Target) -> str:
    if slot.style not in ("|", ">"):
        return _quote(write_unit(slot.unit, target), slot.style)
    pieces: Target = [part.replace("\n", " ") if isinstance(part, str) else part for part in target]
    text = write_unit(slot.unit, break_lines(pieces, slot.unit.text, slot.breaks))
    return text.strip(" \t")  # a space at the beginning would be an indent


def _quote(text: str, style: str | None) -> str:
    if style == "'" and "\n" not in text:
        doubled = text.replace("'", "''")
        return f"'{doubled}'"
    if style is None and _is_plain(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    """True if a text without quotes is read as itself, in a list in brackets too."""
    yaml = _yaml()
    if _SIMPLE.match(text):
        return bool(yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False)) == _TEXT)
    if "\n" in text or any(mark in text for mark in ",[]{}"):
        return False
    try:
        return bool(yaml.safe_load(f"a: {text}") == {"a": text})
    except yaml.YAMLError:
        return False


def _values(yaml: Any, text: str, name: str) -> Iterator[Any]:
    """The scalars that are texts and not keys."""
    resolver = yaml.SafeLoader("")
    nested: list[list[Any]] = []  # for each open collection: its kind, and whether a key comes next
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if number > MOST_EVENTS:
            raise BadDocument(
                f"{name}, line {event.start_mark.line + 1}: more than {MOST_EVENTS:,} keys and "
                "values. Split the document into parts"
            )
        is_key = bool(nested) and nested[-1][0] == "map" and nested[-1][1]
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            if len(nested) >= _MOST_NESTED:
                raise BadDocument(
                    f"{name}, line {event.start_mark.line + 1}: more than {_MOST_NESTED} nested "
                    "levels"
                )
            nested.append(["map" if kind.startswith("Map") else "list", True, is_key])
            continue
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            nested.pop()
        elif kind == "ScalarEvent":
            tag = event.tag or resolver.resolve(yaml.ScalarNode, event.value, event.implicit)
            if not is_key and not any(level[2] for level in nested) and tag in (_TEXT, "!"):
                yield event
        elif kind != "AliasEvent":
            continue
        if nested:
            nested[-1][1] = not nested[-1][1]


def _yaml() -> Any:
    with needing("documents", "YAML needs PyYAML"):
        import yaml
    return yaml
