"""Running text comes in texts of bounded length, and nothing but their ends is lost."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.data.files.corpora import corpus_fingerprint, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.lines import By, read_texts


def texts_of(content: bytes, by: By, longest: int = 1000) -> list[tuple[int, str]]:
    return [(line, text) for line, text, _ in read_texts(io.BytesIO(content), by, longest)]


def test_what_ends_a_text() -> None:
    content = b"\n\n One.\nTwo.\n\n \t \nThree.\r\n\r\nFour."
    assert texts_of(content, "blank") == [(3, " One.\nTwo."), (7, "Three."), (9, "Four.")]
    assert texts_of(content, "file") == [(3, " One.\nTwo.\n\n \t \nThree.\n\nFour.")]
    lines = ["", "", " One.", "Two.", "", " \t ", "Three.", "", "Four."]
    assert texts_of(content, "line") == list(enumerate(lines, 1))
    assert texts_of(b"\xef\xbb\xbfa\xff", "file") == [(1, "a\udcff")]
    assert texts_of(b"\n \n\n", "blank") == [] == texts_of(b"", "file")


letters = st.text(st.sampled_from("ab \nü"), max_size=60)


@given(letters, st.integers(1, 20), st.sampled_from(["line", "blank", "file"]))
@example("aaaa\n\naaaaaa a", 5, "blank")
def test_no_text_is_longer_than_it_may_be_and_no_letter_is_lost(
    content: str, longest: int, by: By
) -> None:
    found = texts_of(content.encode(), by, longest)
    assert all(len(text) <= longest for _, text in found)
    assert "".join("".join(t for _, t in found).split()) == "".join(content.split())
    lines = content.split("\n")
    for line, text in found:
        assert text.split("\n")[0].strip() in lines[line - 1]


def test_a_long_text_is_cut_at_the_end_of_a_line_else_of_a_word() -> None:
    assert texts_of(b"aaaa bbb\nccc ddd eee\n", "file", 10) == [
        (1, "aaaa bbb"), (2, "ccc ddd"), (2, "eee"),
    ]  # fmt: skip
    assert [t for _, t in texts_of(b"x" * 25, "blank", 10)] == ["x" * 10, "x" * 10, "x" * 5]


class Endless(io.RawIOBase):
    """A file of one line that is made while it is read."""

    def __init__(self, size: int) -> None:
        self.left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size = min(len(buffer), self.left)
        buffer[:size] = (b"word " * (size // 5 + 1))[:size]
        self.left -= size
        return size


@pytest.mark.parametrize("by", ["line", "blank", "file"])
def test_a_line_of_any_length_takes_the_memory_of_a_section(by: By) -> None:
    size = 40_000_000
    tracemalloc.start()
    try:
        read = sum(len(t) for _, t, _ in read_texts(io.BufferedReader(Endless(size)), by, 20_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.98 * size < read <= size and peak < 2_000_000


def test_a_folder_is_its_files_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.txt").write_text("Two.\n\nThree.\n")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"One.\n"))
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / ".hidden").write_text("no")
    by_file = CorpusSettings(source=str(tmp_path), format="file")
    assert [p.target for p in read_pairs(by_file)] == ["One.", "Two.\n\nThree."]
    by_blank = by_file.model_copy(update={"format": "documents"})
    assert [p.target for p in read_pairs(by_blank)] == ["One.", "Two.", "Three."]
    before = corpus_fingerprint(by_file)
    assert before != corpus_fingerprint(by_blank)
    assert before != corpus_fingerprint(by_file.model_copy(update={"section": 500}))
    (tmp_path / "b" / "two.txt").write_text("Two!\n")
    assert before != corpus_fingerprint(by_file)


def test_what_holds_nothing_is_said(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    with pytest.raises(DataError, match=r"empty\.txt is empty"):
        list(read_pairs(CorpusSettings(source=str(empty), format="documents")))
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="has no file with any content"):
        list(read_pairs(CorpusSettings(source=str(tmp_path / "folder"), format="file")))


def test_sections_of_a_text_are_named_alike_and_so_are_its_copies(tmp_path: Path) -> None:
    header = "The same words at the beginning of each. " * 30
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, last in (("a", "One"), ("b", "Two"), ("c", "One")):
        (folder / name).write_text(f"{header}\n{last} dog.\n" * 5, encoding="utf-8")
    names = {}
    for section in (500, 2000, 20_000):
        corpus = CorpusSettings(source=str(folder), format="file", section=section)
        pairs = list(read_pairs(corpus))
        whole = list(dict.fromkeys(pair.whole for pair in pairs))
        assert len(whole) == 2 and len(pairs) >= 3, section
        names[section] = whole
    assert names[500] == names[2000] == names[20_000]
    lines = tmp_path / "lines"
    lines.write_text("short\n" + "long " * 300 + "\nshort\n", encoding="utf-8")
    pairs = list(read_pairs(CorpusSettings(source=str(lines), format="text", section=500)))
    assert [bool(pair.whole) for pair in pairs] == [False, True, True, True, False]


@pytest.mark.parametrize("by", ["blank", "file"])
def test_the_name_of_a_text_takes_no_more_memory_than_a_section(by: By, tmp_path: Path) -> None:
    (tmp_path / "book").write_bytes(b"word " * 4_000_000)
    corpus = CorpusSettings.model_validate(
        {"source": str(tmp_path / "book"), "format": {"blank": "documents"}.get(by, by)}
    )
    tracemalloc.start()
    try:
        wholes = {pair.whole for pair in read_pairs(corpus)}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(wholes) == 1 and peak < 8_000_000
