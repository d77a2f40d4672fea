"""This module recognises files that are not plain lines by their first bytes.

Archives, office documents and pictures are not text at all. Subtitles, catalogues of messages and
markup are text whose lines are not sentences: numbers and times, ``msgid "..."``, tags. All are
recognised by their beginning, which no plain text has by chance. A name such as ``page.html`` alone
proves nothing.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from pathlib import Path

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.encoding import check_encoding, check_width

_FEW = 8
_NOT_WRITTEN = bytes({*range(32)} - set(b"\t\n\v\f\r\x1b"))
"""Control characters that no text contains; in other kinds of files they are a tenth or more."""

_SAVE = "Save its text as a .txt file, in UTF-8"
_UNPACK = "Unpack it"
_UNCOMPILE = "Convert it to a catalogue (.po) with msgunfmt"
_ONE_A_LINE = "Extract the sentences, one per line"
_PACKED = (
    (b"[Content_Types].xml", "an Office document (.docx, .xlsx, .pptx)", _SAVE),
    (b"mimetypeapplication/vnd.oasis", "an OpenDocument file (.odt, .ods)", _SAVE),
    (b"mimetypeapplication/epub", "a book (.epub)", _SAVE),
    (b"mimetypeapplication/hwp", "a document of Hangul (.hwpx)", _SAVE),
    (b"", "a ZIP archive", _UNPACK),
)
"""The first entry of a ZIP archive -> the kind of file, and the advice."""
_BINARY = (
    (b"%PDF-", "a PDF document", _SAVE),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an older Office document (.doc, .xls, .hwp)", _SAVE),
    (b"{\\rtf", "a document in Rich Text Format (.rtf)", _SAVE),
    (b"\xde\x12\x04\x95", "a compiled catalogue of messages (.mo)", _UNCOMPILE),
    (b"\x95\x04\x12\xde", "a compiled catalogue of messages (.mo)", _UNCOMPILE),
    (b"BZh", "packed by bzip2", _UNPACK),
    (b"\xfd7zXZ\x00", "packed by xz", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "packed by zstd", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
)

_TABLES = (".csv", ".xls", ".xlsx", ".ods")
_CATALOGUES = (".po", ".tmx", ".xliff", ".xlf")
"""Endings of files that most tasks do not read, whatever they contain; .zip is another."""
_OF_TRANSLATION = (".csv", *_CATALOGUES)
"""The endings that a translator can learn from."""

_BEFORE_MARKUP = re.compile(rb"(\s*(<\?.*?\?>|<!--.*?-->))*\s*", re.S)
"""Declarations and comments, which may precede the first tag."""
_MARKUP = (
    (re.compile(rb"<!doctype\s+html|<html[\s>]", re.I), "HTML"),
    (re.compile(rb"(<!doctype\s+tmx|<tmx[\s>])", re.I), "a translation memory (TMX)"),
    (re.compile(rb"<xliff[\s>]", re.I), "XLIFF"),
)
"""The first tag -> the kind of file."""
_TIMES = rb"(\d+:)?\d\d:\d\d[,.]\d{3}[ \t]+-->[ \t]+(\d+:)?\d\d:\d\d[,.]\d{3}"
_SUBTITLES = (
    re.compile(rb"\s*\d+[ \t]*\r?\n" + _TIMES),
    re.compile(rb"WEBVTT([ \t].*)?\r?\n(?s:.*)\n[\d:.]+[ \t]+-->[ \t]"),
    re.compile(rb"\[Script Info\][ \t]*\r?\n"),
)
_MESSAGES = re.compile(rb'^msgid[ \t]+".*"[ \t]*\r?\n(".*"[ \t]*\r?\n)*msgstr', re.M)
_COMMENT_OR_MESSAGE = re.compile(rb'\s*(#|msgid[ \t]+"|msgctxt[ \t]+")')
_END_OR_TAG = re.compile(rb"<[/!?a-zA-Z]")
_KEY = re.compile(rb'\{\s*"[^"\n]*"\s*:')
_LIST = re.compile(rb'\[\s*\{\s*"[^"\n]*"\s*:')
_BRACKETS = 0.4
"""The least share of words in a treebank that begin with a bracket. It is a half or more, because
each word follows its tag; in texts only a few words do."""


class NotLines(DataError):
    """The error for text whose lines are not sentences, although they could be read as such."""


def check_is_read(path: Path, task: str) -> None:
    """Raise ``RecipeError``, with advice for a task, for a file whose name is of a kind that is not
    read."""
    ending = path.suffix.lower()
    if ending not in (*_TABLES, *_CATALOGUES, ".zip"):
        return
    if task == "translation" and ending in _OF_TRANSLATION:
        return
    if task == "classification" and ending == ".zip":  # pictures, in a folder for each label
        return
    if ending == ".zip":
        advice = _UNPACK
    elif task == "classification":
        advice = "Save it as tab-separated text (.tsv), text and label, without a header"
        if ending == ".csv":
            advice += (
                ". If it is a list of recordings or pictures, it needs a file and a label on "
                "each line, no header, and UTF-8"
            )
    elif task in ("language-model", "masked"):
        advice = "Extract the text, one text per line (.txt)"
    elif task == "parsing":
        advice = "A parser reads bracketed trees (.mrg)"
    else:
        advice = (
            "Save it as tab-separated text (.tsv), source first, without a header; or give two "
            "files of lines, one for each language"
        )
    raise RecipeError(f"{path}: {path.suffix} files cannot be read here. {advice}")


def columns_in(start: bytes) -> int:
    """Return the number of tab-separated columns of all whole lines at the beginning of a text; 1
    if they differ, or if there is only one line."""
    lines = start[: start.rfind(b"\n")].split(b"\n") if b"\n" in start else []
    counts = {line.count(b"\t") for line in lines}
    return counts.pop() + 1 if len(counts) == 1 and len(lines) > 1 else 1


def check_is_text(start: bytes, name: str, language: str = "und") -> None:
    """Check that ``name``, whose beginning is ``start`` (at most ``lines.LOOKED_AT`` bytes), is
    text.

    ``language``: that of the text, if it is known. A few odd characters are left to cleaning.
    Errors: ``DataError``, with advice, for a file that is not text or not UTF-8.
    """
    for kind, what, advice in _BINARY:
        if start.startswith(kind):
            raise DataError(f"{name} is not text: it is {what}. {advice}")
    if start.startswith(b"PK\x03\x04"):
        what, advice = next(words for entry, *words in _PACKED if entry in start)
        raise DataError(f"{name} is not text: it is {what}. {advice}")
    check_width(start, name)
    odd = len(start) - len(start.translate(None, _NOT_WRITTEN))
    if odd > max(_FEW, len(start) // 20):
        raise DataError(
            f"{name} is not text: {odd:,} of its first {len(start):,} bytes are control "
            "characters, as in an image, a program or an archive"
        )
    check_encoding(start, name, language)


def check_is_lines(start: bytes, name: str, language: str = "und") -> None:
    """Check that a file is text whose lines are sentences.

    Errors: as ``check_is_text``, and ``NotLines`` for subtitles, catalogues of messages, markup,
    trees and JSON.
    """
    check_is_text(start, name, language)
    start = start.removeprefix(BOM_UTF8)
    if any(begin.match(start) for begin in _SUBTITLES):
        raise NotLines(
            f"{name} holds subtitles, whose numbers and times are not sentences. {_ONE_A_LINE}"
        )
    if _COMMENT_OR_MESSAGE.match(start) and _MESSAGES.search(start):
        raise NotLines(
            f"{name} is a catalogue of messages (PO), whose lines are not sentences. Extract the "
            "text of its msgid lines, one per line"
        )
    begins = _BEFORE_MARKUP.match(start)
    assert begins is not None  # it may match nothing
    tag = begins.end()
    kinds = [what for first, what in _MARKUP if first.match(start, tag)]
    if not kinds and start.lstrip().startswith(b"<?xml ") and start[tag : tag + 1] == b"<":
        kinds = ["XML"]
    if kinds and _END_OR_TAG.search(start, tag + 1):
        raise NotLines(f"{name} is {kinds[0]}, whose lines are not sentences. {_ONE_A_LINE}")
    if _is_treebank(start):
        raise NotLines(
            f"{name} holds bracketed trees, whose brackets and labels are not words. A parser "
            "learns from them (train --task parsing) and is measured on them (evaluate RUN FILE)"
        )
    if _is_record(start):
        raise NotLines(
            f"{name} is JSON, whose lines are not sentences. Extract the text, one sentence per "
            "line"
        )


def _is_treebank(start: bytes) -> bool:
    """Return True if the text begins with nested brackets, and most words with a bracket, as in
    ``(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))``."""
    if not start.lstrip().startswith(b"(") or b"(" not in start.partition(b")")[0].lstrip()[1:]:
        return False
    words = start.split()
    return sum(word.startswith(b"(") for word in words) >= _BRACKETS * len(words)


def _is_record(start: bytes) -> bool:
    """Return True if the text begins with a JSON object, on one or several lines, or with a list of
    objects."""
    if _LIST.match(start.lstrip()):
        return True
    first = start.lstrip().split(b"\n", 1)[0].strip()
    if first == b"{":
        return _KEY.match(start.lstrip()) is not None
    if not (first.startswith(b"{") and first.endswith(b"}")):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False
