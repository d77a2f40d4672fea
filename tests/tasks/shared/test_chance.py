"""What guessing scores."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from recipe_of_files import recipe_of

from dragoman.metrics.classification import Confusion
from dragoman.tasks.classification.runtime import chance_of_labels
from dragoman.tasks.shared.progress_made import MIN_BLEU, chance_of_translations, training_answers


@pytest.mark.parametrize("seed", range(5))
def test_the_most_frequent_label_is_counted_as_any_answer_is(seed: int) -> None:
    draw = random.Random(seed)
    true = draw.choices(range(4), weights=[5, 3, 2, 1], k=60)
    most = max(set(true), key=true.count)
    measured = Confusion.of(true, [most] * len(true), 4).scores
    labels = [f"label {one}" for one in true]
    guessed = chance_of_labels(labels, [f" label {most}", "label 0", f"label {most}"])
    assert {name: guessed[name] for name in measured} == pytest.approx(measured)


def test_a_guess_of_few_answers_means_nothing() -> None:
    assert chance_of_labels(["a", "b"] * 4, ["a"]) == {} == chance_of_labels(["a"] * 20, ["a"])
    assert chance_of_labels(["a", "b"] * 20, []) == {}
    dog = "Ein Hund läuft weg."
    assert chance_of_translations([[dog] * 9], [dog], "de") == {"bleu": MIN_BLEU}
    assert chance_of_translations([[dog] * 12], [], "de") == {"bleu": MIN_BLEU}
    assert chance_of_translations([[dog] * 12], [dog], "de")["bleu"] > 99


def test_a_guess_knows_the_answers_of_training_alone() -> None:
    """A text that all references share is no guess of a run that has never read it."""
    dog, cat = "Ein Hund läuft schnell weg.", "Die Katze schläft auf dem Dach."
    assert chance_of_translations([[dog] * 12], [cat] * 5 + [dog], "de")["bleu"] < 2
    assert chance_of_labels(["a"] * 15 + ["b"] * 5, ["b", "b", "a"])["accuracy"] == 25


def test_answers_of_training_are_spread_over_its_text(tmp_path: Path) -> None:
    path = tmp_path / "some.tsv"
    path.write_text("".join(f"a {n}\tein {n}\n" for n in range(4_500)), "utf-8")
    recipe, _ = recipe_of([str(path)])
    found = training_answers(recipe)
    assert 1_000 < len(found) <= 2_000 and len(set(found)) == len(found)
    assert int(found[-1].split()[1]) > 4_400
    path.unlink()
    assert training_answers(recipe) == []
