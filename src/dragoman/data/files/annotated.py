"""Files of annotated sentences -> examples: the words of a sentence on one line, and its tree, or a
tag for each word.

Trees are read by ``forms/tree.py``, one at a time whatever the size of the file, as they are
learned and measured: without traces, functions and indices (``tree.plain``).

Three layouts of tags are told apart by what a file holds. Columns, as the shared tasks of CoNLL
have them: a word a line, blank lines between sentences (of CoNLL-U also its comments and ranges; a
word of which that has spaces in it is read as several). ``word_TAG``: a sentence a line, each word
with its tag behind its last underscore. Bracketed trees: the tags of their words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from dragoman.base.errors import DataError
from dragoman.base.wording import plural, shortened
from dragoman.forms.form import Pair
from dragoman.forms.tree import LABEL_ENDS, Tree, TreeError, plain, read_trees


def read_examples(files: Iterable[tuple[Path, Iterator[str]]], ends: str) -> Iterator[Pair]:
    """Of the trees of some files, each with its lines: the line that one begins on, its words, and
    the tree itself on one line. Errors: as ``plain_trees``."""
    for path, lines in files:
        for line, tree in plain_trees(lines, path, ends):
            yield Pair(line, " ".join(tree.words), str(tree))


def plain_trees(
    lines: Iterable[str], path: Path, ends: str = LABEL_ENDS
) -> Iterator[tuple[int, Tree]]:
    """Each tree of the lines of a file, and the line (from 1) that it begins on; ``ends``: as
    ``tree.plain`` takes them.

    Errors: ``DataError`` with file and line for brackets that are no trees, and for a tree of which
    nothing is spoken.
    """
    try:
        for line, tree in read_trees(lines):
            kept = plain(tree, ends)
            if kept is None:
                raise DataError(f"{path}, line {line}: this tree has no words but empty elements")
            yield line, kept
    except TreeError as error:
        raise DataError(
            f"{path}, line {error.line}: {error}. Trees are written as "
            "(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))"
        ) from error


Layout = Literal["columns", "underscore", "trees"]
_LOOKED_AT = 200
"""Lines by which the layout of a file is told."""
_TREE = re.compile(r"\s*\(\s*([^\s()]+\s*|)\(\s*[^\s()]")
"""How a tree begins: a bracket in a bracket, and a label in that."""
_BRACKETS = 0.3
"""Share of what stands between spaces that begins with a bracket in trees, and nowhere else."""
_DOCUMENT = "-DOCSTART-"
_CONLLU = re.compile(r"\d+(-\d+|\.\d+)?\t([^\t]+\t){8}[^\t]+")
"""A line of CoNLL-U: ten columns, of which the first counts words."""
CONLLU_COLUMNS = (2, 4)
"""Where a word and its part of speech are in CoNLL-U."""


def read_tagged(
    files: Iterable[tuple[Path, Iterator[str]]], columns: tuple[int, int], label_ends: str
) -> Iterator[Pair]:
    """The sentences of some files, each with its lines: words and tags, separated by spaces.
    ``columns``: of words and of tags, from 1,
    where a file has columns; ``label_ends``: where it has trees, as ``tree.plain`` takes them.

    Errors: ``DataError`` with file and line for a file without tags, a word without one, and lines
    with other columns than those before.
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
                yield from _underscored(rest, path)
            case "columns":
                universal = is_conllu(first)
                # Of CoNLL-U the first column counts words: these are the columns of another file.
                used = CONLLU_COLUMNS if universal and columns[0] == 1 else columns
                yield from _columns(rest, path, used, universal, _is_tabbed(first))


def layout_of(lines: Iterable[str], path: Path) -> Layout:
    """Of a file, by its first lines. Errors: ``DataError`` where they hold no tags."""
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
    shown = f": {shortened(full[0], 60)!r}" if full else ""
    raise DataError(
        f"{path}: it holds no tagged words{shown}. Give columns (a word and its tag a line, blank "
        "lines between sentences), lines of word_TAG, or bracketed trees"
    )


def columns_of(lines: Iterable[str]) -> int:
    """How many columns the first line has that is a word's; 0 where there is none."""
    some = [line for line in lines if line.strip() and not line.startswith(_DOCUMENT)]
    tabbed = _is_tabbed(some)
    return len(_split(next((one for one in some if not _is_comment(one, tabbed)), "")))


def _is_comment(line: str, tabbed: bool) -> bool:
    """Whether a line among others with tabs is none of words: it begins with "# ", and has none."""
    return tabbed and line.startswith("# ") and "\t" not in line


def _is_tabbed(lines: Sequence[str]) -> bool:
    full = [line for line in lines if line.strip()]
    return 2 * sum("\t" in line for line in full) > len(full)


def is_conllu(lines: Iterable[str]) -> bool:
    """Whether the first line that is a word's is one of CoNLL-U."""
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return _CONLLU.fullmatch(first) is not None


def _has_tag(word: str) -> bool:
    before, _, tag = word.rpartition("_")
    return bool(before and tag)


def _underscored(lines: Iterable[str], path: Path) -> Iterator[Pair]:
    for number, line in enumerate(lines, 1):
        parts = [word.rpartition("_") for word in line.split()]
        for before, _, tag in parts:
            if not before or not tag:
                raise DataError(
                    f"{path}, line {number}: a word without a tag, "
                    f"{shortened(before or tag, 40)!r}: each is written word_TAG"
                )
        if parts:
            words, _, tags = zip(*parts, strict=True)
            yield Pair(number, " ".join(words), " ".join(tags))


def _columns(
    lines: Iterable[str], path: Path, columns: tuple[int, int], universal: bool, tabbed: bool
) -> Iterator[Pair]:
    """``universal``: whether they are of CoNLL-U; ``tabbed``: whether tabs separate them."""
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
        parts = _split(line)
        if universal and not parts[0].isdecimal():  # a range of words, or one that is not spoken
            continue
        width = width or len(parts)
        if len(parts) != width:
            raise DataError(
                f"{path}, line {number}: {plural(len(parts), 'column')}, and the first line has "
                f"{width}: {shortened(line, 60)!r}"
            )
        if width < max(columns):
            raise DataError(
                f"{path}, line {number}: column {max(columns)} is wanted, and there "
                f"{'is one' if width == 1 else f'are {width}'}: {shortened(line, 60)!r}. "
                "--columns names the columns of word and tag, such as 1,2"
            )
        begun = begun if words else number
        word, tag = (parts[one - 1].split() for one in columns)
        for what, value in (("word", word), ("tag", tag)):
            if len(value) != 1 and not (universal and value is word and value):
                why = "holds a space" if value else "is empty"
                raise DataError(f"{path}, line {number}: the {what} {why}: {shortened(line, 60)!r}")
        words += word
        tags += _tags_of(len(word), tag[0])


def _tags_of(words: int, tag: str) -> list[str]:
    """Of each part of a word that CoNLL-U writes with spaces, such as "10 000": a word is what
    stands between spaces, and all of a span but its first word goes on with it."""
    goes_on = f"I-{tag[2:]}" if tag.startswith("B-") else tag
    return [tag, *[goes_on] * (words - 1)]


def _split(line: str) -> list[str]:
    """The columns of a line, between tabs if it has any, else between spaces."""
    return line.split("\t") if "\t" in line else line.split()
