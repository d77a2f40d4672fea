"""A sane size and schedule of a model that labels recordings or pictures, when a user gives nothing
but the files: a folder with a folder for each label, or a pair of IDX files.

``FILE_TABLE`` is what is chosen: the number of examples chooses a row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dragoman.data.corpora import read_pairs
from dragoman.data.corpus_settings import CorpusSettings
from dragoman.data.file_examples import recordings_in
from dragoman.data.split import SplitSettings
from dragoman.errors import DataError, RecipeError
from dragoman.forms.labels import plain
from dragoman.forms.rows.idx import is_idx, read_idx
from dragoman.forms.rows.recordings import rate_of
from dragoman.forms.rows.settings import FramesSource, PictureSource, RowsSource
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.sizing.families import DEFAULT, shape_of, training_of
from dragoman.sizing.size import Size, data_of, like, row_of
from dragoman.specs.catalogue import TASKS

FILE_TABLE = (
    Size(5_000, 0, 96, 4, 4, 0.2, 2_048, 200, 2e-3, 40),
    Size(50_000, 0, 128, 4, 4, 0.2, 4_096, 500, 1.5e-3, 20),
    Size(float("inf"), 0, 128, 4, 6, 0.1, 6_272, 500, 1.5e-3, 12),
)
"""``tokens_per_update`` counts frames or patches. Chosen on spoken and on written digits
(docs/experiments.md)."""

_CONTEXT = 3_000
"""Frames that are read of a recording: half a minute."""
_PATCHES = (4, 7, 8, 2, 16, 14, 5, 6, 3, 10, 1)
"""Sides of a patch, the one that is tried first in front."""


def corpus_of_files(inputs: Sequence[str], groups: str | None = None) -> CorpusSettings | None:
    """The corpus of a folder of recordings, or of two IDX files; None where inputs are neither.

    ``groups``: how the name of a file tells its group (``CorpusSettings.group_pattern``).
    """
    paths = [str(Path(one).absolute()) for one in inputs]
    if len(paths) == 2 and all(map(is_idx, paths)):
        return CorpusSettings(source=paths[0], target=paths[1], group_pattern=groups)
    is_folder = len(paths) == 1 and Path(paths[0]).is_dir()
    if is_folder and next(recordings_in(Path(paths[0])), None) is not None:
        return CorpusSettings(source=paths[0], format="folders", group_pattern=groups)
    return None


def recipe_for_files(
    train: CorpusSettings,
    dev: CorpusSettings | None,
    test: CorpusSettings | None,
    base: str | None = None,
    family: str = DEFAULT,
) -> tuple[Recipe, float | None]:
    """A recipe for labelled files, by ``FILE_TABLE`` or by the recipe ``base``, and how many epochs
    it wants (None: ``base`` says how long). ``family``: of the model (``families.py``).

    Errors: ``DataError`` for files that cannot be used, ``RecipeError`` for a family whose models
    read no rows.
    """
    if family != DEFAULT:
        raise RecipeError(
            f"--model {family} labels texts alone; recordings and pictures are read by --model "
            f"{DEFAULT}"
        )
    examples, first, labels, groups = 0, "", set[str](), Counter[str]()
    for pair in read_pairs(train):
        examples += 1
        groups[pair.group] += train.groups_by is not None
        first = first or pair.source
        labels.add(plain(pair.target))
    if len(labels) < 2:
        raise DataError(
            f"{train.source}: {plural(examples, 'example')}, and one label, "
            f"{next(iter(labels))!r}: there is nothing to tell apart. Give examples of two labels "
            "at least"
        )
    source = _source_of(train, first)
    about: dict[str, Any] = {
        "name": Path(train.source).name.split(".")[0],
        "data": data_of([train], examples, dev, test),
        "source": source.model_dump(),
    }
    if train.groups_by is not None:
        split = SplitSettings.model_validate(about["data"]["split"])
        about["data"]["split"] = split.for_whole(groups, most=math.inf).model_dump()
    if base is not None:
        return like(Recipe.load(base), about), None
    row = row_of(FILE_TABLE, examples)
    model, context = shape_of(family, TASKS["classification"])(row), _CONTEXT
    if isinstance(source, PictureSource):
        context = max(2, source.patches)
        model["positions"] = {"kind": "learned", "maximum": context}
    values = {
        **about,
        "task": "classification",
        "data": about["data"] | {"cleaning": {"max_length": 0}},
        "model": model,
        "plan": row.plan | {"context": context},
        "training": {**training_of(family, row, "cosine"), "label_smoothing": 0.1},
    }
    return Recipe.parse(values), row.epochs


def _source_of(corpus: CorpusSettings, first: str) -> RowsSource:
    """What is read of such files, by the first of them."""
    if not is_idx(corpus.source):
        rate = rate_of(Path(first))
        return FramesSource(rate=rate, subsample=2)
    shape = read_idx(Path(corpus.source)).shape[1:]
    if len(shape) not in (2, 3):
        raise DataError(
            f"{corpus.source} holds {plural(len(shape), 'size')} of each example; pictures have "
            "two, or three in colour"
        )
    height, width = shape[:2]
    patch = next(side for side in _PATCHES if not height % side and not width % side)
    about = {"height": height, "width": width, "patch": patch, "channels": (*shape, 1)[2]}
    try:
        return PictureSource.model_validate(about)
    except ValidationError as error:
        told = " x ".join(map(str, shape))
        raise DataError(
            f"{corpus.source}: pictures of {told} cannot be read: {error.errors()[0]['msg']}"
        ) from error
