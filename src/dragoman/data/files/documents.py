"""Files of running text -> texts of bounded length, whatever the size of the file.

What ends a text is a choice: the end of its line, a blank line, or the end of its file. A text that
is longer than ``longest`` characters comes in sections, each a text of its own: it is cut at the
last end of a line in the second half of what is held, else at the last space, else where it is. So
a document of a gigabyte, even on one line, takes no more memory than a section.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO, Literal, NamedTuple

By = Literal["line", "blank", "file"]
"""What ends a text."""

_AT_ONCE = 1 << 16
"""Bytes of a line that are read at once."""
_UTF8_MARK = b"\xef\xbb\xbf"


class Section(NamedTuple):
    """A text, or a part of one that is longer than a section."""

    line: int
    """Of the file, from 1: where it begins."""
    text: str
    begins: bool
    """Whether a text begins with it."""


def read_texts(file: BinaryIO, by: By, longest: int) -> Iterator[Section]:
    """The texts of a file, in their sections.

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
