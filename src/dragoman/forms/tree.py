"""A constituency tree: labelled brackets over the words of a sentence.

    (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))

A bracket that holds a word is a leaf, and its label the word's part of speech (its *tag*). Brackets
are read as treebanks write them: spread over lines or with one tree on each line, and with or
without a label on the outermost bracket (the Penn Treebank has none).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dragoman.base.wording import shorten

DEEPEST = 200
"""The most nested brackets: real trees have some 30, and code for trees is recursive."""

MAX_BRACKETS = 100_000
"""The most brackets of a tree, including those of its words: real trees have some hundreds, and
an unclosed bracket makes a whole file one tree."""
MAX_LENGTH = 10_000
"""The most characters of a word or of a label."""

TREE_ENDINGS = (".mrg", ".ptb", ".parse")
"""The endings of files of bracketed trees."""
TOP = "TOP"
"""The label of the outermost bracket, if a treebank writes none."""
TOPS = frozenset({"", TOP, "S1", "ROOT"})
"""The labels of the outermost bracket in treebanks."""
EMPTY = "-NONE-"
"""The tag of traces and other empty elements, which are not spoken."""
_EMPTY_WORD = re.compile(r"\*(0|\?|T|t|U|e|pro|PRO|op|OP|ICH|EXP|RNR|PPA|NOT)\*(-\d+)?")
"""The empty elements of treebanks without that tag: unspoken subjects of Spanish (``*0*``),
Korean and Chinese (``*pro*``), traces (``*T*-1``)."""
LABEL_ENDS = "-="
"""These characters begin a function or an index in a label."""

_BRACKET_OR_WORD = re.compile(r"[()]|[^\s()]+")
_MAX_SHOWN = 40


class TreeError(Exception):
    """The error for brackets that are no trees."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        """The number of the line in its file, from 1."""


@dataclass(frozen=True)
class Tree:
    """A bracket with its content. ``str(tree)`` writes it on one line."""

    label: str
    children: tuple[Tree, ...] = ()
    """The brackets inside, in their order; empty for a leaf."""
    word: str | None = None
    """The word of a leaf; None for others."""

    @property
    def is_leaf(self) -> bool:
        """True for a bracket that contains a word itself."""
        return self.word is not None

    def leaves(self) -> list[Tree]:
        """Return the leaves, one for each word, in their order."""
        if self.is_leaf:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves()]

    @property
    def words(self) -> list[str]:
        """Return the words of the sentence in order."""
        return [leaf.word for leaf in self.leaves() if leaf.word is not None]

    def brackets(self) -> Iterator[Tree]:
        """Yield this bracket and all inside it but the leaves, outermost first."""
        if not self.is_leaf:
            yield self
            for child in self.children:
                yield from child.brackets()

    def __str__(self) -> str:
        inside = self.word if self.word is not None else " ".join(map(str, self.children))
        return f"({self.label} {inside})"


def plain(tree: Tree, ends: str = LABEL_ENDS) -> Tree | None:
    """Return the tree as it is learned and measured; None if nothing in it is spoken. ``ends``:
    the characters at which a label ends.

    It has no empty elements nor brackets of these alone, no functions and indices (``NP-SBJ-1``
    -> ``NP``), and no outermost bracket if that contains only one bracket.
    """
    kept = _plain(tree, ends)
    if kept is None or kept.is_leaf:
        return kept if kept is None else Tree(TOP, (kept,))
    if kept.label in TOPS:
        (only, *more) = kept.children
        return Tree(TOP, kept.children) if more or only.is_leaf else only
    return kept


def _plain(tree: Tree, ends: str) -> Tree | None:
    if tree.word is not None:
        is_empty = tree.label == EMPTY or _EMPTY_WORD.fullmatch(tree.word)
        return None if is_empty else Tree(category(tree.label, ends), word=tree.word)
    children = tuple(kept for child in tree.children if (kept := _plain(child, ends)) is not None)
    return Tree(category(tree.label, ends), children) if children else None


def category(label: str, ends: str = LABEL_ENDS) -> str:
    """Return a label up to the first of ``ends``; a label that begins with one (``-LRB-``,
    ``.``) is whole."""
    for place, character in enumerate(label):
        if character in ends:
            return label[:place] or label
    return label


@dataclass
class _Open:
    """A bracket that is being read."""

    line: int
    label: str | None = None
    word: str | None = None
    children: list[Tree] = field(default_factory=list)


def read_trees(lines: Iterable[str]) -> Iterator[tuple[int, Tree]]:
    """Yield each tree, and the line (from 1) on which it begins; one tree is held at a time.

    Raises ``TreeError`` for brackets that do not match, or that have no label or no word, and
    for a tree of more than ``MAX_BRACKETS`` brackets, or ``DEEPEST`` nested ones, as soon as it
    exceeds them. Only the outermost bracket of a tree may lack a label.
    """
    opened: list[_Open] = []
    brackets = 0
    for number, line in enumerate(lines, 1):
        for match in _BRACKET_OR_WORD.finditer(line):
            symbol = match.group()
            if symbol == "(":
                brackets = brackets + 1 if opened else 1
                if brackets > MAX_BRACKETS:
                    raise TreeError(
                        opened[0].line,
                        f"the tree that begins here has more than {MAX_BRACKETS:,} brackets; one "
                        "tree is one sentence, so a bracket that closes it may be missing",
                    )
                _check_may_open(opened, number)
                opened.append(_Open(number))
            elif symbol != ")":
                _take(opened, symbol, number)
            elif not opened:
                raise TreeError(number, "a bracket is closed that was not opened")
            else:
                begun = opened.pop()
                tree = _close(begun, number)
                if opened:
                    opened[-1].children.append(tree)
                else:
                    yield begun.line, tree
    if opened:
        raise TreeError(opened[0].line, "the bracket that opens here is never closed")


def _check_may_open(opened: list[_Open], line: int) -> None:
    if not opened:
        return
    if len(opened) >= DEEPEST:
        raise TreeError(line, f"there are more than {DEEPEST} nested brackets")
    if opened[-1].word is not None:
        raise TreeError(
            line, f"a bracket holds a word, {_cut(opened[-1].word)}, and another bracket"
        )
    if opened[-1].label is None:
        if len(opened) > 1:
            raise TreeError(opened[-1].line, "a bracket has no label")
        opened[-1].label = ""


def _take(opened: list[_Open], symbol: str, line: int) -> None:
    """Take a symbol that is no bracket: the label if it comes first, else the word."""
    if not opened:
        raise TreeError(line, f"{_cut(symbol)!r} is outside of all brackets")
    if len(symbol) > MAX_LENGTH:
        raise TreeError(
            line,
            f"{_cut(symbol)!r} has {len(symbol):,} characters; the most is {MAX_LENGTH:,}",
        )
    now = opened[-1]
    if now.label is None:
        now.label = symbol
    elif now.word is not None:
        raise TreeError(line, f"a bracket holds two words, {_cut(now.word)} and {_cut(symbol)}")
    elif now.children:
        raise TreeError(line, f"a bracket holds other brackets and a word, {_cut(symbol)}")
    else:
        now.word = symbol


def _close(begun: _Open, line: int) -> Tree:
    if begun.label is None:
        raise TreeError(line, "a bracket has neither label nor word")
    if begun.word is None and not begun.children:
        raise TreeError(line, f"the bracket ({_cut(begun.label)}) holds no word")
    return Tree(begun.label, tuple(begun.children), begun.word)


def _cut(text: str) -> str:
    return shorten(text, _MAX_SHOWN)
