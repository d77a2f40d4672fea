"""From files to a recipe: what every task has in common.

A task (``tasks/NAME/sizes.py``) says how its files are read, what of them chooses a row of its
table of sizes, and what its recipes have beside what follows from that row.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dragoman.base.errors import DataError, RecipeError
from dragoman.base.task import Side
from dragoman.base.wording import plural
from dragoman.data.cleaning import Cleaner
from dragoman.data.files.columns import is_tabbed
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.split import SplitSettings, decided_by
from dragoman.forms.identification import language_of
from dragoman.recipe.recipe import Recipe
from dragoman.recipe.spec import Spec
from dragoman.sizing.inputs import Inputs, absolute, given_language
from dragoman.sizing.size import DEFAULT, FAMILIES, Size, learned_by, row_of, shape_of
from dragoman.sizing.start_from import FINE_TUNING, for_fine_tuning, for_part, gently
from dragoman.sources.shared.settings import RowsSource

_EXAMPLES = ("embedded", "train", "dev", "test", "split")
"""Of a recipe's section ``data``: what its examples are, as against how they are treated."""

_FEWEST, _FEW = 40, 400
"""Of so many examples a twentieth is counted out one by one: by their hashes it may be nothing. Of
fewer nothing is held out; of more it is something in all but one of a hundred million cases."""

Sections = Mapping[str, Mapping[str, Any]]
"""Sections of a recipe, as plain values."""


@dataclass(frozen=True)
class CorpusSummary:
    """What examples look like, as far as a recipe follows from it."""

    amount: float
    """Of what the task's table counts: pairs, labelled texts, trees, characters, hours of sound."""
    different: int
    """Examples of which a part is held out."""
    texts: Sequence[str] = ()
    """Some, by which the language is told."""
    length: float = 0.0
    """About how many tokens a target has; of boxes, the most that a picture has."""
    labels: Collection[str] = ()
    """The labels that were seen."""
    source: RowsSource | None = None
    """What is read of recordings or pictures."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """How many examples each speaker or other group has; nothing where groups are not told."""


class RecipeBuilder(ABC):
    """How files become a recipe of one task."""

    task: ClassVar[Spec]
    table: ClassVar[Sequence[Size]]
    """Sizes by ``CorpusSummary.amount``."""
    side: ClassVar[Side | None] = "source"
    """The side whose language is known; None where none is."""
    name_tells: ClassVar[bool] = True
    """Whether the name of a file tells that language."""
    texts_alone: ClassVar[str] = "--task language-model, or --task masked"
    """What is told of ``--texts`` where texts do not stand alone."""

    tells_speakers: ClassVar[str] = ""
    """What else than ``--groups`` tells who speaks in a recording."""

    # --- what a task says of its files ------------------------------------------------------------

    @property
    def noun(self) -> str:
        """What its examples are called beside those of other tasks."""
        return self.task.noun

    def takes(self, inputs: Inputs) -> bool:
        """Whether the inputs are files of the task, and not a recipe."""
        return inputs.are_files

    def check(self, inputs: Inputs) -> None:
        """Whether the options go with the files. Errors: ``RecipeError``."""
        self.check_label_ends(inputs)
        self.check_columns(inputs)
        if inputs.texts is not None:
            raise RecipeError(f"--texts is for texts that stand alone: {self.texts_alone}")

    def check_label_ends(self, inputs: Inputs) -> None:
        """Errors: ``RecipeError`` where there are no trees whose labels could end."""
        if inputs.label_ends is not None:
            raise RecipeError(
                "--label-ends goes with a file of bracketed trees, or a folder of them (--task "
                "parsing, --task tagging); a recipe says it itself (label_ends in data.train)"
            )

    def check_columns(self, inputs: Inputs) -> None:
        """Errors: ``RecipeError`` for columns of anything but one table."""
        table = len(inputs.names) == 1 and len(self.task.sides) == 2 and is_tabbed(inputs.names[0])
        if inputs.columns is not None and inputs.are_files and not table:
            raise RecipeError(
                "--columns names the columns of source and target, or of text and label, in a "
                "tab-separated file (.tsv)"
            )

    def check_whole(self, inputs: Inputs) -> None:
        """Errors: ``RecipeError`` for a part of a run where all of one is taken."""
        if inputs.take is not None:
            raise RecipeError(
                f"--init-part {inputs.take}: a {self.task.called} goes on from all of another "
                "(--from RUN), or from nothing"
            )

    @abstractmethod
    def corpus(self, inputs: Inputs) -> CorpusSettings:
        """What is learned from. Errors: ``DataError``, ``RecipeError``."""

    def like(self, name: str, train: CorpusSettings, inputs: Inputs) -> CorpusSettings:
        """The corpus as which the file ``name`` is read for dev or test, but for its own name."""
        return train

    def languages(self, inputs: Inputs) -> dict[str, str]:
        """As the user says, or as the names of files do; "und" where neither is sure."""
        if self.side is None:
            return {}
        is_told = self.name_tells or inputs.languages
        return {self.side: given_language(inputs.languages, inputs.names[0]) if is_told else "und"}

    # --- what a task makes of them ----------------------------------------------------------------

    @abstractmethod
    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        """What the corpus looks like. Errors: ``DataError`` where nothing can be learned of it."""

    def row(self, seen: CorpusSummary, inputs: Inputs) -> Size:
        """The row of the task's table."""
        return row_of(self.table, seen.amount)

    def known(
        self, languages: Mapping[str, str], seen: CorpusSummary, base: Recipe | None
    ) -> Mapping[str, str]:
        """The section ``languages``: what nobody says is told by the texts, or by the base."""
        if self.side is None:
            return {}
        code = languages[self.side]
        if code == "und":
            code = language_of(seen.texts)
        if code == "und" and base is not None:
            return base.languages.model_dump()
        return {self.side: code}

    def name(self, corpus: CorpusSettings, languages: Mapping[str, str]) -> str:
        """What the recipe is called: as the first file is, up to a dot."""
        return Path(corpus.source).name.split(".")[0]

    def data(
        self,
        corpus: CorpusSettings,
        seen: CorpusSummary,
        held: Mapping[str, CorpusSettings],
        inputs: Inputs,
    ) -> dict[str, Any]:
        """The section ``data``, without how examples are treated."""
        about = data_of(corpus, seen.different, held)
        if seen.groups:
            return by_groups(about, seen.groups, inputs)
        if seen.source is not None and seen.source.without_groups:
            inputs.say(f"{seen.source.without_groups}{self.tells_speakers}")
        return about

    def learned(self, row: Size, family: str | None) -> Sections:
        """Model and training of a row. ``family``: of the model (``size.py``).
        Errors: ``RecipeError`` for a family that does not learn the task."""
        family = family or DEFAULT
        return {
            "model": shape_of(family, self.task)(row),
            "training": learned_by(family, row).training(),
        }

    @abstractmethod
    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        """What sections have beside what follows from the row."""

    # --- the way ----------------------------------------------------------------------------------

    def recipe(self, inputs: Inputs) -> tuple[Recipe, float | None]:
        """A recipe for the files, by the table or by ``inputs.base``, and how many epochs it wants
        (None: the base says how long). Without files for dev and test a part is held out for them.

        Errors: ``DataError`` for files that cannot be used, ``RecipeError`` for what is said of
        them.
        """
        corpus, languages = self.corpus(inputs), self.languages(inputs)
        held = self.held(corpus, inputs)
        seen = self.look(corpus)
        known = self.known(languages, seen, inputs.base)
        about = {
            "name": self.name(corpus, known),
            "languages": known,
            "data": self.data(corpus, seen, held, inputs),
        }
        if inputs.base is not None:
            return _counted_out(like(inputs.base, about), seen), None
        row = self.row(seen, inputs)
        from_row = {
            "text": {"vocabulary": row.vocabulary},
            "plan": row.plan,
            **self.learned(row, inputs.model),
        }
        values = merged(merged({**about, "task": self.task.name}, from_row), self.adds(row, seen))
        return _counted_out(inputs.recipes.parse(values), seen), row.epochs

    def held(self, train: CorpusSettings, inputs: Inputs) -> dict[str, CorpusSettings]:
        """The corpora of ``--dev`` and ``--test``, where they are named.

        Errors: ``RecipeError`` for another number of files than the task has and for files without
        examples, ``DataError`` for files that cannot be read.
        """
        held = {}
        for side, names in (("dev", inputs.dev), ("test", inputs.test)):
            if named := [name for name in names or () if name]:
                corpus = held[side] = self.held_corpus(f"--{side}", named, train, inputs)
                if next(read_pairs(corpus), None) is None:
                    raise RecipeError(f"--{side} {corpus.source}: there are no {self.noun} in it")
        return held

    def held_corpus(
        self, option: str, named: Sequence[str], train: CorpusSettings, inputs: Inputs
    ) -> CorpusSettings:
        """The corpus of ``option``: one file in the format of the training file, or two files of
        lines. Errors: ``RecipeError`` for another number of files than the task has."""
        layout = self.like(named[0], train, inputs) if len(named) == 1 else train
        if len(named) > 1 and (layout.is_alone or layout.format == "trees"):
            raise RecipeError(
                f"{option} {' '.join(named)}: {self.noun} are in one file, or in a folder of files"
            )
        files = [absolute(name) for name in named]
        if len(files) > 1:
            return CorpusSettings(source=files[0], target=files[1])
        if layout.target is not None:
            return CorpusSettings(source=files[0])
        return layout.model_copy(update={"source": files[0]})

    def begun(
        self, recipe: Recipe, epochs: float | None, inputs: Inputs
    ) -> tuple[Recipe, float | None]:
        """The recipe as it begins: with a part of a run, with all of it, which it fine-tunes, or
        with nothing. Where no base says how long (``epochs``), it is fine-tuned gently."""
        if inputs.start_from is None:
            return recipe, epochs
        learned = inputs.start_from.recipe
        if inputs.take is not None:
            return for_part(recipe, learned, inputs.take), epochs
        tuned = for_fine_tuning(recipe, learned, own_context=inputs.base is not None)
        tuned = tuned.model_copy(update={"name": f"{learned.name}-tuned"})
        if epochs is None:  # the base says it
            return tuned, None
        return gently(tuned, learned), epochs / FINE_TUNING


def check_default(inputs: Inputs, what: str, read: str) -> None:
    """Errors: ``RecipeError`` for another family of models than the default, where the table has
    none of ``what``; ``read``: what the others do with it."""
    if inputs.model in FAMILIES and inputs.model != DEFAULT:
        raise RecipeError(
            f"--model {inputs.model}: {what} alone choose a --model {DEFAULT}; others {read} by a "
            "recipe"
        )


def check_two_labels(corpus: CorpusSettings, examples: str, labels: Collection[str]) -> None:
    """Errors: ``DataError`` where all ``examples`` have one label."""
    if len(labels) < 2:
        raise DataError(
            f"{corpus.source}: {examples}, and one label, {next(iter(labels))!r}: there is nothing "
            "to tell apart. Give examples of two labels at least"
        )


def held_like(
    option: str, named: Sequence[str], train: CorpusSettings, one: str, two: str
) -> CorpusSettings:
    """The files of ``option``, laid out as those of ``train`` are. ``one``, ``two``: what is given
    for it. Errors: ``RecipeError`` for another number of files."""
    wanted = 1 if train.target is None else 2
    if len(named) != wanted:
        what = one if wanted == 1 else two
        raise RecipeError(f"{option} {' '.join(named)}: give {what}, as for training")
    files = [absolute(name) for name in named]
    return train.model_copy(
        update={"source": files[0], "target": files[1] if wanted == 2 else None}
    )


def _counted_out(recipe: Recipe, seen: CorpusSummary) -> Recipe:
    """The recipe, but with shares that hold out just as many of few examples as it says, as they
    are read and cleaned."""
    data = recipe.data
    if not (data.split.dev or data.split.test) or not _FEWEST <= seen.different < _FEW:
        return recipe
    cleaner = Cleaner(data.cleaning, recipe.spec.texts)
    kept = cleaner.some_pairs(pair for corpus in data.train for pair in read_pairs(corpus))
    split = data.split.for_few(map(decided_by, kept))
    return recipe.model_copy(update={"data": data.model_copy(update={"split": split})})


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


def data_of(
    train: CorpusSettings, different: int, held: Mapping[str, CorpusSettings]
) -> dict[str, Any]:
    """The section ``data``: of ``different`` examples a part is held out for what is not given."""
    split = SplitSettings.for_pairs(different, dev="dev" not in held, test="test" not in held)
    return {
        "train": [train.model_dump(exclude_none=True)],
        "split": split.model_dump(),
        **{side: corpus.model_dump(exclude_none=True) for side, corpus in held.items()},
    }


def like(base: Recipe, about: Mapping[str, Any]) -> Recipe:
    """The recipe ``base``, but with the sections of ``about``. Of the section ``data`` how examples
    are treated is kept."""
    values = base.model_dump(mode="json", exclude_none=True)
    kept = {key: value for key, value in values["data"].items() if key not in _EXAMPLES}
    return type(base).parse({**values, **about, "data": kept | about["data"]})


def merged(values: Mapping[str, Any], sections: Sections) -> dict[str, Any]:
    """``values`` with the keys of some sections."""
    return {
        **values,
        **{name: {**values.get(name, {}), **keys} for name, keys in sections.items()},
    }
