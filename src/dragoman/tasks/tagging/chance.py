"""What a tagger scores that knows words, and not what stands around them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dragoman.data.files.pair import Pair
from dragoman.forms.tags import Tags
from dragoman.measure import percent
from dragoman.metrics.tagging import TagScores, has_spans
from dragoman.runs.run import Run
from dragoman.tasks.shared.chance import MIN_TOKENS, entropy

_SURE = 2.0
"""Standard errors by which a tagger is worse than one that knows words alone."""


def chance_of_tags(tags: Tags, pairs: Sequence[Pair]) -> dict[str, float]:
    """Of the right tags of some sentences; nothing where these are too few."""
    counts = Counter(tag for pair in pairs for tag in pair.target.split())
    if counts.total() < MIN_TOKENS:
        return {}
    guess = usual_scores(tags, pairs).figures()
    kept = {name: guess[name] for name in ("accuracy", "f1") if name in guess}
    return kept | {"loss": entropy(counts.values())}


def usual_scores(tags: Tags, pairs: Sequence[Pair]) -> TagScores:
    """Of always answering the most frequent tag of each word in training, of an unknown word the
    most frequent tag of all."""
    words = [pair.source.split() for pair in pairs]
    return TagScores.of(
        [pair.target.split() for pair in pairs],
        [tags.usual(one) for one in words],
        [[tags.knows(word) for word in one] for one in words],
        has_spans(tags.counts),
    )


def by_usual_tag(run: Run) -> str | None:
    """Why a run has hardly learned: it is worse than the most frequent tag of each word. None if it
    is not, or that is not known."""
    scores: dict[str, Any] = run.scores()
    found, guess = scores.get("scores", {}).get("accuracy"), scores.get("usual", {}).get("accuracy")
    words = sum(one["texts"] for one in scores.get("labels", []))
    if found is None or not isinstance(guess, int | float) or not words:
        return None
    share, accuracy = guess / 100, found["value"] / 100
    if accuracy + _SURE * math.sqrt(max(0.0, share * (1 - share)) / words) >= share:
        return None
    shown = percent("accuracy", share=True)
    return (
        f"accuracy {shown.written(accuracy)}, and always answering the most frequent tag of each "
        f"word gives {shown.written(share)}"
    )
