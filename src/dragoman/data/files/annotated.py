"""This module reads annotated sentences: the words of a sentence on one line, and its tree, or a
tag for each word.

Trees are read by ``forms/tree.py``, one at a time for files of any size, as they are learned and
measured: without traces, functions and indices (``tree.plain``).

Three layouts of tags are distinguished by content. Columns, as in the shared tasks of CoNLL: a word
on each line, blank lines between sentences (for CoNLL-U also its comments and ranges; a word with
spaces is read as several words). ``word_TAG``: a sentence on each line, each word with its tag
after its last underscore. Bracketed trees: the tags of their words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from dragoman.base.errors import DataError
from dragoman.base.wording import plural, shorten
from dragoman.forms.form import Pair
from dragoman.forms.tree import LABEL_ENDS, Tree, TreeError, plain, read_trees


def read_examples(files: Iterable[tuple[Path, Iterator[str]]], ends: str) -> Iterator[Pair]:
    """Yield the trees of some files, each file with its lines: the line on which a tree begins, its
    words, and the tree on one line. Errors: as ``plain_trees``."""
    for path, lines in files:
        for line, tree in plain_trees(lines, path, ends):
            yield Pair(line, " ".join(tree.words), str(tree))


def plain_trees(
    lines: Iterable[str], path: Path, ends: str = LABEL_ENDS
) -> Iterator[tuple[int, Tree]]:
    """Yield each tree of a file and the line (from 1) on which it begins. ``ends``: as for
    ``tree.plain``.

    Errors: ``DataError`` with file and line for brackets that are no trees, and for a tree without
    words.
    """
    try:
        for line, tree in read_trees(lines):
            kept = plain(tree, ends)
            if kept is None:
                raise DataError(f"{path}, line {line}: this tree has only empty elements, no words")
            yield line, kept
    except TreeError as error:
        raise DataError(
            f"{path}, line {error.line}: {error}. Trees are written as "
            "(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))"
        ) from error


Layout = Literal["columns", "underscore", "trees"]
_LOOKED_AT = 200
"""The layout of a file is detected from this many lines."""
_TREE = re.compile(r"\s*\(\s*([^\s()]+\s*|)\(\s*[^\s()]")
"""The beginning of a tree: a bracket in a bracket, followed by a label."""
_BRACKETS = 0.3
"""In a file of trees, more than this share of the items between spaces begins with a bracket."""
_DOCUMENT = "-DOCSTART-"
_CONLLU = re.compile(r"\d+(-\d+|\.\d+)?\t([^\t]+\t){8}[^\t]+")
"""A line of CoNLL-U: ten columns, of which the first counts words."""
CONLLU_COLUMNS = (2, 4)
"""The columns of the word and its part of speech in CoNLL-U."""


def read_tagged(
    files: Iterable[tuple[Path, Iterator[str]]], columns: tuple[int, int], label_ends: str
) -> Iterator[Pair]:
    """Yield the sentences of some files, each file with its lines, as words and tags with spaces
    between.

    ``columns``: the columns of words and tags, from 1, for files of columns; ``label_ends``: as for
    ``tree.plain``, for files of trees. Errors: ``DataError`` with file and line for a file without
    tags, a word without a tag, and lines with other columns than those before.
    """
    for path, lines in files:
        first = list(islice(lines, _LOOKED_AT))
        rest = chain(first, lines)
        match layout_of(first, path):
            case "trees":
                for line, tree in plain_trees(rest, path, label_ends):
                    tags = " ".join(leaf.label for leaf in tree.leaves())
                    yield Pair(line, " ".join(tree.words), tags)
            case "underscore":
                yield from _read_underscored(rest, path)
            case "columns":
                universal = is_conllu(first)
                # The first column of CoNLL-U counts words, so column 1 belongs to another layout.
                used = CONLLU_COLUMNS if universal and columns[0] == 1 else columns
                yield from _columns(rest, path, used, universal, _is_tabbed(first))


def layout_of(lines: Iterable[str], path: Path) -> Layout:
    """Return the layout of a file, from its first lines. Errors: ``DataError`` if they hold no
    tags."""
    full = [line for line in lines if line.strip()]
    words = [word for line in full for word in line.split()]
    opened = sum(word.startswith("(") for word in words)
    if opened > _BRACKETS * len(words) and _TREE.match(" ".join(full[:2])):
        return "trees"
    tabbed = _is_tabbed(full)
    if not tabbed and 2 * sum(map(_has_tag, words)) > len(words):
        return "underscore"
    commented = all(line.startswith("# ") for line in full)
    if full and columns_of(full) > 1 and not commented:
        return "columns"
    shown = f": {shorten(full[0], 60)!r}" if full else ""
    raise DataError(
        f"{path}: it contains no tagged words{shown}. Use columns (a word and its tag a line, "
        "blank lines between sentences), lines of word_TAG, or bracketed trees"
    )


def columns_of(lines: Iterable[str]) -> int:
    """Return the number of columns in the first line of a word; 0 if there is none."""
    some = [line for line in lines if line.strip() and not line.startswith(_DOCUMENT)]
    tabbed = _is_tabbed(some)
    return len(_split_columns(next((line for line in some if not _is_comment(line, tabbed)), "")))


def _is_comment(line: str, tabbed: bool) -> bool:
    """Return True for a line of a tabbed file that begins with "# " and has no tab."""
    return tabbed and line.startswith("# ") and "\t" not in line


def _is_tabbed(lines: Sequence[str]) -> bool:
    full = [line for line in lines if line.strip()]
    return 2 * sum("\t" in line for line in full) > len(full)


def is_conllu(lines: Iterable[str]) -> bool:
    """Return True if the first line of a word is in CoNLL-U."""
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return _CONLLU.fullmatch(first) is not None


def _has_tag(word: str) -> bool:
    before, _, tag = word.rpartition("_")
    return bool(before and tag)


def _read_underscored(lines: Iterable[str], path: Path) -> Iterator[Pair]:
    for number, line in enumerate(lines, 1):
        parts = [word.rpartition("_") for word in line.split()]
        for before, _, tag in parts:
            if not before or not tag:
                raise DataError(
                    f"{path}, line {number}: the word {shorten(before or tag, 40)!r} has no tag. "
                    "Write each word as word_TAG"
                )
        if parts:
            words, _, tags = zip(*parts, strict=True)
            yield Pair(number, " ".join(words), " ".join(tags))


def _columns(
    lines: Iterable[str], path: Path, columns: tuple[int, int], universal: bool, tabbed: bool
) -> Iterator[Pair]:
    """Yield the sentences of a file of columns. ``universal``: they are CoNLL-U; ``tabbed``: tabs
    separate them."""
    words: list[str] = []
    tags: list[str] = []
    begun = width = 0
    for number, line in enumerate(chain(lines, [""]), 1):
        comment = (universal and not words and line.startswith("#")) or _is_comment(line, tabbed)
        if not line.strip() or line.startswith(_DOCUMENT) or comment:
            if words:
                yield Pair(begun, " ".join(words), " ".join(tags))
            words, tags = [], []
            continue
        parts = _split_columns(line)
        if universal and not parts[0].isdecimal():  # a range of words, or an empty node
            continue
        width = width or len(parts)
        if len(parts) != width:
            raise DataError(
                f"{path}, line {number} has {plural(len(parts), 'column')}, but the first line has "
                f"{width}: {shorten(line, 60)!r}"
            )
        if width < max(columns):
            raise DataError(
                f"{path}, line {number} has no column {max(columns)}; its last is {width}: "
                f"{shorten(line, 60)!r}. Set the columns of word and tag, such as --columns 1,2"
            )
        begun = begun if words else number
        word, tag = (parts[column - 1].split() for column in columns)
        for what, value in (("word", word), ("tag", tag)):
            if len(value) != 1 and not (universal and value is word and value):
                why = "holds a space" if value else "is empty"
                raise DataError(f"{path}, line {number}: the {what} {why}: {shorten(line, 60)!r}")
        words += word
        tags += _tags_of(len(word), tag[0])


def _tags_of(words: int, tag: str) -> list[str]:
    """Return the tags of the parts of a word that CoNLL-U writes with spaces, such as "10 000":
    each part is a word here, and all parts but the first continue its span."""
    goes_on = f"I-{tag[2:]}" if tag.startswith("B-") else tag
    return [tag, *[goes_on] * (words - 1)]


def _split_columns(line: str) -> list[str]:
    """Return the columns of a line, split at tabs if it has any, else at spaces."""
    return line.split("\t") if "\t" in line else line.split()
