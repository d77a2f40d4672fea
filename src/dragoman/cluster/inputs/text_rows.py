"""Lines of text, of one file or of several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from dragoman.cluster.inputs.compression import Compression, plain_blocks
from dragoman.cluster.inputs.files import File, blocks
from dragoman.cluster.inputs.raw_lines import RawLine, Stretch, raw_lines, stretches
from dragoman.cluster.inputs.row import Fields, InputKind, PartOfInput, Row
from dragoman.data.files.file_kinds import NotLines, check_is_lines
from dragoman.data.files.lines import LONGEST, LOOKED_AT
from dragoman.reading import NOT_UTF8, readable

_UTF8_MARK = b"\xef\xbb\xbf"
TOO_LONG = f"bytes, and {LONGEST:,} are read as one line"
_NOT_UTF8 = "has bytes that are not UTF-8; each is read as U+FFFD"


class TextRows(InputKind):
    """A line is a text."""

    ending = "txt"

    def check(
        self, file: File, compression: Compression, fields: Fields, language: str | None
    ) -> None:
        if language is None:
            return
        start = next(plain_blocks(blocks(file, 0, LOOKED_AT), compression, file.place), b"")
        try:
            check_is_lines(start[:LOOKED_AT], file.place, language)
        except NotLines as error:
            raise NotLines(f"{error}; or read every line as it is: --plain") from None

    def cut(self, file: File, compression: Compression, lines: int) -> Iterator[Stretch]:
        return stretches(plain_blocks(blocks(file), compression, file.place), lines)

    def rows(self, part: PartOfInput) -> Iterator[Row]:
        sides = [
            lines_of(file, compression, stretch)
            for file, compression, stretch in zip(
                part.files, part.compressions, part.stretches, strict=True
            )
        ]
        for number, raw in enumerate(zip(*sides, strict=True), part.stretches[0].first + 1):
            far = next((one for one in raw if one.data is None), None)
            if far is not None:
                yield Row(number, None, f"has {far.size:,} {TOO_LONG}")
                continue
            texts = tuple(decoded(one.data or b"", first=number == 1) for one in raw)
            bad = any(not text.isascii() and NOT_UTF8.search(text) for text in texts)
            yield Row(number, texts, _NOT_UTF8 if bad else "")

    def written(
        self, part: PartOfInput, rows: Sequence[Row], outputs: Sequence[str | None]
    ) -> bytes:
        return "".join(f"{readable(output or '')}\n" for output in outputs).encode()


def lines_of(file: File, compression: Compression, stretch: Stretch) -> Iterator[RawLine]:
    """The lines of a stretch. What is compressed is read from its beginning."""
    if not compression:
        return raw_lines(blocks(file, stretch.start, stretch.length))
    every = raw_lines(plain_blocks(blocks(file), compression, file.place))
    return islice(every, stretch.first, stretch.first + stretch.lines)


def decoded(line: bytes, *, first: bool) -> str:
    """As ``data.lines`` reads one; ``first``: of its file."""
    if first:
        line = line.removeprefix(_UTF8_MARK)
    return line.decode("utf-8", "surrogateescape").removesuffix("\r")
