"""The embedded corpus of trees: sentences of a small grammar, each with its constituency tree.

It is synthetic, as the corpus of pairs is (``demo_corpus.NOTICE``). Training, development and test
sentences are parted as there: a keyed hash gives every *combination* (a verb with its nouns, two
nouns that a preposition joins) to one of the three, and a sentence with a held-out combination
never enters training. So each test sentence joins words that training never showed together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from random import Random

from dragoman.demo.corpus import Parts, Split, fill_parts, split_of, split_of_all
from dragoman.demo.tree_grammar import Draw, sentence
from dragoman.forms.tree import Tree, read_trees

_MAN, _DOG, _CAT, _KINGS = (
    f"(NP (DT {article}) ({tag} {noun}))"
    for article, tag, noun in (
        ("The", "NN", "man"), ("the", "NN", "dog"), ("the", "NN", "cat"), ("the", "NNS", "kings"),
    )
)  # fmt: skip
_WATCHES = "(VBZ watches)"
_TELESCOPE, _CROWN = (
    f"(PP (IN with) (NP (DT the) (NN {noun})))" for noun in ("telescope", "crown")
)
_LIKES = f"(VP (VBZ likes) {_CAT}) (. .)"
_SLEEPS, _SLEEP = (
    f"(SBAR (WHNP (WDT that)) (S (VP ({verb}))))" for verb in ("VBZ sleeps", "VBP sleep")
)
_THE_DOG = "(NP (DT The) (NN dog))"
SHOWN = tuple(
    tree
    for _, tree in read_trees(
        (
            f"(S {_MAN} (VP {_WATCHES} {_DOG} {_TELESCOPE}) (. .))",
            f"(S {_MAN} (VP {_WATCHES} (NP {_DOG} {_CROWN})) (. .))",
            f"(S (NP (NP {_THE_DOG} (PP (IN of) {_KINGS})) {_SLEEPS}) {_LIKES})",
            f"(S (NP {_THE_DOG} (PP (IN of) (NP {_KINGS} {_SLEEP}))) {_LIKES})",
        )
    )
)
"""Pairs that one word parts: the last one of the first pair, the number of a verb in the second."""
_HELD_OUT = frozenset({"watch dog with telescope", "watch dog with crown", "dog of king"})
"""Combinations of ``SHOWN``, which training never shows."""


@lru_cache(maxsize=2)
def demo_trees(
    seed: int = 1, train_trees: int = 20_000, dev_trees: int = 300, test_trees: int = 600
) -> Parts[Tree]:
    """The corpus of the given size, the same for the same arguments on every machine.

    A larger ``train_trees`` extends the same training sentences.
    """
    wanted: dict[Split, int] = {"train": train_trees, "dev": dev_trees, "test": test_trees}
    return fill_parts(_draw_trees(Random(seed)), wanted)


def _draw_trees(random: Random) -> Iterator[tuple[Split | None, str, Tree]]:
    """Draw trees without end, each with its part, or None, and its sentence."""
    while True:
        draw = Draw(random)
        tree = sentence(draw)
        words = " ".join(tree.words)
        yield split_of_all(map(tree_split_of, draw.combinations or [words])), words, tree


def tree_split_of(combination: str) -> Split:
    """The part of the corpus that owns a combination: the same for every seed."""
    return "test" if combination in _HELD_OUT else split_of(combination)


def with_phrases(tree: Tree) -> list[tuple[int, int, str]]:
    """Each phrase that begins with "with": its first word, the word behind its last one, both
    counted from 0, and the label of the bracket that holds it."""
    return list(_phrases(tree, 0))


def _phrases(tree: Tree, first: int) -> Iterator[tuple[int, int, str]]:
    for child in tree.children:
        end = first + len(child.words)
        if child.label == "PP" and child.words[0] == "with":
            yield first, end, tree.label
        yield from _phrases(child, first)
        first = end
