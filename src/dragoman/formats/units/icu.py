"""Messages with the plural and select forms of ICU, whose branches are separate texts.

``{count, plural, one {# file} other {# files}}``:
https://unicode-org.github.io/icu/userguide/format_parse/messages/. The text around a form is a unit
in which the form is a code, and so is the text in each branch. Everything else is kept as written:
names, selectors, spaces, quoted characters.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dragoman.formats.units.document import Target, Unit, says_something
from dragoman.formats.units.inline import FoundCode, codes_in, unit_of, write_unit

_FORMS = re.compile(r",\s*(?:plural|select|selectordinal)\s*,")
_SPECIAL = re.compile(r"['{}#]")
_ARGUMENT = re.compile(r"\{\s*[\w.\-]{1,64}\s*(?:\}|,\s*(\w{1,32})\s*(?:\}|(,)))")
_OFFSET = re.compile(r"\s*offset:\s*\d{1,9}(?=\s)")
_SELECTOR = re.compile(r"\s*(=\d{1,18}|[^\s{}'#=,]{1,64})\s*\{")
_CLOSING = re.compile(r"\s*\}")
_NUMBERED = {"plural", "selectordinal"}
_CATEGORIES = {"zero", "one", "two", "few", "many", "other"}
_MOST_NESTED = 8
_Shape: TypeAlias = tuple[tuple[str, ...], tuple[Any, ...]]
"""The codes of a pattern, and the shapes of its forms."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A message, or a branch of one of its forms."""

    raw: str
    """The pattern as written in the message."""
    unit: Unit
    forms: tuple[tuple[int, int, _Form], ...]
    """The forms, each with its begin and end in ``raw``."""
    numbers: tuple[int, ...]
    """The numbers of the codes that are the forms, in the same order."""
    counts: bool
    """True if ``#`` is a number here."""

    def units(self) -> Iterator[Unit]:
        """The units of the message and its branches."""
        if says_something(self.unit.text):
            yield self.unit
        for _, _, form in self.forms:
            for _, branch in form.branches:
                yield from branch.units()

    def translate(self, targets: Sequence[Target]) -> str:
        """Write the message with a translation for each unit. If the result would parse as other
        forms, the message stays as it is."""
        made = self._write(iter(targets), doubles="''" in self.raw)
        again = pattern_of(made)
        return made if again is not None and again._shape() == self._shape() else self.raw

    def _write(self, targets: Iterator[Target], *, doubles: bool) -> str:
        target = next(targets) if says_something(self.unit.text) else self.unit.as_it_is
        forms = [form.write(targets, doubles=doubles) for _, _, form in self.forms]
        if target == self.unit.as_it_is:
            pieces, end = list[str](), 0
            for (begin, until, _), made in zip(self.forms, forms, strict=True):
                pieces += [self.raw[end:begin], made]
                end = until
            return "".join([*pieces, self.raw[end:]])
        codes = list(self.unit.tags)
        for number, made in zip(self.numbers, forms, strict=True):
            codes[number] = replace(codes[number], written=made)
        unit = replace(self.unit, tags=tuple(codes))
        return write_unit(unit, target, lambda text: _quote(text, doubles, self.counts))

    def _shape(self) -> _Shape:
        """The codes and forms, sorted, which no translation may change."""
        forms = set(self.numbers)
        kept = [code.written for number, code in enumerate(self.unit.tags) if number not in forms]
        return tuple(sorted(kept)), tuple(sorted(form.shape() for _, _, form in self.forms))


@dataclass(frozen=True, slots=True)
class _Form:
    """A form: its branches, and the syntax before each and after the last."""

    between: tuple[str, ...]
    branches: tuple[tuple[str, Pattern], ...]
    """The branches, each with its selector."""

    def write(self, targets: Iterator[Target], *, doubles: bool) -> str:
        made = [self.between[0]]
        for (_, branch), behind in zip(self.branches, self.between[1:], strict=True):
            made += [branch._write(targets, doubles=doubles), behind]
        return "".join(made)

    def shape(self) -> tuple[tuple[str, ...], tuple[_Shape, ...]]:
        return self.between, tuple(branch._shape() for _, branch in self.branches)


def has_forms(text: str) -> bool:
    """True if a message seems to have forms, valid or not."""
    return _FORMS.search(text) is not None


def pattern_of(text: str) -> Pattern | None:
    """Parse a message with forms; None if it is not valid ICU."""
    try:
        pattern, end = _pattern(text, 0, counts=False, nested=0)
    except _WrongForm:
        return None
    return pattern if end == len(text) else None


class _WrongForm(Exception):
    """The message is not valid ICU."""


def _pattern(text: str, begin: int, *, counts: bool, nested: int) -> tuple[Pattern, int]:
    """Parse up to the brace that ends a branch, or to the end."""
    if nested > _MOST_NESTED:
        raise _WrongForm
    kept: list[tuple[int, int]] = []
    forms: list[tuple[int, int, _Form]] = []
    at = begin
    while (special := _SPECIAL.search(text, at)) is not None:
        at, mark = special.start(), special[0]
        if mark == "}":
            break
        if mark == "'":
            following = text[at + 1 : at + 2]
            if following and (following in "{}" or (following == "#" and counts)):
                end = _quote_end(text, at + 1)
                kept.append((at, end))
            else:
                end = at + (2 if following == "'" else 1)
        elif mark == "{":
            end, form = _argument(text, at, counts=counts, nested=nested)
            if form is None:
                kept.append((at, end))
            else:
                forms.append((at - begin, end - begin, form))
        else:
            end = at + 1
            if counts:
                kept.append((at, end))
        at = end
    else:
        at = len(text)
    if (at == len(text)) != (nested == 0):  # a superfluous or a missing brace
        raise _WrongForm
    raw = text[begin:at]
    codes, numbers = _codes(raw, [(a - begin, b - begin) for a, b in kept], forms)
    unit = unit_of(raw, codes, lambda plain: plain.replace("''", "'"))
    return Pattern(raw, unit, tuple(forms), tuple(numbers), counts), at


def _argument(text: str, at: int, *, counts: bool, nested: int) -> tuple[int, _Form | None]:
    """The end of an argument, and its form if it has one."""
    head = _ARGUMENT.match(text, at)
    if head is None:
        raise _WrongForm
    kind = head[1]
    if head[2] is None:
        return head.end(), None
    if kind not in (*_NUMBERED, "select"):
        return _style_end(text, head.end()), None
    place = head.end()
    if kind in _NUMBERED:
        counts = True
        if offset := _OFFSET.match(text, place):
            place = offset.end()
    between, branches, begin = list[str](), list[tuple[str, Pattern]](), at
    while (selector := _SELECTOR.match(text, place)) is not None:
        name = selector[1]
        is_known = name in _CATEGORIES or name.startswith("=")
        if kind in _NUMBERED and not is_known:
            raise _WrongForm
        between.append(text[begin : selector.end()])
        branch, begin = _pattern(text, selector.end(), counts=counts, nested=nested + 1)
        branches.append((name, branch))
        place = begin + 1
    end = _CLOSING.match(text, place)
    if end is None or "other" not in [name for name, _ in branches]:
        raise _WrongForm
    return end.end(), _Form((*between, text[begin : end.end()]), tuple(branches))


def _style_end(text: str, at: int) -> int:
    """The end of an argument with a style: ``{when, date, {0}}``."""
    depth = 1
    while (special := _SPECIAL.search(text, at)) is not None:
        at = special.end()
        if special[0] == "'":
            end = text.find("'", at)
            if end < 0:
                raise _WrongForm
            at = end + 1
        elif special[0] != "#":
            depth += 1 if special[0] == "{" else -1
            if not depth:
                return at
    raise _WrongForm


def _quote_end(text: str, at: int) -> int:
    """The end of quoted text, in which two apostrophes are one."""
    while (end := text.find("'", at)) >= 0:
        if text[end + 1 : end + 2] != "'":
            return end + 1
        at = end + 2
    raise _WrongForm


def _codes(
    raw: str, kept: Sequence[tuple[int, int]], forms: Sequence[tuple[int, int, _Form]]
) -> tuple[list[FoundCode], list[int]]:
    """The codes of a branch (arguments, quoted text, forms, and tags between them), and the numbers
    of those that are forms."""
    begins = [begin for begin, _ in kept]
    codes: list[FoundCode] = []
    inside: set[int] = set()  # arguments within tags
    edges = [0, *(place for begin, end, _ in forms for place in (begin, end)), len(raw)]
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        for code in codes_in(raw[begin:end]):
            span = code.begin + begin, code.end + begin
            first = max(0, bisect_left(begins, span[0]) - 1)
            over = []
            while first < len(kept) and kept[first][0] < span[1]:
                if kept[first][1] > span[0]:
                    over.append(first)
                first += 1
            if all(span[0] <= kept[n][0] and kept[n][1] <= span[1] for n in over):
                inside.update(over)
                codes.append(code._replace(begin=span[0], end=span[1]))
    codes += [FoundCode(*span) for number, span in enumerate(kept) if number not in inside]
    codes += [FoundCode(begin, end) for begin, end, _ in forms]
    codes.sort()
    places = {begin for begin, _, _ in forms}
    return codes, [number for number, code in enumerate(codes) if code.begin in places]


def _quote(text: str, doubles: bool, counts: bool) -> str:
    """Escape text for ICU. ``doubles``: True if the message doubles every apostrophe."""
    text = re.sub("'" if doubles else r"'(?=['{}#]|\Z)", "''", text)
    return re.sub("[{}#]+" if counts else "[{}]+", r"'\g<0>'", text)
