"""Runs that tag, compared on the same sentences: accuracy and F1 of spans, with significance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.data.files.pair import Pair
from dragoman.metrics.significance import MeasuredSystem, Significance, compare_statistics
from dragoman.metrics.tagging import has_spans, spans_of
from dragoman.specs.tagging import TAGGING
from dragoman.studies.comparison import ComparisonReport, checked, side_by_side
from dragoman.studies.systems import chosen_test, runs_at
from dragoman.tasks.tagging.chance import chance_of_tags
from dragoman.tasks.tagging.evaluation import tagged_set
from dragoman.tasks.tagging.tagger import Tagged, Tagger, underscored

Statistics = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def compare_taggers(
    paths: Sequence[Path],
    source: Path | None = None,
    references: Sequence[Path] = (),
    test: str = "bootstrap",
    samples: int | None = None,
    seed: int = 12345,
) -> ComparisonReport:
    """Compare run folders, and folders of runs that differ by their seed.

    ``source``: tagged words in the format of those that the first run has learned from, or
    sentences beside tags (``references``); left out, the test set of the first run's recipe. What
    guessing scores is of the first run's training.
    Errors: ``DataError`` if there are fewer than two systems, one is a file, or sentences cannot be
    used; ``RunError`` for a folder that holds no run that tags.
    """
    chosen, systems = chosen_test(test), runs_at(paths)
    files = [*([source] if source else []), *references]
    measured = tagged_set(systems[0].runs[0], files)
    texts = [pair.source for pair in measured.pairs]
    taggers = [[Tagger(run) for run in system.runs] for system in systems]
    tags = taggers[0][0].tags
    found = [[tagger(texts) for tagger in runs] for runs in taggers]
    words = [[_statistics(measured.pairs, run, _words) for run in runs] for runs in found]
    statistics = {"accuracy": (words, _shares)}
    if has_spans(tags.counts):
        spans = [[_statistics(measured.pairs, run, _spans) for run in runs] for runs in found]
        statistics[TAGGING.measure("f1").called] = (spans, _shares)

    def over(places: Sequence[int]) -> Significance:
        some = list(places)
        by_metric = {
            name: MeasuredSystem([[run[some] for run in runs] for runs in of], score,
                           f"sentences:{len(some)}|tags:{tags.size}")
            for name, (of, score) in statistics.items()
        }  # fmt: skip
        return compare_statistics(
            [system.name for system in systems], by_metric, chosen, samples, seed
        )

    guess = chance_of_tags(tags, measured.pairs)
    called = {name: TAGGING.measure(name).called for name in ("accuracy", "f1")}
    shown = [
        pair._replace(target=underscored(pair.source.split(), pair.target.split()))
        for pair in measured.pairs
    ]
    return checked(
        systems, measured.name, over(range(len(texts))), measured.pairs, own=not files,
        chance={called[name]: value for name, value in guess.items() if name in called},
        again=over,
        samples=side_by_side(
            shown,
            {system.name: [str(one) for one in runs[0]]
             for system, runs in zip(systems, found, strict=True)},
        ),
    )  # fmt: skip


def _words(true: Sequence[str], chosen: Sequence[str]) -> list[int]:
    right = sum(one == other for one, other in zip(true, chosen, strict=True))
    return [right, len(true)]


def _spans(true: Sequence[str], chosen: Sequence[str]) -> list[int]:
    there, found = set(spans_of(true)), set(spans_of(chosen))
    return [2 * len(there & found), len(there) + len(found)]


def _statistics(pairs: Sequence[Pair], found: Sequence[Tagged], count: object) -> Statistics:
    """(N sentences, 2): what is summed before it is divided."""
    assert callable(count)
    rows = [count(pair.target.split(), one.tags) for pair, one in zip(pairs, found, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 2)


def _shares(sums: Statistics) -> Statistics:
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)
