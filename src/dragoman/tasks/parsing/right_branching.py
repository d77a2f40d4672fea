"""Right-branching trees: what a parser is measured beside, for they are the shape of English alone.

A usual baseline (Klein and Manning, 2002, *A generative constituent-context model for improved
grammar induction*).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dragoman.tree import Tree


class RightBranching:
    """Each bracket holds one word and a bracket of all behind it: the shape of English."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self._top = Counter(tree.label for tree in trees).most_common(1)[0][0]
        # Of brackets that end where the sentence does, but for its stop.
        labels: Counter[str] = Counter()
        for tree in trees:
            node = tree
            while not node.is_leaf:
                inner = [child for child in node.children if not child.is_leaf]
                if not inner:
                    break
                node = inner[-1]
                labels[node.label] += 1
        self._label = labels.most_common(1)[0][0] if labels else self._top

    def parse(self, words: Sequence[str]) -> Tree:
        """The tree of a sentence."""
        leaves = [Tree("XX", word=word) for word in words]
        stop = [leaves.pop()] if len(leaves) > 1 and not words[-1].isalnum() else []
        node = leaves.pop()
        for leaf in reversed(leaves[1:]):
            node = Tree(self._label, (leaf, node))
        first = leaves[:1]
        if node.is_leaf and not first:
            return Tree(self._top, (node, *stop))
        return Tree(self._top, (*first, node, *stop))
