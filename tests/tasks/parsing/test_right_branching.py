"""Right-branching trees, over any words."""

from __future__ import annotations

from tiny_treebank import treebank

from dragoman.forms.tree import Tree
from dragoman.tasks.parsing.metrics import Parseval, RightBranching, score_parse


def test_right_branching_trees_hold_every_word() -> None:
    branching = RightBranching(treebank(100))
    for words in (["a"], ["a", "."], ["the", "cat", "sleeps", "."], ["a", "b", "c"]):
        assert branching.parse(words).words == words
    found = branching.parse(["the", "cat", "sleeps", "."])
    assert [leaf.word for leaf in found.children if leaf.is_leaf] == ["the", "."]


def test_what_branches_to_the_right_is_right_and_its_label_is_the_most_frequent_one() -> None:
    chain = Tree("VP", (Tree("VB", word="see"), Tree("VP", (Tree("VB", word="cats"),))))
    gold = Tree("S", (Tree("NN", word="dogs"), chain))
    branching = RightBranching([gold])
    found = Parseval.of([score_parse(gold, branching.parse(["dogs", "see", "cats"]))])
    # (S dogs (VP see cats)): the bracket of the last word alone is not there.
    assert found.scores["precision"] == 100 and 0 < found.scores["recall"] < 100
    assert str(branching.parse(["dogs", "see", "cats"])) == "(S (XX dogs) (VP (XX see) (XX cats)))"
