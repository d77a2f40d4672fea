"""Reranks the n best translations of a model by a language model of the target language.

    score(y) = (log P(y | x) + λ log P_LM(y)) / lp(|y|)

(The sum of shallow fusion, Gülçehre et al., 2015, over whole hypotheses; lp:
``search/hypothesis.py``.) The models may have different vocabularies: log P_LM is of the whole
text, and |y| counts the translation's tokens. λ is given, or chosen by BLEU on development text
among a few values that include 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from dragoman.base.errors import RunError
from dragoman.forms.form import Pair
from dragoman.metrics.translation import evaluate_translation
from dragoman.runs.corpora import plain_pairs
from dragoman.runs.run import Run
from dragoman.search.hypothesis import length_penalty, rank
from dragoman.search.settings import SearchSettings
from dragoman.tasks.shared.surprisal import Length, Scorer, windows_in
from dragoman.tasks.translation.result import Translation
from dragoman.tasks.translation.translator import Translator

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""The values among which λ is chosen."""
CANDIDATES = 10
"""The number of translations of each source that are compared, unless more are requested."""
_BATCH_SIZE = 64
_NATS_OF_A_BYTE = 8 * math.log(2)


class Reranker:
    """A language model that scores translations. It must not be used by several threads at once."""

    def __init__(self, run: Run, language: str) -> None:
        """Open the language model ``run``. ``language``: that of the translations. Errors:
        ``RunError`` for a run that is not a language model, or that writes another language."""
        if run.task.reads:
            raise RunError(f"{run.folder} is a {run.task.called}. Set --rerank to a language model")
        written = run.recipe.languages.target
        if "und" not in (written, language) and written != language:
            raise RunError(f"{run.folder} writes {written}, but the translations are {language}")
        self._scorer = Scorer(run, *windows_in(run.recipe.evaluation, run.recipe.plan.context))

    def log_probabilities(self, texts: Sequence[str]) -> list[float]:
        """Return log P of each text in nats, including its end. A byte that the vocabulary does not
        know costs 8 bits, as in ``dragoman evaluate``: one unknown token may stand for any text, so
        its probability would favour translations that the model cannot read."""
        form = self._scorer.engine.written
        unknown = [
            Length.of(form.vocabulary, text, tokens).unknown
            for text, tokens in zip(texts, form.tokens(texts), strict=True)
        ]
        return [
            hypothesis.log_probability - _NATS_OF_A_BYTE * count
            for hypothesis, count in zip(self._scorer(texts), unknown, strict=True)
        ]

    def judge(self, translations: Sequence[Translation]) -> list[tuple[Translation, list[float]]]:
        """Return each translation with log P_LM of its text and its alternatives, in this order.
        For a line that was split into sentences, these are log P_LM of the sentences and their
        alternatives."""
        groups = [_candidates(translation) for translation in translations]
        costs = iter(self.log_probabilities([choice.text for group in groups for choice in group]))
        judged = [[next(costs) for _ in group] for group in groups]
        return list(zip(translations, judged, strict=True))


def _candidates(translation: Translation) -> list[Translation]:
    """Return the candidates of a translation: the n best of each sentence."""
    return [
        best for part in translation.parts or (translation,) for best in (part, *part.alternatives)
    ]


def reorder(
    translation: Translation, costs: Sequence[float], weight: float, search: SearchSettings
) -> Translation:
    """Sort a translation and its alternatives by joint score. ``costs``: log P_LM of each, from
    ``Reranker.judge``; ``weight``: λ. The n best of each sentence of a line are sorted
    separately."""
    if translation.passage is not None and translation.parts:
        left = iter(costs)
        parts = [
            reorder(part, list(islice(left, 1 + len(part.alternatives))), weight, search)
            for part in translation.parts
        ]
        return Translation.join(translation.source, translation.passage, parts)
    scored = []
    for choice, cost in zip((translation, *translation.alternatives), costs, strict=True):
        log_probability = math.fsum(choice.token_log_probabilities)
        length = max(1, len(choice.token_log_probabilities))
        score = (log_probability + weight * cost) / length_penalty(
            length, search.length_penalty, search.penalty
        )
        scored.append(replace(choice, score=score, alternatives=()))
    best, *rest = sorted(scored, key=lambda choice: rank(choice.finished, choice.score))
    return replace(best, alternatives=tuple(rest))


def rerank_by(
    translator: Translator, run: Run, weight: float | None, say: Callable[[str], None]
) -> Callable[[Iterable[Translation]], Iterator[Translation]]:
    """Return the function that reranks the answers of ``translator`` by the language model ``run``.

    ``weight``: λ; None: λ is chosen on the dev pairs of the translator's run, and reported through
    ``say``. Errors: ``RunError`` for a run that does not fit, or one without dev pairs for the
    choice.
    """
    language = translator.run.recipe.languages.target
    reranker = Reranker(run, language)
    for words in doubts_of(translator.run, run):
        say(words)
    search = translator.search_settings
    if weight is None:
        recipe = translator.run.recipe
        translator.run.require_text("dev")
        pairs = plain_pairs(recipe, "dev")
        pairs = pairs[:: max(1, len(pairs) // recipe.evaluation.dev_sentences)]
        if not pairs:
            raise RunError(
                f"{translator.run.folder} has no dev pairs to choose a weight with. Set "
                "--rerank-weight"
            )
        weight, bleu = choose_weight(translator, reranker, pairs, search)
        say(
            f"--rerank-weight {weight:g}: BLEU {bleu[weight]:.2f} on {len(pairs):,} dev pairs, "
            f"{bleu[0.0]:.2f} without the language model"
        )
    chosen = weight

    def in_order(translations: Iterable[Translation]) -> Iterator[Translation]:
        waiting = iter(translations)
        while some := list(islice(waiting, _BATCH_SIZE)):
            for translation, costs in reranker.judge(some):
                yield reorder(translation, costs, chosen, search)

    return in_order


def doubts_of(translating: Run, judging: Run) -> list[str]:
    """Return warnings, one line each, about the language model ``judging`` that reranks the
    translator ``translating``."""
    doubts = []
    language, written = translating.recipe.languages.target, judging.recipe.languages.target
    if "und" in (language, written):
        unknown = judging.folder if written == "und" else translating.folder
        doubts.append(
            f"warning: the language that {unknown} writes is not known. --rerank needs a model "
            "of the target language"
        )
    own, other = judging.target, translating.target
    if own.fingerprint != other.fingerprint:
        doubts.append(
            f"{judging.folder} has its own vocabulary ({own.size:,} tokens, {translating.folder} "
            f"{other.size:,}). It scores whole texts, so the scores are comparable"
        )
    return doubts


def choose_weight(
    translator: Translator, reranker: Reranker, pairs: Sequence[Pair], search: SearchSettings
) -> tuple[float, dict[float, float]]:
    """Choose λ by BLEU on development pairs. Return the best value, and the BLEU of each value. If
    several are equally good, the smallest is chosen.

    ``translator`` must produce its candidates in the same way as later, when it is used.
    """
    judged = reranker.judge(translator.batch([pair.source for pair in pairs]))
    references = [[pair.target for pair in pairs]]
    language = translator.run.recipe.languages.target
    bleu = {}
    for weight in WEIGHTS:
        texts = [reorder(translation, costs, weight, search).text for translation, costs in judged]
        scores = evaluate_translation(texts, references, language, metrics=("BLEU",))
        bleu[weight] = scores["BLEU"]
    return max(bleu, key=lambda weight: (bleu[weight], -weight)), bleu
