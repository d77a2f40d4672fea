"""What guessing scores."""

from __future__ import annotations

import random

import pytest

from dragoman.metrics.classification import Confusion
from dragoman.tasks.classification.chance import chance_of_labels
from dragoman.tasks.translation.chance import MIN_BLEU, chance_of_translations


@pytest.mark.parametrize("seed", range(5))
def test_the_most_frequent_label_is_counted_as_any_answer_is(seed: int) -> None:
    draw = random.Random(seed)
    true = draw.choices(range(4), weights=[5, 3, 2, 1], k=60)
    most = max(set(true), key=true.count)
    measured = Confusion.of(true, [most] * len(true), 4).scores
    guessed = chance_of_labels([f"label {one}" for one in true])
    assert {name: guessed[name] for name in measured} == pytest.approx(measured)


def test_a_guess_of_few_answers_means_nothing() -> None:
    assert chance_of_labels(["a", "b"] * 4) == {} and chance_of_labels(["a"] * 20) == {}
    assert chance_of_translations([["Ein Hund."] * 9], "de") == {"bleu": MIN_BLEU}
    assert chance_of_translations([["Ein Hund läuft weg."] * 12], "de")["bleu"] > 99
