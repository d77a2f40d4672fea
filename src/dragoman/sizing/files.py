"""A sane size and schedule of a model that labels recordings or pictures, when a user gives nothing
but the files: a folder with a folder for each label, a list of files and labels, or a pair of IDX
files.

``FILE_TABLE`` is what is chosen: the number of examples chooses a row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from dragoman.data.files.columns import listed_corpus
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.file_examples import check_undivided, passed_over
from dragoman.data.files.listed_lines import naming_lines
from dragoman.data.files.pair import Pair
from dragoman.data.split import SplitSettings
from dragoman.errors import DataError, RecipeError
from dragoman.forms.labels import plain
from dragoman.forms.rows.file_kinds import PICTURES, kind_among
from dragoman.forms.rows.idx import is_idx
from dragoman.forms.rows.recordings import rate_of
from dragoman.forms.rows.settings import FramesSource, PictureSource, RowsSource
from dragoman.forms.rows.zipped import is_zip
from dragoman.forms.subwords.text_settings import TextSettings
from dragoman.plural import plural
from dragoman.sizing.builder import CorpusSummary, Sections
from dragoman.sizing.families import DEFAULT
from dragoman.sizing.heads import HeadBuilder
from dragoman.sizing.inputs import Inputs, absolute
from dragoman.sizing.pictures import source_of_idx, source_of_pictures
from dragoman.sizing.size import Size
from dragoman.specs.classification import CLASSIFICATION
from dragoman.specs.spec import Spec

FILE_TABLE = (
    Size(5_000, 0, 96, 4, 4, 0.2, 2_048, 200, 2e-3, 40),
    Size(50_000, 0, 128, 4, 4, 0.2, 4_096, 500, 1.5e-3, 20),
    Size(float("inf"), 0, 128, 4, 6, 0.1, 6_272, 500, 1.5e-3, 12),
)
"""``tokens_per_update`` counts frames or patches. A first choice, tried on spoken and on written
digits (docs/results.md)."""

NO_SPEAKERS = (
    "warning: nothing tells who speaks, so a speaker may stand in training and in test, and scores "
    "flatter. --groups PATTERN tells it by the name of the file"
)
_CONTEXT = 3_000
"""Frames that are read of a recording: half a minute."""


@dataclass(frozen=True)
class FilesSummary(CorpusSummary):
    """What recordings or pictures look like."""

    source: RowsSource = field(kw_only=True)
    """What is read of them."""
    groups: Mapping[str, int] = field(kw_only=True)
    """How many examples each group has; nothing where groups are not told."""


class FilesBuilder(HeadBuilder):
    """Recordings or pictures with one label each."""

    task: ClassVar[Spec] = CLASSIFICATION
    noun = "labelled files"
    table: ClassVar[Sequence[Size]] = FILE_TABLE

    def takes(self, inputs: Inputs) -> bool:
        is_one = len(inputs.names) == 1
        is_folder = is_one and Path(inputs.first).is_dir()
        return inputs.task.name == self.task.name and (
            is_folder
            or (is_one and is_zip(inputs.first))
            or (bool(inputs.names) and all(map(is_idx, inputs.names)))
            or _list_of(inputs) is not None
        )

    def check(self, inputs: Inputs) -> None:
        unfit: dict[str, object] = {
            "--texts": inputs.texts, "--languages": inputs.languages,
            "--label-ends": inputs.label_ends,
        }  # fmt: skip
        if _list_of(inputs) is None:
            unfit |= {"--keys": inputs.keys, "--columns": inputs.columns}
        for option, value in unfit.items():
            if value is not None:
                raise RecipeError(f"{option} is for text: recordings and pictures have none")
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

    def labels_of(self, pair: Pair) -> Iterable[str]:
        return (plain(pair.target),)

    def look(self, corpus: CorpusSettings) -> FilesSummary:
        labels, groups, files = set[str](), Counter[str](), list[str]()
        for pair in read_pairs(corpus):
            files.append(pair.source)
            labels.update(self.labels_of(pair))
            if corpus.groups_by is not None:
                groups[pair.group] += 1
        amount = len(files)
        if len(labels) < 2:
            raise DataError(
                f"{corpus.source}: {plural(amount, 'example')}, and one label, "
                f"{next(iter(labels))!r}: there is nothing to tell apart. Give examples of two "
                "labels at least"
            )
        with naming_lines(corpus):
            source = _source_of(corpus, files)
        return FilesSummary(amount, amount, labels=labels, source=source, groups=groups)

    def known(self, languages: Mapping[str, str], seen: CorpusSummary, base: Any) -> dict[str, str]:
        return {}

    def held_corpus(
        self, option: str, named: Sequence[str], train: CorpusSettings, inputs: Inputs
    ) -> CorpusSettings:
        """Recordings or pictures that lie as those of ``train`` do."""
        wanted = 1 if train.target is None else 2
        if len(named) != wanted:
            one = "one folder" if train.format == "folders" else "one list"
            what = one if wanted == 1 else "two files, of pictures and of their labels"
            raise RecipeError(f"{option} {' '.join(named)}: give {what}, as for training")
        files = [absolute(name) for name in named]
        target = files[1] if wanted == 2 else None
        return train.model_copy(update={"source": files[0], "target": target})

    def data(
        self,
        corpus: CorpusSettings,
        seen: CorpusSummary,
        held: Mapping[str, CorpusSettings],
        inputs: Inputs,
    ) -> dict[str, Any]:
        about = super().data(corpus, seen, held, inputs)
        assert isinstance(seen, FilesSummary)
        if not seen.groups and isinstance(seen.source, FramesSource):
            inputs.say(NO_SPEAKERS)
        return by_groups(about, seen.groups, inputs) if seen.groups else about

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        assert isinstance(seen, FilesSummary)
        source, context = seen.source, _CONTEXT
        model: dict[str, Any] = {}
        if isinstance(source, PictureSource):
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


def grouped_corpus(about: dict[str, Any], pattern: str | None) -> CorpusSettings:
    """Errors: ``RecipeError`` for a pattern that tells no groups."""
    try:
        return CorpusSettings.model_validate({**about, "group_pattern": pattern})
    except ValidationError as error:
        why = error.errors(include_input=False, include_url=False)[0]["msg"]
        raise RecipeError(f"--groups {pattern}: {why.removeprefix('Value error, ')}") from None


def by_groups(data: dict[str, Any], groups: Mapping[str, int], inputs: Inputs) -> dict[str, Any]:
    """The section ``data``, of which whole groups are held out, or examples of each where the
    groups are too few. ``groups``: how many examples each has."""
    split = SplitSettings.model_validate(data["split"]).for_whole(groups, most=math.inf)
    if split.whole_texts or not (split.dev or split.test):
        return {**data, "split": split.model_dump()}
    told = plural(len(groups), "speaker or other group is", "speakers or other groups are")
    inputs.say(
        f"warning: {told} too few to hold whole ones out, so each stands in training and in test, "
        "and scores flatter. --dev and --test name examples of others"
    )
    train = [{k: v for k, v in one.items() if not k.startswith("group_")} for one in data["train"]]
    return {**data, "train": train}


def _source_of(corpus: CorpusSettings, files: Sequence[str]) -> RowsSource:
    """What is read of such files."""
    if is_idx(corpus.source):
        return source_of_idx(Path(corpus.source))
    paths = [Path(file) for file in files]
    if kind_among(paths) is PICTURES:
        return source_of_pictures(files)
    return FramesSource(rate=rate_of(paths[0]), subsample=2)
