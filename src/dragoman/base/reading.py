"""Reading files that a stranger may have made: regular files alone, and never more than is allowed.

A run folder travels: it is downloaded, copied, unpacked. Whatever lies in it under a name that we
read, the answer is content that was checked or one ``RunError``: no crash, no endless wait, and no
more memory than the size of the file explains. Nothing is memory-mapped, because a file that is
overwritten in place (``cp new old``) would take a process that has it mapped with it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

from dragoman.base.errors import DataError, RunError

NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as Python carries them in text (``surrogateescape``)."""
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Bytes that are not UTF-8, and halves of characters, which escapes in JSON may name."""
MAX_JSON = 2 << 20
"""Bytes of a JSON file, or of one line of one. Python's objects take up to 25 times as much."""


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file; a pipe or a device, which could keep us waiting for ever, is none.

    Errors: ``RunError`` if there is none or it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        file = os.fdopen(descriptor, "rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise RunError(f"cannot read {path}: {reason}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise RunError(f"cannot read {path}: it is not a regular file")
    return file


def hash_of_file(path: Path) -> str:
    """SHA-256 of a file, in hex. Errors: ``RunError`` as above."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_bytes(path: Path, most: int) -> bytes:
    """All of a file of at most ``most`` bytes. Errors: ``RunError`` as above, or if it has more."""
    with open_regular(path) as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise RunError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > most:
        raise RunError(f"{path} has more than the {most:,} bytes that are allowed in such a file")
    return content


def read_json(path: Path, most: int = MAX_JSON) -> Any:
    """The content of a JSON file of at most ``most`` bytes. Errors: ``RunError`` as above, or if it
    is damaged."""
    return parse_json(read_bytes(path, most), str(path), most)


def parse_json(text: bytes | str, where: str, most: int = MAX_JSON) -> Any:
    """The content of JSON text of at most ``most`` bytes, half characters replaced
    (``whole_characters``); messages call it ``where``. Errors: ``RunError``."""
    if len(text) > most:
        raise RunError(f"{where} has more than the {most:,} bytes that are allowed")
    try:
        return whole_characters(json.loads(text, parse_constant=_no_number))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{where} is damaged ({error})") from error


def near_files(name: str) -> list[str]:
    """The file or folder next to ``name`` with the most similar name, if there is one."""
    folder, last = os.path.split(name.rstrip(os.sep))
    try:
        beside = os.listdir(folder or ".")
    except OSError:
        return []
    return [os.path.join(folder, near) for near in difflib.get_close_matches(last, beside, 1, 0.75)]


def readable(text: str) -> str:
    """The text with U+FFFD, which says "unreadable", for what no terminal and no file can hold."""
    return text if text.isascii() else LONE_SURROGATE.sub("\ufffd", text)


def whole_characters(value: Any) -> Any:
    """JSON may name half a character ("\\ud800"), which no text can hold: U+FFFD in its place.
    It changes lists in place."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        for place, item in enumerate(value):  # a copy of a large list would take as much again
            value[place] = whole_characters(item)
        return value
    if isinstance(value, dict):
        return {whole_characters(name): whole_characters(item) for name, item in value.items()}
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def zip_errors() -> tuple[type[Exception], ...]:
    """The errors of ``zipfile`` for an archive or a member that is damaged, cut off, encrypted, or
    packed in an unknown way."""
    import lzma  # no command that reads no archive waits for these
    import struct
    import zipfile
    import zlib

    return (
        zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError,
        RuntimeError,
    )  # fmt: skip


def csv_rows(lines: Iterable[str], delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Each row that holds anything, with the line on which it begins. Errors: ``DataError``."""
    import csv  # no command that reads none waits for it

    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        begins = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{name}, line {begins}: it is not valid CSV ({error})") from None
        if row:
            yield begins, row
