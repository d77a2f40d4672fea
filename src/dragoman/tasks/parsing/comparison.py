"""Parsers compared on the same trees: labelled F1 and exact parses, with significance.

F1 is that of all brackets together, so what is drawn are sentences with the counts of their
brackets, matched, in the reference and in the parse (``tasks/parsing/metrics.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from dragoman.base.errors import DataError, DragomanError
from dragoman.base.wording import plural
from dragoman.forms.form import Pair
from dragoman.metrics.significance import MeasuredSystem
from dragoman.pictures.figure import Cell
from dragoman.pictures.labels import plain_table
from dragoman.runs.evaluation_set import own_test_set
from dragoman.runs.run import Run
from dragoman.studies.comparison import ComparisonReport, by_statistics
from dragoman.studies.systems import ComparisonRequest, runs_at
from dragoman.tasks.parsing.evaluation import (
    SIGNATURE,
    ParsingReport,
    evaluate_on,
    score_each,
    trees_in,
)
from dragoman.tasks.parsing.metrics import (
    LENGTHS,
    SHORT,
    ScoredSentence,
    exact_shares,
    f1s,
    length_name,
    statistics_of,
)
from dragoman.tasks.parsing.runtime import chance_of_trees
from dragoman.tasks.shared.progress_made import learned_answers

_SHOWN = {
    "precision": "precision",
    "recall": "recall",
    "tags": "tags",
    "f1_40": f"F1 (<= {SHORT})",
    "exact_40": f"exact (<= {SHORT})",
}
"""Scores that no test is made of, and what the table calls them."""


@dataclass(frozen=True)
class ComparedParsers:
    """Parsers, and how good each is on the same trees."""

    compared: ComparisonReport
    """F1 and exact parses."""
    evaluated: tuple[tuple[ParsingReport, ...], ...]
    """Each run of each system."""

    @property
    def scores(self) -> list[Mapping[str, float]]:
        """Of each system all scores by name, in percent, the means over its runs; without tags
        where these were not learned."""
        return [
            {name: fmean(run.scores[name] for run in runs) for name in runs[0].scores}
            for runs in self.evaluated
        ]

    @property
    def f1_by_length(self) -> dict[int, list[float]]:
        """Of each bin of sentences by length, F1 of each system, the mean over its runs."""
        present = self.evaluated[0][0].found.by_length
        return {
            most: [fmean(run.found.by_length[most].f1 for run in runs) for runs in self.evaluated]
            for most in LENGTHS
            if most in present
        }

    def table(self) -> str:
        """Plain text: what was tested, then the other scores and F1 by length side by side."""
        names = [system.name for system in self.compared.systems]
        scores, found = self.scores, self.evaluated[0][0].found
        rows = [
            [title, *(f"{one[name]:.2f}" if name in one else "-" for one in scores)]
            for name, title in _SHOWN.items()
            if any(name in one for one in scores)
        ]
        lengths: list[list[Cell]] = [
            [length_name(most), *(f"{one:.2f}" for one in values), found.by_length[most].reference]
            for most, values in self.f1_by_length.items()
        ]
        by_length = plain_table(("F1 by length", *names, "brackets"), lengths)
        return "\n\n".join((self.compared.table(), plain_table(("", *names), rows), by_length))

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            **self.compared.to_dict(),
            "scores": [
                {"system": system.name, **scores}
                for system, scores in zip(self.compared.systems, self.scores, strict=True)
            ],
            "f1_by_length": {str(most): values for most, values in self.f1_by_length.items()},
        }


def compare_parsers(asked: ComparisonRequest) -> ComparedParsers:
    """Compare run folders, and folders of runs that differ by their seed.

    ``source``: a file or folder of trees; left out, the test set of the runs' recipes, which must
    be the same. Parsers with tags and without are compared by brackets alone.
    Errors: ``DataError`` if there are fewer than two systems, one is a file, or trees cannot be
    used; ``RunError`` for a folder that holds no run that parses.
    """
    if asked.references:
        raise DragomanError("trees hold their sentences: name them with --source alone")
    source, systems = asked.source, runs_at(asked.paths)
    runs = [run for system in systems for run in system.runs]
    pairs, name = _own_trees(runs) if source is None else (trees_in(source, runs[0]), source.name)
    evaluated = tuple(
        tuple(evaluate_on(run, pairs, name) for run in system.runs) for system in systems
    )
    sentences = [[score_each(pairs, run.parses) for run in one] for one in evaluated]
    guess = chance_of_trees(pairs, learned_answers(systems[0].runs[0].recipe))
    compared = by_statistics(
        asked, systems, name, pairs, parse_statistics(sentences),
        chance={"F1": guess["f1"]} if guess else {},
        outputs=[runs[0].outputs() for runs in evaluated],
    )  # fmt: skip
    return ComparedParsers(compared, evaluated)


def parse_statistics(
    sentences: Sequence[Sequence[Sequence[ScoredSentence]]],
) -> dict[str, MeasuredSystem]:
    """What F1 and exact parses are made of. ``sentences``: of each run of each system, all parses
    of the same trees."""
    statistics = [[statistics_of(one) for one in runs] for runs in sentences]
    return {
        "F1": MeasuredSystem(statistics, f1s, SIGNATURE),
        "exact": MeasuredSystem(statistics, exact_shares, SIGNATURE),
    }


def _own_trees(runs: Sequence[Run]) -> tuple[Sequence[Pair], str]:
    """The one test set that all runs have, and what it is called. Errors: ``DataError``."""
    first, *others = runs
    pairs, name = own_test_set(first)
    if not pairs:
        raise DataError(f"there are no trees to compare {first.folder} on: --source test.mrg")
    for run in others:
        if run.recipe.data == first.recipe.data:
            continue
        its, its_name = own_test_set(run)
        if [(one.source, one.target) for one in its] != [(p.source, p.target) for p in pairs]:
            raise DataError(
                f"{run.folder} has another test set ({its_name}, {plural(len(its), 'tree')}) than "
                f"{first.folder} ({name}, {plural(len(pairs), 'tree')}): name the trees that all "
                "are to parse, --source FILE"
            )
    return pairs, name
