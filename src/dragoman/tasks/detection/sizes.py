"""A sensible model, size and schedule for a detector, if a user gives only pictures with boxes in
COCO's JSON.

The number of pictures chooses a row of ``BOX_TABLE``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.boxes import PER_BOX, scene_of
from dragoman.forms.form import Pair
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections
from dragoman.sizing.size import DEFAULT, Size
from dragoman.sources.file_examples import source_of_pictures
from dragoman.sources.picture.coco import annotations_in, is_coco
from dragoman.sources.picture.form import PictureSource

BOX_TABLE = (
    Size(5_000, 0, 128, 4, 3, 0.1, 2_048, 300, 1.5e-3, 60),
    Size(100_000, 0, 128, 4, 4, 0.1, 2_048, 300, 1.5e-3, 30),
    Size(float("inf"), 0, 256, 8, 6, 0.1, 8_192, 2_000, 7e-4, 10),
)
"""``tokens_per_update`` counts the symbols that are written: five per box, noise boxes included."""

_MOST = 100
"""The most boxes of a picture that are learned, unless the user gives another number."""

_NOT_OF_BOXES = " does not work with pictures and their boxes"


class DetectionBuilder(RecipeBuilder):
    """Builds the recipe for pictures with boxes."""

    table = BOX_TABLE
    side = None
    unfit = dict.fromkeys(("languages", "columns", "keys"), _NOT_OF_BOXES)
    only_default = f": pictures with boxes need --model {DEFAULT}. For others, write a recipe"
    is_named = True
    one_input = ("boxes in COCO's format", "one JSON file, or the folder that it is in")
    is_whole = True
    held_as = ("one JSON file, or one folder", "")
    files_kept = math.inf

    def check(self) -> None:
        super().check()
        if self.options.are_files and not is_coco(Path(self.options.first)):
            raise self.not_one_input()

    def file_at(self, path: str) -> CorpusSettings:
        """Return the corpus of a JSON file, or of a folder. Errors: ``DataError`` for a folder
        without exactly one JSON file."""
        return CorpusSettings(source=str(annotations_in(Path(path))), format="coco")

    def like(self, path: str, train: CorpusSettings) -> CorpusSettings:
        return self.file_at(path)

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        seen = super().look(corpus)
        if len(seen.labels) < 2:
            which = f"one category, {min(seen.labels)!r}" if seen.labels else "no box"
            raise DataError(f"{corpus.source} has {which}. Give pictures with two categories")
        most = max(len(scene_of(pair.target).single) for pair in read_pairs(corpus))
        return replace(seen, length=most, source=source_of_pictures(seen.files))

    def labels_of(self, corpus: CorpusSettings, pair: Pair) -> Iterable[str]:
        return (box.label for box in scene_of(pair.target).single)

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        source, most = PictureSource.of(seen.source), int(seen.length)
        most = min(_MOST, most + max(2, most // 4))
        longest = max(source.patches, PER_BOX * most + 1)
        return {
            "data": {"cleaning": {"max_length": 0, "max_length_ratio": 0}},
            "boxes": {"bins": max(source.height, source.width), "most": most},
            "model": {
                "tie": "target", "norm": "pre",
                "decoder_layers": max(2, row.layers - 1),
                "positions": {"kind": "learned", "maximum": longest},
            },
            "plan": {"max_source": longest, "max_target": longest, "tokens_per_micro_batch": 8_192},
            "training": {"label_smoothing": 0.0, "average_last": 5},
            "search": {"beam": 1, "length_penalty": 0.0},
            "evaluation": {"dev_sentences": 200, "dev_beam": 1},
        }  # fmt: skip
