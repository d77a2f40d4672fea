"""Scores of translations: of given ones by the model, and of candidates by their agreement.

``score_pairs`` returns log P(target | source) of each pair, by forced decoding. A source may be the
name of a file. A side that is too long is refused, because a part of it would give no score. A very
long one is refused by its characters, before it is tokenised (``Form.far_too_long``).

Minimum Bayes risk takes the candidate that agrees most with the others,

    y* = argmax_y Σ_y' P(y') · chrF(y, y')

over candidates y, y' (Kumar and Byrne 2004; Eikema and Aziz 2020). Samples are weighted equally,
and duplicates count as often as they were drawn: the sum is a Monte Carlo estimate of the expected
chrF. The candidates of an n-best list are weighted by their probabilities, normalised to sum to
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.base.errors import DataError
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import parts
from dragoman.forms.form import Values
from dragoman.metrics.translation import pairwise_chrf
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.tasks.translation.result import Translation

MAX_TOKENS = 2000
"""The most tokens of either side of a pair: the cost of attention grows with its square."""
_BATCH_SIZE = 256


class _Read(NamedTuple):
    """A source and its given translation, with the values that the model reads and the tokens that
    it would write."""

    source: str
    target: str
    values: Values
    tokens: list[int]


def score_pairs(engine: Engine, pairs: Iterable[tuple[str, str]]) -> Iterator[Translation]:
    """Score any number of pairs (source, target), and yield a translation for each, in order and in
    constant memory. Its ``text`` is the given target.

    Errors: ``DataError`` with the line (from 1) of a side that is too long, after all pairs before
    it have been scored.
    """
    for window in parts(_tokenise(engine, pairs), _BATCH_SIZE):
        scored = engine.score([pair.values for pair in window], [pair.tokens for pair in window])
        for pair, hypothesis in zip(window, scored, strict=True):
            yield Translation.of(pair.source, [hypothesis], engine.written, pair.target)


def _tokenise(engine: Engine, pairs: Iterable[tuple[str, str]]) -> Iterator[_Read]:
    """Tokenise the pairs. Errors: ``DataError`` with the line of a side that is too long."""
    most = MAX_TOKENS if engine.places is None else min(MAX_TOKENS, engine.places - 1)
    forms = {"source": engine.source, "translation": engine.target}
    for number, (source, target) in enumerate(pairs, 1):
        for (side, form), text in zip(forms.items(), (source, target), strict=True):
            if form.far_too_long(text, most):
                raise DataError(_too_long(number, side, f"{len(text):,} characters", most))
        (values,), (tokens,) = engine.source.read([source]), engine.target.tokens([target])
        for (side, form), count in zip(forms.items(), (len(values), len(tokens)), strict=True):
            if count > most:
                raise DataError(_too_long(number, side, f"{count:,} {form.units}", most))
        yield _Read(source, target, values, tokens)


def _too_long(line: int, side: str, length: str, most: int) -> str:
    return (
        f"line {line}: the {side} has {length}, and {most:,} tokens at most are scored. Split "
        "both sides at the same places, or remove the pair"
    )


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
