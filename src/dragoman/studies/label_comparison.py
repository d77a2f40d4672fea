"""Runs that label, compared on the same texts: accuracy and macro F1, with significance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.metrics.classification import accuracies, macro_f1s, statistics_of
from dragoman.metrics.significance import MeasuredSystem, Significance, compare_statistics
from dragoman.studies.comparison import ComparisonReport, checked, side_by_side
from dragoman.studies.systems import chosen_test, runs_at
from dragoman.tasks.classification.chance import chance_of_labels
from dragoman.tasks.classification.evaluation import labelled_set
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.shared.chance import learned_answers


def compare_labels(
    paths: Sequence[Path],
    source: Path | None = None,
    references: Sequence[Path] = (),
    test: str = "bootstrap",
    samples: int | None = None,
    seed: int = 12345,
) -> ComparisonReport:
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
    found = [[[one.label for one in labeller(texts)] for labeller in runs] for runs in labellers]
    statistics = [
        [statistics_of(true, [value[label] for label in labels], len(names)) for labels in runs]
        for runs in found
    ]

    def over(places: Sequence[int]) -> Significance:
        some = [[run[list(places)] for run in runs] for runs in statistics]
        signature = f"texts:{len(places)}|labels:{len(names)}"
        by_metric = {
            "accuracy": MeasuredSystem(some, accuracies, signature),
            "macro F1": MeasuredSystem(some, macro_f1s, signature),
        }
        return compare_statistics(
            [system.name for system in systems], by_metric, chosen, samples, seed
        )

    learned = learned_answers(systems[0].runs[0].recipe)
    guess = chance_of_labels([pair.target.strip() for pair in measured.pairs], learned)
    called = {"accuracy": "accuracy", "macro_f1": "macro F1"}
    return checked(
        systems, measured.name, over(range(len(texts))), measured.pairs, own=not files,
        chance={called[name]: value for name, value in guess.items() if name in called},
        again=over,
        samples=side_by_side(
            measured.pairs,
            {system.name: runs[0] for system, runs in zip(systems, found, strict=True)},
        ),
    )  # fmt: skip
