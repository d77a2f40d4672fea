"""Makes the recipe of a training from files and command-line options: the base class for all tasks.

A task (``tasks/NAME/sizes.py``) declares which options fit its files, how these are read, what
selects a row of its table of sizes, and what its recipes add to the settings of that row.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from dragoman.base.errors import DataError, RecipeError
from dragoman.base.task import ModelPart, Side
from dragoman.base.wording import plural, shorten
from dragoman.data.cleaning import Cleaner
from dragoman.data.files.columns import is_tabbed
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings, format_by_name
from dragoman.data.split import SplitSettings, deciding_key
from dragoman.forms.form import Pair
from dragoman.forms.identification import language_of
from dragoman.forms.labels import MOST, plain
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import OldText
from dragoman.runs.recipe.spec import Spec
from dragoman.sizing.options import TrainOptions, absolute, fill_unknown, given_language
from dragoman.sizing.size import DEFAULT, Size, check_family, for_passes, row_of, shape_of, size_for
from dragoman.sizing.start_from import FINE_TUNING, for_fine_tuning, for_part, gently
from dragoman.sources.shared.rows import RowsSource

_EXAMPLES = ("embedded", "train", "dev", "test", "split")
"""The keys of a recipe's section ``data`` that name examples, not their treatment."""

_FEWEST, _FEW = 40, 400
"""From ``_FEWEST`` examples to ``_FEW``, a twentieth is held out by counting, because a split by
hashes may hold out none. Of fewer nothing is held out; of more, a split by hashes holds out
something in all but one of a hundred million cases."""

EPOCHS_FROM = 4
"""The number of epochs of a classifier or tagger that starts from a trained run: few are enough,
because that run has already read text."""

FOR_FEW = {
    "groups": (
        " goes with recordings, and with pictures (in folders, listed, or IDX files) and --task "
        "classification; for other corpora a recipe has group_column or group_key"
    ),
    "codes": " works only with --task painting; other models do not write codes of pictures",
    "label_ends": (
        " works only with a file or folder of bracketed trees (--task parsing, --task tagging); "
        "in a recipe, set label_ends in data.train"
    ),
    "texts": " works only with --task language-model or --task masked",
    "keep": " works only with parallel text, to tune a translator; in a recipe, set data.old",
    "blend": " works only with parallel text, to tune a translator; in a recipe, set data.old",
    "mono_target": " works only with files of parallel text; --recipe sets a recipe for them",
    "mono_source": " works only with files of parallel text and --mono-target",
    "mono_ratio": " works only with files of parallel text and --mono-target",
    "rounds": " works only with files of parallel text and --mono-target",
}
"""The options that fit few kinds of files, and the reason for all other kinds to refuse each."""

KEPT = 2 / 3
"""The share of old pairs in a training run that keeps old text
(docs/experiments/tuning-keeps.md)."""

Sections = Mapping[str, Mapping[str, Any]]
"""Sections of a recipe as plain values."""


@dataclass(frozen=True)
class CorpusSummary:
    """The properties of examples that decide the recipe."""

    amount: float
    """The amount in the unit of the task's table: pairs, labelled texts, trees, characters, hours
    of sound."""
    different: int
    """The number of examples of which a part is held out."""
    texts: Sequence[str] = ()
    """Some texts, to detect the language."""
    length: float = 0.0
    """The approximate number of tokens in a target; for boxes, the most boxes in one picture."""
    labels: Collection[str] = ()
    """The labels of the examples, up to the limit of the program."""
    files: Sequence[str] = ()
    """Some of the files that are examples."""
    source: RowsSource | None = None
    """The settings for reading recordings or pictures."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """The number of examples of each speaker or other group; empty if groups are unknown."""


@dataclass(frozen=True)
class RecipeBuilder(ABC):
    """Makes a recipe of one task from files and options."""

    options: TrainOptions
    task: Spec
    recipes: type[Recipe]
    """The class of the recipe, which knows all tasks."""
    base: Recipe | None
    """The recipe that the option ``--recipe`` names."""
    learned: Recipe | None
    """The recipe of the run to fine-tune, or to ``take`` a part of."""
    take: ModelPart | None
    say: Say

    # --- declarations of a task -------------------------------------------------------------------

    table: ClassVar[Sequence[Size]]
    """The sizes of the task, by ``CorpusSummary.amount``."""
    fits: ClassVar[Collection[str]] = ()
    """The options of ``FOR_FEW`` that fit the files; "columns" if other inputs
    than a single table have columns."""
    unfit: ClassVar[Mapping[str, str]] = {}
    """Further options that do not fit, and the reasons."""
    only_default: ClassVar[str] = ""
    """The reason why ``--model`` allows only the default family; empty if it allows others."""
    is_named: ClassVar[bool] = False
    """True if ``--task`` implies that the inputs are files: the name of a missing file is then
    never taken for a recipe."""
    one_input: ClassVar[tuple[str, str]] = ("", "")
    """For a task with one input: what it learns from, and what to give; empty for other tasks."""
    is_whole: ClassVar[bool] = False
    """True if a run can start only from a whole run, never from a part."""
    held_as: ClassVar[tuple[str, str]] = ("", "")
    """The files to give to ``--dev`` and ``--test``, for messages: if training has one input, and
    if it has two. Empty texts allow one file as well as two."""
    side: ClassVar[Side | None] = "source"
    """The side with a known language; None if there is none."""
    name_tells: ClassVar[bool] = True
    """True if the name of a file gives that language."""
    sampled: ClassVar[int] = 100
    """The number of texts that are used to detect the language."""
    files_kept: ClassVar[float] = 0
    """The most files that ``look`` remembers."""
    tells_speakers: ClassVar[str] = ""
    """Another way than ``--groups`` to name the speakers of recordings, as the end of a message."""

    @property
    def noun(self) -> str:
        """The name of the task's examples in messages."""
        return self.task.noun

    @property
    def begins_anew(self) -> bool:
        """True if neither a recipe nor a run determines the model."""
        return self.base is None and self.learned is None

    @property
    def minutes(self) -> float | None:
        """The time that limits the size of the model; None if a recipe or a run determines it."""
        return self.options.minutes if self.begins_anew else None

    def takes(self) -> bool:
        """Return whether the inputs are files of the task, not a recipe."""
        return self.options.are_files or (self.is_named and self.options.task is not None)

    def check(self) -> None:
        """Check that the options fit the files. Errors: ``RecipeError``."""
        options = self.options
        options.refuse({name: why for name, why in FOR_FEW.items() if name not in self.fits})
        options.refuse(self.unfit)
        if self.learned is None or self.take is not None:
            why = " works only with --from RUN and all of its weights"
            options.refuse({"keep": why, "blend": why})
        table = len(options.inputs) == 1 and len(self.task.sides) == 2 and is_tabbed(options.first)
        if "columns" not in self.fits and options.are_files and not table:
            options.refuse(
                {
                    "columns": " sets the columns of source and target, or of text and label, "
                    "in a tab-separated file (.tsv)"
                }
            )
        check_family(options.model or DEFAULT)
        if self.only_default and options.model not in (None, DEFAULT):
            raise RecipeError(f"--model {options.model}{self.only_default}")
        if self.one_input[0] and (len(options.inputs) > 1 or options.keys is not None):
            raise self.not_one_input()
        if self.is_whole and self.take is not None:
            raise RecipeError(
                f"--init-part {self.take}: a {self.task.called} starts from all weights of "
                "another run (--from RUN), or from none"
            )

    def not_one_input(self) -> RecipeError:
        """The error for other inputs than the single one that the task takes."""
        what, give = self.one_input
        return RecipeError(
            f"a {self.task.called} learns from {what}: give {give}. Dev and test sets are held "
            "out of it, or set with --dev FILE and --test FILE"
        )

    def corpus(self) -> CorpusSettings:
        """The training corpus: a file of sources and one of targets, line by line, or one input.
        Errors: ``DataError``, ``RecipeError``."""
        if len(self.options.inputs) == 1:
            return self.file_at(self.options.first)
        self.options.refuse({"keys": " works only with one .jsonl file that contains both sides"})
        source, target = map(absolute, self.options.inputs)
        return CorpusSettings(source=source, target=target)

    @abstractmethod
    def file_at(self, path: str) -> CorpusSettings:
        """Describe one input by the options. Errors: ``DataError``, ``RecipeError``."""

    def like(self, path: str, train: CorpusSettings) -> CorpusSettings:
        """Describe a file for dev or test like the corpus ``train``."""
        if train.target is not None:
            return CorpusSettings(source=path)
        return train.model_copy(update={"source": path})

    def languages(self) -> dict[str, str]:
        """The languages from the options or the names of the files; "und" for unknown ones."""
        if self.side is None:
            return {}
        is_told = self.name_tells or self.options.languages
        given = self.options.languages, self.options.inputs[0]
        return {self.side: given_language(*given) if is_told else "und"}

    # --- steps that a task may change -------------------------------------------------------------

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        """Read the corpus and describe it. Errors: ``DataError`` if it has no examples."""
        amount, labels, groups = 0, set[str](), Counter[str]()
        texts, files = list[str](), list[str]()
        for pair in read_pairs(corpus):
            amount += 1
            if self.side is not None and amount <= self.sampled:
                texts.append(getattr(pair, self.side))
            if amount <= self.files_kept:
                files.append(pair.source)
            if len(labels) <= MOST:
                labels.update(self.labels_of(corpus, pair))
            if "groups" in self.fits and corpus.groups_by is not None:
                groups[pair.group] += 1
        if not amount:
            raise DataError(f"{corpus.source} contains no {self.noun}")
        return CorpusSummary(amount, amount, texts, labels=labels, files=files, groups=groups)

    def labels_of(self, corpus: CorpusSettings, pair: Pair) -> Iterable[str]:
        """The labels of an example. Errors: ``DataError`` for an example that cannot be learned."""
        return ()

    def row(self, seen: CorpusSummary) -> Size:
        """The row of the task's table for the corpus."""
        return row_of(self.table, seen.amount)

    def row_in_time(
        self, task: Spec, rows: Sequence[Size], length: float = 0.0, epoch: float = math.inf
    ) -> Size:
        """Return the row of ``rows`` for the minutes, as ``size_in``; the first without minutes,
        with the dropout of its epochs."""
        family = self.options.model or DEFAULT
        if self.minutes is None:
            return for_passes(rows[0], family, self.options.epochs or rows[0].epochs)
        from dragoman.sizing.budget import size_in  # imports torch: only with a time

        return size_in(self.minutes, self.say, task, family, rows, length, epoch)

    def name(self, corpus: CorpusSettings, languages: Mapping[str, str]) -> str:
        """The name of the recipe: the name of the first file up to its first dot."""
        return Path(corpus.source).name.split(".")[0]

    def data(
        self, corpus: CorpusSettings, seen: CorpusSummary, held: Mapping[str, CorpusSettings]
    ) -> dict[str, Any]:
        """The section ``data``, except for the treatment of examples."""
        about = data_of(corpus, seen.different, held)
        if seen.groups:
            return by_groups(about, seen.groups, self.say)
        if seen.source is not None and seen.source.without_groups:
            self.say(f"{seen.source.without_groups}{self.tells_speakers}")
        return about

    def model(self, row: Size) -> Sections:
        """Model and training of a row. Errors: ``RecipeError`` for a family of models that cannot
        learn the task."""
        family = self.options.model or DEFAULT
        return {
            "model": shape_of(family, self.task)(row),
            "training": size_for(family, row).training(),
        }

    @abstractmethod
    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        """The settings that the task adds to those of the row."""

    # --- the recipe -------------------------------------------------------------------------------

    def recipe(self) -> tuple[Recipe, float | None]:
        """Make a recipe from the files, by the table or by ``base``. Returns it with its number of
        epochs; None if the base sets the length. Without files for dev and test, a part is held out
        for them.

        Errors: ``DataError`` for files that cannot be used, ``RecipeError`` for options that do not
        fit them.
        """
        corpus, languages = self.corpus(), self.languages()
        held = self.test_corpora(corpus)
        seen = self.look(corpus)
        known = self._languages(languages, seen)
        data = self.data(corpus, seen, held)
        if self.options.keep or self.options.blend:
            data["old"] = self.old_text(seen.amount).model_dump(exclude_none=True)
        about = {"name": self.name(corpus, known), "languages": known, "data": data}
        if self.base is not None:
            return _count_out(like(self.base, about), seen), None
        row = self.row(seen)
        from_row = {"plan": row.plan, **self.model(row)}
        if row.vocabulary:  # rows of recordings and pictures have none
            from_row["text"] = {"vocabulary": row.vocabulary}
        if seen.source is not None:
            from_row["source"] = seen.source.model_dump()
        values = merge(merge({**about, "task": self.task.name}, from_row), self.adds(row, seen))
        return _count_out(self.recipes.parse(values), seen), row.epochs

    def old_text(self, amount: float) -> OldText:
        """The text that the tuned run must not forget: the text of ``--keep``, or without it the
        training text of the run, from which nothing is learned again. ``amount``: the number of new
        examples.

        The tuned run is measured on the same dev and test sets as the run: the files that its
        recipe names, or the same share of the same text. Errors: ``RecipeError``, ``DataError`` for
        text that cannot be used.
        """
        assert self.learned is not None, "checked in ``check``"
        learned = self.learned.data
        dev, test = learned.dev, learned.test
        if not self.options.keep:
            if not learned.train or not (dev or learned.split.dev):
                raise RecipeError(
                    f"--blend needs old text, but {self.learned.name} has no files that it was "
                    "trained on, or no dev set. Give old text with --keep"
                )
            return OldText(train=learned.train, dev=dev, test=test, split=learned.split)
        files = [absolute(name) for name in self.options.keep if name]
        given = f"--keep {' '.join(self.options.keep)}".rstrip()
        if not files or (len(files) == 1 and format_by_name(files[0]) is None):
            raise RecipeError(
                f"{given}: give two files, or one file with both sides. To keep text without "
                "translations, translate it with the run first (dragoman translate)"
            )
        reader = replace(self, options=replace(self.options, inputs=files))
        corpus, languages = reader.corpus(), reader.languages()
        for side, code in languages.items():
            known = getattr(self.learned.languages, side)
            if "und" not in (code, known) and code != known:
                raise RecipeError(
                    f"{given}: its {side} is {code}, but the {side} of {self.learned.name} is "
                    f"{known}"
                )
        if next(read_pairs(corpus), None) is None:
            raise RecipeError(f"{given}: it contains no {self.noun}")
        seen = self.look(corpus)
        if None in (dev, test) and seen.different < _FEW:
            raise RecipeError(
                f"{given}: {seen.different:,} different {self.noun} are too few to hold some out, "
                f"on which the run is measured. Give at least {_FEW}"
            )
        own = SplitSettings.for_pairs(seen.different, dev=dev is None, test=test is None)
        split = SplitSettings(
            dev=max(own.dev, learned.split.dev), test=max(own.test, learned.split.test)
        )
        weight = KEPT / (1 - KEPT) * amount / seen.amount
        return OldText(train=(corpus,), weight=weight, dev=dev, test=test, split=split)

    def _languages(self, languages: Mapping[str, str], seen: CorpusSummary) -> Mapping[str, str]:
        """The section ``languages``; unknown ones are detected, or taken from the base."""
        if "und" not in languages.values():
            return languages
        detected = language_of(seen.texts)
        known = {side: detected if code == "und" else code for side, code in languages.items()}
        return known if self.base is None else fill_unknown(known, self.base.languages)

    def test_corpora(self, train: CorpusSettings) -> dict[str, CorpusSettings]:
        """The corpora of ``--dev`` and ``--test``, if they are named: one file in the format of the
        training file, or two files.

        Errors: ``RecipeError`` for a wrong number of files and for files without examples,
        ``DataError`` for files that cannot be read.
        """
        held = {}
        for side, names in (("dev", self.options.dev), ("test", self.options.test)):
            files = [absolute(name) for name in names or () if name]
            if not files:
                continue
            give = self.held_as[0 if train.target is None else 1]
            if give and len(files) != (1 if train.target is None else 2):
                given = " ".join(name for name in names or () if name)
                raise RecipeError(f"--{side} {given}: give {give}")
            if len(files) == 1:
                corpus = self.like(files[0], train)
            elif train.target is None:
                corpus = CorpusSettings(source=files[0], target=files[1])
            else:
                corpus = train.model_copy(update={"source": files[0], "target": files[1]})
            if next(read_pairs(corpus), None) is None:
                raise RecipeError(f"--{side} {corpus.source}: it contains no {self.noun}")
            held[side] = corpus
        return held

    def with_start(self, recipe: Recipe, epochs: float | None) -> tuple[Recipe, float | None]:
        """The recipe with the start of its training: from a part of a run, from a whole run, which
        it fine-tunes, or from random weights. Fine-tuning is gentle unless the base sets the length
        (``epochs`` is None)."""
        if self.learned is None:
            return recipe, epochs
        if self.take is not None:
            return for_part(recipe, self.learned, self.take), epochs
        tuned = for_fine_tuning(recipe, self.learned, own_context=self.base is not None)
        tuned = tuned.model_copy(update={"name": f"{self.learned.name}-tuned"})
        if epochs is None:  # the base sets the length
            return tuned, None
        return gently(tuned, self.learned), epochs / FINE_TUNING


class HeadBuilder(RecipeBuilder):
    """Builds recipes for texts with labels of any kind."""

    name_tells = False

    def like(self, path: str, train: CorpusSettings) -> CorpusSettings:
        """Describe a file for dev or test; another kind of file has its own columns or keys."""
        if train.target or is_tabbed(path) != is_tabbed(train.source):
            return self.file_at(path)
        return super().like(path, train)

    def labels_of(self, corpus: CorpusSettings, pair: Pair) -> Iterable[str]:
        return (plain(pair.target),)

    def with_start(self, recipe: Recipe, epochs: float | None) -> tuple[Recipe, float | None]:
        """The recipe with its start, named by both: a run is useful for any labels."""
        begun, _ = super().with_start(recipe, None)
        if self.learned is None:
            return recipe, epochs
        begun = begun.model_copy(update={"name": f"{recipe.name}-from-{self.learned.name}"})
        if self.base is not None:
            return begun, epochs
        return gently(begun, self.learned), EPOCHS_FROM


def check_two_labels(corpus: CorpusSettings, examples: str, labels: Collection[str]) -> None:
    """Raise ``DataError`` if there are fewer than two labels. ``examples``: the number of examples,
    in words."""
    if len(labels) < 2:
        raise DataError(
            f"{corpus.source}: {examples}, and one label, {next(iter(labels))!r}. Give examples "
            "with at least two labels"
        )


def make_corpus(about: Mapping[str, Any], option: str, value: str | None) -> CorpusSettings:
    """Make a corpus with the value of an option. Errors: ``RecipeError`` for a wrong value."""
    try:
        return CorpusSettings.model_validate(about)
    except ValidationError as error:
        why = error.errors(include_input=False, include_url=False)[0]["msg"]
        given = shorten(value or "", 40)
        raise RecipeError(f"{option} {given}: {why.removeprefix('Value error, ')}") from None


def _count_out(recipe: Recipe, seen: CorpusSummary) -> Recipe:
    """If there are few examples, change the split so that it holds out exactly the wanted number of
    those that are left after cleaning."""
    data = recipe.data
    if not (data.split.dev or data.split.test) or not _FEWEST <= seen.different < _FEW:
        return recipe
    cleaner = Cleaner(data.cleaning, recipe.spec.texts)
    kept = cleaner.some_pairs(pair for corpus in data.train for pair in read_pairs(corpus))
    split = data.split.for_few(map(deciding_key, kept))
    return recipe.override(data={"split": split})


def by_groups(data: dict[str, Any], groups: Mapping[str, int], say: Say) -> dict[str, Any]:
    """The section ``data`` with whole groups held out, or with examples of each group if there are
    too few groups. ``groups``: the number of examples in each."""
    split = SplitSettings.model_validate(data["split"]).for_whole(groups, most=math.inf)
    if split.whole_texts or not (split.dev or split.test):
        return {**data, "split": split.model_dump()}
    amount = plural(len(groups), "speaker or other group is", "speakers or other groups are")
    say(
        f"warning: {amount} too few to hold out whole ones, so each is in training and in test, "
        "and scores may be too high. Set --dev and --test with examples of others"
    )
    train = [{k: v for k, v in row.items() if not k.startswith("group_")} for row in data["train"]]
    return {**data, "train": train}


def data_of(
    train: CorpusSettings, different: int, held: Mapping[str, CorpusSettings]
) -> dict[str, Any]:
    """The section ``data``. A part of ``different`` examples is held out for what is not given."""
    split = SplitSettings.for_pairs(different, dev="dev" not in held, test="test" not in held)
    return {
        "train": [train.model_dump(exclude_none=True)],
        "split": split.model_dump(),
        **{side: corpus.model_dump(exclude_none=True) for side, corpus in held.items()},
    }


def like(base: Recipe, about: Mapping[str, Any]) -> Recipe:
    """The recipe ``base`` with the sections of ``about``; the treatment of examples in the section
    ``data`` is kept."""
    values = base.model_dump(mode="json", exclude_none=True)
    kept = {key: value for key, value in values["data"].items() if key not in _EXAMPLES}
    return type(base).parse({**values, **about, "data": kept | about["data"]})


def merge(values: Mapping[str, Any], sections: Sections) -> dict[str, Any]:
    """``values`` with the keys of ``sections`` added."""
    return {
        **values,
        **{name: {**values.get(name, {}), **keys} for name, keys in sections.items()},
    }
