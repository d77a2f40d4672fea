"""The protocol of older papers: lower-cased text, cut into tokens by the rules of Moses.

Published Multi30k scores (41.02 BLEU of Wu et al., 2021, "Good for Misconceived Reasons", say) are
computed on text that was lower-cased, its punctuation normalised and its words tokenised *before*
training, with BLEU counting those tokens (``translation.tokenised_bleu``). This file prepares text
that way, by ``lowercase.perl | normalize-punctuation.perl | tokenizer.perl`` of Moses (Koehn et
al., 2007) in their Python port sacremoses (an extra: ``pip install 'dragoman[moses]'``), and puts
the two BLEU figures side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.errors import DataError
from dragoman.metrics.translation import Score, evaluate_translation, tokenised_bleu

WHY_BLEU_DIFFERS = (
    "The two BLEU figures are not comparable. The first is over plain text with its case, cut into "
    "words by sacreBLEU itself. The second is over text that was lower-cased, its punctuation "
    "normalised and tokenised by Moses beforehand: case errors cost nothing, and other tokens "
    "count. Many papers report the second: compare it with theirs, and the first with the rest."
)


class MosesText:
    """Prepares text of one language as Moses does, and undoes it.

    Raises:
        DataError: sacremoses is not installed.
    """

    def __init__(self, language: str, lowercase: bool = True) -> None:
        try:
            from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
        except ImportError as error:
            raise DataError(
                "Tokenising as Moses does needs sacremoses: pip install 'dragoman[moses]'"
            ) from error
        code = language.replace("_", "-").partition("-")[0].lower()
        self._lowercase = lowercase
        self._normaliser = MosesPunctNormalizer(code)
        self._tokeniser = MosesTokenizer(code)
        self._detokeniser = MosesDetokenizer(code)

    def prepare(self, text: str) -> str:
        """Lower-case (if so set), normalise punctuation, tokenise: tokens separated by spaces.

        Characters with a meaning in XML become entities (``'`` is ``&apos;``), as in the prepared
        files that papers share.
        """
        cased = text.lower() if self._lowercase else text
        return str(self._tokeniser.tokenize(self._normaliser.normalize(cased), return_str=True))

    def restore(self, tokens: str) -> str:
        """Plain text from prepared text, without its former case."""
        return str(self._detokeniser.detokenize(tokens.split()))


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


def both_bleus(hypotheses: Sequence[str], references: Sequence[str], language: str) -> BothBleus:
    """Both figures for translations given as plain, cased text.

    A model that was trained on prepared text speaks prepared text: score it by
    ``translation.tokenised_bleu`` against prepared references instead.

    Raises:
        DataError: different numbers of lines, none at all, or sacremoses is not installed.
    """
    plain = evaluate_translation(hypotheses, references, language, metrics=("BLEU",)).scores[0]
    moses = MosesText(language)
    prepared = tokenised_bleu(
        [moses.prepare(line) for line in hypotheses], [moses.prepare(line) for line in references]
    )
    return BothBleus(plain, prepared)
