"""This module locates both sides in one file, from ``--columns`` and ``--keys``. For texts and
labels the columns can be detected, because labels repeat and texts rarely do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from dragoman.base.errors import DataError, DragomanError, RecipeError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings, format_by_name
from dragoman.forms.labels import plain
from dragoman.sources.file_examples import KINDS

_LOOKED_AT = 20_000
"""Columns are detected from at most this many examples."""
COLUMNS = "label,text", "text,label"
_NAMED = {"label,text": (2, 1), "text,label": (1, 2)}
"""The columns of text and label for each name."""
_LISTS = (".tsv", ".tab", ".csv", ".jsonl", ".ndjson")
_FIRST = 3
"""A list of files is detected from this many examples, because the first line may be a header."""
CorpusOf = Callable[[str, str | None, tuple[str, str] | None], CorpusSettings]
"""A function that makes a corpus from a file, its columns and its keys."""


def labelled_corpus(path: str, columns: str | None, keys: tuple[str, str] | None) -> CorpusSettings:
    """Return the corpus of a file of labelled texts.

    ``columns``: one of ``COLUMNS``, or the numbers of both (``parse_columns``), for a tab-separated
    file; None: they are detected. ``keys``: the keys of text and label in JSON Lines.

    Errors: ``DataError`` for a file that cannot be used, ``RecipeError`` for other columns, or if
    the column of the labels cannot be detected.
    """
    if keys is None and not is_tabbed(path):
        keys = "text", "label"
    if keys is not None:
        return paired_corpus(path, None, keys)
    if columns is None:
        columns = _columns_found(path)
    text, label = _NAMED[columns] if columns in _NAMED else parse_columns(columns)
    return CorpusSettings(source=path, format="tsv", source_column=text, target_column=label)


def listed_corpus(
    path: str, columns: str | None, keys: tuple[str, str] | None
) -> CorpusSettings | None:
    """Return the corpus of a list of recordings or pictures and their labels; None if the file is
    no list. ``columns`` and ``keys`` are those of ``labelled_corpus``, but columns may be in either
    order, and the keys are file and label.
    """
    if not path.removesuffix(".gz").lower().endswith(_LISTS) or not Path(path).is_file():
        return None
    if not is_tabbed(path):
        corpora = [paired_corpus(path, None, keys or ("file", "label"))]
    elif columns is None:
        corpora = [_in_columns(path, *numbers) for numbers in _NAMED.values()]
    else:
        corpora = [_in_columns(path, *(_NAMED.get(columns) or parse_columns(columns)))]
    for corpus in corpora:
        try:
            first = [pair.source.strip() for pair in islice(read_pairs(corpus), _FIRST)]
        except DataError:  # its own builder reports the error
            continue
        if any(kind.reads(name) for name in first for kind in KINDS.values()):
            return corpus.model_copy(update={"holds": "files"})
    return None


def _in_columns(path: str, source: int, target: int) -> CorpusSettings:
    return CorpusSettings(source=path, source_column=source, target_column=target)


def parse_columns(columns: str) -> tuple[int, int]:
    """Return the columns of ``--columns 2,3``, from 1: that of the source or the text, and that of
    the target or the label. Errors: ``RecipeError``."""
    first, mark, second = (part.strip() for part in columns.partition(","))
    if not mark or not all(part.isdecimal() and 0 < int(part) <= 1_000 for part in (first, second)):
        raise RecipeError(
            f"--columns {columns}: give two numbers such as 2,3 (source and target, or text and "
            f"label, counted from 1), or for labelled texts {' or '.join(COLUMNS)}"
        )
    if int(first) == int(second):
        raise RecipeError(f"--columns {columns}: give two different columns")
    return int(first), int(second)


def is_tabbed(path: str) -> bool:
    """Return True if a file of this name has columns, not keys as JSON Lines and TMX have."""
    return format_by_name(path) not in ("jsonl", "tmx")


def _columns_found(path: str) -> str:
    """Return the columns of a file: of its first two, the labels have fewer different values."""
    different: tuple[set[str], set[str]] = (set(), set())
    lines = 0
    pairs = read_pairs(CorpusSettings(source=path, format="tsv"))
    for pair in islice(pairs, _LOOKED_AT):
        lines += 1
        for values, value in zip(different, (pair.source, pair.target), strict=True):
            values.add(plain(value))
    first, second = map(len, different)
    fewer = min(first, second)
    if first == second or (lines > 20 and fewer > lines / 2):
        raise RecipeError(
            f"{path}: cannot determine which column contains the labels: in {lines:,} lines, the "
            f"first has {first:,} different values and the second {second:,}. Set --columns "
            f"{' or --columns '.join(COLUMNS)}"
        )
    return COLUMNS[0] if first < second else COLUMNS[1]


def paired_corpus(path: str, columns: str | None, keys: tuple[str, str] | None) -> CorpusSettings:
    """Return the corpus of a file of sources and targets, at ``columns`` or ``keys``, or else in
    the usual places of its format. Errors: ``RecipeError`` for invalid columns."""
    if columns is not None:
        return _in_columns(path, *parse_columns(columns))
    if keys is not None:
        return CorpusSettings(source=path, source_key=keys[0], target_key=keys[1])
    return CorpusSettings(source=path)


def file_at(
    files: Sequence[Path],
    columns: str | None,
    keys: tuple[str, str] | None,
    corpus_of: CorpusOf = paired_corpus,
) -> CorpusSettings | None:
    """Return the corpus of the file with these columns or keys; None if neither is given.

    ``corpus_of``: makes a corpus of a file whose sides are not source and target.

    Errors: ``DragomanError`` if they do not fit the files, ``RecipeError`` for invalid columns.
    """
    if columns is None and keys is None:
        return None
    option = "--keys" if keys is not None else "--columns"
    ending = ".jsonl" if keys is not None else ".tsv"
    if columns is not None and keys is not None:
        raise DragomanError("--columns is for .tsv files and --keys for .jsonl files. Use only one")
    if len(files) != 1 or is_tabbed(str(files[0])) != (keys is None):
        raise DragomanError(f"{option} works only with one {ending} file that contains both sides")
    return corpus_of(str(files[0]), columns, keys)
