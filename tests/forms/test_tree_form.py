"""Trees as symbols: there and back, and what a search may write of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from random_trees import LABELS, TAGS, random_tree

from dragoman.base.errors import DataError, RunError
from dragoman.forms.tree import DEEPEST, Tree
from dragoman.forms.tree_form import (
    NO_TAG,
    TreeForm,
    TreeRules,
    TreeSettings,
    TreeSymbols,
    tree_of,
    usual_longest,
    words_of,
)

TREES = [
    random_tree(draw, draw.randint(1, 14)) for draw in map(random.Random, range(150))
]  # fmt: skip
Choose = Callable[[random.Random, list[int], TreeSymbols], int]


def symbols(tags: str = "kept", chain: int = 3) -> TreeSymbols:
    return TreeSymbols.learn(TREES, TreeSettings.model_validate({"tags": tags, "chain": chain}))


def written(symbols: TreeSymbols, tree: Tree) -> list[int]:
    return TreeForm(symbols).tokens([str(tree)])[0]


def read(symbols: TreeSymbols, ids: Sequence[int], words: Sequence[str]) -> Tree | None:
    try:
        return TreeForm(symbols).tree(ids, " ".join(words))
    except DataError:
        return None


def without_tags(tree: Tree) -> Tree:
    if tree.is_leaf:
        return Tree(NO_TAG, word=tree.word)
    return Tree(tree.label, tuple(map(without_tags, tree.children)))


def test_trees_are_written_and_read_again() -> None:
    kept, bare = symbols("kept"), symbols("none")
    assert kept.size == 3 + len(TAGS) + 2 * len(LABELS) and bare.size == 3 + 1 + 2 * len(LABELS)
    for tree in TREES:
        assert read(kept, written(kept, tree), tree.words) == tree
        assert read(bare, written(bare, tree), tree.words) == without_tags(tree)
    cat = tree_of("(S (NP (DT The) (NN cat)) (X (NN sleeps)))")
    assert " ".join(kept.names_of(written(kept, cat))) == "(S (NP DT NN )NP (X NN )X )S"
    assert " ".join(bare.names_of(written(bare, cat))) == "(S (NP XX XX )NP (X XX )X )S"


def test_symbols_that_make_no_tree_are_told() -> None:
    form, draw = symbols("none"), random.Random(4)
    for tree in TREES[:60]:
        ids, words = written(form, tree), tree.words
        assert read(form, ids, [*words, "more"]) is None and read(form, ids, words[:-1]) is None
        assert read(form, ids[:-1], words) is None and read(form, [*ids, ids[-1]], words) is None
        assert read(form, [*ids, *ids], words) is None and read(form, ids[1:], words) is None
        place = draw.randrange(len(ids))
        changed = [*ids[:place], form.unknown, *ids[place + 1 :]]
        assert read(form, changed, words) is None
    assert read(form, [form.opening[0], form.closing[0]], []) is None
    crossed = [form.opening[0], form.opening[1], 3, form.closing[0], form.closing[1]]
    assert read(form, crossed, ["a"]) is None


def test_labels_that_could_not_be_read_again_are_not_learned(tmp_path: Path) -> None:
    """Their file may have some bytes and no more."""
    long = [Tree(f"{n}" + "語" * 9_000, (Tree("NN", word="dog"),)) for n in range(100)]
    with pytest.raises(DataError, match=r"have 90[0-9],[0-9]{3} characters together"):
        TreeSymbols.learn(long, TreeSettings())
    TreeSymbols.learn(long[:40], TreeSettings()).save(tmp_path / "symbols")
    assert len(TreeSymbols.load(tmp_path / "symbols").labels) == 40


def test_a_label_that_was_not_learned_is_unknown() -> None:
    form = symbols()
    ids = written(form, tree_of("(S (NEW (DT a)) (NN b))"))
    assert ids.count(form.unknown) == 2 and form.unknown in TreeForm(form).forbidden


def test_they_are_kept_in_a_file_that_is_checked(tmp_path: Path) -> None:
    path, form = tmp_path / "target.json", symbols()
    form.save(path)
    again = TreeSymbols.load(path)
    assert again.fingerprint == form.fingerprint
    assert written(again, TREES[0]) == written(form, TREES[0])
    assert again.fingerprint != symbols(chain=4).fingerprint
    good = path.read_text(encoding="utf-8")
    for wrong in (
        "{}",
        "[]",
        good[:-5],
        good.replace('"NP"', '"S"'),
        good.replace('"NP"', '"N P"'),
    ):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(RunError, match=r"target\.json"):
            TreeSymbols.load(path)


WAYS: dict[str, Choose] = {
    "by chance": lambda draw, may, _: draw.choice(may),
    "opens whatever it can": lambda _, may, form: max(may, key=lambda one: one in form.opening),
    "closes whatever it can": lambda _, may, form: max(may, key=lambda one: one in form.closing),
    "spends its words": lambda _, may, form: max(may, key=lambda one: one in form.words),
    "opens or closes": lambda draw, may, form: max(
        may, key=lambda one: (one not in form.words, draw.random())
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("chain", [1, 2, 5])
def test_whatever_is_chosen_comes_to_be_a_tree_over_the_words(way: str, chain: int) -> None:
    form, draw, longest = symbols(chain=chain), random.Random(chain), 0
    for words in (*range(1, 9), 30):
        for most in (None, words + 2, words + 5):
            rules, ids = TreeRules(form, words, most), list[int]()
            while True:
                may = np.flatnonzero(rules.allows(np.array([ids], np.int32))[0]).tolist()
                assert may, form.names_of(ids)
                token = WAYS[way](draw, may, form)
                if token == form.eos:
                    break
                ids.append(token)
            tree = read(form, ids, ["w"] * words)
            assert tree is not None and len(ids) <= rules.longest <= usual_longest(words, chain)
            assert most is None or len(ids) <= most
            assert longest_chain(tree) <= chain
            longest = max(longest, longest_chain(tree))
    assert longest == chain or way in ("closes whatever it can", "spends its words")


def longest_chain(tree: Tree) -> int:
    def walk(node: Tree) -> tuple[int, int]:
        """-> its own chain, and the longest in it."""
        if node.is_leaf:
            return 0, 0
        found = [walk(child) for child in node.children]
        own = found[0][0] + 1 if len(found) == 1 else 1
        return own, max(own, *(most for _, most in found))

    return walk(tree)[1]


def test_every_tree_can_be_written() -> None:
    """All prefixes at once, in any order, as the hypotheses of a beam come."""
    form = symbols(chain=3)
    reached = 0
    for tree in TREES:
        ids = written(form, tree)
        assert longest_chain(tree) <= 3
        if len(ids) > usual_longest(len(tree.words), 3):
            continue
        reached += 1
        rules = TreeRules(form, len(tree.words))
        for length, token in enumerate([*ids, form.eos]):
            assert rules.allows(np.array([ids[:length]], np.int32))[0, token]
    assert reached > 140


def test_what_may_follow_depends_on_the_tokens_alone() -> None:
    form, draw = symbols(), random.Random(8)
    pairs = [(tree, written(form, tree)) for tree in TREES if len(tree.words) == 9][:6]
    rules = TreeRules(form, 9)
    for length in (0, 3, 3, 7, 2, 11):
        rows = [ids[:length] for _, ids in pairs]
        draw.shuffle(rows)
        together = rules.allows(np.array(rows, np.int32))
        for row, may in zip(rows, together, strict=True):
            assert (TreeRules(form, 9).allows(np.array([row], np.int32))[0] == may).all()


def test_a_parse_is_never_deeper_than_a_tree_may_be() -> None:
    form = symbols(chain=50)
    rules, ids = TreeRules(form, 200), list[int]()
    while (may := rules.allows(np.array([ids], np.int32))[0])[form.opening.start]:
        ids.append(form.opening.start)
    assert len(ids) == DEEPEST - 1 and may[form.words.start]


def test_a_sentence_gets_rules_of_its_own_words() -> None:
    form = TreeForm(symbols())
    assert words_of("f (x) [ ( y") == ["f", "-LRB-x-RRB-", "[", "-LRB-", "y"]
    assert form.rules("a b c").longest == usual_longest(3, 3)
    assert form.rules("a b c", 6).longest == 6
    with pytest.raises(DataError, match="an empty line has no tree"):
        form.rules("  ")
    with pytest.raises(DataError, match=r"a tree of at least 6 symbols, but .* at most 5"):
        form.rules("a b c d", 5)
    with pytest.raises(DataError, match="a line must have one tree, not 2"):
        form.tokens(["(S (NN a)) (S (NN b))"])
    with pytest.raises(DataError, match="never closed"):
        form.tokens(["(S (NN a)"])
