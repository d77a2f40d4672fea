"""A sane size and schedule of a model that labels texts, when a user gives nothing but examples.

``LABEL_TABLE`` is what is chosen: the number of examples chooses a row. In which column the labels
stand is found out: they repeat, and texts rarely do. A run that is begun from gives the model, and
the schedule is then a gentle one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.data.corpora import CorpusSettings, read_pairs
from dragoman.errors import DataError
from dragoman.forms.identification import language_of
from dragoman.forms.labels import MOST, plain
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.sizing.families import DEFAULT, shape_of, training_of
from dragoman.sizing.size import Size, data_of, like, row_of
from dragoman.specs.catalogue import TASKS

LABEL_TABLE = (
    Size(2_000, 2_000, 64, 4, 1, 0.3, 1_024, 50, 2e-3, 30),
    Size(20_000, 8_000, 128, 4, 2, 0.3, 4_096, 200, 1.5e-3, 15),
    Size(200_000, 16_000, 256, 8, 3, 0.2, 8_192, 500, 1e-3, 8),
    Size(float("inf"), 16_000, 256, 8, 4, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""A first choice that was not tuned; docs/labels.md shows it to users."""

EPOCHS_FROM = 4
"""Epochs of a run that begins with the weights of another one, which has read text already."""


def recipe_for_labels(
    train: CorpusSettings,
    dev: CorpusSettings | None,
    test: CorpusSettings | None,
    language: str,
    base: str | None = None,
    family: str = DEFAULT,
) -> tuple[Recipe, float | None]:
    """A recipe for labelled texts, by ``LABEL_TABLE`` or by the recipe ``base``, and how many
    epochs it wants (None: ``base`` says how long). ``family``: of the model (``families.py``).

    Errors: ``DataError`` for files that cannot be used.
    """
    examples = 0
    first: list[str] = []
    labels: set[str] = set()
    for pair in read_pairs(train):
        examples += 1
        if examples <= 100:
            first.append(pair.source)
        if len(labels) <= MOST:
            labels.add(plain(pair.target))
    if len(labels) < 2:
        raise DataError(
            f"{train.source}: {plural(examples, 'line')}, and one label, {next(iter(labels))!r}: "
            "there is nothing to tell apart. Give examples of two labels at least"
        )
    if language == "und":
        language = language_of(first)
    about: dict[str, Any] = {
        "name": Path(train.source).name.split(".")[0],
        "languages": {"source": language},
        "data": data_of([train], examples, dev, test),
    }
    if base is not None:
        if language == "und":
            del about["languages"]
        return like(Recipe.load(base), about), None
    row = row_of(LABEL_TABLE, examples)
    values = {
        **about,
        "task": "classification",
        "data": about["data"] | {"cleaning": {"max_length": 0}},
        "text": {"vocabulary": row.vocabulary, "character_coverage": 0.9999},
        "model": shape_of(family, TASKS["classification"])(row),
        "plan": row.plan,
        "training": {**training_of(family, row, "cosine"), "label_smoothing": 0.0},
    }
    return Recipe.parse(values), row.epochs
