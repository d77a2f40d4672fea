"""Trees drawn at random: any shape that a tree may have, and none that a grammar would make."""

from __future__ import annotations

import random

from dragoman.forms.tree import Tree

LABELS = ("S", "NP", "VP", "PP", "ADVP", "PRT", "X")
TAGS = ("DT", "NN", "VBZ", "IN", ",", ".", "-LRB-")
_WORDS = ("the", "cat", "sleeps", "-LRB-", "1/2", "Tür", "字")


def random_tree(draw: random.Random, words: int, chain: int = 3) -> Tree:
    """Over so many words, with up to ``chain`` brackets that hold one and the same."""
    leaves = [Tree(draw.choice(TAGS), word=draw.choice(_WORDS)) for _ in range(words)]
    return _over(leaves, draw, chain)


def _over(leaves: list[Tree], draw: random.Random, chain: int) -> Tree:
    cuts = sorted(draw.sample(range(1, len(leaves)), draw.randint(0, min(3, len(leaves) - 1))))
    if not cuts:
        children = tuple(leaves)
    else:
        parts = [leaves[a:b] for a, b in zip([0, *cuts], [*cuts, len(leaves)], strict=True)]
        children = tuple(
            part[0] if len(part) == 1 and draw.random() < 0.6 else _over(part, draw, chain)
            for part in parts
        )
    tree = Tree(draw.choice(LABELS), children)
    for _ in range(draw.randint(0, chain - 1)):
        tree = Tree(draw.choice(LABELS), (tree,))
    return tree
