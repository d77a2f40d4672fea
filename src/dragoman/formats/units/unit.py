"""What is translated at once: a text, and the inline codes that stand in it.

A format reads a file into units and writes translations where they stood; who translates sees units
alone. A code is whatever stands within running text and is kept: a tag, a placeholder, a change of
font. The translation of a unit is a ``Target``: its text in pieces, with the numbers of its codes
between them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

Target: TypeAlias = list[str | int]
"""Text in pieces, and the numbers of the unit's codes where they stand between them."""


@dataclass(frozen=True, slots=True)
class Insert:
    """A text inside a code: the value of an attribute."""

    begin: int
    end: int
    """Where it stands in the code, its quotes included."""
    value: str
    text: int
    """Its number among the units of the document."""


@dataclass(frozen=True, slots=True)
class Code:
    """Something inside running text that is kept: a tag, a comment, or a whole kept element."""

    place: int
    """How many characters of the text stand before it."""
    written: str = ""
    """As it stands in the file, where its format keeps it here."""
    opens: bool = False
    """Whether an element begins with it."""
    closes: bool = False
    """Whether one ends with it."""
    apart_before: bool = False
    """Whether it shows text of its own (``<code>ls</code>``) that no word stands right before."""
    apart_behind: bool = False
    """The same of the word behind."""
    inserts: tuple[Insert, ...] = ()
    partner: int | None = None
    """The number of the code that ends the element, or began it; None: it has none."""
    repeats: bool = False
    """Whether the element may stand several times or not at all, as a font may."""

    def moved(self, by: int) -> Code:
        """The code, its place counted from elsewhere."""
        return replace(self, place=self.place + by)


@dataclass(frozen=True, slots=True)
class Unit:
    """Running text, with the codes inside it in their order."""

    text: str
    """Plain: characters unescaped."""
    tags: tuple[Code, ...] = ()
    ordered: bool = True
    """Whether its codes keep their order. Otherwise each goes where its own words go."""

    @property
    def as_it_is(self) -> Target:
        """The unit as its own translation."""
        target: Target = []
        end = 0
        for number, code in enumerate(self.tags):
            if code.place > end:
                target.append(self.text[end : code.place])
            target.append(number)
            end = code.place
        if end < len(self.text):
            target.append(self.text[end:])
        return target


def parts_of(target: Target) -> list[str]:
    """A translation whose codes stand in their order, cut where they stand: one part more than
    there are codes."""
    parts = [""]
    for one in target:
        if isinstance(one, str):
            parts[-1] += one
        else:
            parts.append("")
    return parts


def target_of(parts: Sequence[str]) -> Target:
    """What ``parts_of`` cuts."""
    target: Target = []
    for number, part in enumerate(parts):
        if number:
            target.append(number - 1)
        if part:
            target.append(part)
    return target


_ADDRESS = re.compile(r"\s*(?:https?:\S+|www\.\S+|\S+@\S+)\s*\Z")


def says_something(text: str) -> bool:
    """Whether a text has a letter and is no address alone: numbers, marks and addresses say the
    same in every language."""
    return any(map(str.isalpha, text)) and not is_address(text)


def is_address(text: str) -> bool:
    """Whether a text is an address of the web or of mail, and nothing else."""
    return _ADDRESS.match(text) is not None
