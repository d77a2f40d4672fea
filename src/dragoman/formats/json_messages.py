"""Messages in JSON: texts are translated, keys are kept.

Of catalogues that say more of each message (Chrome's ``messages.json``, Flutter's ``.arb``) only
the messages are translated. Messages with ICU's plural and select forms are kept, and are told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from dragoman.formats.units.document import (
    BadDocument,
    Document,
    Splice,
    Wanted,
    check_pieces,
    spliced,
)
from dragoman.formats.units.encoding import Encoded, decoded
from dragoman.formats.units.inline import check_codes, message_unit, written
from dragoman.formats.units.unit import Target, Unit, says_something
from dragoman.plural import plural

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]')
_FORMS = re.compile(r",\s*(?:plural|select|selectordinal)\s*,")
_ADDRESS = re.compile(r"(?:https?://|mailto:|[\w.\-]+@[\w.\-]+\Z|[./#@]\S*\Z)")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MOST_NESTED = 200


@dataclass(frozen=True)
class _Slot:
    begin: int
    end: int
    unit: Unit


@dataclass(frozen=True)
class JsonMessages(Document):
    """A file of messages."""

    name: str
    source: Encoded
    slots: Sequence[_Slot]
    with_forms: int

    @classmethod
    def read(cls, data: bytes, name: str) -> JsonMessages:
        source = decoded(data, name)
        check_codes(source.text, name)
        try:
            content = json.loads(source.text)
        except json.JSONDecodeError as error:
            raise BadDocument(f"{name}, line {error.lineno}: it is no JSON ({error.msg})") from None
        except RecursionError:
            raise BadDocument(f"{name}: it is nested more than {_MOST_NESTED} deep") from None
        except ValueError as error:
            raise BadDocument(f"{name}: it is no JSON ({error})") from None
        only = "message" if _is_chrome(content) else None
        slots, with_forms = [], 0
        for number, (begin, end, path) in enumerate(_values(source.text, name)):
            check_pieces(number, name)
            is_told_of = any(key.startswith("@") for key in path)  # what .arb says of a message
            if is_told_of or (only and path[-1:] != (only,)):
                continue
            text = json.loads(source.text[begin:end])
            if not says_something(text) or _ADDRESS.match(text):
                continue
            if _FORMS.search(text):
                with_forms += 1
                continue
            slots.append(_Slot(begin, end, message_unit(text)))
        return cls(name, source, slots, with_forms)

    @property
    def units(self) -> Sequence[Unit]:
        return [slot.unit for slot in self.slots]

    @property
    def notes(self) -> Sequence[str]:
        if not self.with_forms:
            return ()
        told = plural(self.with_forms, "message with plural or select forms stays",
                      "messages with plural or select forms stay")  # fmt: skip
        return [f"{self.name}: {told} as written"]

    def join(self, targets: Sequence[Target], wanted: Wanted) -> bytes:
        splices = []
        for slot, target in zip(self.slots, targets, strict=True):
            if target != slot.unit.as_it_is:
                text = written(slot.unit, target)
                is_ascii = self._escapes or _SURROGATE.search(text) is not None
                splices.append(
                    Splice(slot.begin, slot.end, json.dumps(text, ensure_ascii=is_ascii))
                )
        return self.source.back(spliced(self.source.text, splices), self.name)

    @cached_property
    def _escapes(self) -> bool:
        """Whether the file writes characters outside of ASCII as escapes."""
        return self.source.text.isascii() and "\\u" in self.source.text


def _is_chrome(content: object) -> bool:
    """Whether each key holds an object with a message."""
    return (
        isinstance(content, dict)
        and bool(content)
        and all(
            isinstance(one, dict) and isinstance(one.get("message"), str)
            for one in content.values()
        )
    )


def _values(text: str, name: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where each text stands that is no key, and the keys that lead to it."""
    path: list[str] = []
    kinds: list[str] = []
    key: str | None = None
    waits_for_key = False
    for token in _TOKEN.finditer(text):
        said = token[0]
        if said in "{[":
            if len(kinds) >= _MOST_NESTED:
                line = text.count("\n", 0, token.start()) + 1
                raise BadDocument(
                    f"{name}, line {line}: it is nested more than {_MOST_NESTED} deep"
                )
            kinds.append(said)
            path.append(key or "")
            key, waits_for_key = None, said == "{"
        elif said in "}]":
            kinds.pop()
            path.pop()
            key, waits_for_key = None, False
        elif said == ",":
            waits_for_key = bool(kinds) and kinds[-1] == "{"
        elif said == ":":
            waits_for_key = False
        elif waits_for_key:
            key = json.loads(said)
        else:
            yield token.start(), token.end(), (*path[1:], key or "")
