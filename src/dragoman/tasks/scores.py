"""``scores.json`` of a run: what its last evaluation found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.atomic import write_text
from dragoman.data.corpora import Pair
from dragoman.tasks.run import SCORES, Run


def write_scores(run: Run, found: Mapping[str, Any]) -> None:
    """``found``: as ``Scores`` of ``run_files.py`` reads it back."""
    record = json.dumps(found, indent=2, ensure_ascii=False)
    write_text(run.folder / SCORES, f"{record}\n")


def signed(scores: Mapping[str, float], signature: str) -> dict[str, dict[str, Any]]:
    """Each score with its signature: how it was computed."""
    return {name: {"value": value, "signature": signature} for name, value in scores.items()}


def samples(run: Run, pairs: Sequence[Pair], hypotheses: Sequence[str]) -> dict[str, Any]:
    """As many as the recipe says, spread over all: pairs, and what the run makes of them."""
    wanted = run.recipe.evaluation.samples
    step = max(1, len(pairs) // max(1, wanted))
    some = list(zip(pairs, hypotheses, strict=True))[::step][:wanted]
    return {
        "samples": [
            {"source": pair.source, "reference": pair.target, "translation": hypothesis}
            for pair, hypothesis in some
        ]
    }
