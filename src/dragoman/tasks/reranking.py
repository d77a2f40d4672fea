"""The n best translations of a model, put in order again by a language model of their language.

    score(y) = (log P(y | x) + λ log P_LM(y)) / lp(|y|)

(Shallow fusion's sum, Gülçehre et al., 2015, over whole hypotheses; lp: ``search/hypothesis.py``.)
Both models may cut text into tokens of their own: |y| counts the translation's. λ is given, or
chosen on development text: that of a few values whose BLEU is best, 0 among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from dragoman.data.corpora import Pair
from dragoman.errors import RunError
from dragoman.metrics.translation import evaluate_translation
from dragoman.search.hypothesis import length_penalty
from dragoman.tasks.corpora import plain_pairs
from dragoman.tasks.language_model import windows_in
from dragoman.tasks.run import Run
from dragoman.tasks.surprise import Scorer
from dragoman.tasks.translator import Translation, Translator

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""What λ is chosen among."""
CANDIDATES = 10
"""Translations of each source that are compared, unless more are asked for."""
_TOGETHER = 64


class Reranker:
    """A language model that judges translations. Not for several threads at once."""

    def __init__(self, run: Run, language: str) -> None:
        """``language``: of the translations. Errors: ``RunError`` for a run that is no language
        model, or one of another language."""
        if run.task.reads:
            raise RunError(f"{run.folder} is a {run.task.called}; --rerank takes a language model")
        written = run.recipe.languages.target
        if "und" not in (written, language) and written != language:
            raise RunError(f"{run.folder} writes {written}, and the translations are {language}")
        self._scorer = Scorer(run, *windows_in(run.recipe.evaluation, run.recipe.plan.context))

    def log_probabilities(self, texts: Sequence[str]) -> list[float]:
        """log P of each text, in nats, its end included."""
        return [found.log_probability for found in self._scorer(texts)]

    def each(
        self, translations: Sequence[Translation], weight: float, alpha: float
    ) -> list[Translation]:
        """Each with its alternatives in the new order, which the scores are of. ``alpha`` of lp."""
        judged = self.judged(translations)
        return [reordered(one, costs, weight, alpha) for one, costs in judged]

    def judged(self, translations: Sequence[Translation]) -> list[tuple[Translation, list[float]]]:
        """Each with log P_LM of itself and of its alternatives."""
        groups = [[one, *one.alternatives] for one in translations]
        costs = iter(self.log_probabilities([one.text for group in groups for one in group]))
        return [(group[0], [next(costs) for _ in group]) for group in groups]


def reordered(
    translation: Translation, costs: Sequence[float], weight: float, alpha: float
) -> Translation:
    """A translation and its alternatives by their joint scores; ``costs``: log P_LM of each."""
    scored = []
    for one, cost in zip((translation, *translation.alternatives), costs, strict=True):
        log_probability = math.fsum(one.token_log_probabilities)
        length = max(1, len(one.token_log_probabilities))
        score = (log_probability + weight * cost) / length_penalty(length, alpha)
        scored.append(replace(one, score=score, alternatives=()))
    best, *others = sorted(scored, key=lambda one: -one.score)
    return replace(best, alternatives=tuple(others))


def rerank_by(
    translator: Translator, run: Run, weight: float | None, say: Callable[[str], None]
) -> Callable[[Iterable[Translation]], Iterator[Translation]]:
    """What puts the answers of ``translator`` in order by the language model ``run``.

    ``weight``: λ; None: chosen on the dev pairs of the translator's run, and said.
    Errors: ``RunError`` for a run that does not fit, or one without dev pairs to choose by.
    """
    reranker = Reranker(run, translator.run.recipe.languages.target)
    alpha = translator.search_settings.length_penalty
    if weight is None:
        recipe = translator.run.recipe
        translator.run.require_text("dev")
        pairs = plain_pairs(recipe, "dev")
        pairs = pairs[:: max(1, len(pairs) // recipe.evaluation.dev_sentences)]
        if not pairs:
            raise RunError(
                f"{translator.run.folder} has no dev pairs to choose a weight by: --rerank-weight"
            )
        weight, found = choose_weight(translator, reranker, pairs, alpha)
        say(
            f"--rerank-weight {weight:g}: BLEU {found[weight]:.2f} on {len(pairs):,} dev pairs, "
            f"{found[0.0]:.2f} without the language model"
        )
    chosen = weight

    def in_order(translations: Iterable[Translation]) -> Iterator[Translation]:
        waiting = iter(translations)
        while some := list(islice(waiting, _TOGETHER)):
            yield from reranker.each(some, chosen, alpha)

    return in_order


def choose_weight(
    translator: Translator, reranker: Reranker, pairs: Sequence[Pair], alpha: float
) -> tuple[float, dict[float, float]]:
    """λ by BLEU on development pairs -> the best, and the BLEU of each; of equals the smallest.

    ``translator`` gives the candidates that there will be.
    """
    judged = reranker.judged(translator.batch([pair.source for pair in pairs]))
    references = [[pair.target for pair in pairs]]
    language = translator.run.recipe.languages.target
    found = {}
    for weight in WEIGHTS:
        texts = [reordered(one, costs, weight, alpha).text for one, costs in judged]
        scores = evaluate_translation(texts, references, language, metrics=("BLEU",))
        found[weight] = scores["BLEU"]
    return max(found, key=lambda weight: (found[weight], -weight)), found
