"""A sane size and schedule of a tagger, when a user gives nothing but tagged words.

``TAG_TABLE`` is what is chosen: the number of sentences chooses a row. A run that is begun from
gives the model, and the schedule is then a gentle one.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.data.columns import numbered
from dragoman.data.corpora import CorpusSettings, files_of, read_lines, read_pairs
from dragoman.data.tagged import CONLLU_COLUMNS, columns_of, is_conllu, layout_of
from dragoman.errors import DataError
from dragoman.forms.identification import language_of
from dragoman.metrics.tagging import is_iob
from dragoman.recipe import Recipe
from dragoman.sizing.families import DEFAULT, shape_of, training_of
from dragoman.sizing.size import Size, data_of, like, row_of
from dragoman.specs.catalogue import TASKS

_LOOKED_AT = 200
_LANGUAGE_OF = 100
"""Sentences by which the language is told."""

TAG_TABLE = (
    Size(1_000, 1_000, 128, 4, 2, 0.3, 1_024, 50, 2e-3, 60),
    Size(10_000, 2_000, 128, 4, 3, 0.3, 1_024, 200, 2e-3, 15),
    Size(100_000, 8_000, 256, 8, 4, 0.2, 8_192, 500, 1e-3, 15),
    Size(float("inf"), 16_000, 256, 8, 6, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""The size of a tagger by the number of sentences; docs/tags.md shows it to users."""


def tagged_corpus(path: str, columns: str | None, keys: tuple[str, str] | None) -> CorpusSettings:
    """A file of tagged words, or a folder of such files, and where in it words and tags are.

    ``columns``: the numbers of both; None: the first and the last, in CoNLL-U those of words and
    parts of speech. ``keys``: of JSON Lines, where a line of words and where their tags are.
    Errors: ``DataError`` for a file that cannot be used, ``RecipeError`` for other columns.
    """
    if keys is not None:
        return CorpusSettings(source=path, source_key=keys[0], target_key=keys[1], format="jsonl")
    corpus = CorpusSettings(source=path, format="tags")
    first = files_of(path)[0]
    lines = list(islice(read_lines(first), _LOOKED_AT))
    if columns is not None:
        word, tag = numbered(columns)
    elif layout_of(lines, first) != "columns":
        return corpus
    elif is_conllu(lines):
        word, tag = CONLLU_COLUMNS
    else:
        word, tag = 1, columns_of(lines)
    return corpus.model_copy(update={"source_column": word, "target_column": tag})


def recipe_for_tags(
    train: CorpusSettings,
    dev: CorpusSettings | None,
    test: CorpusSettings | None,
    language: str,
    base: str | None = None,
    family: str = DEFAULT,
) -> tuple[Recipe, float | None]:
    """A recipe for tagged words, by ``TAG_TABLE`` or by the recipe ``base``, and how many epochs it
    wants (None: ``base`` says how long). ``family``: of the model (``families.py``).

    Errors: ``DataError`` for files that cannot be used.
    """
    sentences = 0
    first: list[str] = []
    tags: set[str] = set()
    for pair in read_pairs(train):
        sentences += 1
        if sentences <= _LANGUAGE_OF:
            first.append(pair.source)
        tags.update(pair.target.split())
    if not sentences:
        raise DataError(f"{train.source} holds no sentence")
    if language == "und":
        language = language_of(first)
    about: dict[str, Any] = {
        "name": Path(train.source).name.split(".")[0],
        "languages": {"source": language},
        "data": data_of([train], sentences, dev, test),
    }
    if base is not None:
        if language == "und":
            del about["languages"]
        return like(Recipe.load(base), about), None
    row = row_of(TAG_TABLE, sentences)
    training = {
        **training_of(family, row, "cosine"),
        "label_smoothing": 0.0,
        "metric": "f1" if is_iob(tags) else "accuracy",
    }
    values = {
        **about,
        "task": "tagging",
        "data": about["data"] | {"cleaning": {"max_length": 0}},
        "text": {
            "vocabulary": row.vocabulary, "character_coverage": 0.9999, "sampling": 0.1,
        },
        "model": shape_of(family, TASKS["tagging"])(row),
        "plan": row.plan,
        "training": training,
    }  # fmt: skip
    return Recipe.parse(values), row.epochs
