"""Runs that label texts, compared on the same ones, with significance."""

from __future__ import annotations

from dragoman.metrics.classification import accuracies, macro_f1s, statistics_of
from dragoman.metrics.significance import MeasuredSystem
from dragoman.studies.comparison import ComparisonReport, by_statistics
from dragoman.studies.systems import ComparisonRequest, runs_at
from dragoman.tasks.classification.evaluation import labelled_set
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.classification.runtime import chance_of_labels
from dragoman.tasks.shared.progress_made import learned_answers


def compare_labels(asked: ComparisonRequest) -> ComparisonReport:
    """Compare run folders, and folders of runs that differ by their seed.

    ``source``: labelled texts in the format of those that the first run has learned from, or texts
    beside labels (``references``); left out, the test set of the first run's recipe. Systems may
    know different labels, as long as all know those of the texts.
    Errors: ``DataError`` if there are fewer than two systems, one is a file, or texts cannot be
    used; ``RunError`` for a folder that holds no run that labels.
    """
    systems = runs_at(asked.paths)
    measured = labelled_set(systems[0].runs[0], asked.files)
    texts = [pair.source for pair in measured.pairs]
    labellers = [[Labeller(run) for run in system.runs] for system in systems]
    names = sorted({name for system in labellers for one in system for name in one.labels.names})
    value = {name: number for number, name in enumerate(names)}
    true = [value[pair.target.strip()] for pair in measured.pairs]
    found = [[[one.label for one in labeller(texts)] for labeller in runs] for runs in labellers]
    statistics = [
        [statistics_of(true, [value[label] for label in labels], len(names)) for labels in runs]
        for runs in found
    ]
    signature = f"texts:{{}}|labels:{len(names)}"
    learned = learned_answers(systems[0].runs[0].recipe)
    guess = chance_of_labels([pair.target.strip() for pair in measured.pairs], learned)
    called = {"accuracy": "accuracy", "macro_f1": "macro F1"}
    return by_statistics(
        asked, systems, measured.name, measured.pairs,
        {
            "accuracy": MeasuredSystem(statistics, accuracies, signature),
            "macro F1": MeasuredSystem(statistics, macro_f1s, signature),
        },
        chance={called[name]: value for name, value in guess.items() if name in called},
        outputs=[runs[0] for runs in found],
    )  # fmt: skip
