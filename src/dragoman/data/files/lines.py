"""Bytes of a file or a pipe -> lines of text, in flat memory whatever a line is.

Blocks are decoded and cut, not lines, which is faster; what is behind the last end of line of a
block waits for the next. So only a line that is longer than a block is ever put together from
pieces, and only there is it asked whether it is far too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import BinaryIO, cast

from dragoman.errors import DataError

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
                raise _far_too_long(name, number + 1, _counted(file, size))
            continue
        if held and (length := size + block.index(b"\n")) > LONGEST:
            raise _far_too_long(name, number + 1, f"{length:,}")
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


def _far_too_long(name: str, line: int, length: str) -> DataError:
    return DataError(
        f"{name}, line {line}: it has {length} bytes, and {LONGEST:,} are read as one line; cut it "
        "into lines of a sentence or a text each"
    )
