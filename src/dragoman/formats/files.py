"""Documents as files: read whole, checked to be of the languages that are wanted, written whole or
not at all, never over the original. Nothing here loads torch."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from dragoman.base.atomic import check_is_file, replacing_file
from dragoman.base.errors import DataError, FileError
from dragoman.formats.catalogue import format_name, looks_like_a_document, read_document
from dragoman.formats.units.document import BadDocument, Document
from dragoman.forms.languages import NAMES, base, name_of

MOST_BYTES = 1 << 30
"""The most bytes of a file from the shell or from Python; a server has limits of its own."""
_LOOKED_AT = 4096


def open_document(path: Path) -> Document:
    """Errors: ``DataError`` for a file that cannot be read, ``BadDocument`` for one of no format
    that is read."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise BadDocument(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are allowed")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    return read_document(data, str(path))


def write_document(path: Path, data: bytes) -> None:
    """Whole or not at all. Errors: ``FileError``."""
    with replacing_file(path) as temporary:
        temporary.write_bytes(data)


def is_document(path: Path, *, or_lines: bool = False) -> bool:
    """True for a file of a format of documents, by its beginning and its name; plain text is none.
    ``or_lines``: tables and Markdown are none either."""
    try:
        return path.is_file() and looks_like_a_document(_start(path), path.name, or_lines=or_lines)
    except OSError:
        return False


def format_name_of(path: Path) -> str:
    """The usual name of a file's format."""
    return format_name(_start(path), path.name)


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LOOKED_AT)


def check_is_another(source: Path, to: Path) -> None:
    """Errors: ``FileError`` where a translation would take the place of what is translated, or of
    what is no file."""
    check_is_file(to)
    if to.exists() and os.path.samefile(source, to):
        raise FileError(f"{to} is the document itself and is not overwritten. Choose another file")
    if not to.parent.is_dir():
        raise FileError(f"cannot write {to}: there is no folder {to.parent}")


def check_is_new(to: Path, *, or_lines: bool = False) -> None:
    """Errors: ``FileError`` where a document would be overwritten, with what a person may have
    corrected in it. ``or_lines``: as ``is_document`` has it."""
    if is_document(to, or_lines=or_lines):
        raise FileError(
            f"{to} is an existing document and is not overwritten. Choose another file with "
            f"--to, or remove it first: rm {shlex.quote(str(to))}"
        )


def files_in(folder: Path, to: Path) -> Iterator[tuple[Path, Path]]:
    """The files of a folder and of those in it, and where their translations go. Hidden ones and
    links are left out. Errors: ``FileError`` if one folder is inside the other."""
    inside, outside = folder.resolve(), to.resolve()
    if inside == outside or inside in outside.parents or outside in inside.parents:
        raise FileError(
            f"{to} and {folder} are the same folder, or one is inside the other. Choose a folder "
            "outside of the one that is translated"
        )
    if to.exists() and not to.is_dir():
        raise FileError(f"{to} is a file. Choose a folder for the translations of a folder")
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not path.is_symlink() and not is_hidden:
            yield path, to / relative


_SAME = {"nb": "no", "nn": "no", "iw": "he", "in": "id"}


def fit_document(document: Document, source: str | None, target: str) -> tuple[Document, list[str]]:
    """The document as it is translated from ``source`` (None: whichever it is in) into ``target``,
    and what is doubtful about its languages. Errors: ``BadDocument`` where it says that it is of
    others."""
    doubts = []
    for declared in document.languages:
        language = source if declared.side == "source" else target
        if language is None or not _differ(declared.code, language):
            continue
        problem = (
            f"{declared.where} says {name_of(declared.code)}, but it is to be translated "
            f"{'from' if declared.side == 'source' else 'into'} {name_of(language)}"
        )
        if declared.is_binding:
            raise BadDocument(
                f"{problem}. Use a run for these languages, or correct the language in the document"
            )
        doubts.append(f"{problem}. If the document is right, use another run")
    return document.between(source, target), doubts


def _differ(first: str, second: str) -> bool:
    """True if two codes are of two known languages; a region makes no difference."""
    both = {_SAME.get(base(code), base(code)) for code in (first, second)}
    return len(both) == 2 and both <= NAMES.keys()
