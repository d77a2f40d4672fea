"""A sane model, size and schedule of a detector, when a user gives nothing but pictures with boxes
in COCO's JSON.

``BOX_TABLE`` is what is chosen: the number of pictures chooses a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from dragoman.boxes import scene_of
from dragoman.data.files.coco import annotations_in, is_coco
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.errors import DataError, RecipeError
from dragoman.forms.box_symbols import PER_BOX
from dragoman.forms.rows.settings import PictureSource
from dragoman.forms.subwords.text_settings import TextSettings
from dragoman.recipe import Recipe
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections
from dragoman.sizing.families import DEFAULT, FAMILIES
from dragoman.sizing.inputs import Inputs, absolute
from dragoman.sizing.pictures import source_of_pictures
from dragoman.sizing.size import Size, row_of
from dragoman.specs.detection import DETECTION
from dragoman.specs.spec import Spec

BOX_TABLE = (
    Size(5_000, 0, 128, 4, 3, 0.1, 2_048, 300, 1.5e-3, 60),
    Size(100_000, 0, 128, 4, 4, 0.1, 2_048, 300, 1.5e-3, 30),
    Size(float("inf"), 0, 256, 8, 6, 0.1, 8_192, 2_000, 7e-4, 10),
)
"""``tokens_per_update`` counts what is written: five symbols a box, boxes of nothing included."""

_MOST = 100
"""Boxes of a picture that are learned where nobody says how many."""


@dataclass(frozen=True)
class BoxSummary(CorpusSummary):
    """What pictures with boxes look like."""

    source: PictureSource = field(kw_only=True)
    """What is read of them."""
    most: int = field(kw_only=True)
    """Boxes of one of them."""


class DetectionBuilder(RecipeBuilder):
    """Pictures with boxes."""

    task: ClassVar[Spec] = DETECTION

    def takes(self, inputs: Inputs) -> bool:
        return inputs.names_task or inputs.are_files

    def check(self, inputs: Inputs) -> None:
        unfit: dict[str, object] = {
            "--texts": inputs.texts, "--languages": inputs.languages, "--columns": inputs.columns,
            "--label-ends": inputs.label_ends, "--keys": inputs.keys,
        }  # fmt: skip
        for option, value in unfit.items():
            if value is not None:
                raise RecipeError(f"{option} does not go with pictures and their boxes")
        if inputs.model in FAMILIES and inputs.model != DEFAULT:
            raise RecipeError(
                f"--model {inputs.model}: pictures with boxes alone choose a --model {DEFAULT}; "
                "others read them by a recipe"
            )
        if inputs.are_files and (len(inputs.names) > 1 or not is_coco(Path(inputs.first))):
            raise RecipeError(
                "a detector learns from boxes in COCO's format: give one JSON file, or the folder "
                "that it is in. What it is measured on is held out of it, or named by --dev FILE "
                "and --test FILE"
            )
        if inputs.take is not None:
            raise RecipeError(
                f"--init-part {inputs.take}: a detector goes on from all of another (--from RUN), "
                "or from nothing"
            )

    def corpus(self, inputs: Inputs) -> CorpusSettings:
        return _corpus(inputs.first)

    def languages(self, inputs: Inputs) -> dict[str, str]:
        return {}

    def known(
        self, languages: Mapping[str, str], seen: CorpusSummary, base: Recipe | None
    ) -> Mapping[str, str]:
        return {}

    def look(self, corpus: CorpusSettings) -> BoxSummary:
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
        return BoxSummary(amount, amount, labels=labels, source=source, most=most)

    def row(self, seen: CorpusSummary, inputs: Inputs) -> Size:
        return row_of(BOX_TABLE, seen.amount)

    def held_corpus(
        self, option: str, named: Sequence[str], train: CorpusSettings, inputs: Inputs
    ) -> CorpusSettings:
        if len(named) > 1:
            raise RecipeError(f"{option} {' '.join(named)}: give one JSON file, or one folder")
        return _corpus(absolute(named[0]))

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        assert isinstance(seen, BoxSummary)
        source = seen.source
        most = min(_MOST, seen.most + max(2, seen.most // 4))
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
