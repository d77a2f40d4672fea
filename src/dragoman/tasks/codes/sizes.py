"""A sensible size and schedule for an autoencoder, if a user gives only pictures.

The number of pictures chooses a row of ``CODES_TABLE``. If there are many captions, these decide
which pictures are held out, so that a painter that learns from the same list holds out the same
ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import ClassVar

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.columns import is_tabbed, listed_corpus
from dragoman.data.files.corpora import naming_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections
from dragoman.sizing.options import absolute
from dragoman.sizing.size import DEFAULT, Size
from dragoman.sources.file_examples import source_of_files
from dragoman.sources.picture.form import PictureSource
from dragoman.sources.picture.idx import is_idx

CODES_TABLE = (
    Size(20_000, 0, 64, 0, 2, 0.0, 1_024, 100, 2e-3, 20),
    Size(100_000, 0, 96, 0, 2, 0.0, 2_048, 300, 1.5e-3, 12),
    Size(float("inf"), 0, 128, 0, 3, 0.0, 4_096, 500, 1e-3, 6),
)
"""``layers`` is the number of blocks before the codes; ``tokens_per_update`` counts patches."""

_SIDES = (8, 7, 4, 6, 5, 2, 3, 1)
"""Sides of the square of pixels for one code, in the order in which they are tried."""
_LOOKED_AT = 20_000
_CAPTIONS = 50
"""The fewest different captions for a split by captions: with ten names of digits, one held-out
name would take a tenth of the pictures with it."""


class PicturesBuilder(RecipeBuilder):
    """Builds recipes for pictures (a list, folders or IDX files), with captions or labels."""

    is_named = True
    fits: ClassVar[Collection[str]] = ("columns",)
    is_whole = True
    held_as = ("one list or folder, as for training", "two IDX files, as for training")

    def corpus(self) -> CorpusSettings:
        """The corpus of the inputs. Errors: ``RecipeError`` for inputs that are not pictures."""
        names = self.options.inputs
        if len(names) == 2 and all(map(is_idx, names)):
            return CorpusSettings(source=self.options.first, target=absolute(names[1]))
        if len(names) == 1:
            return self.file_at(self.options.first)
        raise self._no_pictures()

    def file_at(self, path: str) -> CorpusSettings:
        if Path(path).is_dir():
            return CorpusSettings(source=path, format="folders")
        listed = listed_corpus(path, self.options.columns, self.options.keys)
        if listed is None:
            raise self._no_pictures()
        return _by_captions(listed)

    def _no_pictures(self) -> RecipeError:
        return RecipeError(
            f"{' '.join(self.options.inputs)}: give a list of pictures and captions (.tsv, "
            ".jsonl), a folder with a folder for each caption, or two IDX files"
        )


class CodesBuilder(PicturesBuilder):
    """Builds the recipe for pictures alone; captions and labels are ignored."""

    table = CODES_TABLE
    side = None
    only_default = f": codes need an autoencoder. Leave this out, or use --model {DEFAULT}"
    files_kept = math.inf

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        summary = super().look(corpus)
        with naming_lines(corpus):
            source = source_of_files(corpus.source, summary.files)
            if not source.patches:
                problem = "has recordings, but codes are learned from pictures"
                raise DataError(f"{corpus.source} {problem}")
            read = PictureSource.of(source)
        side = next(side for side in _SIDES if not read.height % side and not read.width % side)
        return replace(summary, source=read.model_copy(update={"patch": side}))

    def model(self, row: Size) -> Sections:
        model = {"kind": "codes", "model_dim": row.model_dim, "blocks": row.layers}
        return {"model": model, "training": row.training()}

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        source = PictureSource.of(seen.source)
        longest = max(256, source.patches)
        return {
            "data": {"cleaning": {"max_length": 0, "max_length_ratio": 0}},
            "plan": {"max_source": longest, "max_target": longest},
            "training": {"label_smoothing": 0.0, "precision": "fp32"},
        }


def _by_captions(corpus: CorpusSettings) -> CorpusSettings:
    """Return the corpus. If there are many captions, all pictures of a caption form a group, which
    is put on the same side of a split."""
    captions = {pair.target for pair in islice(read_pairs(corpus), _LOOKED_AT)}
    if len(captions) < _CAPTIONS:
        return corpus
    if not is_tabbed(corpus.source):
        return corpus.model_copy(update={"group_key": corpus.target_key})
    if corpus.source.removesuffix(".gz").lower().endswith(".csv"):
        return corpus
    return corpus.model_copy(update={"group_column": corpus.target_column})
