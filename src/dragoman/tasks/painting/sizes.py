"""A sensible model, size and schedule for a painter, if a user gives only pictures, their captions
and a run that has learned codes.

The number of captions chooses a row of ``PAINTING_TABLE``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Pair
from dragoman.runs.recipe.recipe import Recipe
from dragoman.sizing.builder import CorpusSummary, Sections
from dragoman.sizing.options import absolute
from dragoman.sizing.size import DEFAULT, Size
from dragoman.sources.picture.codes_form import CODES, CodeSymbols
from dragoman.tasks.codes.sizes import PicturesBuilder
from dragoman.tasks.painting.form import codes_run

PAINTING_TABLE = (
    Size(20_000, 2_000, 128, 4, 3, 0.1, 2_048, 200, 1.5e-3, 20),
    Size(100_000, 8_000, 192, 6, 4, 0.1, 4_096, 500, 1e-3, 15),
    Size(float("inf"), 16_000, 256, 8, 6, 0.1, 8_192, 2_000, 7e-4, 8),
)
"""Sizes by the number of captions; ``tokens_per_update`` counts codes. They are a first choice,
tried only on pictures of shapes."""

_CAPTION = 128
"""The most tokens of a caption."""
_MANY = 4
"""If a caption has this many pictures on average, or more, pictures are drawn at random."""


class PaintingBuilder(PicturesBuilder):
    """Builds the recipe for pictures and their captions."""

    table = PAINTING_TABLE
    name_tells = False
    fits = ("columns", "codes")
    only_default = f": captions and pictures need --model {DEFAULT}. For others, write a recipe"

    def corpus(self) -> CorpusSettings:
        return super().corpus().model_copy(update={"holds": "captions"})

    def labels_of(self, corpus: CorpusSettings, pair: Pair) -> Iterable[str]:
        if not pair.source.strip():
            raise DataError(f"{corpus.name}, line {pair.line}: the caption is empty")
        return ()

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        # If a caption has many pictures, all equally right, then no picture is exact, and the most
        # probable one says little.
        is_open = _MANY * len(set(seen.texts)) <= len(seen.texts)
        training: dict[str, Any] = {"label_smoothing": 0.0, "average_last": 5}
        search = {"beam": 1, "sampling": {"temperature": 1.0}} if is_open else {"beam": 4}
        return {
            "data": {"cleaning": {"max_length": 0, "max_length_ratio": 0}},
            "text": {"shared": False, "character_coverage": 1.0},
            "model": {"tie": "target", "norm": "pre"},
            "plan": {"max_source": _CAPTION},
            "training": training | ({"metric": "loss"} if is_open else {}),
            "search": {**search, "length_penalty": 0.0},
            "evaluation": {"dev_sentences": 200, "dev_beam": 1},
        }

    def with_start(self, recipe: Recipe, epochs: float | None) -> tuple[Recipe, float | None]:
        """Return the recipe, with the codes of ``--codes`` and positions for all codes of a
        picture, and the epochs."""
        recipe, epochs = super().with_start(recipe, epochs)
        if self.options.codes is None:  # the recipe may name some
            return recipe, epochs
        if self.learned is not None:
            raise RecipeError(
                "--codes works only with a new painter; with --from, the codes of that run are "
                "kept. Leave it out"
            )
        wanted = CodeSymbols.load(codes_run(self.options.codes) / CODES).places + 1
        changes = [f"painting.codes={json.dumps(absolute(self.options.codes))}"]
        if self.base is None:
            longest = max(_CAPTION, wanted)
            changes += [
                f"plan.max_target={wanted}", 'model.positions.kind="learned"',
                f"model.positions.maximum={longest}",
            ]  # fmt: skip
        return recipe.change(changes), epochs
