"""Reading pairs from files, and what bad files get."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.data.files.corpora import corpus_fingerprint, read_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.lines import decode_lines
from dragoman.data.split import SplitSettings, split_pairs
from dragoman.forms.form import Pair


def _corpus(
    folder: Path, source: bytes, target: bytes | None = None, **more: str
) -> CorpusSettings:
    (folder / "a.txt").write_bytes(source)
    if target is not None:
        (folder / "b.txt").write_bytes(target)
        more["target"] = str(folder / "b.txt")
    return CorpusSettings.model_validate({"source": str(folder / "a.txt"), **more})


def test_two_files(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path, b"one\ntwo \r\n\nfour", b"eins\nzwei\n\nvier\n")
    assert list(read_pairs(corpus)) == [
        Pair(1, "one", "eins"),
        Pair(2, "two ", "zwei"),
        Pair(3, "", ""),
        Pair(4, "four", "vier"),
    ]


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_end_at_newline_alone(tmp_path: Path, lines: list[str]) -> None:
    """U+2028, U+0085, form feeds and lone carriage returns stay inside their line."""
    lines = ["x" * 2000, *lines]  # enough for a file of text, whatever else is in it
    path = tmp_path / "lines"
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    assert list(read_lines(path)) == [line.removesuffix("\r") for line in lines]


def test_gzip_by_content_whatever_the_name(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path, gzip.compress(b"one\n"), b"eins\n")
    assert list(read_pairs(corpus)) == [Pair(1, "one", "eins")]


def test_sources_of_synthetic_text_begin_with_a_tag(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path, b"one\teins\n\tzwei\n", format="tsv", tag="<bt>")
    assert list(read_pairs(corpus)) == [Pair(1, "<bt> one", "eins"), Pair(2, "", "zwei")]
    plain = corpus.model_copy(update={"tag": ""})
    assert corpus_fingerprint(plain) != corpus_fingerprint(corpus)
    with pytest.raises(ValidationError, match="tag"):
        CorpusSettings(source="a.tsv", tag="two words")


def test_sides_can_be_exchanged_but_the_split_stays(tmp_path: Path) -> None:
    lines = "".join(f"one {n}\teins {n}\n" for n in range(200)).encode()
    corpus = _corpus(tmp_path, lines, format="tsv")
    exchanged = corpus.model_copy(update={"exchanged": True})
    settings = SplitSettings(dev=0.2)
    held, turned = (
        list(split_pairs(read_pairs(one), settings, "dev")) for one in (corpus, exchanged)
    )
    assert held and [(p.target, p.source) for p in held] == [(p.source, p.target) for p in turned]
    assert corpus_fingerprint(corpus) != corpus_fingerprint(exchanged)


def test_tsv(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"one\teins\tsomebody, CC BY\ntwo\tzwei\n"))
    pairs = list(read_pairs(CorpusSettings(source=str(path))))
    assert pairs == [Pair(1, "one", "eins"), Pair(2, "two", "zwei")]
    with pytest.raises(DataError, match="line 2: there is no tab"):
        list(read_pairs(_corpus(tmp_path, b"a\tb\nonly this\n", format="tsv")))


def test_jsonl(tmp_path: Path) -> None:
    record = {"id": 7, "translation": {"en": "one\ttab", "de": "eins"}}
    keys = {"source_key": "translation.en", "target_key": "translation.de", "format": "jsonl"}
    corpus = _corpus(tmp_path, json.dumps(record).encode(), **keys)
    assert list(read_pairs(corpus)) == [Pair(1, "one\ttab", "eins")]
    for line, message in (
        (b'{"translation": {"en": "a"}}', r"line 1: there is no 'translation.de' .*it has en"),
        (
            b'{"translation": {"en": "a", "de": 3}}',
            r"'translation.de' is '3', not a text: write it in quotes",
        ),
        (b'{"translation"', "line 1 is not JSON"),
        (b"[1]", "line 1: there is no 'translation.en'"),
        (b"[" * 100_000, "line 1 is not JSON"),
    ):
        with pytest.raises(DataError, match=message):
            list(read_pairs(_corpus(tmp_path, line, **keys)))


def test_lists_within_each_other_are_no_text_however_many(tmp_path: Path) -> None:
    """Near the interpreter's limit what could be read cannot be written in a message."""
    for depth in range(800, 1000):
        record = b'{"de": "a", "en": ' + b"[" * depth + b"]" * depth + b"}"
        corpus = _corpus(tmp_path, record, format="jsonl", source_key="en", target_key="de")
        with pytest.raises(DataError, match=r"'en' is .* not a text|not JSON"):
            list(read_pairs(corpus))


@pytest.mark.parametrize(("sources", "targets"), [(3, 5), (5, 3), (1, 100)])
def test_different_line_counts_are_both_named(tmp_path: Path, sources: int, targets: int) -> None:
    corpus = _corpus(tmp_path, b"x\n" * sources, b"y\n" * targets)
    lines = "1 line" if sources == 1 else f"{sources} lines"
    with pytest.raises(DataError, match=rf"a\.txt has {lines} but .*b\.txt has {targets}:"):
        list(read_pairs(corpus))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    whole = gzip.compress(b"one\n" * 1000)
    for content, message in (
        (b"", "is empty"),
        (gzip.compress(b""), "is empty inside"),
        (whole[: len(whole) // 2], "damaged or cut off"),
        (whole[:12] + b"\xff" * 9 + whole[21:], "damaged or cut off"),
        ("one\n".encode("utf-16"), "UTF-16.*iconv"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "is not text: .* control characters"),
        (gzip.compress(bytes(range(256)) * 4), "is not text"),
        ("one two three four five six\n".encode("utf-16-le"), "UTF-16.*iconv -f UTF-16LE"),
    ):
        with pytest.raises(DataError, match=message):
            list(read_pairs(_corpus(tmp_path, content, b"eins\n" * 1000)))
    with pytest.raises(DataError, match="does not exist"):
        list(read_lines(tmp_path / "nothing"))
    with pytest.raises(DataError, match=r"is a folder\. Give a file"):
        list(read_lines(tmp_path))


def test_a_pipe_is_read_where_it_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match=r"pipe is not a regular file: .* Write it to a file first"):
        list(read_pairs(CorpusSettings(source=str(pipe), format="text")))
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(b"one\ntwo\n"),))
    writer.start()
    assert list(read_lines(pipe, once=True)) == ["one", "two"]
    writer.join()
    for nothing in (b"", gzip.compress(b"")):  # as grep writes that finds nothing
        writer = threading.Thread(target=pipe.write_bytes, args=(nothing,))
        writer.start()
        assert list(read_lines(pipe, once=True)) == []
        writer.join()


def test_bytes_that_are_not_utf8_are_shown_as_unreadable_in_messages(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="there is no tab, so there is only one column: 'caf\ufffd'"
    ):
        list(read_pairs(_corpus(tmp_path, b"caf\xe9\n", format="tsv")))


@pytest.mark.parametrize("damaged", [0, 1])
def test_of_two_files_the_damaged_one_is_named(tmp_path: Path, damaged: int) -> None:
    lines = b"".join(f"sentence {n}\n".encode() for n in range(1000))
    sides = [lines, lines]
    sides[damaged] = gzip.compress(lines)[:500]
    with pytest.raises(DataError, match=rf"{'ab'[damaged]}\.txt is damaged or cut off"):
        list(read_pairs(_corpus(tmp_path, *sides)))


def test_one_file_of_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="If there are two files, set target"):
        list(read_pairs(_corpus(tmp_path, b"one\n")))


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": "a", "format": "lines"},
        {"source": "a", "target": "b", "format": "tsv"},
        {"source": "a", "target": "b", "weight": 0},
    ],
)
def test_settings_that_contradict(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CorpusSettings.model_validate(wrong)


def test_marks_and_invalid_bytes() -> None:
    read = list(decode_lines(io.BytesIO(b"\xef\xbb\xbfone\nt\xff\xfew\xc3\n")))
    assert read == ["one", "t\udcff\udcfew\udcc3"]


def test_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    here, there = _corpus(tmp_path, b"a\n", b"b\n"), _corpus(tmp_path / "x", b"a\n", b"b\n")
    assert corpus_fingerprint(here) == corpus_fingerprint(there)
    other = [_corpus(tmp_path / "x", *sides) for sides in [(b"b\n", b"a\n")]]
    assert corpus_fingerprint(other[0]) != corpus_fingerprint(here)
