"""Bytes -> lines, and where every so many of them begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dragoman.data.files.lines import LONGEST

END = b"\n"


class RawLine(NamedTuple):
    """A line without its end."""

    data: bytes | None
    """None of one that is longer than ``LONGEST``."""
    size: int


class Stretch(NamedTuple):
    """Some lines of a file."""

    first: int
    """Counted from 0."""
    lines: int
    start: int
    """Bytes before it."""
    length: int
    """Bytes of it, line ends counted."""


def raw_lines(blocks: Iterable[bytes]) -> Iterator[RawLine]:
    """The lines of some bytes, in flat memory whatever a line is."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        begun, *others = block.split(END)
        size += len(begun)
        if size <= LONGEST:
            held.append(begun)
        else:
            held.clear()
        if not others:
            continue
        yield RawLine(b"".join(held) if size <= LONGEST else None, size)
        last = others.pop()
        for one in others:
            yield RawLine(one if len(one) <= LONGEST else None, len(one))
        held, size = [last], len(last)
    if size:
        yield RawLine(b"".join(held) if size <= LONGEST else None, size)


def stretches(blocks: Iterable[bytes], lines: int) -> Iterator[Stretch]:
    """Every ``lines`` lines, the last stretch of what is left."""
    first, count = 0, 0  # of the stretch that is not whole yet
    start, at = 0, 0  # where it begins, and the bytes before the block
    ended = True
    for block in blocks:
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == END[0])
        taken = 0
        while count + len(ends) - taken >= lines:
            taken += lines - count
            end = at + int(ends[taken - 1]) + 1
            yield Stretch(first, lines, start, end - start)
            first, count, start = first + lines, 0, end
        count += len(ends) - taken
        at += len(block)
        ended = block.endswith(END)
    count += not ended
    if count:
        yield Stretch(first, count, start, at - start)
