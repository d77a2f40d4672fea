"""The sentences that translations are measured on, and what they are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.corpora import CorpusSettings, Pair, read_lines, read_pairs
from dragoman.errors import DataError, DragomanError
from dragoman.tasks.corpora import has_test_set, plain_pairs
from dragoman.tasks.run import Run


@dataclass(frozen=True)
class EvaluationSet:
    """Sources, each with one reference or several."""

    pairs: Sequence[Pair]
    """With the first reference."""
    references: Sequence[Sequence[str]]
    """One list of all lines for each reference that a source has."""
    name: str

    @classmethod
    def of(cls, run: Run, files: Sequence[Path]) -> EvaluationSet:
        """That of some files, sources first; the test set of the run's recipe, if there are none.

        Errors: ``DragomanError`` where there is nothing to measure on, ``DataError`` for files
        whose lines do not pair up.
        """
        if len(files) == 1:
            raise DragomanError("give both the source sentences and their references, or neither")
        if not files:
            pairs, name = _of_recipe(run)
            return cls(pairs, [[pair.target for pair in pairs]], name)
        source, first, *further = files
        corpus = CorpusSettings(source=str(source), target=str(first), format="lines")
        pairs = list(read_pairs(corpus))
        return cls(pairs, _with_further(pairs, further), source.name)

    @classmethod
    def of_references(cls, references: Sequence[Path]) -> EvaluationSet:
        """References alone, for what is translated already. Errors: ``DataError``."""
        first, *further = references
        pairs = [Pair(n, "", line) for n, line in enumerate(read_lines(first), 1)]
        return cls(pairs, _with_further(pairs, further), first.name)


def _with_further(pairs: Sequence[Pair], further: Sequence[Path]) -> list[list[str]]:
    """All references, line by line. Errors: ``DataError``."""
    sets = [[pair.target for pair in pairs]]
    for path in further:
        sets.append(list(read_lines(path)))
        if len(sets[-1]) != len(pairs):
            raise DataError(
                f"{path} has {len(sets[-1]):,} lines, but there are {len(pairs):,} sentences: "
                "each file of references has one line for each"
            )
    return sets


def _of_recipe(run: Run) -> tuple[list[Pair], str]:
    """The test set of a recipe, and what to call it."""
    data = run.recipe.data
    run.require_text("test")
    pairs = plain_pairs(run.recipe, "test")
    if not pairs:
        why = "names no test set and holds none out"
        if has_test_set(run.recipe):
            why = "holds out a share of the text for a test, and no pair of so few fell into it"
        raise DragomanError(
            f"the recipe of {run.folder} {why}; give two files: "
            f"dragoman evaluate {run.folder} test.source test.reference"
        )
    if data.test is not None:
        return pairs, Path(data.test.source).name
    return pairs, "the demo's test set" if data.embedded else "the held-out test set"
