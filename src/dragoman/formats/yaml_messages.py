"""Messages in YAML: texts are translated; keys, comments and layout are kept.

PyYAML says where each text stands; it is never written by it. A text is written in the quotes that
it had, and in double ones where it had none and would be read as something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.errors import DragomanError
from dragoman.formats.units.document import BadDocument, Document, Splice, Wanted, spliced
from dragoman.formats.units.encoding import Encoded, decoded
from dragoman.formats.units.inline import message_unit, written
from dragoman.formats.units.unit import Target, Unit, says_something

_MOST_NESTED = 200
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
"""The anchor and the tag in front of a text."""


@dataclass(frozen=True)
class _Slot:
    begin: int
    end: int
    style: str | None
    unit: Unit


@dataclass(frozen=True)
class YamlMessages(Document):
    """A file of messages."""

    name: str
    source: Encoded
    slots: Sequence[_Slot]

    @classmethod
    def read(cls, data: bytes, name: str) -> YamlMessages:
        source = decoded(data, name)
        yaml = _yaml()
        slots = []
        try:
            for event in _values(yaml, source.text, name):
                begin, end = event.start_mark.index, event.end_mark.index
                begin += len(_PROPERTIES.match(source.text, begin, end)[0])  # type: ignore[index]
                if event.style in ("|", ">"):  # its indent says where it ends: kept
                    continue
                if says_something(event.value) and not event.value.startswith(("http:", "https:")):
                    slots.append(_Slot(begin, end, event.style, message_unit(event.value)))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f", line {mark.line + 1}" if mark else ""
            told = getattr(error, "problem", None) or "not to be read"
            raise BadDocument(f"{name}{line}: it is no YAML ({told})") from None
        return cls(name, source, slots)

    @property
    def units(self) -> Sequence[Unit]:
        return [slot.unit for slot in self.slots]

    def join(self, targets: Sequence[Target], wanted: Wanted) -> bytes:
        splices = []
        for slot, target in zip(self.slots, targets, strict=True):
            if target != slot.unit.as_it_is:
                text = written(slot.unit, target)
                splices.append(Splice(slot.begin, slot.end, _quoted(text, slot.style)))
        return self.source.back(spliced(self.source.text, splices), self.name)


def _quoted(text: str, style: str | None) -> str:
    if style == "'" and "\n" not in text:
        doubled = text.replace("'", "''")
        return f"'{doubled}'"
    if style is None and _is_plain(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    """Whether a text without quotes is read as itself, in a list in brackets too."""
    yaml = _yaml()
    if "\n" in text or any(mark in text for mark in ",[]{}"):
        return False
    try:
        return bool(yaml.safe_load(f"a: {text}") == {"a": text})
    except yaml.YAMLError:
        return False


def _values(yaml: Any, text: str, name: str) -> Iterator[Any]:
    """The scalars that are texts, and no keys."""
    nested: list[list[Any]] = []  # of each collection: its kind, and whether a key comes next
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        is_key = bool(nested) and nested[-1][0] == "map" and nested[-1][1]
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            if len(nested) >= _MOST_NESTED:
                raise BadDocument(
                    f"{name}, line {event.start_mark.line + 1}: it is nested more than "
                    f"{_MOST_NESTED} deep"
                )
            nested.append(["map" if kind.startswith("Map") else "list", True, is_key])
            continue
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            nested.pop()
        elif kind == "ScalarEvent":
            resolved = yaml.SafeLoader("").resolve(yaml.ScalarNode, event.value, event.implicit)
            if not is_key and not any(one[2] for one in nested) and resolved.endswith(":str"):
                yield event
        elif kind != "AliasEvent":
            continue
        if nested:
            nested[-1][1] = not nested[-1][1]


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise DragomanError("YAML needs PyYAML: pip install 'dragoman[documents]'") from None
    return yaml
