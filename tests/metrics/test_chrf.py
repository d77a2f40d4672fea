"""chrF between all pairs at once is sacreBLEU's of each pair alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from dragoman.metrics import chrf
from dragoman.metrics.chrf import ORDERS, f_score, pairwise_chrf

CORNERS = ["", " ", "a", "aa", "aaaa", "a a", "abcabcabc", "Ein Hund.", "ein hund .", "개가 길을"]


def by_sacrebleu(texts: list[str]) -> np.ndarray:
    metric = sacrebleu.CHRF()
    return np.array([[metric.sentence_score(a, [b]).score for b in texts] for a in texts])


@given(st.lists(st.text("ab \u00e4\U0001f600", max_size=14), max_size=6))
def test_every_pair_is_sacrebleus(texts: list[str]) -> None:
    found = pairwise_chrf(texts)
    assert found.shape == (len(texts), len(texts))
    if texts:
        np.testing.assert_allclose(found, by_sacrebleu(texts), atol=1e-9)


def test_sentences_and_corners_are_sacrebleus(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3)
    words = [
        "Der",
        "kleine",
        "Mann",
        "isst",
        "den",
        "Dinosaurier",
        ",",
        "weil",
        "er",
        "müde",
        "ist",
        ".",
    ]
    texts = [*CORNERS, *(" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(20))]
    expected = by_sacrebleu(texts)
    np.testing.assert_allclose(pairwise_chrf(texts), expected, atol=1e-9)
    # The same where the columns do not fit into one block.
    monkeypatch.setattr(chrf, "_COLUMNS_AT_ONCE", 7)
    np.testing.assert_allclose(pairwise_chrf(texts), expected, atol=1e-9)


def test_a_text_is_its_own_best_match_and_bytes_that_are_no_text_are_carried() -> None:
    found = pairwise_chrf(["Der Hund schläft.", "bad \udcff byte", "Eine Katze"])
    assert np.diag(found) == pytest.approx(100)
    assert (found - np.diag(np.diag(found)) < 100).all()


def test_what_does_not_occur_scores_nothing() -> None:
    assert f_score(np.zeros((2, 3 * ORDERS))).tolist() == [0, 0]
