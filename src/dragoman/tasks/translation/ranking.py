"""Which of the candidates of a search is taken, where it is not the most probable one.

Minimum Bayes risk takes the candidate that the others agree with most,

    y* = argmax_y Σ_y' P(y') · chrF(y, y')

over candidates y, y' (Kumar and Byrne 2004; Eikema and Aziz 2020). Where they were sampled, each
counts alike, and one that was drawn twice counts twice: the sum is then the Monte Carlo estimate of
the expected chrF. Those of an n-best list are weighted by what the model gives them, their
probabilities made to sum to one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.metrics.chrf import pairwise_chrf
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings


def candidates_of(settings: SearchSettings, count: int) -> SearchSettings:
    """A search for so many candidates: samples where it samples, else the n best of a beam."""
    changes: dict[str, int] = {"n_best": max(count, settings.n_best)}
    if settings.sampling is None and not settings.alternatives:
        changes["beam"] = max(changes["n_best"], settings.beam)
    return settings.model_copy(update=changes)


def expected_chrf(
    texts: Sequence[str], hypotheses: Sequence[Hypothesis], *, sampled: bool
) -> list[float]:
    """The expected chrF of each candidate against all others, 0 to 100."""
    weights = np.ones(len(texts))
    if not sampled:
        known = np.array([one.log_probability for one in hypotheses])
        weights = np.exp(known - known.max(initial=-np.inf))
    different = list(dict.fromkeys(texts))
    place = [different.index(text) for text in texts]
    summed = np.bincount(place, weights, len(different))
    expected = pairwise_chrf(different) @ (summed / summed.sum())
    return [float(expected[number]) for number in place]
