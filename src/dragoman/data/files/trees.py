"""Files of bracketed trees -> examples: the words of a sentence, and its tree on one line.

Trees are read as ``tree.py`` has them, one at a time whatever the size of the file, and
come as they are learned and measured: without traces, functions and indices (``tree.plain``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from dragoman.errors import DataError
from dragoman.tree import LABEL_ENDS, Tree, TreeError, plain, read_trees


def read_examples(
    files: Iterable[tuple[Path, Iterator[str]]], ends: str
) -> Iterator[tuple[int, str, str]]:
    """Of the trees of some files, each with its lines: the line that one begins on, its words, and
    the tree itself on one line. Errors: as ``plain_trees``."""
    for path, lines in files:
        for line, tree in plain_trees(lines, path, ends):
            yield line, " ".join(tree.words), str(tree)


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
