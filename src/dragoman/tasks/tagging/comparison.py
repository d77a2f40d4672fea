"""Runs that tag words, compared on the same sentences, with significance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dragoman.forms.form import Pair
from dragoman.metrics.significance import MeasuredSystem
from dragoman.studies.comparison import ComparisonReport, by_statistics
from dragoman.studies.systems import ComparisonRequest, runs_at
from dragoman.tasks.tagging.evaluation import tagged_set
from dragoman.tasks.tagging.metrics import has_spans, spans_of
from dragoman.tasks.tagging.runtime import chance_of_tags
from dragoman.tasks.tagging.spec import TAGGING
from dragoman.tasks.tagging.tagger import Tagged, Tagger, underscored

Statistics = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def compare_taggers(asked: ComparisonRequest) -> ComparisonReport:
    """Compare run folders, and folders of runs that differ by their seed.

    ``source``: tagged words in the format of those that the first run has learned from, or
    sentences beside tags (``references``); left out, the test set of the first run's recipe. What
    guessing scores is of the first run's training.
    Errors: ``DataError`` if there are fewer than two systems, one is a file, or sentences cannot be
    used; ``RunError`` for a folder that holds no run that tags.
    """
    systems = runs_at(asked.paths)
    measured = tagged_set(systems[0].runs[0], asked.files)
    texts = [pair.source for pair in measured.pairs]
    taggers = [[Tagger(run) for run in system.runs] for system in systems]
    tags = taggers[0][0].tags
    found = [[tagger(texts) for tagger in runs] for runs in taggers]
    called = {name: TAGGING.measure(name).called for name in ("accuracy", "f1")}
    counts = {called["accuracy"]: _words}
    if has_spans(tags.counts):
        counts[called["f1"]] = _spans
    by_metric = {
        name: MeasuredSystem(
            [[_statistics(measured.pairs, run, count) for run in runs] for runs in found],
            _shares, f"sentences:{{}}|tags:{tags.size}",
        )
        for name, count in counts.items()
    }  # fmt: skip
    guess = chance_of_tags(tags, measured.pairs)
    return by_statistics(
        asked, systems, measured.name, measured.pairs, by_metric,
        chance={called[name]: value for name, value in guess.items() if name in called},
        outputs=[[str(one) for one in runs[0]] for runs in found],
        shown=[
            pair._replace(target=underscored(pair.source.split(), pair.target.split()))
            for pair in measured.pairs
        ],
    )  # fmt: skip


def _words(true: Sequence[str], chosen: Sequence[str]) -> list[int]:
    right = sum(one == other for one, other in zip(true, chosen, strict=True))
    return [right, len(true)]


def _spans(true: Sequence[str], chosen: Sequence[str]) -> list[int]:
    there, found = set(spans_of(true)), set(spans_of(chosen))
    return [2 * len(there & found), len(there) + len(found)]


def _statistics(
    pairs: Sequence[Pair], found: Sequence[Tagged], count: Callable[..., list[int]]
) -> Statistics:
    """(N sentences, 2): what is summed before it is divided."""
    rows = [count(pair.target.split(), one.tags) for pair, one in zip(pairs, found, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 2)


def _shares(sums: Statistics) -> Statistics:
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)
