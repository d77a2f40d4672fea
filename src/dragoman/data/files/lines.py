"""This module decodes files and pipes into lines, or texts of bounded length, in flat memory for
lines of any length.

Whole blocks are decoded and cut, which is faster than lines; the rest after the last line end of a
block waits for the next. So only a line that is longer than a block is joined from pieces and
checked for its length.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import BinaryIO, Literal, NamedTuple, cast

from dragoman.base.errors import DataError

LONGEST = 1 << 24
"""The most bytes of a line: several times the longest novels. Longer lines have other line ends, or
none."""
_COUNTED = 1 << 32
"""At most this many bytes of such a line are counted, because a pipe may never end."""
LOOKED_AT = _BLOCK = 1 << 16
"""The number of first bytes by which the kind of a file is judged."""
STANDARD_INPUT = "standard input"

Check = Callable[[bytes, str], None]
"""A function that refuses a file by its beginning and its name (``file_kinds.py``)."""


def decode_lines(
    file: BinaryIO, name: str = STANDARD_INPUT, check: Check | None = None
) -> Iterator[str]:
    """Yield the lines of a binary file, or of standard input as they come, without their ends.

    A UTF-8 byte-order mark is dropped. Invalid bytes become lone surrogates. Errors: ``DataError``
    for a line of more than ``LONGEST`` bytes, and those of ``check``, which gets the first block.
    ``name`` names the file in messages.
    """
    read = cast("BufferedIOBase", file).read1  # of a pipe the available bytes, not a whole block
    held: list[bytes] = []  # the incomplete line, without its end
    size, number = 0, 0
    while block := read(_BLOCK):
        if check is not None:
            check(block, name)
            check = None
        end = block.rfind(b"\n")
        if end < 0:
            held.append(block)
            size += len(block)
            if size > LONGEST:
                raise far_too_long(name, number + 1, _count_bytes(file, size))
            continue
        if held and (length := size + block.index(b"\n")) > LONGEST:
            raise far_too_long(name, number + 1, f"{length:,}")
        held.append(block[:end])
        whole = b"".join(held)
        for line in _decode(whole, number):
            number += 1
            yield line
        held = [block[end + 1 :]]
        size = len(held[0])
    if size:
        yield from _decode(b"".join(held), number)


def _decode(lines: bytes, before: int) -> Iterator[str]:
    """Decode lines that follow ``before`` others."""
    if not before:
        lines = lines.removeprefix(codecs.BOM_UTF8)
    text = lines.decode("utf-8", "surrogateescape")
    return (line.removesuffix("\r") for line in text.split("\n"))


def _count_bytes(file: BinaryIO, size: int) -> str:
    """Return the bytes, in words, of a line of which ``size`` are read; none of it is kept."""
    while size <= _COUNTED and (block := file.readline(_BLOCK)):
        size += len(block) - block.endswith(b"\n")
        if block.endswith(b"\n"):
            break
    return f"{size:,}" if size <= _COUNTED else f"more than {_COUNTED:,}"


def far_too_long(name: str, line: int, length: str) -> DataError:
    """Return the error for a line over ``LONGEST`` bytes. ``length``: its bytes, in words."""
    return DataError(
        f"{name}, line {line} has {length} bytes, but a line may have at most {LONGEST:,}. Split "
        "it into lines with one sentence or text each"
    )


By = Literal["line", "blank", "file"]
"""The end of a text: a line end, a blank line, or the end of the file."""

_AT_ONCE = 1 << 16
"""A line is read in pieces of this many bytes."""


class Section(NamedTuple):
    """A text, or a part of a text that is longer than a section."""

    line: int
    """The line of the file, from 1, on which the section begins."""
    text: str
    begins: bool
    """True for the first section of a text."""


def read_texts(file: BinaryIO, by: By, longest: int) -> Iterator[Section]:
    """Yield the texts of a file, in sections.

    A text that is longer than ``longest`` characters is cut into sections, each a text of its own,
    at the last line end in the second half of ``longest``, else at the last space, else at
    ``longest``. So a document of a gigabyte, even on one line, takes no more memory than a section.

    Line ends within a text are ``\\n``; those around it are dropped, and so is the space or line
    end at a cut. Blank lines are texts only if each line is one. Bytes that are not UTF-8 become
    lone surrogates.
    """
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    held, first, line, begins = "", 1, 1, True
    opens = True  # whether ``held`` is the beginning of a text
    while piece := file.readline(_AT_ONCE):
        if line == 1 and begins:
            piece = piece.removeprefix(codecs.BOM_UTF8)
        if piece.endswith(b"\r"):  # a line end may be cut in two
            piece += file.readline(1)
        ends = piece.endswith(b"\n")
        text = decode(piece).replace("\r\n", "\n")
        blank = begins and ends and not text.strip()
        begins = ends
        if ends:
            line += 1
        if by == "line" and ends:
            held += text[:-1]
        elif by == "blank" and blank:
            text = ""
        else:
            held += text
        while len(held) > longest:
            end, after = _section_end(held, longest)
            for section in _text(first, held[:end], opens):
                opens = False
                yield section
            held = held[after:]
            last = line - 1 if ends and not held.endswith("\n") else line
            first = last - held.count("\n")
        if ends and (by == "line" or (by == "blank" and blank)):
            alone = [Section(first, held, opens)]
            yield from alone if by == "line" else _text(first, held, opens)
            held, first, opens = "", line, True
        elif not held:
            first = line
    held += decode(b"", True)
    yield from _text(first, held, opens)


def _text(line: int, held: str, begins: bool) -> Iterator[Section]:
    """Yield ``held``, which begins on a line, without line ends around it, unless it is empty."""
    text = held.lstrip("\n")
    if text:
        yield Section(line + len(held) - len(text), text.rstrip("\n"), begins)


def _section_end(held: str, longest: int) -> tuple[int, int]:
    """Return the end of a section, and the beginning of the next."""
    for mark in ("\n", " "):
        place = held.rfind(mark, longest // 2, longest + 1)
        if place > 0:
            return place, place + 1
    return longest, longest
