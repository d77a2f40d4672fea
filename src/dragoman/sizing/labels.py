"""A sane size and schedule of a model that labels texts, when a user gives nothing but examples.

``LABEL_TABLE`` is what is chosen: the number of examples chooses a row. In which column the labels
stand is found out: they repeat, and texts rarely do. A run that is begun from gives the model, and
the schedule is then a gentle one.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.data.corpora import CorpusSettings, read_pairs
from dragoman.errors import DataError, RecipeError
from dragoman.forms.identification import language_of
from dragoman.forms.labels import MOST, plain
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.sizing.families import DEFAULT, shape_of, training_of
from dragoman.sizing.size import Size, data_of, like, row_of
from dragoman.specs.catalogue import TASKS

_LOOKED_AT = 20_000
"""Examples by which columns are told apart."""
COLUMNS = "label,text", "text,label"


LABEL_TABLE = (
    Size(2_000, 2_000, 64, 4, 1, 0.3, 1_024, 50, 2e-3, 30),
    Size(20_000, 8_000, 128, 4, 2, 0.3, 4_096, 200, 1.5e-3, 15),
    Size(200_000, 16_000, 256, 8, 3, 0.2, 8_192, 500, 1e-3, 8),
    Size(float("inf"), 16_000, 256, 8, 4, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""A first choice that was not tuned; docs/recipes.md shows it for users."""

EPOCHS_FROM = 4
"""Epochs of a run that begins with the weights of another one, which has read text already."""


def labelled_corpus(path: str, columns: str | None, keys: tuple[str, str] | None) -> CorpusSettings:
    """A file of labelled texts, and where in it texts and labels are.

    ``columns``: one of ``COLUMNS``, or the numbers of both (``numbered``), of a tab-separated file;
    None: found out. ``keys``: of JSON
    Lines, where the text and where the label is.
    Errors: ``DataError`` for a file that cannot be used, ``RecipeError`` for other columns, or
    where it cannot be told which column holds the labels.
    """
    if keys is not None:
        return CorpusSettings(source=path, source_key=keys[0], target_key=keys[1])
    if not is_tabbed(path):
        return CorpusSettings(source=path, source_key="text", target_key="label")
    if columns is None:
        columns = _columns_found(path)
    named = {"label,text": (2, 1), "text,label": (1, 2)}
    text, label = named[columns] if columns in named else numbered(columns)
    return CorpusSettings(source=path, format="tsv", source_column=text, target_column=label)


def numbered(columns: str) -> tuple[int, int]:
    """``--columns 2,3``: the column of the source, or of the text, and that of the target, or of
    the label, counted from 1. Errors: ``RecipeError``."""
    first, comma, second = (part.strip() for part in columns.partition(","))
    if not comma or not all(one.isdecimal() and 0 < int(one) <= 1_000 for one in (first, second)):
        raise RecipeError(
            f"--columns {columns}: give two numbers such as 2,3 (source and target, or text and "
            f"label, counted from 1), or for labelled texts {' or '.join(COLUMNS)}"
        )
    if int(first) == int(second):
        raise RecipeError(f"--columns {columns}: name two different columns")
    return int(first), int(second)


def is_tabbed(path: str) -> bool:
    """Whether a file of labelled texts is tab-separated, and not JSON Lines, by its name."""
    return not path.removesuffix(".gz").lower().endswith((".jsonl", ".ndjson", ".json"))


def _columns_found(path: str) -> str:
    """Of the first two columns, the one with fewer different values holds the labels."""
    different: tuple[set[str], set[str]] = (set(), set())
    lines = 0
    pairs = read_pairs(CorpusSettings(source=path, format="tsv"))
    for pair in islice(pairs, _LOOKED_AT):
        lines += 1
        for values, value in zip(different, (pair.source, pair.target), strict=True):
            values.add(plain(value))
    first, second = map(len, different)
    fewer = min(first, second)
    if first == second or (lines > 20 and fewer > lines / 2):
        raise RecipeError(
            f"{path}: it cannot be told which column holds the labels: among {lines:,} lines the "
            f"first has {first:,} different values and the second {second:,}. Say it: --columns "
            f"{' or --columns '.join(COLUMNS)}"
        )
    return COLUMNS[0] if first < second else COLUMNS[1]


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
