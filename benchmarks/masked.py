"""Masked models beside counts of what stands between two tokens, on the same blanks.

    dragoman train movie-reviews-masked --minutes 60
    python benchmarks/masked.py runs/movie-reviews-masked

For each run: what its own training tokens have between two others is counted (``neighbours.py``),
and both are asked for the same hidden tokens of the run's test set, as ``dragoman evaluate`` hides
them; what is hidden beside a token neither sees. The counts look at one token to each side, the run
at all of its context. Printed whoever wins, and written to ``benchmarks/results/masked.json``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from neighbours import Neighbours
from results import measure_runs
from run_texts import held_out_texts, training_tokens

from dragoman.data.masking import Masking
from dragoman.runs.run import Run
from dragoman.tasks.masked.evaluation import MaskedEvaluation, mask_pieces

RESULTS = Path(__file__).resolve().parent / "results" / "masked.json"


def measured(run: Run) -> dict[str, Any]:
    """Accuracy and perplexity of the run, of the counts, and of the most frequent token."""
    form, settings = run.forms.written, run.recipe.masking
    train = training_tokens(run)
    counts = Neighbours.train(train, form.size)
    most_frequent = int(counts(None, None).argmax())
    written = [np.array(one, np.int32) for one in form.tokens(held_out_texts(run))]
    nll, right, most, tokens = 0.0, 0, 0, 0
    for piece, masked in mask_pieces(
        written, run.recipe.plan.context, Masking(form.vocabulary, settings)
    ):
        asked = set(masked.places.tolist())
        for place in masked.places.tolist():
            left, beside = (
                int(piece[at]) if 0 <= at < len(piece) and at not in asked else None
                for at in (place - 1, place + 1)
            )
            probabilities = counts(left, beside)
            nll -= math.log(probabilities[piece[place]])
            right += int(probabilities.argmax()) == int(piece[place])
            most += most_frequent == int(piece[place])
            tokens += 1
    found = MaskedEvaluation()(run)
    assert found.masked.tokens == tokens, "both are asked for the same tokens"
    return {
        "train_tokens": sum(map(len, train)),
        "test_tokens": tokens,
        "vocabulary": form.size,
        "share": settings.share,
        "whole_words": settings.whole_words,
        "ours": {name: found.masked.scores[name] for name in ("accuracy", "perplexity")},
        "counts": {"accuracy": right / tokens, "perplexity": math.exp(nll / tokens)},
        "most_frequent": {"accuracy": most / tokens},
    }


def table(row: dict[str, Any]) -> str:
    """All, one below the other."""
    words = ", whole words" if row["whole_words"] else ""
    asked = f"{row['test_tokens']:,} tokens asked for, {100 * row['share']:.0f} % of all{words}"
    lines = [
        f"{row['run']}, {row['trained_minutes']} minutes; {asked}",
        f"{'':<24} accuracy  perplexity",
    ]
    for name, scores in ((row["run"], row["ours"]), ("both neighbours", row["counts"])):
        lines.append(f"{name:<24} {scores['accuracy']:8.2%}  {scores['perplexity']:10.1f}")
    lines.append(f"{'the most frequent token':<24} {row['most_frequent']['accuracy']:8.2%}")
    return "\n".join(lines)


if __name__ == "__main__":
    measure_runs(RESULTS, __doc__ or "", "masked models", measured, table)
