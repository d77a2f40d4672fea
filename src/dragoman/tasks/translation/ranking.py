"""Chooses among the candidates of a search by minimum Bayes risk.

Minimum Bayes risk takes the candidate that agrees most with the others,

    y* = argmax_y Σ_y' P(y') · chrF(y, y')

over candidates y, y' (Kumar and Byrne 2004; Eikema and Aziz 2020). Samples are weighted equally,
and duplicates count as often as they were drawn: the sum is a Monte Carlo estimate of the expected
chrF. The candidates of an n-best list are weighted by their probabilities, normalised to sum to
one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.metrics.chrf import pairwise_chrf
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings


def candidates_of(settings: SearchSettings, count: int) -> SearchSettings:
    """Return settings for a search for ``count`` candidates: samples if ``settings`` sample, else
    the n best of a beam."""
    changes: dict[str, int] = {"n_best": max(count, settings.n_best)}
    if settings.sampling is None and not settings.alternatives:
        changes["beam"] = max(changes["n_best"], settings.beam)
    return settings.model_copy(update=changes)


def expected_chrf(
    texts: Sequence[str], hypotheses: Sequence[Hypothesis], *, sampled: bool
) -> list[float]:
    """Return the expected chrF of each candidate against all others, from 0 to 100. ``sampled``:
    the candidates were drawn at random, so they are weighted equally, not by their
    probabilities."""
    weights = np.ones(len(texts))
    if not sampled:
        known = np.array([hypothesis.log_probability for hypothesis in hypotheses])
        weights = np.exp(known - known.max(initial=-np.inf))
    different = list(dict.fromkeys(texts))
    place = [different.index(text) for text in texts]
    summed = np.bincount(place, weights, len(different))
    expected = pairwise_chrf(different) @ (summed / summed.sum())
    return [float(expected[number]) for number in place]
