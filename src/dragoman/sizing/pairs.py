"""A sane size and schedule for a corpus, when a user gives nothing but two files.

``TABLE`` is the whole wisdom: the number of pairs chooses a row. Minutes become a number of
updates once, by a short measurement on this machine, and that number is written into the recipe;
from then on the run is as reproducible as any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.data.corpora import CorpusSettings, read_pairs
from dragoman.errors import DataError
from dragoman.recipe import Recipe
from dragoman.sizing.families import DEFAULT, shape_of, training_of
from dragoman.sizing.languages import known_of
from dragoman.sizing.size import Size, data_of, like, row_of
from dragoman.specs.catalogue import TASKS

if TYPE_CHECKING:
    pass


TABLE = (
    Size(5_000, 2_000, 128, 4, 2, 0.3, 2_048, 400, 3e-3, 100),
    Size(100_000, 8_000, 256, 8, 3, 0.3, 4_096, 1_000, 2e-3, 40),
    Size(1_000_000, 16_000, 256, 8, 4, 0.2, 8_192, 2_000, 1.5e-3, 15),
    Size(10_000_000, 32_000, 512, 8, 6, 0.1, 16_384, 4_000, 7e-4, 6),
    Size(float("inf"), 37_000, 512, 8, 6, 0.1, 25_000, 4_000, 7e-4, 3),
)
"""Chosen by experience with corpora of these sizes; docs/training.md shows it to users."""


_BYTES_A_TOKEN = 3.3
"""Of UTF-8, in a vocabulary of some thousand tokens: about as many in any script."""
_LOOKED_AT = 100_000


def row_for(pairs: int) -> Size:
    """The row of ``TABLE`` for so many pairs: what suits them if time does not matter."""
    return row_of(TABLE, pairs)


def recipe_for(
    train: Sequence[CorpusSettings],
    dev: CorpusSettings | None,
    test: CorpusSettings | None,
    languages: tuple[str, str],
    base: str | None = None,
    size_for: Callable[[int, float], Size] | None = None,
    family: str = DEFAULT,
) -> tuple[Recipe, int]:
    """A recipe for these files, by their number of pairs (``TABLE``) or by the recipe ``base``, and
    how many pairs there are. It is named by its languages, or by the first file where they are not
    known. ``size_for``: a size for so many pairs, whose targets have so many tokens about.
    ``family``: of the model (``families.py``).

    Of ``base`` everything is taken but its text (train, dev, test and what is held out of them),
    and its languages where ``languages`` do not say them.
    Errors: ``DataError`` for files that cannot be used.
    """
    pairs, sources, length = _look(train)
    model = None if base is None else Recipe.load(base)
    if model is not None:
        languages = known_of(languages, model.languages)
    name = "-".join(languages)
    if "und" in languages:
        name = Path(train[0].source).name.split(".")[0]
    source, target = languages
    about = {
        "name": name,
        "languages": {"source": source, "target": target},
        "data": data_of(train, sources, dev, test),
    }
    if model is not None:
        return like(model, about), pairs
    size = row_for(pairs) if size_for is None else size_for(pairs, length)
    values = {
        **about,
        "text": {"vocabulary": size.vocabulary, "character_coverage": 0.9999},
        "model": shape_of(family, TASKS["translation"])(size),
        "plan": size.plan,
        "training": {**training_of(family, size, "inverse_square_root"), "average_last": 5},
    }
    return Recipe.parse(values), pairs


def _look(corpora: Sequence[CorpusSettings]) -> tuple[int, int, float]:
    """Pairs, different sources, and about how many tokens a target has. Behind the first pairs
    every source counts as different."""
    total = sources = looked_at = written = 0
    for corpus in corpora:
        pairs = read_pairs(corpus)
        different: set[int] = set()
        for pair in islice(pairs, _LOOKED_AT):
            total += 1
            different.add(hash(pair.source or pair.target))
            looked_at += 1
            written += len(pair.target.encode("utf-8", "surrogateescape"))
        more = sum(1 for _ in pairs)
        total += more
        sources += len(different) + more
    if not total:
        raise DataError("the corpora hold no pair")
    return total, sources, written / looked_at / _BYTES_A_TOKEN
