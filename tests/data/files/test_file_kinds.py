"""Files that are no plain lines are told by how they begin, and plain lines are never."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.file_kinds import (
    NotLines,
    check_is_lines,
    check_is_read,
    check_is_text,
    columns_in,
)

SRT = b"1\n00:00:01,000 --> 00:00:02,500\nThe dog sleeps.\n\n2\n00:00:03,000 --> 00:00:04,500\n"
NOT_LINES = {
    "SubRip": (SRT, "subtitles"),
    "SubRip of Windows": (b"\xef\xbb\xbf" + SRT.replace(b"\n", b"\r\n"), "subtitles"),
    "WebVTT": (b"WEBVTT - a film\n\n00:01.000 --> 00:02.500\nThe dog.\n", "subtitles"),
    "SubStation": (b"[Script Info]\nTitle: a film\n", "subtitles"),
    "PO": (b'# Korean\nmsgid ""\nmsgstr ""\n"Language: ko\\n"\n\nmsgid "Dog"\nmsgstr ""\n', "PO"),
    "PO of long messages": (b'msgid ""\n"The dog "\n"sleeps."\nmsgstr ""\n', "PO"),
    "TMX": (b'<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "t">\n<tmx version="1.4"><b/>', "TMX"),
    "XLIFF": (b'<?xml version="1.0"?><!-- by us -->\n<xliff version="1.2"><file/>', "XLIFF"),
    "HTML": (b"\n<!doctype HTML>\n<html lang=ko><p>The dog.</p>", "HTML"),
    "HTML without its type": (b"<html>\n<body>The dog.</body></html>", "HTML"),
    "XML": (b'<?xml version="1.0"?>\n<resources><string name="a">Dog</string>', "XML"),
    "JSON Lines": (b'{"text": "The dog sleeps."}\n{"text": "The cat."}\n', "JSON"),
    "trees": (b"( (S (NP (DT The) (NN dog)) (VP (VBZ sleeps))) )\n(S (NP (PRP It)))", "bracketed"),
    "trees over lines": ("(S\n  (NP (NN ძაღლი))\n  (VP (VB ხედავს)) (. .))".encode(), "bracketed"),
    "JSON": (b'{\n  "greeting": "Good day",\n', "JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_LINES)
def test_what_is_no_plain_lines_is_named(name: str) -> None:
    start, what = NOT_LINES[name]
    with pytest.raises(NotLines, match=f"f is .*{what}|f holds {what}"):
        check_is_lines(start, "f")
    check_is_text(start, "f")  # a language model may learn to write it


def packed(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "The dog sleeps.\n" * 9)
    return file.getvalue()


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (packed("[Content_Types].xml", "word/document.xml"), r"\.docx"),
        (packed("letter.txt"), "a ZIP archive. Unpack it"),
        (b"%PDF-1.7\n", "PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", r"\.hwp"),
        (rb"{\rtf1\ansi The dog sleeps.}", r"\.rtf"),
        (b"\xfd7zXZ\x00\x00", "xz"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "control characters"),
    ],
)
def test_what_is_no_text_is_named(start: bytes, what: str) -> None:
    with pytest.raises(DataError, match=f"f is not text: .*{what}"):
        check_is_text(start, "f")


@pytest.mark.parametrize(
    "text",
    [
        "1\nThe dog sleeps.\n2\nThe cat sleeps.\n",
        "00:00:01 --> is how a time of subtitles begins.\n",
        "<p>The dog sleeps.</p>\nThe <b>cat</b> sleeps.\n",
        "<html> is the first tag of a page.\nIt holds all others.\n",
        "<!-- a comment -->\n# A heading\n\nText about <html> and </html>.\n",
        "# msgid and msgstr stand in files of messages.\nThe dog sleeps.\n",
        'msgid "Dog" is a message.\n',
        "{not JSON}\n",
        "{} is an empty set.\n",
        "WEBVTT is a kind of subtitles.\n",
        "%PDF is how PDF files begin.\n",
        "PK is short for Pakistan.\n",
        "강아지가 잔다.\n",
        "",
    ],
)
def test_plain_text_is_not_refused(text: str) -> None:
    check_is_lines(text.encode(), "f")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=300))
def test_whatever_is_written_in_utf8_is_not_refused(text: str) -> None:
    check_is_lines(f"The dog sleeps.\n{text}\n".encode(), "f")


def test_columns_are_seen_between_tabs() -> None:
    assert columns_in(b"a\tb\nc\td\nwhat is cut off") == 2
    assert columns_in(b"a\tb\nno tab here\n") == columns_in(b"a\tb\n") == columns_in(b"") == 1


def test_an_array_of_records_is_json() -> None:
    with pytest.raises(NotLines, match="is JSON"):
        check_is_lines(b'[\n  {"source": "a", "target": "b"}\n]\n', "my.json")
    check_is_lines(b"[Applause]\n[a] {b}\n", "my.txt")


@pytest.mark.parametrize(
    ("task", "advice"),
    [
        ("translation", "source first"), ("classification", "text and label"),
        ("language-model", "one text per line"), ("parsing", "bracketed trees"),
    ],
)  # fmt: skip
def test_what_to_do_with_a_table_is_said_for_each_task(task: str, advice: str) -> None:
    with pytest.raises(
        RecipeError, match=f"{re.escape('my.xlsx')}: .xlsx files cannot be read.*{advice}"
    ):
        check_is_read(Path("my.xlsx"), task)
    check_is_read(Path("my.txt"), task)
