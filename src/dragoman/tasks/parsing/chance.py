"""What a parser scores that puts right-branching brackets over every sentence."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.data.files.pair import Pair
from dragoman.forms.tree_form import tree_of
from dragoman.metrics.parseval import Parseval, score_parse
from dragoman.metrics.right_branching import RightBranching
from dragoman.tasks.shared.chance import MIN_ANSWERS


def chance_of_trees(pairs: Sequence[Pair], learned: Sequence[str]) -> dict[str, float]:
    """Of the trees of some sentences; nothing where these are too few, or where the trees of
    training (``learned_answers``) are not known."""
    if len(pairs) < MIN_ANSWERS or not learned:
        return {}
    trees = [tree_of(pair.target) for pair in pairs]
    guess = RightBranching(list(map(tree_of, learned)))
    found = Parseval.of(score_parse(tree, guess.parse(tree.words)) for tree in trees).scores
    return {name: found[name] for name in ("f1", "precision", "recall", "exact")}
