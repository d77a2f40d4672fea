"""A sane model, size and schedule of a detector, when a user gives nothing but pictures with boxes
in COCO's JSON.

``BOX_TABLE`` is what is chosen: the number of pictures chooses a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.box_form import PER_BOX
from dragoman.forms.boxes import scene_of
from dragoman.forms.subwords.text_settings import TextSettings
from dragoman.recipe.spec import Spec
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections, check_default
from dragoman.sizing.file_sources import source_of_pictures
from dragoman.sizing.inputs import Inputs, absolute
from dragoman.sizing.size import Size
from dragoman.sources.picture.coco import annotations_in, is_coco
from dragoman.sources.picture.settings import PictureSource
from dragoman.tasks.detection.spec import DETECTION

BOX_TABLE = (
    Size(5_000, 0, 128, 4, 3, 0.1, 2_048, 300, 1.5e-3, 60),
    Size(100_000, 0, 128, 4, 4, 0.1, 2_048, 300, 1.5e-3, 30),
    Size(float("inf"), 0, 256, 8, 6, 0.1, 8_192, 2_000, 7e-4, 10),
)
"""``tokens_per_update`` counts what is written: five symbols a box, boxes of nothing included."""

_MOST = 100
"""Boxes of a picture that are learned where nobody says how many."""


class DetectionBuilder(RecipeBuilder):
    """Pictures with boxes."""

    task: ClassVar[Spec] = DETECTION
    table: ClassVar[Sequence[Size]] = BOX_TABLE
    side = None

    def takes(self, inputs: Inputs) -> bool:
        return inputs.names_task or inputs.are_files

    def check(self, inputs: Inputs) -> None:
        unfit = ("texts", "languages", "columns", "label_ends", "keys")
        inputs.refuse(unfit, " does not go with pictures and their boxes")
        check_default(inputs, "pictures with boxes", "read them")
        if inputs.are_files and (len(inputs.names) > 1 or not is_coco(Path(inputs.first))):
            raise RecipeError(
                "a detector learns from boxes in COCO's format: give one JSON file, or the folder "
                "that it is in. What it is measured on is held out of it, or named by --dev FILE "
                "and --test FILE"
            )
        self.check_whole(inputs)

    def corpus(self, inputs: Inputs) -> CorpusSettings:
        return _corpus(inputs.first)

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        files, labels, most = list[Path](), set[str](), 1
        for pair in read_pairs(corpus):
            files.append(Path(pair.source))
            boxes = scene_of(pair.target).single
            labels.update(box.label for box in boxes)
            most = max(most, len(boxes))
        if len(labels) < 2:
            which = f"one category, {labels.pop()!r}" if labels else "no box"
            raise DataError(
                f"{corpus.source} has {which}: there is nothing to tell apart. Give pictures of "
                "two categories at least"
            )
        amount, source = len(files), source_of_pictures(files)
        return CorpusSummary(amount, amount, length=most, labels=labels, source=source)

    def held_corpus(
        self, option: str, named: Sequence[str], train: CorpusSettings, inputs: Inputs
    ) -> CorpusSettings:
        if len(named) > 1:
            raise RecipeError(f"{option} {' '.join(named)}: give one JSON file, or one folder")
        return _corpus(absolute(named[0]))

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        source, most = PictureSource.of(seen.source), int(seen.length)
        most = min(_MOST, most + max(2, most // 4))
        longest = max(source.patches, PER_BOX * most + 1)
        return {
            "source": source.model_dump(),
            "data": {"cleaning": {"max_length": 0, "max_length_ratio": 0}},
            "text": TextSettings().model_dump(include={"vocabulary"}),  # there is none
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


def _corpus(path: str) -> CorpusSettings:
    """Errors: ``DataError`` for a folder without the one JSON file."""
    return CorpusSettings(source=str(annotations_in(Path(path))), format="coco")
