"""Runs that label, compared on the same texts: accuracy and macro F1, with significance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.metrics.classification import accuracies, macro_f1s, statistics_of
from dragoman.metrics.significance import Measured, compare_statistics
from dragoman.studies.comparison import Compared, chosen_test, runs_at
from dragoman.tasks.classification import labelled_set
from dragoman.tasks.labeller import Labeller


def compare_labels(
    paths: Sequence[Path],
    source: Path | None = None,
    references: Sequence[Path] = (),
    test: str = "bootstrap",
    samples: int | None = None,
    seed: int = 12345,
) -> Compared:
    """Compare run folders, and folders of runs that differ by their seed.

    ``source``: labelled texts in the format of those that the first run has learned from, or texts
    beside labels (``references``); left out, the test set of the first run's recipe. Systems may
    know different labels, as long as all know those of the texts.
    Errors: ``DataError`` if there are fewer than two systems, one is a file, or texts cannot be
    used; ``RunError`` for a folder that holds no run that labels.
    """
    chosen, systems = chosen_test(test), runs_at(paths)
    files = [*([source] if source else []), *references]
    measured = labelled_set(systems[0].runs[0], files)
    texts = [pair.source for pair in measured.pairs]
    labellers = [[Labeller(run) for run in system.runs] for system in systems]
    names = sorted({name for system in labellers for one in system for name in one.labels.names})
    value = {name: number for number, name in enumerate(names)}
    true = [value[pair.target.strip()] for pair in measured.pairs]
    statistics = [
        [
            statistics_of(true, [value[found.label] for found in one(texts)], len(names))
            for one in runs
        ]
        for runs in labellers
    ]
    signature = f"texts:{len(texts)}|labels:{len(names)}"
    by_metric = {
        "accuracy": Measured(statistics, accuracies, signature),
        "macro F1": Measured(statistics, macro_f1s, signature),
    }
    quality = compare_statistics(
        [system.name for system in systems], by_metric, chosen, samples, seed
    )
    return Compared(tuple(systems), measured.name, quality)
