"""The plan of a prepared folder: the recipe, its files in their state, the cuts, and the versions
that matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from itertools import chain
from typing import Literal

from pydantic import TypeAdapter

from dragoman.base.errors import RecipeError, RunError
from dragoman.cluster import kinds
from dragoman.cluster.files import File, files_of
from dragoman.cluster.plan import VERSION
from dragoman.data.files import corpora
from dragoman.data.files.bilingual import jsonl_pairs, tsv_pairs
from dragoman.data.files.corpora import format_of, read_pairs
from dragoman.data.files.lines import far_too_long
from dragoman.forms.form import Pair
from dragoman.runs.corpora import moses_of
from dragoman.stores import InputChanged
from dragoman.tasks.catalogue import Recipe

_BY_LINES = ("lines", "tsv", "jsonl")
"""The formats that are cut; a corpus of any other format is one part."""
_OF_PARTITION = 4_000_000
"""The most hashes that are compared at once: 100 MB with the memory for sorting."""


@dataclass(frozen=True)
class PartOfCorpus:
    """Some lines of a corpus, or all of it."""

    corpus: int
    stretches: tuple[kinds.Stretch, ...]
    """The stretch of each of its files; empty if the corpus is read as a whole."""


@dataclass(frozen=True)
class DataPlan:
    """The plan, which is written once; later commands use it as it is."""

    recipe: Recipe
    lines: int
    """The most lines of a part."""
    files: tuple[tuple[File, ...], ...]
    """The files of each corpus, in the order of the recipe."""
    parts: tuple[PartOfCorpus, ...]
    partitions: int
    """The number of ranges of hashes; 0 if duplicates stay."""
    versions: tuple[str, ...]
    """The versions of the packages that determine the bytes."""
    verb: Literal["prepare"] = "prepare"
    version: int = VERSION

    @cached_property
    def names(self) -> list[str]:
        """The names of the training corpora, in order."""
        return [corpus.name for corpus in self.recipe.data.train]

    def place(self, number: int) -> str:
        """The name of a part in messages."""
        part = self.parts[number]
        if not part.stretches:
            return self.names[part.corpus]
        return kinds.place_of(self.files[part.corpus][0], part.stretches[0])

    def lines_of(self, number: int) -> int:
        """The number of lines of a part, or 0 if it is unknown."""
        return self.parts[number].stretches[0].lines if self.parts[number].stretches else 0

    def pairs(self, number: int) -> Iterator[Pair]:
        """The examples of a part. Errors: ``DataError``, ``InputChanged``."""
        part = self.parts[number]
        corpus, files = self.recipe.data.train[part.corpus], self.files[part.corpus]
        if not part.stretches:
            _check_unchanged(files)
            yield from read_pairs(corpus)
            _check_unchanged(files)
            return
        sides = [*map(_lines, files, part.stretches)]
        first, count = part.stretches[0].first + 1, 0
        match format_of(corpus):
            case "tsv":
                pairs = tsv_pairs(sides[0], corpus, first)
            case "jsonl":
                pairs = jsonl_pairs(sides[0], corpus, first)
            case _:
                both = enumerate(zip(*sides, strict=True), start=first)
                pairs = (Pair(line, *texts) for line, texts in both)
        for pair in pairs:
            count += 1
            yield pair
        if count != part.stretches[0].lines:
            raise InputChanged(f"{self.place(number)} has changed: it has {count:,} lines")


DATA_PLANS = TypeAdapter(DataPlan)
"""Writes and reads plans as JSON."""


def make_plan(recipe: Recipe, lines: int) -> DataPlan:
    """Cut the corpora of a recipe. Errors: ``RecipeError`` for a recipe that cannot be prepared in
    parts, ``DataError`` for files that cannot be read."""
    check_fits(recipe)
    files: list[tuple[File, ...]] = []
    parts: list[PartOfCorpus] = []
    for number, corpus in enumerate(recipe.data.train):
        next(read_pairs(corpus), None)  # a problem of a file is reported at once
        paths = chain.from_iterable(map(corpora.files_of, (corpus.source, corpus.target)))
        of_corpus = tuple(kinds.kind_of(file)[1] for file in files_of([*map(str, paths)]))
        files.append(of_corpus)
        if format_of(corpus) not in _BY_LINES:
            parts.append(PartOfCorpus(number, ()))
            continue
        cut = kinds.cut_together(of_corpus, kinds.KINDS["text"], lines)
        parts += [PartOfCorpus(number, some) for some in cut]
    known = sum(part.stretches[0].lines for part in parts if part.stretches)
    kinds.check_count(len(parts), known)
    partitions = -(-known // _OF_PARTITION) or 1
    return DataPlan(
        recipe, lines, tuple(files), tuple(parts),
        partitions if recipe.data.cleaning.duplicates else 0, versions(recipe),
    )  # fmt: skip


def check_same(plan: DataPlan, recipe: Recipe, lines: int, where: str) -> None:
    """Errors: ``RunError`` or ``InputChanged`` if the stored plan differs from the request."""
    another = "Use another folder: --to"
    if plan.recipe != recipe:
        raise RunError(f"{where} was begun with another recipe, or with other settings. {another}")
    if plan.lines != lines:
        raise RunError(f"{where} was begun with --lines {plan.lines}. {another}")
    check_versions(plan, where)
    _check_unchanged(chain.from_iterable(plan.files))


def check_versions(plan: DataPlan, where: str) -> None:
    """Errors: ``RunError`` if this machine has other versions than the plan."""
    here = versions(plan.recipe)
    if plan.versions != here:
        raise RunError(
            f"{where} was begun with {', '.join(plan.versions)}, but this machine has "
            f"{', '.join(here)}. Install the same versions"
        )


def versions(recipe: Recipe) -> tuple[str, ...]:
    """The names and versions of the packages that determine the bytes."""
    names = ["dragoman", "sentencepiece"]
    if recipe.data.moses:
        moses_of(recipe)  # it raises an error if sacremoses is not installed
        names.append("sacremoses")
    return tuple(f"{name} {metadata.version(name)}" for name in names)


def check_fits(recipe: Recipe) -> None:
    """Errors: ``RecipeError`` for a recipe that cannot be prepared in parts."""
    data = recipe.data
    reason = ""
    if data.embedded is not None or not data.train:
        reason = "it has no files to train on (data.train)"
    elif data.old is not None:
        reason = "it tunes a run and keeps old text (data.old), which only dragoman train does"
    elif data.monolingual or any(corpus.is_synthetic for corpus in data.train):
        reason = "it learns from monolingual or synthetic text, which only dragoman train does"
    elif data.prepared is not None:
        reason = f"its text is prepared already, in {data.prepared}"
    elif recipe.spec.reads_files:
        reason = "it reads recordings or pictures, but only text can be prepared in parts"
    elif any(corpus.links is not None for corpus in data.train):
        reason = "a corpus has its own word alignment (links)"
    elif any(corpus.groups_by is not None for corpus in data.train):
        reason = "a corpus has groups, which may be spread over several parts"
    if reason:
        raise RecipeError(f"recipe {recipe.name} cannot be prepared: {reason}")


def _check_unchanged(files: Iterable[File]) -> None:
    for file in files:
        file.check_unchanged()


def _lines(file: File, stretch: kinds.Stretch) -> Iterator[str]:
    for number, raw in enumerate(kinds.lines_of(file, stretch), start=stretch.first + 1):
        if raw.data is None:
            raise far_too_long(file.place, number, f"{raw.size:,}")
        yield kinds.decode(raw.data, first=number == 1)
