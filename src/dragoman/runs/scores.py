"""``scores.json`` of a run: what it scores on the test set of its recipe, by the recipe's settings.

Seeds, reports and pages read it, so figures of other settings are never written there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dragoman.base.atomic import write_text
from dragoman.base.measure import score_table
from dragoman.base.task import Task
from dragoman.forms.form import Pair
from dragoman.runs.run import SCORES, Run
from dragoman.training.records import MAX_SHOWN, Sample

_CHARACTERS = 500_000
"""Of all samples together: the file is read back only if it is no larger than ``MAX_JSON``."""

logger = logging.getLogger("dragoman")


def keep_scores(run: Run, found: Mapping[str, Any], *, own: bool) -> None:
    """``found``: on the recipe's test set, as ``ScoresFile`` of ``files.py`` reads it back.

    ``own``: by the recipe's settings; others are not written, and that is said.
    """
    if not own:
        logger.info(
            "%s is not changed: it holds the scores with the recipe's own settings",
            run.folder / SCORES,
        )
        return
    record = json.dumps(found, indent=2, ensure_ascii=False)
    write_text(run.folder / SCORES, f"{record}\n")


def scores_of(task: Task, scores: Mapping[str, float]) -> str:
    """A line for each score of a task, by its name."""
    return score_table({name: (task.measure(name), value) for name, value in scores.items()})


def signed(scores: Mapping[str, float], signature: str) -> dict[str, dict[str, Any]]:
    """Each score with its signature: how it was computed."""
    return {name: {"value": value, "signature": signature} for name, value in scores.items()}


def samples(run: Run, pairs: Sequence[Pair], hypotheses: Sequence[str]) -> dict[str, Any]:
    """As many as the recipe says, spread over all: pairs, and what the run makes of them. Long
    texts are shortened, the more the more samples there are."""
    wanted = run.recipe.evaluation.samples
    most = min(MAX_SHOWN, _CHARACTERS // (3 * max(1, wanted)))
    step = max(1, len(pairs) // max(1, wanted))
    some = list(zip(pairs, hypotheses, strict=True))[::step][:wanted]
    return {
        "samples": [
            asdict(Sample(pair.source, pair.target, hypothesis).shortened(most))
            for pair, hypothesis in some
        ]
    }
