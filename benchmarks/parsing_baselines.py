"""What a parser is measured beside: a PCFG counted from the same trees.

It is that of Johnson (1998) and Klein and Manning (2003): each label knows the one above it
(parent annotation), brackets of more than two children are cut off one child at a time and remember
the last two, and probabilities are relative frequencies. Words that stand once in the training
trees, or never, are told apart by how they look. The most probable tree is found by CKY.

It is here and not in the program, which counts no grammars.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman.forms.tree import Tree

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

NEVER = np.float32(-np.inf)
_REMEMBERED = 2
"""Children that a binarised bracket remembers (horizontal Markov order)."""
_ENDINGS = ("ing", "ed", "ly", "tion", "er", "est", "al", "ity", "able", "s")
_CHAIN = 6
"""Unary rules in a row."""


@dataclass(frozen=True)
class _Rules:
    """Binary or unary rules, sorted by what they rewrite."""

    parents: Integers
    """(P,) what has such rules."""
    begins: Integers
    """(P,) where the rules of each begin."""
    rewritten: Integers
    """(R,) of each rule."""
    left: Integers
    """(R,)"""
    right: Integers
    """(R,); as ``left`` for unary rules."""
    cost: Floats
    """(R,) log P."""


class Grammar:
    """A PCFG. Make one with ``count``."""

    def __init__(
        self,
        names: Sequence[str],
        tops: Floats,
        binary: _Rules,
        unary: _Rules,
        words: dict[str, list[tuple[int, float]]],
    ) -> None:
        self.names = list(names)
        self._tops = tops
        self._binary = binary
        self._unary = unary
        self._words = words

    @classmethod
    def count(cls, trees: Sequence[Tree]) -> Grammar:
        """From trees that are stripped of functions and traces."""
        often = Counter(word for tree in trees for word in tree.words)
        counts: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        tops: Counter[str] = Counter()
        words: dict[str, Counter[str]] = defaultdict(Counter)
        tags: Counter[str] = Counter()
        for tree in trees:
            tops[f"{tree.label}^"] += 1
            for rewritten, children in _rules_of(tree, ""):
                counts[rewritten][children] += 1
            for leaf in tree.leaves():
                assert leaf.word is not None
                seen = leaf.word if often[leaf.word] > 1 else look_of(leaf.word)
                tags[leaf.label] += 1
                words[seen][leaf.label] += 1
                if seen != leaf.word:
                    words["?"][leaf.label] += 1  # of which nothing is known but that it is rare
        if not words["?"]:  # where no word is rare, any tag may be that of a new one
            words["?"].update(tags.keys())
        names = sorted({*counts, *tags})
        number = {name: place for place, name in enumerate(names)}
        rules: dict[int, list[tuple[int, int, int, float]]] = {1: [], 2: []}
        for rewritten, children in counts.items():
            total = sum(children.values())
            for right, count in children.items():
                first, last = number[right[0]], number[right[-1]]
                rules[len(right)].append(
                    (number[rewritten], first, last, float(np.log(count / total)))
                )
        begin = np.full(len(names), NEVER)
        for top, count in tops.items():
            begin[number[top]] = np.log(count / len(trees))
        return cls(
            names, begin, _sorted(rules[2]), _sorted(rules[1]),
            {
                word: [(number[tag], float(np.log(count / tags[tag])))
                       for tag, count in of.items()]
                for word, of in words.items()
            },
        )  # fmt: skip

    def best(self, words: Sequence[str]) -> tuple[float, Tree] | None:
        """log P of the most probable tree, and it; None if the grammar has none."""
        chart = _Chart(self, words)
        scores = self._tops + chart.cost[0, len(words)]
        top = int(scores.argmax())
        if scores[top] == NEVER:
            return None
        (tree,) = chart.trees(top, 0, len(words))
        return float(scores[top]), tree

    def tags_of(self, word: str) -> list[tuple[int, float]]:
        """The tags that a word may have, with log P of it or what it looks like."""
        return self._words.get(word) or self._words.get(look_of(word)) or self._words["?"]


class _Chart:
    """The best cost of each symbol over each span, by CKY."""

    def __init__(self, grammar: Grammar, words: Sequence[str]) -> None:
        self._grammar, self._words = grammar, words
        count, symbols = len(words), len(grammar.names)
        shape = count + 1, count + 1, symbols
        self.cost = np.full(shape, NEVER, np.float32)
        """(n + 1, n + 1, S): of the words from the first to before the second."""
        self._through = np.full(shape, -1, np.int32)
        """What a unary rule rewrote it to, where the best way is one."""
        for place, word in enumerate(words):
            for tag, cost in grammar.tags_of(word):
                self.cost[place, place + 1, tag] = cost
            self._close(place, place + 1)
        rules = grammar._binary
        for width in range(2, count + 1):
            for begin in range(count - width + 1):
                end = begin + width
                if len(rules.parents):
                    both = (
                        self.cost[begin, begin + 1 : end][:, rules.left]
                        + self.cost[begin + 1 : end, end][:, rules.right]
                    ).max(axis=0) + rules.cost  # (splits, R) -> (R,)
                    best = np.maximum.reduceat(both, rules.begins)
                    self.cost[begin, end, rules.parents] = best
                self._close(begin, end)

    def _close(self, begin: int, end: int) -> None:
        """Take in the unary rules, some in a row."""
        rules, cost = self._grammar._unary, self.cost[begin, end]
        if not len(rules.parents):
            return
        for _ in range(_CHAIN):
            found = cost[rules.left] + rules.cost
            best = np.maximum.reduceat(found, rules.begins)
            better = best > cost[rules.parents]
            if not better.any():
                return
            for place in np.flatnonzero(better).tolist():
                first = int(rules.begins[place])
                last = int(rules.begins[place + 1]) if place + 1 < len(rules.begins) else None
                rule = first + int(found[first:last].argmax())
                parent = int(rules.parents[place])
                self._through[begin, end, parent] = rules.left[rule]
            cost[rules.parents] = np.maximum(best, cost[rules.parents])

    def trees(self, symbol: int, begin: int, end: int) -> list[Tree]:
        """What a symbol is over a span: one tree, or the children of a binarised bracket."""
        name = self._grammar.names[symbol]
        through = int(self._through[begin, end, symbol])
        if through >= 0:
            inside = self.trees(through, begin, end)
        elif end - begin == 1:
            return [Tree(name, word=self._words[begin])]
        else:
            rules = self._grammar._binary
            place = int(np.searchsorted(rules.parents, symbol))
            first = int(rules.begins[place])
            last = int(rules.begins[place + 1]) if place + 1 < len(rules.begins) else None
            of = slice(first, last)
            both = (
                self.cost[begin, begin + 1 : end][:, rules.left[of]]
                + self.cost[begin + 1 : end, end][:, rules.right[of]]
            ) + rules.cost[of]
            split, rule = np.unravel_index(int(both.argmax()), both.shape)
            middle, rule = begin + 1 + int(split), first + int(rule)
            inside = [
                *self.trees(int(rules.left[rule]), begin, middle),
                *self.trees(int(rules.right[rule]), middle, end),
            ]
        return inside if name.startswith("@") else [Tree(name.split("^")[0], tuple(inside))]


def look_of(word: str) -> str:
    """A class of words that a rare one belongs to; no word is written so."""
    parts = ["?"]
    if any(map(str.isdigit, word)):
        parts.append("digit")
    if word[:1].isupper():
        parts.append("capital")
    if "-" in word:
        parts.append("hyphen")
    parts += [ending for ending in _ENDINGS if re.fullmatch(rf".{{2,}}{ending}", word)][:1]
    return " ".join(parts) if len(parts) > 1 else "? plain"


def _rules_of(tree: Tree, above: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The rules that make a tree, each with at most two children."""
    name = f"{tree.label}^{above}"
    children = [
        child.label if child.is_leaf else f"{child.label}^{tree.label}" for child in tree.children
    ]
    rest = name
    # A -> B C D as A -> B @A|B, @A|B -> C D
    for place in range(len(children) - 2):
        seen = children[max(0, place + 1 - _REMEMBERED) : place + 1]
        further = f"@{name}|{'_'.join(seen)}|{'more' if place + 1 < len(children) - 2 else 'last'}"
        yield rest, (children[place], further)
        rest = further
    yield rest, tuple(children[-2:])
    for child in tree.children:
        if not child.is_leaf:
            yield from _rules_of(child, tree.label)


def _sorted(rules: list[tuple[int, int, int, float]]) -> _Rules:
    rules = sorted(rules)
    columns = [np.array(column) for column in zip(*rules, strict=True)] or [np.zeros(0)] * 4
    rewritten = columns[0].astype(np.int64)
    parents, begins = np.unique(rewritten, return_index=True)
    return _Rules(
        parents, begins, rewritten, columns[1].astype(np.int64), columns[2].astype(np.int64),
        columns[3].astype(np.float32),
    )  # fmt: skip
