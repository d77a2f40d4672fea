"""A sensible size and schedule for a model that labels texts, recordings or pictures, if a user
gives only examples: texts with their labels; or a folder with a folder for each label, a list of
files and labels, or a pair of IDX files.

The number of examples chooses a row of ``LABEL_TABLE`` or ``FILE_TABLE``. The column of the labels
is detected: labels repeat, and texts rarely do. The size at which pictures are read follows from
the sizes of the files.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from dragoman.base.errors import RecipeError
from dragoman.base.wording import plural
from dragoman.data.files.columns import labelled_corpus, listed_corpus
from dragoman.data.files.corpora import naming_lines
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.sizing.builder import (
    CorpusSummary,
    HeadBuilder,
    Sections,
    check_two_labels,
    make_corpus,
)
from dragoman.sizing.size import DEFAULT, Size
from dragoman.sources.file_examples import check_undivided, left_out_warning, source_of_files
from dragoman.sources.picture.idx import is_idx
from dragoman.sources.shared.files import is_zip

LABEL_TABLE = (
    Size(2_000, 2_000, 64, 4, 1, 0.3, 1_024, 50, 4e-3, 15, "muon", 2e-3),
    Size(20_000, 8_000, 128, 4, 2, 0.3, 4_096, 200, 4e-3, 8, "muon", 1.5e-3),
    Size(200_000, 16_000, 256, 8, 3, 0.2, 8_192, 500, 1e-3, 8),
    Size(float("inf"), 16_000, 256, 8, 4, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""A first choice that was not tuned; docs/labels.md shows it to users."""

FILE_TABLE = (
    Size(5_000, 0, 96, 4, 4, 0.2, 2_048, 200, 2e-3, 40),
    Size(50_000, 0, 128, 4, 4, 0.2, 4_096, 500, 1.5e-3, 20),
    Size(float("inf"), 0, 128, 4, 6, 0.1, 6_272, 500, 1.5e-3, 12),
)
"""``tokens_per_update`` counts frames or patches. A first choice, tried on spoken and on written
digits (docs/results.md)."""

_NO_TEXT = " works only with text, not with recordings and pictures"
_CONTEXT = 3_000
"""The most frames that are read of a recording: half a minute."""


class ClassificationBuilder(HeadBuilder):
    """Builds the recipe for texts with one label each."""

    noun = "labelled texts"
    table = LABEL_TABLE

    def file_at(self, path: str) -> CorpusSettings:
        return labelled_corpus(path, self.options.columns, self.options.keys)

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        seen = super().look(corpus)
        check_two_labels(corpus, plural(seen.different, "line"), seen.labels)
        return seen

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        return {
            "data": {"cleaning": {"max_length": 0}},
            "text": {"character_coverage": 0.9999},
            "training": {"label_smoothing": 0.0},
        }


class FilesBuilder(HeadBuilder):
    """Builds the recipe for recordings or pictures with one label each."""

    noun = "labelled files"
    side = None
    table = FILE_TABLE
    fits = ("groups", "columns")
    unfit: ClassVar = {"languages": _NO_TEXT}
    only_default = f" labels only texts. For recordings and pictures, use --model {DEFAULT}"
    held_as = ("one folder or one list", "two files, of pictures and of their labels")
    files_kept = math.inf

    def takes(self) -> bool:
        options = self.options
        first, is_one = options.first, len(options.inputs) == 1
        return (
            (is_one and (Path(first).is_dir() or is_zip(first)))
            or all(map(is_idx, options.inputs))
            or self._list() is not None
        )

    def _list(self) -> CorpusSettings | None:
        """The list of files that is named; None if the input is not a list."""
        if len(self.options.inputs) != 1:
            return None
        return listed_corpus(self.options.first, self.options.columns, self.options.keys)

    def check(self) -> None:
        super().check()
        if self._list() is None:
            self.options.refuse({"keys": _NO_TEXT, "columns": _NO_TEXT})
        if len(self.options.inputs) == 1 and Path(self.options.first).is_dir():
            check_undivided(Path(self.options.first))
            if other := left_out_warning(Path(self.options.first)):
                self.say(f"warning: {other}")

    def corpus(self) -> CorpusSettings:
        about, groups = super().corpus().model_dump(exclude_unset=True), self.options.groups
        return make_corpus({**about, "group_pattern": groups}, "--groups", groups)

    def file_at(self, path: str) -> CorpusSettings:
        if (listed := self._list()) is not None:
            return listed
        if is_idx(path):
            raise RecipeError(
                f"{path} is only one of two files. Give two IDX files, of pictures and of their "
                "labels, such as train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz"
            )
        return CorpusSettings(source=path, format="folders")

    def like(self, path: str, train: CorpusSettings) -> CorpusSettings:
        return train.model_copy(update={"source": path})

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        seen = super().look(corpus)
        check_two_labels(corpus, plural(seen.different, "example"), seen.labels)
        with naming_lines(corpus):
            return replace(seen, source=source_of_files(corpus.source, seen.files))

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        assert seen.source is not None
        source, context = seen.source, _CONTEXT
        model: dict[str, Any] = {}
        if source.patches:
            context = max(2, source.patches)
            model = {"positions": {"kind": "learned", "maximum": context}}
        return {
            "data": {"cleaning": {"max_length": 0}},
            "model": model,
            "plan": {"context": context},
            "training": {"label_smoothing": 0.1},
        }
