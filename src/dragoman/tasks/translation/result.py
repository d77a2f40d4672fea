"""The result of a ``Translator``: the text of a translation, its probabilities and alternatives.
Scores of translations: of given ones by the model, and of candidates by their agreement.

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
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dragoman.base.errors import DataError
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import parts
from dragoman.forms.form import Passage, Values
from dragoman.forms.subwords.text import Text
from dragoman.forms.text_form import TextForm
from dragoman.metrics.chrf import pairwise_chrf
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings

if TYPE_CHECKING:
    from dragoman.pictures.records import AttentionRecord


@dataclass(frozen=True)
class Translation:
    """One translation. ``str(translation)`` is its text."""

    source: str
    """The text in the source language."""
    text: str
    """The translation; one line for each line of the source."""
    score: float
    """The log-probability divided by the length penalty (see ``search.hypothesis``); higher is
    better. The score of a text that was split is the sum over its sentences."""
    token_log_probabilities: tuple[float, ...]
    """log P of each token, in nats, and of the end symbol if the model ended the sentence. With a
    shortlist, P is the share among the tokens that it allows."""
    alternatives: tuple[Translation, ...] = ()
    """The other hypotheses, best first, if more than one was requested."""
    ids: tuple[int, ...] = ()
    """The ids of the target tokens."""
    prepared: str = ""
    """The output of the model before it was restored to plain text. It differs from ``text`` only
    if the model was trained on text prepared by Moses."""
    expected_chrf: float | None = None
    """The expected chrF against all candidates, 0 to 100, if the translation was chosen by it
    (``TranslatorSettings.mbr``). For a text that was split, it is the mean over its sentences."""
    finished: bool = True
    """False if the translation was cut off at its greatest length."""
    parts: tuple[Translation, ...] = ()
    """The translations of the sentences, if the text was split."""
    passage: Passage | None = field(default=None, repr=False, compare=False)
    """The pieces that the text was split into, without their input values."""
    attention: AttentionRecord | None = None
    """The attention of every layer and head, if it was requested."""
    vocabulary: Text | None = field(default=None, repr=False, compare=False)
    """The vocabulary to which the ids belong."""

    @classmethod
    def of(
        cls,
        source: str,
        hypotheses: Sequence[Hypothesis],
        target: TextForm,
        text: str | None = None,
    ) -> Translation:
        """Make a ``Translation`` from the first hypothesis, with the other hypotheses as its
        alternatives. ``text`` is the translation itself, if it was given instead of searched
        for."""
        best, *others = hypotheses
        prepared = target.vocabulary.decode(best.tokens)
        return cls(
            source,
            target.restore(prepared) if text is None else text,
            best.score,
            best.token_log_probabilities,
            tuple(cls.of(source, [other], target) for other in others),
            ids=best.tokens,
            prepared=prepared,
            finished=best.finished,
            vocabulary=target.vocabulary,
        )

    @classmethod
    def join(
        cls, source: str, passage: Passage, parts: Sequence[Translation], *, drawn: bool = False
    ) -> Translation:
        """Join the translations of the pieces of a text, with the text around each.

        The alternatives are the next best combinations of the pieces' alternatives, as many as a
        piece has at most. For samples (``drawn``), each combines one sample of every piece.
        """
        if len(parts) == 1 and passage.is_bare:
            return parts[0]
        expected = [part.expected_chrf for part in parts if part.expected_chrf is not None]
        _, *others = _samples(parts) if drawn else _best_of(parts)
        return cls(
            source,
            passage.join([part.text for part in parts]),
            sum(part.score for part in parts),
            tuple(value for part in parts for value in part.token_log_probabilities),
            tuple(cls.join(source, passage, other) for other in others),
            ids=tuple(i for part in parts for i in part.ids),
            prepared=passage.join([part.prepared for part in parts]),
            expected_chrf=fmean(expected) if expected else None,
            finished=all(part.finished for part in parts),
            parts=tuple(parts),
            passage=passage.unread,
            vocabulary=parts[0].vocabulary if parts else None,
        )

    @property
    def worth(self) -> float:
        """The value by which the translation was chosen: the expected chrF, or otherwise the score.
        Higher is better."""
        return self.score if self.expected_chrf is None else self.expected_chrf

    @property
    def is_behind(self) -> bool:
        """True if it ranks after all others in an n-best list, whatever its worth, because it was
        cut off. Translations that were chosen by their chrF are exempt."""
        return not self.finished and self.expected_chrf is None

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Target tokens as the vocabulary writes them, without the end symbol."""
        return () if self.vocabulary is None else tuple(self.vocabulary.pieces(self.ids))

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Format for a notebook: the probability of each token, and attention if requested."""
        from dragoman.pictures.explorer import translation_html
        from dragoman.pictures.records import merged_to_words

        return translation_html(
            self.source,
            self.text,
            self.tokens,
            self.token_log_probabilities,
            self.score,
            [(other.text, other.score) for other in self.alternatives],
            None if self.attention is None else merged_to_words(self.attention),
        )


def _best_of(parts: Sequence[Translation]) -> list[list[Translation]]:
    """Combine the choices of all parts, the best combination first, into as many combinations as
    the part with the most choices has. Each part's choices are sorted; combinations are ranked by
    the fewest cut-off parts, then by the sum of their worth."""
    choices = [[replace(part, alternatives=()), *part.alternatives] for part in parts]
    wanted = max(map(len, choices), default=1)
    first = (0,) * len(parts)
    waiting, seen, combinations = [((0, 0.0), first)], {first}, list[list[Translation]]()
    while waiting and len(combinations) < wanted:
        (cut, loss), ranks = heappop(waiting)
        combinations.append([of[rank] for of, rank in zip(choices, ranks, strict=True)])
        for place, rank in enumerate(ranks):
            after = (*ranks[:place], rank + 1, *ranks[place + 1 :])
            if rank + 1 < len(choices[place]) and after not in seen:
                seen.add(after)
                here, there = choices[place][rank], choices[place][rank + 1]
                cost = cut + there.is_behind - here.is_behind, loss + here.worth - there.worth
                heappush(waiting, (cost, after))
    return combinations


def _samples(parts: Sequence[Translation]) -> list[list[Translation]]:
    """Combine the first samples of all parts, then the second samples, and so on."""
    choices = [[replace(part, alternatives=()), *part.alternatives] for part in parts]
    return [list(sample) for sample in zip(*choices, strict=False)] or [[]]


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
