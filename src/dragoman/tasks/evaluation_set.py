"""What finished runs are measured on: the test set of their recipe, or files that are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.corpora import CorpusSettings, Pair, read_lines, read_pairs
from dragoman.errors import DataError, DragomanError
from dragoman.plural import plural
from dragoman.tasks.corpora import has_test_set, plain_pairs
from dragoman.tasks.run import Run


@dataclass(frozen=True)
class EvaluationSet:
    """Sources to translate, each with one reference or several."""

    pairs: Sequence[Pair]
    """Each source with its first reference."""
    references: Sequence[Sequence[str]]
    """One list for each reference that a source has, as long as the test set."""
    name: str

    @classmethod
    def of(cls, run: Run, files: Sequence[Path]) -> EvaluationSet:
        """The set in some files, sources first; without files, the test set of the run's recipe.

        Errors: ``DragomanError`` where there is nothing to measure on, ``DataError`` for files
        whose lines do not pair up.
        """
        if len(files) == 1:
            raise DragomanError("give both the source sentences and their references, or neither")
        if not files:
            pairs, name = own_test_set(run)
            if not pairs:
                raise _no_pairs(run)
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
                f"{path} has {plural(len(sets[-1]), 'line')} for "
                f"{plural(len(pairs), 'sentence')}: each file of references has one line for each"
            )
    return sets


def own_test_set(run: Run) -> tuple[list[Pair], str]:
    """The test set of a run's recipe, and what to call it.

    Errors: ``RunError`` for text that is not where the recipe says.
    """
    data = run.recipe.data
    run.require_text("test")
    pairs = plain_pairs(run.recipe, "test")
    if data.test is not None:
        return pairs, Path(data.test.source).name
    return pairs, "the demo's test set" if data.embedded else "the held-out test set"


def nothing_to_measure(run: Run, there: str, files: str, example: str) -> DragomanError:
    """What is said where ``there`` "is no text"; ``files``: what to give, such as ``example``."""
    return DragomanError(
        f"there {there} to measure {run.folder} on; give {files}: "
        f"dragoman evaluate {run.folder} {example}"
    )


def _no_pairs(run: Run) -> DragomanError:
    why = "names no test set and holds none out"
    if has_test_set(run.recipe):
        why = "holds out a share of the text for a test, and no pair of so few fell into it"
    return DragomanError(
        f"the recipe of {run.folder} {why}; give two files: "
        f"dragoman evaluate {run.folder} test.source test.reference"
    )
