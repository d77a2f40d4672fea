"""The BLEU of older papers beside today's.

Published Multi30k scores (41.02 BLEU of Wu et al., 2021, "Good for Misconceived Reasons", say) are
computed on text that was lower-cased, its punctuation normalised and its words tokenised *before*
training, with BLEU counting those tokens (``translation.tokenised_bleu``). ``forms/moses.py``
prepares text that way; here the two figures stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.metrics.translation import Score, evaluate_translation, tokenised_bleu

WHY_BLEU_DIFFERS = (
    "The two BLEU figures are not comparable. The first is over plain text with its case, cut into "
    "words by sacreBLEU itself. The second is over text that was lower-cased, its punctuation "
    "normalised and tokenised by Moses beforehand: case errors cost nothing, and other tokens "
    "count. Many papers report the second: compare it with theirs, and the first with the rest."
)


@dataclass(frozen=True, slots=True)
class BothBleus:
    """BLEU twice, of the same translations."""

    plain: Score
    """Cased sacreBLEU over plain text."""
    prepared: Score
    """BLEU over lower-cased text tokenised by Moses."""

    def table(self) -> str:
        """Plain text: the two figures with their signatures, and why they differ."""
        rows = (
            ("cased, plain text (sacreBLEU)", self.plain),
            ("lower-cased, Moses tokens", self.prepared),
        )
        width = max(len(label) for label, _ in rows)
        lines = [
            f"{label:<{width}}  {score.value:6.2f}  {score.signature}" for label, score in rows
        ]
        return "\n".join([*lines, WHY_BLEU_DIFFERS])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {
            "plain": {"value": self.plain.value, "signature": self.plain.signature},
            "prepared": {"value": self.prepared.value, "signature": self.prepared.signature},
            "why": WHY_BLEU_DIFFERS,
        }


def both_bleus(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str,
    prepare: Callable[[str], str],
) -> BothBleus:
    """Both figures for translations given as plain, cased text; ``prepare`` does as Moses does.

    A model that was trained on prepared text speaks prepared text: score it by
    ``translation.tokenised_bleu`` against prepared references instead.

    Raises:
        DataError: different numbers of lines, or none at all.
    """
    plain = evaluate_translation(hypotheses, references, language, metrics=("BLEU",)).scores[0]
    prepared = tokenised_bleu(
        [prepare(line) for line in hypotheses], [prepare(line) for line in references]
    )
    return BothBleus(plain, prepared)
