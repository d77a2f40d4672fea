"""A sane model, size and schedule of a painter, when a user gives nothing but pictures, their
captions and a run that has learned codes.

``PAINTING_TABLE`` is what is chosen: the number of captions chooses a row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.recipe.recipe import Recipe
from dragoman.recipe.spec import Spec
from dragoman.sizing.builder import CorpusSummary, Sections, check_default
from dragoman.sizing.inputs import Inputs, absolute
from dragoman.sizing.size import Size
from dragoman.sources.picture.codes_form import CODES, CodeSymbols
from dragoman.tasks.codes.sizes import PicturesBuilder, pictures_corpus
from dragoman.tasks.painting.spec import PAINTING, codes_run

PAINTING_TABLE = (
    Size(20_000, 2_000, 128, 4, 3, 0.1, 2_048, 200, 1.5e-3, 20),
    Size(100_000, 8_000, 192, 6, 4, 0.1, 4_096, 500, 1e-3, 15),
    Size(float("inf"), 16_000, 256, 8, 6, 0.1, 8_192, 2_000, 7e-4, 8),
)
"""``tokens_per_update`` counts codes. A first choice, tried on pictures of shapes."""

_SAMPLE_SIZE = 100
_CAPTION = 128
"""Tokens of a caption."""
_MANY = 4
"""Pictures of a caption, on average, from which on paintings are drawn and not searched for."""


class PaintingBuilder(PicturesBuilder):
    """Pictures and their captions."""

    task: ClassVar[Spec] = PAINTING
    table: ClassVar[Sequence[Size]] = PAINTING_TABLE
    name_tells = False

    def check(self, inputs: Inputs) -> None:
        inputs.refuse(("texts", "label_ends"), " does not go with pictures and their captions")
        check_default(inputs, "captions and pictures", "learn from them")
        self.check_whole(inputs)

    def corpus(self, inputs: Inputs) -> CorpusSettings:
        return pictures_corpus(inputs).model_copy(update={"holds": "captions"})

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        amount, captions = 0, list[str]()
        for pair in read_pairs(corpus):
            amount += 1
            if not pair.source.strip():
                raise DataError(f"{corpus.name}, line {pair.line}: the caption is empty")
            if amount <= _SAMPLE_SIZE:
                captions.append(pair.source)
        return CorpusSummary(amount, amount, captions)

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        # Where a caption has many pictures, each as right as another, no picture is exact, and the
        # most probable one says little.
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

    def begun(
        self, recipe: Recipe, epochs: float | None, inputs: Inputs
    ) -> tuple[Recipe, float | None]:
        """With the codes that are named, and room for those of a picture."""
        recipe, epochs = super().begun(recipe, epochs, inputs)
        if inputs.codes is None:  # the recipe may name some
            return recipe, epochs
        if inputs.start_from is not None:
            raise RecipeError(
                "--codes goes with a new painter; one that goes on from another (--from) keeps its "
                "codes: leave it out"
            )
        run = codes_run(inputs.codes)
        wanted = CodeSymbols.load(run / CODES).places + 1
        changes = [f"painting.codes={json.dumps(absolute(inputs.codes))}"]
        if inputs.base is None:
            longest = max(_CAPTION, wanted)
            changes += [
                f"plan.max_target={wanted}", 'model.positions.kind="learned"',
                f"model.positions.maximum={longest}",
            ]  # fmt: skip
        return recipe.change(changes), epochs
