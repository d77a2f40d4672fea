"""A sane size and schedule of a model that labels texts, when a user gives nothing but examples.

``LABEL_TABLE`` is what is chosen: the number of examples chooses a row. In which column the labels
stand is found out: they repeat, and texts rarely do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dragoman.base.wording import plural
from dragoman.data.files.columns import labelled_corpus
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.recipe.spec import Spec
from dragoman.sizing.builder import CorpusSummary, Sections, check_two_labels
from dragoman.sizing.inputs import Inputs
from dragoman.sizing.labelled_texts import HeadBuilder
from dragoman.sizing.size import Size
from dragoman.tasks.classification.spec import CLASSIFICATION

LABEL_TABLE = (
    Size(2_000, 2_000, 64, 4, 1, 0.3, 1_024, 50, 2e-3, 30),
    Size(20_000, 8_000, 128, 4, 2, 0.3, 4_096, 200, 1.5e-3, 15),
    Size(200_000, 16_000, 256, 8, 3, 0.2, 8_192, 500, 1e-3, 8),
    Size(float("inf"), 16_000, 256, 8, 4, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""A first choice that was not tuned; docs/labels.md shows it to users."""


class ClassificationBuilder(HeadBuilder):
    """Texts with one label each."""

    task: ClassVar[Spec] = CLASSIFICATION
    noun = "labelled texts"
    table: ClassVar[Sequence[Size]] = LABEL_TABLE

    def file_at(self, path: str, inputs: Inputs) -> CorpusSettings:
        return labelled_corpus(path, inputs.columns, inputs.keys)

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        seen = super().look(corpus)
        check_two_labels(corpus, plural(int(seen.amount), "line"), seen.labels)
        return seen

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        return {
            "data": {"cleaning": {"max_length": 0}},
            "text": {"character_coverage": 0.9999},
            "training": {"label_smoothing": 0.0},
        }
