"""What a prepared folder is made of: the recipe, its files as they were, how they are cut, and the
stages in which their parts are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from itertools import chain
from typing import Literal

from pydantic import TypeAdapter

from dragoman.base.errors import RecipeError, RunError
from dragoman.catalogue import Recipe
from dragoman.cluster.files import File, files_of
from dragoman.cluster.kinds import KINDS, check_count, cut_together, kind_of
from dragoman.cluster.plan import VERSION
from dragoman.cluster.rows import Stretch, decoded, lines_of, place_of
from dragoman.data.files import corpora
from dragoman.data.files.bilingual import jsonl_pairs, tsv_pairs
from dragoman.data.files.corpora import format_of, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.lines import far_too_long
from dragoman.forms.form import Pair
from dragoman.runs.corpora import moses_of
from dragoman.stores.store import InputChanged

_BY_LINES = ("lines", "tsv", "jsonl")
"""Formats that are cut; a corpus of any other is one part."""
_OF_PARTITION = 4_000_000
"""Hashes that are compared at once: 100 MB with what sorting takes."""


@dataclass(frozen=True)
class PartOfCorpus:
    """Some lines of a corpus, or all of it."""

    corpus: int
    stretches: tuple[Stretch, ...]
    """Of each of its files; nothing where the corpus is read as a whole."""


@dataclass(frozen=True)
class DataPlan:
    """Written once; whoever comes later takes it as it is."""

    recipe: Recipe
    lines: int
    """Of a part, at most."""
    files: tuple[tuple[File, ...], ...]
    """Of each corpus."""
    parts: tuple[PartOfCorpus, ...]
    partitions: int
    """Ranges of hashes; 0 where duplicates stay."""
    versions: tuple[str, ...]
    """Of what may give other bytes."""
    verb: Literal["prepare"] = "prepare"
    version: int = VERSION

    @cached_property
    def names(self) -> list[str]:
        """Of the corpora."""
        return [corpus.name for corpus in self.recipe.data.train]

    def place(self, number: int) -> str:
        """What messages call a part."""
        part = self.parts[number]
        if not part.stretches:
            return self.names[part.corpus]
        return place_of(self.files[part.corpus][0], part.stretches[0])

    def lines_of(self, number: int) -> int:
        """Of a part, as far as they are known."""
        return self.parts[number].stretches[0].lines if self.parts[number].stretches else 0

    def pairs(self, number: int) -> Iterator[Pair]:
        """What a part holds. Errors: ``DataError``, ``InputChanged``."""
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
                found = tsv_pairs(sides[0], corpus, first)
            case "jsonl":
                found = jsonl_pairs(sides[0], corpus, first)
            case _:
                both = enumerate(zip(*sides, strict=True), start=first)
                found = (Pair(line, *texts) for line, texts in both)
        for pair in found:
            count += 1
            yield pair
        if count != part.stretches[0].lines:
            raise InputChanged(f"{self.place(number)}: there are {count:,} lines now")


DATA_PLANS = TypeAdapter(DataPlan)
"""Writes and reads them, as JSON."""


def make_plan(recipe: Recipe, lines: int) -> DataPlan:
    """Cut the corpora of a recipe. Errors: ``RecipeError`` for one whose text is not prepared in
    parts, ``DataError`` for files that cannot be read."""
    check_fits(recipe)
    files: list[tuple[File, ...]] = []
    parts: list[PartOfCorpus] = []
    for number, corpus in enumerate(recipe.data.train):
        next(read_pairs(corpus), None)  # what is wrong with a file is said at once
        found = tuple(kind_of(file)[1] for file in _files(corpus))
        files.append(found)
        if format_of(corpus) not in _BY_LINES:
            parts.append(PartOfCorpus(number, ()))
            continue
        cut = cut_together(found, KINDS["text"], lines)
        parts += [PartOfCorpus(number, some) for some in cut]
    known = sum(part.stretches[0].lines for part in parts if part.stretches)
    check_count(len(parts), known)
    partitions = -(-known // _OF_PARTITION) or 1
    return DataPlan(
        recipe, lines, tuple(files), tuple(parts),
        partitions if recipe.data.cleaning.duplicates else 0, versions(recipe),
    )  # fmt: skip


def check_same(plan: DataPlan, recipe: Recipe, lines: int, where: str) -> None:
    """Errors: ``RunError`` or ``InputChanged`` where the plan that stands is of something else."""
    another = "Take another folder: --to"
    if plan.recipe != recipe:
        raise RunError(f"{where} was begun with another recipe, or with other settings. {another}")
    if plan.lines != lines:
        raise RunError(f"{where} was begun with --lines {plan.lines}. {another}")
    check_versions(plan, where)
    _check_unchanged(chain.from_iterable(plan.files))


def check_versions(plan: DataPlan, where: str) -> None:
    """Errors: ``RunError`` where this machine has other versions than the plan."""
    here = versions(plan.recipe)
    if plan.versions != here:
        raise RunError(
            f"{where} was begun with {', '.join(plan.versions)}, and here is "
            f"{', '.join(here)}: install the same versions"
        )


def versions(recipe: Recipe) -> tuple[str, ...]:
    """Of what may give other bytes."""
    names = ["dragoman", "sentencepiece"]
    if recipe.data.moses:
        moses_of(recipe)  # which says if it is not installed
        names.append("sacremoses")
    return tuple(f"{name} {metadata.version(name)}" for name in names)


def check_fits(recipe: Recipe) -> None:
    """Errors: ``RecipeError`` for a recipe whose text is not prepared in parts."""
    data = recipe.data
    reason = ""
    if data.embedded is not None or not data.train:
        reason = "it names no files to train on (data.train)"
    elif data.prepared is not None:
        reason = f"its text is prepared already, in {data.prepared}"
    elif recipe.spec.reads_files:
        reason = "it reads recordings or pictures, and only text is prepared in parts"
    elif any(corpus.links is not None for corpus in data.train):
        reason = "a corpus brings its own word alignment (links)"
    elif any(corpus.groups_by is not None for corpus in data.train):
        reason = "a corpus has groups, which no part knows as a whole"
    if reason:
        raise RecipeError(f"recipe {recipe.name} cannot be prepared: {reason}")


def _files(corpus: CorpusSettings) -> list[File]:
    sides = (corpora.files_of(side) for side in (corpus.source, corpus.target))
    return files_of([str(path) for path in chain.from_iterable(sides)])


def _check_unchanged(files: Iterable[File]) -> None:
    for file in files:
        file.check_unchanged()


def _lines(file: File, stretch: Stretch) -> Iterator[str]:
    for number, raw in enumerate(lines_of(file, stretch), start=stretch.first + 1):
        if raw.data is None:
            raise far_too_long(file.place, number, f"{raw.size:,}")
        yield decoded(raw.data, first=number == 1)
