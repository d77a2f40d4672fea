"""A sane size and schedule of a model that labels recordings or pictures, when a user gives nothing
but the files: a folder with a folder for each label, a list of files and labels, or a pair of IDX
files.

``FILE_TABLE`` is what is chosen: the number of examples chooses a row. The size at which pictures
are read follows from theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from dragoman.base.errors import RecipeError
from dragoman.base.wording import plural
from dragoman.data.files.columns import listed_corpus
from dragoman.data.files.corpora import naming_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.subwords.text_settings import TextSettings
from dragoman.recipe.spec import Spec
from dragoman.sizing.builder import CorpusSummary, Sections, check_two_labels, held_like
from dragoman.sizing.file_sources import source_of_files
from dragoman.sizing.inputs import Inputs, absolute, grouped_corpus
from dragoman.sizing.labelled_texts import HeadBuilder
from dragoman.sizing.size import DEFAULT, Size
from dragoman.sources.file_examples import check_undivided, passed_over
from dragoman.sources.picture.idx import is_idx
from dragoman.sources.shared.files import is_zip
from dragoman.tasks.classification.spec import CLASSIFICATION

FILE_TABLE = (
    Size(5_000, 0, 96, 4, 4, 0.2, 2_048, 200, 2e-3, 40),
    Size(50_000, 0, 128, 4, 4, 0.2, 4_096, 500, 1.5e-3, 20),
    Size(float("inf"), 0, 128, 4, 6, 0.1, 6_272, 500, 1.5e-3, 12),
)
"""``tokens_per_update`` counts frames or patches. A first choice, tried on spoken and on written
digits (docs/results.md)."""

_CONTEXT = 3_000
"""Frames that are read of a recording: half a minute."""


class FilesBuilder(HeadBuilder):
    """Recordings or pictures with one label each."""

    task: ClassVar[Spec] = CLASSIFICATION
    noun = "labelled files"
    side = None
    table: ClassVar[Sequence[Size]] = FILE_TABLE

    def takes(self, inputs: Inputs) -> bool:
        is_one = len(inputs.names) == 1
        is_folder = is_one and Path(inputs.first).is_dir()
        return inputs.spec.name == self.task.name and (
            is_folder
            or (is_one and is_zip(inputs.first))
            or (bool(inputs.names) and all(map(is_idx, inputs.names)))
            or _list_of(inputs) is not None
        )

    def check(self, inputs: Inputs) -> None:
        unfit = ["texts", "languages", "label_ends"]
        if _list_of(inputs) is None:
            unfit += ["keys", "columns"]
        inputs.refuse(unfit, " is for text: recordings and pictures have none")
        if inputs.model not in (None, DEFAULT):
            raise RecipeError(
                f"--model {inputs.model} labels texts alone; recordings and pictures are read by "
                f"--model {DEFAULT}"
            )

        if len(inputs.names) == 1 and Path(inputs.first).is_dir():
            check_undivided(Path(inputs.first))
            other = passed_over(Path(inputs.first))
            if other:
                inputs.say(f"warning: {other}")

    def corpus(self, inputs: Inputs) -> CorpusSettings:
        if (corpus := _list_of(inputs)) is not None:
            return grouped_corpus(corpus.model_dump(exclude_unset=True), inputs.groups)
        if len(inputs.names) == 1 and not is_idx(inputs.first):
            return self.file_at(inputs.first, inputs)
        if len(inputs.names) != 2:
            raise RecipeError(
                f"{inputs.first}: give two IDX files, of pictures and of their labels, such as "
                "train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz"
            )
        about = {"source": inputs.first, "target": absolute(inputs.names[1])}
        return grouped_corpus(about, inputs.groups)

    def file_at(self, path: str, inputs: Inputs) -> CorpusSettings:
        return grouped_corpus({"source": path, "format": "folders"}, inputs.groups)

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        labels, groups, files = set[str](), Counter[str](), list[str]()
        for pair in read_pairs(corpus):
            files.append(pair.source)
            labels.update(self.labels_of(pair))
            if corpus.groups_by is not None:
                groups[pair.group] += 1
        amount = len(files)
        check_two_labels(corpus, plural(amount, "example"), labels)
        with naming_lines(corpus):
            source = source_of_files(corpus, files)
        return CorpusSummary(amount, amount, labels=labels, source=source, groups=groups)

    def held_corpus(
        self, option: str, named: Sequence[str], train: CorpusSettings, inputs: Inputs
    ) -> CorpusSettings:
        """Recordings or pictures that lie as those of ``train`` do."""
        one = "one folder" if train.format == "folders" else "one list"
        return held_like(option, named, train, one, "two files, of pictures and of their labels")

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        assert seen.source is not None
        source, context = seen.source, _CONTEXT
        model: dict[str, Any] = {}
        if source.patches:
            context = max(2, source.patches)
            model = {"positions": {"kind": "learned", "maximum": context}}
        return {
            "source": source.model_dump(),
            "data": {"cleaning": {"max_length": 0}},
            "text": TextSettings().model_dump(include={"vocabulary"}),  # there is none
            "model": model,
            "plan": {"context": context},
            "training": {"label_smoothing": 0.1},
        }


def _list_of(inputs: Inputs) -> CorpusSettings | None:
    """The list of files that is named; None where it is something else."""
    if len(inputs.names) != 1:
        return None
    return listed_corpus(inputs.first, inputs.columns, inputs.keys)
