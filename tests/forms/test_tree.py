from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from random_trees import random_tree

from dragoman.forms.tree import DEEPEST, MAX_LENGTH, Tree, TreeError, plain, read_trees

CAT = "(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .))"


def one(text: str) -> Tree:
    ((_, tree),) = read_trees(text.splitlines())
    return tree


def test_what_is_written_is_read_again_however_it_is_broken_into_lines() -> None:
    draw = random.Random(5)
    trees = [random_tree(draw, draw.randint(1, 12)) for _ in range(200)]
    lines = [str(tree) for tree in trees]
    assert list(read_trees(lines)) == list(enumerate(trees, 1))
    spread = "\n\n".join(lines).replace(" (", "\n  (").splitlines()
    assert [tree for _, tree in read_trees(spread)] == trees
    begun = [number for number, _ in read_trees(spread)]
    assert begun == [n for n, line in enumerate(spread, 1) if line.startswith("(")]


def test_a_tree_knows_its_words_and_brackets() -> None:
    tree = one(CAT)
    assert tree.words == ["The", "cat", "sleeps", "."]
    assert [leaf.label for leaf in tree.leaves()] == ["DT", "NN", "VBZ", "."]
    assert [bracket.label for bracket in tree.brackets()] == ["S", "NP", "VP"]


@pytest.mark.parametrize(
    ("written", "learned"),
    [
        ("( (S (NP-SBJ-1 (DT The) (NN cat)) (VP (VBZ sleeps))))",
         "(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))"),
        ("(TOP (S=2 (NP (-NONE- *T*-1)) (VP (VB go))))", "(S (VP (VB go)))"),
        ("((NP (-LRB- -LRB-) (NNP A)) (. .))", "(TOP (NP (-LRB- -LRB-) (NNP A)) (. .))"),
        ("((UH Yes))", "(TOP (UH Yes))"),
        ("(S (NP-SBJ *pro*) (VP (NP-OBJ (NNG 밥) (JKO 을)) (VV 먹) (EF 다)))",  # Korean
         "(S (VP (NP (NNG 밥) (JKO 을)) (VV 먹) (EF 다)))"),
        ("(S (sn-SUJ (p *0*)) (grup.verb (vmi Duerme)) (f .))",  # Spanish
         "(S (grup.verb (vmi Duerme)) (f .))"),
        ("(S (NP (NN *T*-1) (NN *bold*) (SYM *)) (VB go))",
         "(S (NP (NN *bold*) (SYM *)) (VB go))"),
        ("(UH Yes)", "(TOP (UH Yes))"),
        ("(S (SBAR (-NONE- 0) (S (-NONE- *T*-2))) (NP=1 (PRP$ its) (NN end)))",
         "(S (NP (PRP$ its) (NN end)))"),
    ],
)  # fmt: skip
def test_what_is_no_part_of_a_category_or_not_spoken_is_stripped(
    written: str, learned: str
) -> None:
    assert str(plain(one(written))) == learned
    assert plain(plain(one(written)) or one(CAT)) == plain(one(written))


def test_labels_are_as_fine_as_is_asked_for() -> None:
    written = "(S.F-CD (grup.nom.ms-SUJ (n.c gato)) (grup.verb (v duerme)) (.. .))"
    for ends, learned in (
        ("-=", "(S.F (grup.nom.ms (n.c gato)) (grup.verb (v duerme)) (.. .))"),
        ("-=.", "(S (grup (n gato)) (grup (v duerme)) (.. .))"),
        ("", written),
    ):
        assert str(plain(one(written), ends)) == learned


def test_of_a_tree_of_traces_nothing_is_left() -> None:
    assert plain(one("((S (NP (-NONE- *)) (VP (-NONE- 0))))")) is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("(S (NP (NN a))", 1, "never closed"),
        (f"{CAT}\n\n(S (NN a)\n", 3, "never closed"),
        (f"{CAT}\n(NP (NN a)))", 2, "closed that was not opened"),
        (f"{CAT}\ntitle", 2, "'title' is outside"),
        ("(S\n(NP ))", 2, r"\(NP\) holds no word"),
        ("()", 1, "neither label nor word"),
        ("(S (NN a)\n((NN b)))", 2, "no label"),
        ("(S (NN a b))", 1, "two words, a and b"),
        ("(S (NN a (NN b)))", 1, "a word, a, and another bracket"),
        ("(S (NN a) b)", 1, "other brackets and a word, b"),
        ("(S " * (DEEPEST + 1), 1, "nested brackets"),
        (f"(S\n(NN {'a' * (MAX_LENGTH + 1)}))", 2, r"'aaa[a…]+' has 10,001 characters"),
    ],
)
def test_brackets_that_are_no_tree_are_refused_with_their_line(
    text: str, line: int, words: str
) -> None:
    with pytest.raises(TreeError, match=words) as refused:
        list(read_trees(text.splitlines()))
    assert refused.value.line == line


def test_the_deepest_tree_is_read_and_written() -> None:
    text = "(X " * (DEEPEST - 1) + "(NN a)" + ")" * (DEEPEST - 1)
    tree = one(text)
    assert str(tree) == text and tree == plain(tree) and len(list(tree.brackets())) == DEEPEST - 1


def test_what_is_no_sentence_any_more_is_refused_before_all_of_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.forms.tree.MAX_BRACKETS", 3000)
    read = 0

    def file(sentences: int) -> Iterator[str]:
        """The first bracket of its second tree is closed behind all of them."""
        nonlocal read
        yield from (CAT, "(S")
        for read in range(1, sentences + 1):  # noqa: B007
            yield "(NP (DT the) (NN cat))"
        yield ")"

    *_, (_, largest) = read_trees(file(999))
    assert len(largest.words) == 2 * 999
    with pytest.raises(TreeError, match="more than 3,000 brackets; one tree is") as refused:
        list(read_trees(file(20_000)))
    assert refused.value.line == 2 and read == 1000
    # Of a tree, not of a file.
    assert sum(1 for _ in read_trees([CAT] * 3000)) == 3000
