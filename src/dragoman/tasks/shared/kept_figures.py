"""The figures of a run that is searched for its outputs, on its own test set, into its folder."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.data.files.pair import Pair
from dragoman.engine.search_settings import for_test_set
from dragoman.runs.run import Run
from dragoman.runs.scores import keep_scores, samples
from dragoman.tasks.shared.evaluation_report import EvaluationReport


def keep_figures(
    run: Run,
    report: EvaluationReport,
    pairs: Sequence[Pair],
    changes: Sequence[str],
    precision: str,
) -> None:
    """``changes``: ``key=value``, of the recipe's search settings. With any that matter, or with a
    precision that was asked for, the figures are not the run's own, and ``keep_scores`` says so."""
    own = for_test_set(run.recipe, changes) == for_test_set(run.recipe)
    found = report.to_dict() | samples(run, pairs, list(report.outputs()))
    keep_scores(run, found, own=own and precision == "auto")
