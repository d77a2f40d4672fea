"""The input of a verb, line by line: files, the text itself, or standard input."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.base.errors import DataError, DragomanError
from dragoman.base.reading import NOT_UTF8
from dragoman.console.output import command

if TYPE_CHECKING:
    from dragoman.data.files.lines import Check

logger = logging.getLogger("dragoman")

_ENDINGS = frozenset(
    {".txt", ".md", ".docx", ".pptx", ".xlsx", ".odt", ".ods", ".odp", ".html", ".htm", ".xhtml",
     ".epub", ".pdf", ".po", ".pot", ".xlf", ".xliff", ".tmx", ".srt", ".vtt", ".csv", ".tsv",
     ".json", ".jsonl", ".xml", ".gz"}
)  # fmt: skip
"""Endings of file names that no word of a text has."""
AsText = Annotated[bool, "Read TEXT as text even if a file with that name exists."]
Plain = Annotated[
    bool,
    "Read every line as plain UTF-8 text, even if the input looks like subtitles, markup or "
    "another encoding.",
]
"""An option of the verbs that read lines."""


def files_among(given: Sequence[str], verb: str, *options: str, quiet: bool = False) -> list[Path]:
    """Return the input as files; an empty list if it is text.

    ``options``: the verb's options that help, among ``--text``, ``--to`` and ``--ensemble``.
    Errors: ``DragomanError`` for files with text, and for a folder.
    """
    meant = "; to take it as text: --text" if "--text" in options else ""
    for word in given:
        if os.path.isfile(os.path.join(word, "recipe.toml")):
            together = f"; to translate with it and the first together: --ensemble {word}"
            raise DragomanError(
                f"{word} is a run folder{together if '--ensemble' in options else ''}{meant}"
            )
    for word in given:
        if not os.path.exists(word) and (near := _file_meant(word)) is not None:
            hint = f" Did you mean {near}?" if near else ""
            as_text = f" To take it as text: {command(verb, 'RUN', word, '--text')}"
            raise DragomanError(f"there is no file {word}.{hint}{as_text if meant else ''}")
    files = [word for word in given if os.path.exists(word) and not os.path.isdir(word)]
    texts = [word for word in given if word not in files]
    if files and texts:
        to = command(verb, "RUN", files[0], "--to", "FILE")
        raise DragomanError(
            f"{files[0]} is a file and {texts[0]!r} is not. Give only files, or only text"
            + (f". To write the output to a file: {to}" if "--to" in options else "")
            + meant
        )
    if len(texts) == 1 and os.path.isdir(texts[0]):
        inside = os.path.join(shlex.quote(texts[0]), "*")
        raise DragomanError(f"{texts[0]} is a folder. To read its files: {inside}{meant}")
    if len(texts) == 1 and not quiet and looks_like_a_file(texts[0]):
        sys.stderr.write(f"there is no file {texts[0]}; its name is taken as text\n")
    return [Path(file) for file in files]


def input_files(given: Sequence[str], source: str = "frames") -> list[str]:
    """Return the recordings or pictures of the input: files, places in IDX files, and those of
    folders and of ZIP files, sorted by name. ``source``: the kind of source that reads them.

    Errors: ``DragomanError`` for a folder without such files, or for a name that is empty or
    longer than one line.
    """
    from dragoman.sources.file_examples import KINDS
    from dragoman.sources.frames.recordings import STANDARD_INPUT
    from dragoman.sources.picture.idx import is_idx, read_idx
    from dragoman.sources.picture.picture_file import pictures_in_zip
    from dragoman.sources.shared.files import check_name, is_zip, visible_in

    kind, files = KINDS[source], list[str]()
    for name in given:
        if not name:
            raise DataError("the name of a file is empty")
        if name == STANDARD_INPUT and source != "frames":
            raise DataError(
                "pictures cannot be read from standard input. Give files (./- for one called -)"
            )
        if is_idx(name):
            files += [f"{name}#{place}" for place in range(len(read_idx(Path(name))))]
        elif is_zip(name) and source == "picture":
            files += pictures_in_zip(Path(name))
        elif os.path.isdir(name):
            inside = [str(check_name(file)) for file in kind.among(visible_in(Path(name)))]
            if not inside:
                raise DataError(f"{name} is a folder without {kind.noun}s ({kind.formats})")
            files += inside
        else:
            check_name(Path(name))
            files.append(name)
    return files


def files_given(names: Sequence[str], source: str) -> Iterator[str]:
    """Yield ``names`` of recordings or pictures as ``input_files`` does; without names, those on
    the lines of standard input, as they come. Errors: as ``input_files``; ``DataError`` for
    input that is a recording itself."""
    if names:
        yield from names
        return
    from dragoman.data.files.lines import decode_lines

    for line in decode_lines(sys.stdin.buffer, check=_check_is_names):
        yield from input_files([line], source)


def _check_is_names(start: bytes, name: str) -> None:

    if b"\0" in start:
        raise DataError(
            f"{name} is not a list of file names: it contains a NUL byte, as recordings and "
            "pictures do. To read a recording from standard input, use - as its name"
        )


def _file_meant(text: str) -> str | None:
    """Return the most similar existing file for a text that is surely the name of a missing file
    or folder, or "" if none is similar. Return None for any other text."""
    from dragoman.base.reading import near_files

    near = near_files(text) if looks_like_a_file(text) else []
    if near:
        return near[0]
    ending = os.path.splitext(text)[1].lower()
    is_name = len(text.split()) == 1 and (text.endswith(os.sep) or ending in _ENDINGS)
    return "" if is_name else None


def looks_like_a_file(text: str) -> bool:
    """Return True for a possible file name: a single word with a slash or a short ending."""
    ending = os.path.splitext(text)[1]
    return len(text.split()) == 1 and (os.sep in text or 1 < len(ending) < 6)


def tell_of_file(text: str, instead: str) -> None:
    """Warn if a text is the name of a file or folder; ``instead``: advice if the file was meant."""
    if text and os.path.isfile(text):
        sys.stderr.write(f"{text} is a file, but its name is taken as text. {instead}\n")
    elif text and os.path.isdir(text):
        sys.stderr.write(f"{text} is a folder, but its name is taken as text\n")
    elif text and os.path.exists(text):
        sys.stderr.write(f"{text} is a pipe or a device, but its name is taken as text\n")


def lines_given(
    files: Sequence[Path], texts: Sequence[str], language: str, *, plain: bool
) -> Iterator[str]:
    """Yield the lines of all files in turn; else the texts; else the lines of standard input as
    they come. Bytes that are not UTF-8 become lone surrogates, with one warning.

    ``language``: that of the text, "und" if it is not known. Errors: ``DataError`` for input
    that cannot be read, and for input that is not plain text, unless ``plain``.
    """
    from dragoman.data.files.lines import STANDARD_INPUT, decode_lines

    if files:
        from dragoman.data.files.corpora import read_lines

        for file in files:  # may be a pipe, such as <(zcat my.gz) in a shell
            read = read_lines(file, _check(language, plain), once=True)
            yield from _warn_of_encoding(read, str(file), language)
    elif texts:
        yield from texts
    else:
        lines = decode_lines(sys.stdin.buffer, check=_check(language, plain))
        yield from _warn_of_encoding(lines, STANDARD_INPUT, language)


def running_text(files: Sequence[Path], texts: Sequence[str], language: str, *, plain: bool) -> str:
    """Return the whole input as one text. Errors: as ``lines_given``."""
    if files or texts:
        end = "\n" if files else " "
        return end.join(lines_given(files, texts, language, plain=plain)) + "\n"
    from dragoman.data.files.lines import LOOKED_AT, STANDARD_INPUT

    read = sys.stdin.buffer.read()
    check = _check(language, plain)
    if check is not None:
        check(read[:LOOKED_AT], STANDARD_INPUT)
    return read.decode("utf-8", "replace")


def _check(language: str, plain: bool) -> Check | None:
    if plain:
        return None
    from dragoman.data.files.file_kinds import NotLines, check_is_lines, columns_in

    def check(start: bytes, name: str) -> None:
        try:
            check_is_lines(start, name, language)
        except NotLines as error:
            raise NotLines(f"{error}. To read every line as it is, use --plain") from None
        columns = columns_in(start)
        if name.lower().endswith(".csv"):
            logger.warning(
                "%s is read line by line, commas and quotation marks included, each line as one "
                "text. Save its column of text as lines first; no such warning: --plain", name,
            )  # fmt: skip
        elif columns > 1:
            logger.warning(
                "%s has %d columns between tabs, and each line is read as one text. The first "
                "column alone: cut -f1; no such warning: --plain", name, columns,
            )  # fmt: skip

    return check


def _warn_of_encoding(lines: Iterable[str], name: str, language: str) -> Iterator[str]:
    """Yield the lines, with a warning at the first one with bytes that are not UTF-8."""
    has_told = False
    for number, line in enumerate(lines, 1):
        if not has_told and not line.isascii() and NOT_UTF8.search(line):
            from dragoman.data.files.encoding import encoding_of

            encoding = encoding_of(line.encode("utf-8", "surrogateescape"), language)
            logger.warning(
                "%s, line %d has bytes that are not UTF-8%s; each such byte is read as U+FFFD, "
                "here and in later lines",
                name, number, f" (it reads well as {encoding})" if encoding else "",
            )  # fmt: skip
            has_told = True
        yield line
