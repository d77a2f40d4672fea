"""Bytes of a file or a pipe -> lines of text, or texts of bounded length, in flat memory whatever a
line is.

Blocks are decoded and cut, not lines, which is faster; what is behind the last end of line of a
block waits for the next. So only a line that is longer than a block is ever put together from
pieces, and only there is it asked whether it is far too long.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import BinaryIO, Literal, NamedTuple, cast

from dragoman.base.errors import DataError

LONGEST = 1 << 24
"""Bytes of a line: several times those of the longest novels. What is longer has other ends of
lines, or none."""
_COUNTED = 1 << 32
"""Bytes of such a line that are counted for the message; a pipe may never end."""
LOOKED_AT = _BLOCK = 1 << 16
"""Bytes of the beginning by which it is judged what a file is."""
_UTF8_MARK = b"\xef\xbb\xbf"
STANDARD_INPUT = "standard input"

Check = Callable[[bytes, str], None]
"""What refuses a file by its beginning and its name (``file_kinds.py``)."""


def decode_lines(
    file: BinaryIO, name: str = STANDARD_INPUT, check: Check | None = None
) -> Iterator[str]:
    """The lines of a binary file, or of standard input as they come, without their ends.

    A mark at the beginning that says "UTF-8" is dropped. Invalid bytes become lone surrogates.
    Errors: ``DataError`` for a line of more than ``LONGEST`` bytes, and those of ``check``, which
    gets what is there at first; ``name``: of what is read.
    """
    read = cast("BufferedIOBase", file).read1  # of a pipe what is there, not a whole block
    held: list[bytes] = []  # the line that is not whole yet, without its end
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
                raise far_too_long(name, number + 1, _counted(file, size))
            continue
        if held and (length := size + block.index(b"\n")) > LONGEST:
            raise far_too_long(name, number + 1, f"{length:,}")
        held.append(block[:end])
        whole = b"".join(held)
        for line in _decoded(whole, number):
            number += 1
            yield line
        held = [block[end + 1 :]]
        size = len(held[0])
    if size:
        yield from _decoded(b"".join(held), number)


def _decoded(lines: bytes, before: int) -> Iterator[str]:
    """``before``: how many lines came before these."""
    if not before:
        lines = lines.removeprefix(_UTF8_MARK)
    text = lines.decode("utf-8", "surrogateescape")
    return (line.removesuffix("\r") for line in text.split("\n"))


def _counted(file: BinaryIO, size: int) -> str:
    """The bytes of a line of which ``size`` have been read, in words; none of them is kept."""
    while size <= _COUNTED and (block := file.readline(_BLOCK)):
        size += len(block) - block.endswith(b"\n")
        if block.endswith(b"\n"):
            break
    return f"{size:,}" if size <= _COUNTED else f"more than {_COUNTED:,}"


def far_too_long(name: str, line: int, length: str) -> DataError:
    """The error of a line of more than ``LONGEST`` bytes. ``length``: its bytes, in words."""
    return DataError(
        f"{name}, line {line}: it has {length} bytes, and {LONGEST:,} are read as one line; cut it "
        "into lines of a sentence or a text each"
    )


By = Literal["line", "blank", "file"]
"""What ends a text."""

_AT_ONCE = 1 << 16
"""Bytes of a line that are read at once."""


class Section(NamedTuple):
    """A text, or a part of one that is longer than a section."""

    line: int
    """Of the file, from 1: where it begins."""
    text: str
    begins: bool
    """Whether a text begins with it."""


def read_texts(file: BinaryIO, by: By, longest: int) -> Iterator[Section]:
    """The texts of a file, in their sections.

    A text that is longer than ``longest`` characters comes in sections, each a text of its own: it
    is cut at the last end of a line in the second half of what is held, else at the last space,
    else where it is. So a document of a gigabyte, even on one line, takes no more memory than a
    section.

    Line ends within a text are ``\\n``; those around it are dropped, and so is the space or line
    end at which a long one is cut. Blank lines are texts only where each line is one. Bytes that
    are not UTF-8 become lone surrogates.
    """
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    held, first, line, begins = "", 1, 1, True
    opens = True  # whether what is held is the beginning of a text
    while piece := file.readline(_AT_ONCE):
        if line == 1 and begins:
            piece = piece.removeprefix(_UTF8_MARK)
        if piece.endswith(b"\r"):  # its end of line may be cut in two
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
            end, after = _cut(held, longest)
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
    """What is held, which begins on a line, without line ends around it; if that is anything."""
    text = held.lstrip("\n")
    if text:
        yield Section(line + len(held) - len(text), text.rstrip("\n"), begins)


def _cut(held: str, longest: int) -> tuple[int, int]:
    """Where a section ends, and where the next one begins."""
    for mark in ("\n", " "):
        place = held.rfind(mark, longest // 2, longest + 1)
        if place > 0:
            return place, place + 1
    return longest, longest
