from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_trees import LABELS, random_tree

from dragoman.base.errors import DataError
from dragoman.forms.tree import Tree, read_trees
from dragoman.metrics.classification import Matches
from dragoman.tasks.parsing.metrics import (
    Parseval,
    RightBranching,
    differing_brackets,
    exact_shares,
    f1s,
    score_parse,
)

REFERENCE = "(S (NP (DT the) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (DT the) (NN mat)))) (. .))"


def tree(text: str) -> Tree:
    ((_, found),) = read_trees([text])
    return found


def matched(reference: str, parse: str) -> Matches:
    return score_parse(tree(reference), tree(parse)).brackets


def test_it_is_right_by_hand() -> None:
    # S 0-6, NP 0-2, VP 2-6, PP 3-6, NP 4-6 against S, NP 0-2, VP 2-4, NP 4-6, X 4-6
    parse = "(S (NP (DT the) (NN cat)) (VP (VBZ sits) (IN on)) (X (NP (DT the) (NN mat))) (. .))"
    found = score_parse(tree(REFERENCE), tree(parse))
    assert found.brackets == Matches(3, 5, 5) and found.scored == 6 and found.words == 7
    assert found.labels == {
        "NP": Matches(2, 2, 2), "PP": Matches(0, 0, 1), "S": Matches(1, 1, 1),
        "VP": Matches(0, 1, 1), "X": Matches(0, 1, 0),
    }  # fmt: skip
    assert found.brackets.f1 == pytest.approx(0.6) and found.brackets.recall == pytest.approx(0.6)
    whole = Parseval.of([found, score_parse(tree(REFERENCE), tree(REFERENCE))])
    assert whole.scores["f1"] == pytest.approx(80) and whole.scores["exact"] == 50
    assert whole.scores["tags"] == 100 and whole.sentences == 2


@pytest.mark.parametrize(
    ("reference", "parse", "expected"),
    [
        # a bracket that stands twice counts twice, but is matched only as often as it stands
        ("(S (NP (NP (NN a))) (VB b))", "(S (NP (NN a)) (VB b))", Matches(2, 2, 3)),
        ("(S (NP (NN a)) (VB b))", "(S (NP (NP (NP (NN a)))) (VB b))", Matches(2, 4, 2)),
        # functions are no part of a label, the bracket above all is none, ADVP is PRT
        ("(TOP (S (NP-SBJ=2 (NN a)) (PRT (RP b))))", "(S1 (S (NP (NN a)) (ADVP (RP b))))",
         Matches(3, 3, 3)),
        # punctuation is taken out: where it hangs does not matter
        ("(S (NP (NN a) (, ,)) (VP (VB b)))", "(S (NP (NN a)) (, ,) (VP (VB b)))",
         Matches(3, 3, 3)),
        # and a bracket that holds nothing else is gone
        ("(S (PRN (: --)) (VB b))", "(S (: --) (VB b))", Matches(1, 1, 1)),
        # what is punctuation is told by the reference alone
        ("(S (NP (NN a) (, ,)) (VB b))", "(S (NP (XX a)) (XX ,) (XX b))", Matches(2, 2, 2)),
        # traces are not there
        ("(S (NP (-NONE- *)) (VP (VB b)))", "(S (VP (VB b)))", Matches(2, 2, 2)),
    ],
)  # fmt: skip
def test_it_counts_as_evalb_does(reference: str, parse: str, expected: Matches) -> None:
    assert matched(reference, parse) == expected


def test_what_is_not_matched_is_told_by_its_place() -> None:
    parse = tree(
        "(S (NP (DT the) (NN cat)) (VP (VBZ sits) (IN on)) (X (NP (DT the) (NN mat))) (. .))"
    )
    missed, wrong = differing_brackets(tree(REFERENCE), parse)
    named = [
        [one.label for place, one in enumerate(found.brackets()) if place in places]
        for found, places in ((tree(REFERENCE), missed), (parse, wrong))
    ]
    assert named == [["VP", "PP"], ["VP", "X"]]
    twice, once = tree("(S (NP (NP (NN a))) (VB b))"), tree("(S (NP (NN a)) (VB b))")
    assert differing_brackets(twice, once) == ({2}, set()), "the inner one of both"
    draw = random.Random(4)
    for _ in range(100):
        words = random_tree(draw, draw.randint(1, 12)).leaves()
        shapes = [random_tree(draw, len(words)) for _ in range(2)]
        both = [_over(shape, iter(words)) for shape in shapes]
        found = score_parse(*both).brackets
        missed, wrong = differing_brackets(*both)
        assert len(missed) == found.there - found.right
        assert len(wrong) == found.found - found.right


def _over(shape: Tree, leaves: Iterator[Tree]) -> Tree:
    """The shape over other words."""
    if shape.is_leaf:
        return next(leaves)
    return replace(shape, children=tuple(_over(child, leaves) for child in shape.children))


def test_sentences_of_punctuation_and_other_words() -> None:
    found = Parseval.of([score_parse(tree("(X (. !))"), tree("(X (XX !))"))])
    assert (found.sentences, found.skipped) == (0, 1) and found.scores["f1"] == 0
    with pytest.raises(DataError, match=r"word 2 is 'cat' in the reference and 'dog' in the parse"):
        matched("(NP (DT the) (NN cat))", "(NP (DT the) (NN dog))")
    with pytest.raises(DataError, match="word 2 is nothing more in the reference and 'dog'"):
        matched("(NP (DT the))", "(NP (DT the) (NN dog))")


def test_tags_that_begin_with_a_hyphen_differ() -> None:
    found = score_parse(tree("(X (-LRB- a) (NN b))"), tree("(X (-RRB- a) (NN b))"))
    assert found.tags == 1


def test_the_tables_by_length_and_label_add_up() -> None:
    draw = random.Random(1)
    both = [(random_tree(draw, draw.randint(1, 50)), draw) for _ in range(60)]
    found = Parseval.of(score_parse(one, _other(one, draw)) for one, draw in both)
    every = found.brackets
    assert sum(found.by_label.values(), Matches()) == every and every.right > 0
    assert every.right < min(every.there, every.found)
    lines = found.tables().splitlines()
    assert "41 words and more" in found.tables() and any(line.startswith("NP ") for line in lines)


def test_sentences_of_forty_words_are_short() -> None:
    """As EVALB's cut-off says: 40 words are, 41 are not."""
    words = {
        count: Tree("S", tuple(Tree("NN", word=f"w{i}") for i in range(count)))
        for count in (39, 40, 41)
    }
    found = Parseval.of(score_parse(one, one) for one in words.values())
    assert (found.sentences, len(found.short)) == (3, 2)


def _other(one: Tree, draw: random.Random) -> Tree:
    """Another tree over the same leaves, that has much in common with it."""
    if one.is_leaf or draw.random() < 0.2:
        return one
    children = tuple(_other(child, draw) for child in one.children)
    if draw.random() < 0.1:
        children = tuple(
            grandchild
            for child in children
            for grandchild in ((child,) if child.is_leaf else child.children)
        )
    if draw.random() < 0.1:
        children = (Tree(draw.choice(LABELS), children),)
    return replace(one, label=draw.choice((one.label, one.label, "NP")), children=children)


@pytest.mark.slow
def test_the_figures_are_those_of_evalb(tmp_path: Path) -> None:
    """EVALB (Sekine and Collins) with COLLINS.prm: $EVALB names the folder of both."""
    folder = Path(os.environ.get("EVALB", Path(shutil.which("evalb") or "/nowhere/evalb").parent))
    program, parameters = folder / "evalb", folder / "COLLINS.prm"
    if not (program.is_file() and parameters.is_file()):
        pytest.skip("EVALB is not here: set EVALB to the folder of evalb and COLLINS.prm")
    draw = random.Random(3)
    references = [random_tree(draw, draw.randint(1, 60)) for _ in range(500)]
    parses = [_other(one, draw) for one in references]
    for name, trees in (("reference", references), ("parse", parses)):
        (tmp_path / name).write_text("".join(f"(TOP {one})\n" for one in trees), encoding="utf-8")
    said = subprocess.run(
        [program, "-p", parameters, "-e", "1000", tmp_path / "reference", tmp_path / "parse"],
        capture_output=True, text=True, check=True, encoding="utf-8",
    ).stdout  # fmt: skip
    found = Parseval.of(map(score_parse, references, parses))
    every, short = said.split("-- All --")[1].split("-- len<=40 --")
    for figures, prefix in ((every, ""), (short, "_40")):
        named = {
            name.strip(): float(value)
            for name, value in re.findall(r"^(.*?)=\s+([\d.]+)$", figures, re.MULTILINE)
        }
        assert named["Number of Error sentence"] == 0
        assert named["Bracketing FMeasure"] == pytest.approx(found.scores[f"f1{prefix}"], abs=0.006)
        assert named["Complete match"] == pytest.approx(found.scores[f"exact{prefix}"], abs=0.006)
        if not prefix:
            assert named["Number of Skip  sentence"] == found.skipped
            assert named["Bracketing Recall"] == pytest.approx(
                100 * found.brackets.recall, abs=0.006
            )
            assert named["Bracketing Precision"] == pytest.approx(
                100 * found.brackets.precision, abs=0.006
            )
            assert named["Tagging accuracy"] == pytest.approx(found.scores["tags"], abs=0.006)


def test_shares_over_sums_are_those_of_a_drawn_test_set() -> None:
    """Matched, brackets of both, sentences, exact: also of one sentence, and of none."""
    sums = np.array([[3.0, 8.0, 4.0, 1.0], [2.0, 4.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    assert f1s(sums).tolist() == [75.0, 100.0, 0.0]
    assert exact_shares(sums).tolist() == [25.0, 100.0, 0.0]


def test_branches_to_the_right_have_the_labels_that_ends_of_sentences_have_most() -> None:
    texts = "(S (NP (N a)) (VP (V b) (VP (V c) (NP (N d)))))", "(S (NP (N a)) (VP (V b)))"
    drawn = RightBranching(list(map(tree, texts))).parse(["a", "b", "c"])
    assert [node.label for node in drawn.brackets()][:2] == ["S", "VP"]
