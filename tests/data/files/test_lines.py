"""Lines of files and pipes: as cutting all of them at once would give, in flat memory."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.data.files import lines
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.lines import decode_lines


class Pieces(io.BytesIO):
    """Bytes that come some at a time, as from a pipe."""

    def __init__(self, content: bytes, most: int) -> None:
        super().__init__(content)
        self._most = most

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self._most if size is None else min(self._most, size))


def plainly(content: bytes) -> list[str]:
    """The lines of all bytes at once."""
    whole = content.removeprefix(b"\xef\xbb\xbf") if content != b"\xef\xbb\xbf" else b""
    parts = whole.split(b"\n")
    if not parts[-1] and (len(parts) > 1 or not content):
        parts.pop()
    return [part.removesuffix(b"\r").decode("utf-8", "surrogateescape") for part in parts]


@example([b"\xef\xbb\xbfone\r\r\n", b"\n", b"\xc3\n", b"\xef\xbb\xbf"], 4)
@example([b"\n"], 1)
@example([b"\xef\xbb\xbf"], 2)
@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"a", b"\xef\xbb\xbf", "é한".encode(), b"\xc3", b" "])),
    st.integers(1, 9),
)
def test_however_the_bytes_come_the_lines_are_the_same(parts: list[bytes], most: int) -> None:
    content = b"".join(parts)
    assert list(decode_lines(Pieces(content, most))) == plainly(content)


def test_a_line_of_a_pipe_is_there_before_the_next_is_written() -> None:
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as file, os.fdopen(writes, "wb", buffering=0) as pipe:
        found = decode_lines(file)
        pipe.write(b"one\ntw")
        assert next(found) == "one"
        pipe.write(b"o\n")
        assert next(found) == "two"


@pytest.mark.parametrize("most", [3, 64, 1 << 16])
def test_a_line_may_be_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(lines, "LONGEST", 100)
    monkeypatch.setattr(lines, "_BLOCK", 64)
    for length in (63, 64, 65, 99, 100):
        content = b"one\n" + b"x" * length + b"\nthree\n"
        assert list(map(len, decode_lines(Pieces(content, most)))) == [3, length, 5]
    for length in (101, 102, 127, 128, 129, 1000):
        for end in (b"\nthree\n", b""):
            found = decode_lines(Pieces(b"one\n" + b"x" * length + end, most), "my.txt")
            assert next(found) == "one"
            with pytest.raises(DataError, match=rf"^my.txt, line 2 has {length:,} bytes, but"):
                next(found)


def test_a_line_without_an_end_is_counted_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST", 1 << 17)
    monkeypatch.setattr(lines, "_COUNTED", 1 << 18)
    reads, writes = os.pipe()

    def write() -> None:
        with os.fdopen(writes, "wb", buffering=0) as pipe:
            try:
                while True:
                    pipe.write(b"x" * 4096)
            except BrokenPipeError:
                return

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(reads, "rb") as file, pytest.raises(DataError) as refused:
        next(decode_lines(file))
    writer.join()
    assert str(refused.value).startswith("standard input, line 1 has more than 262,144 bytes")


def test_every_reader_of_lines_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LONGEST", 1 << 17)
    long = "x" * (1 << 18)
    for name, text in (
        ("a.txt", f"one\n{long}\n"), ("a.tsv", f"a\tb\n{long}\tc\n"),
        ("a.jsonl", f'{{"source": "a", "target": "b"}}\n"{long}"\n'),
        ("a.mrg", f"(S (NN a))\n(S (NN {long}))\n"),
    ):  # fmt: skip
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(text.encode()))
        how = {"a.mrg": "trees", "a.txt": "lines"}.get(name, "auto")
        both = {"target": str(path)} if how == "lines" else {}
        corpus = CorpusSettings.model_validate({"source": str(path), "format": how, **both})
        with pytest.raises(DataError) as refused:
            list(read_pairs(corpus))
        assert str(refused.value).startswith(f"{path}, line 2 has 262,1")
        assert "Split it into lines" in str(refused.value)


_READ = """
import io, sys
from dragoman.data.files.lines import decode_lines
from dragoman.base.errors import DataError
from dragoman.native.allocator import peak_bytes
before = peak_bytes()
try:
    for line in decode_lines(sys.stdin.buffer):
        pass
except DataError as error:
    print(error)
print(peak_bytes() - before)
"""


def test_memory_is_flat_whatever_the_line() -> None:
    """A line of 400 MB takes no more than one that is still read."""
    reader = subprocess.Popen(
        [sys.executable, "-c", _READ], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    pipe, block = cast("BinaryIO", reader.stdin), b"x" * 1_000_000
    pipe.write(b"one\n")
    for _ in range(400):
        pipe.write(block)
    said, _ = reader.communicate()
    message, peak = said.decode().splitlines()
    assert message.startswith(
        "standard input, line 2 has 400,000,000 bytes, but a line may have at most 16,777,216"
    )
    assert int(peak) < 60_000_000
