"""Accuracy and macro F1, by hand and by another program."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.metrics.classification import Confusion, accuracies, macro_f1s, statistics_of

TRUE = [0, 0, 0, 0, 1, 1, 2, 2]
CHOSEN = [0, 0, 0, 1, 1, 2, 2, 2]


def test_figures_are_those_of_a_table_made_by_hand() -> None:
    found = Confusion.of(TRUE, CHOSEN, 3)
    assert found.counts.tolist() == [[3, 1, 0], [0, 1, 1], [0, 0, 2]]
    assert found.texts == 8 and found.accuracy == 6 / 8
    assert found.precision.tolist() == pytest.approx([1, 1 / 2, 2 / 3])
    assert found.recall.tolist() == pytest.approx([3 / 4, 1 / 2, 1])
    assert found.f1.tolist() == pytest.approx([6 / 7, 1 / 2, 4 / 5])
    assert found.macro_f1 == pytest.approx((6 / 7 + 1 / 2 + 4 / 5) / 3)
    assert found.scores == {"accuracy": 75.0, "macro_f1": pytest.approx(100 * found.macro_f1)}
    assert found.mistaken() == [(0, 1, 1), (1, 2, 1)]


def test_a_rare_label_counts_as_much_as_a_frequent_one() -> None:
    always = Confusion.of([0] * 99 + [1], [0] * 100, 2)
    assert always.accuracy == 0.99
    assert always.macro_f1 == pytest.approx((2 * 99 / 199 + 0) / 2)


def test_a_label_that_nothing_has_and_nothing_gets_is_left_out() -> None:
    """One that is chosen wrongly is not: it has an F1 of 0."""
    assert Confusion.of(TRUE, CHOSEN, 5).macro_f1 == Confusion.of(TRUE, CHOSEN, 3).macro_f1
    wrong = Confusion.of([0, 0], [0, 1], 2)
    assert wrong.f1.tolist() == pytest.approx([2 / 3, 0]) and wrong.macro_f1 == pytest.approx(1 / 3)
    assert Confusion.of([], [], 2).scores == {"accuracy": 0.0, "macro_f1": 0.0}


def test_sums_of_statistics_give_the_same_figures() -> None:
    """What tests of significance draw sets of texts by."""
    sums = statistics_of(TRUE, CHOSEN, 5).sum(axis=0)[None]
    found = Confusion.of(TRUE, CHOSEN, 5).scores
    assert accuracies(sums).tolist() == pytest.approx([found["accuracy"]])
    assert macro_f1s(sums).tolist() == pytest.approx([found["macro_f1"]])


def test_another_program_finds_the_same() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(1)
    true, chosen = draw.integers(0, 7, 500), draw.integers(0, 9, 500)
    found = Confusion.of(true.tolist(), chosen.tolist(), 12)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(true, chosen))
    macro = metrics.f1_score(true, chosen, average="macro", zero_division=0)
    assert found.macro_f1 == pytest.approx(macro)
