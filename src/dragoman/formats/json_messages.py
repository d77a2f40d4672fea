"""Messages in JSON: texts are translated, keys are kept.

In catalogues with more data on each message (Chrome's ``messages.json``, Flutter's ``.arb``), only
the messages are translated. In messages with plural and select forms (``units/icu.py``), each
branch is translated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

from dragoman.base.wording import plural
from dragoman.formats.units.document import (
    BadDocument,
    Document,
    OutputOptions,
    Splice,
    Target,
    Unit,
    check_pieces,
    line_of,
    says_something,
)
from dragoman.formats.units.encoding import Encoded, decode
from dragoman.formats.units.icu import Pattern, has_forms, pattern_of
from dragoman.formats.units.inline import check_codes, message_unit, write_unit

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]')
_ADDRESS = re.compile(r"(?:https?://|mailto:|[\w.\-]+@[\w.\-]+\Z|[./#@]\S*\Z)")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MOST_NESTED = 200


@dataclass(frozen=True, slots=True)
class _JsonSlot:
    begin: int
    end: int
    units: Sequence[Unit]
    pattern: Pattern | None = None
    """The parsed message, if it has forms."""


@dataclass(frozen=True)
class JsonMessages(Document):
    """A file of JSON messages as a document."""

    name: str
    source: Encoded
    slots: Sequence[_JsonSlot]
    unread: int
    """The number of messages whose forms cannot be parsed."""

    @classmethod
    def read(cls, data: bytes, name: str) -> JsonMessages:
        source = decode(data, name)
        check_codes(source.text, name)
        try:
            content = json.loads(source.text)
        except json.JSONDecodeError as error:
            raise BadDocument(
                f"{name}, line {error.lineno}: it is not valid JSON ({error.msg})"
            ) from None
        except RecursionError:
            raise BadDocument(f"{name}: it has more than {_MOST_NESTED} nested levels") from None
        except ValueError as error:
            raise BadDocument(f"{name}: it is not valid JSON ({error})") from None
        only = "message" if _is_chrome(content) else None
        del content  # it takes a hundred times the memory of its bytes
        slots, unread = list[_JsonSlot](), 0
        for number, (begin, end, key) in enumerate(_values(source.text, name)):
            check_pieces(number, name)
            if key is None or (only and key != only):
                continue
            text = _value_of(source.text[begin:end])
            if not says_something(text) or _ADDRESS.match(text):
                continue
            if not has_forms(text):
                slots.append(_JsonSlot(begin, end, (message_unit(text),)))
            elif (pattern := pattern_of(text)) is None:
                unread += 1
            elif units := tuple(pattern.units()):
                slots.append(_JsonSlot(begin, end, units, pattern))
        return cls(name, source, slots, unread)

    @property
    def units(self) -> Sequence[Unit]:
        return list(chain.from_iterable(slot.units for slot in self.slots))

    @property
    def notes(self) -> Sequence[str]:
        if not self.unread:
            return ()
        text = plural(self.unread, "message with invalid ICU plural or select forms stays",
                      "messages with invalid ICU plural or select forms stay")  # fmt: skip
        return [f"{self.name}: {text} as written"]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        splices = []
        every = iter(targets)
        for slot in self.slots:
            own = list(islice(every, len(slot.units)))
            if own != [unit.as_it_is for unit in slot.units]:
                if slot.pattern is None:
                    text = write_unit(slot.units[0], own[0])
                else:
                    text = slot.pattern.translate(own)
                is_ascii = self._escapes or _SURROGATE.search(text) is not None
                splices.append(
                    Splice(slot.begin, slot.end, json.dumps(text, ensure_ascii=is_ascii))
                )
        return self.source.splice(splices, self.name)

    @cached_property
    def _escapes(self) -> bool:
        """True if the file escapes characters outside of ASCII."""
        return self.source.text.isascii() and "\\u" in self.source.text


def _is_chrome(content: object) -> bool:
    """True if each key has an object with a message."""
    return (
        isinstance(content, dict)
        and bool(content)
        and all(
            isinstance(entry, dict) and isinstance(entry.get("message"), str)
            for entry in content.values()
        )
    )


def _value_of(string: str) -> str:
    """The value of a JSON string."""
    if "\\" not in string:
        return string[1:-1]
    value: str = json.loads(string)
    return value


def _values(text: str, name: str) -> Iterator[tuple[int, int, str | None]]:
    """The place of each text that is not a key, and its key: "" in a list, None below a key that
    begins with @, where .arb describes a message."""
    path: list[bool] = []  # for all that is open: True inside the description of a message
    kinds: list[str] = []
    key = ""
    waits_for_key = False
    for token in _TOKEN.finditer(text):
        said = token[0]
        if said in "{[":
            if len(kinds) >= _MOST_NESTED:
                line = line_of(text, token.start())
                raise BadDocument(
                    f"{name}, line {line}: it has more than {_MOST_NESTED} nested levels"
                )
            kinds.append(said)
            path.append(key.startswith("@") or (bool(path) and path[-1]))
            key, waits_for_key = "", said == "{"
        elif said in "}]":
            kinds.pop()
            path.pop()
            key, waits_for_key = "", False
        elif said == ",":
            waits_for_key = bool(kinds) and kinds[-1] == "{"
        elif said == ":":
            waits_for_key = False
        elif waits_for_key:
            key = _value_of(said)
        else:
            is_told_of = key.startswith("@") or (bool(path) and path[-1])
            yield token.start(), token.end(), None if is_told_of else key
