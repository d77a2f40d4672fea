"""Spans of XML that are replaced, also within each other: a text box stands in a paragraph."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from dragoman.formats.units.document import Splice
from dragoman.formats.xml.tokens import Xml

Rendered: TypeAlias = Callable[[int, int], str]
"""What stands in a span, with all that is replaced in it."""


class Replacement(NamedTuple):
    """A span, and what takes its place: made of what stands in parts of it."""

    begin: int
    end: int
    made: Callable[[Rendered], str]


def replaced(xml: Xml, replacements: Iterable[Replacement]) -> bytes:
    """The file with its spans replaced, in its own encoding."""
    # What is put between stands before what begins there, and what holds others before these.
    every = sorted(replacements, key=lambda one: (one.begin, one.end > one.begin, -one.end))
    begins = [one.begin for one in every]

    def rendered(begin: int, end: int) -> str:
        out, at = [], begin
        for number in range(bisect_left(begins, begin), len(every)):
            one = every[number]
            if one.begin >= end:
                break
            # A unit may begin with a code of its own, and something be put before it.
            is_around = one.end > end or (one.begin == one.end == begin > 0)
            if one.begin >= at and not is_around:
                out += [xml.written(at, one.begin), one.made(rendered)]
                at = one.end
        return "".join(out) + xml.written(at, end)

    if not every:
        return xml.spliced([])
    length = len(xml.data)
    return xml.spliced([Splice(0, length, rendered(0, length))])


def put(begin: int, end: int, text: str) -> Replacement:
    """A text in place of a span."""
    return Replacement(begin, end, lambda _: text)
