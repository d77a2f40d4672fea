"""What a translator scores that gives every source the same sentence."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.metrics.chrf import pairwise_chrf
from dragoman.metrics.translation import evaluate_translation
from dragoman.tasks.shared.chance import MIN_ANSWERS

MIN_BLEU = 1.0
"""The least BLEU that counts as more than a guess, even where the best guess scores less: of two
models with 0.7 and 0.0 neither translates, however significant the difference."""
_ALIKE = 200
"""Texts among which the most typical one is searched for: all pairs are compared."""


def chance_of_translations(
    references: Sequence[Sequence[str]],
    learned: Sequence[str],
    language: str,
    tokenizer: str | None = None,
) -> dict[str, float]:
    """Of references as ``evaluate_translation`` takes them. ``learned``: the targets of training
    (``learned_answers``)."""
    lines = references[0]
    if len(lines) < MIN_ANSWERS or not learned:
        return {"bleu": MIN_BLEU}
    some = list(learned[:: max(1, len(learned) // _ALIKE)])[:_ALIKE]
    usual = some[int(pairwise_chrf(some).mean(axis=1).argmax())]
    scores = evaluate_translation(
        [usual] * len(lines), references, language, tokenizer=tokenizer, metrics=("BLEU", "chrF")
    )
    return {"bleu": max(MIN_BLEU, scores["BLEU"]), "chrf": scores["chrF"]}
