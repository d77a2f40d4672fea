"""Unigram sampling (Kudo, 2018, section 3.2): a segmentation is drawn with a probability
proportional to P(segmentation)^α, by filtering from the end and sampling from the beginning."""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from dragoman.forms.subwords.sampling import (
    CACHED_NODES,
    CACHED_WORD,
    Pieces,
    Sampler,
    WordPieces,
    join_unknown,
    random_bytes,
)


@dataclass(frozen=True, slots=True)
class _Fork:
    """A place in a word, and the pieces that may follow there, as parts of the interval [0, 1)."""

    bounds: list[float]
    """The upper ends of all parts but the last."""
    choices: list[tuple[tuple[int, ...], _Fork | None, float, float]]
    """Ids of the piece, the place behind it (None: the word ends), lower end, 1 / length."""


class UnigramSampling(Sampler):
    """Segmentations drawn in proportion to P(segmentation)^α, all of them possible.

    One number in [0, 1) draws a whole word: the part of the interval that it falls into names the
    next piece, and where it falls within that part, stretched to [0, 1) again, the one after. The
    53 bits of a double are enough for words that are remembered; long ones take a number a piece.
    """

    def __init__(self, pieces: Pieces, alpha: float) -> None:
        self._pieces = pieces
        self._alpha = alpha
        self._split = WordPieces(pieces)
        self._whole = frozenset(pieces.whole)
        self._longest = max(map(len, pieces.scores), default=1)
        # SentencePiece: unknown characters cost ten more than the least likely piece.
        self._unknown_score = min(pieces.scores.values(), default=0.0) - 10.0
        self._forks: dict[str, _Fork] = {}
        self._nodes = 0

    def segment(self, normalised: str, key: int) -> list[int]:
        words = self._split.of(normalised)
        forks, ids = self._forks, list[int]()
        for word, draw in zip(words, _numbers(key, len(words)), strict=True):
            fork = forks.get(word)
            if fork is None:
                if word in self._whole:
                    ids += self._pieces.of(word)
                    continue
                if len(word) > CACHED_WORD:
                    ids += self._draw_long(word, draw)
                    continue
                fork = self._remember(word)
            place = draw * 2**-64
            while fork is not None:
                chosen, fork, lower, stretch = fork.choices[bisect_right(fork.bounds, place)]
                place = (place - lower) * stretch
                ids += chosen
        return join_unknown(ids, self._pieces)

    def _draw_long(self, word: str, draw: int) -> list[int]:
        ids: list[int] = []
        fork: _Fork | None = self._filter(word)
        for number in _numbers(draw, len(word)):
            if fork is None:
                break
            chosen, fork, _, _ = fork.choices[bisect_right(fork.bounds, number * 2**-64)]
            ids += chosen
        return ids

    def _remember(self, word: str) -> _Fork:
        if self._nodes > CACHED_NODES:
            self._forks.clear()
            self._nodes = 0
        self._nodes += len(word)
        fork = self._forks[word] = self._filter(word)
        return fork

    def _filter(self, word: str) -> _Fork:
        """Filtering from the end: at each place, the log-sum of all ways from there, and the share
        that each next piece has of it."""
        scores = self._pieces.scores
        length = len(word)
        ahead = [0.0] * (length + 1)
        forks: list[_Fork | None] = [None] * (length + 1)
        for begin in range(length - 1, -1, -1):
            ends: list[int] = []
            weights: list[float] = []
            for end in range(begin + 1, min(begin + self._longest, length) + 1):
                score = scores.get(word[begin:end])
                if score is None:
                    if end - begin > 1:
                        continue
                    score = self._unknown_score
                ends.append(end)
                weights.append(self._alpha * score + ahead[end])
            top = max(weights)
            shares = [math.exp(weight - top) for weight in weights]
            total = sum(shares)
            ahead[begin] = top + math.log(total)
            bounds = list(accumulate(share / total for share in shares))
            choices = [
                (
                    self._pieces.of(word[begin:end]),
                    forks[end],
                    lower,
                    1 / (upper - lower) if upper > lower else 0.0,  # too unlikely for a double
                )
                for end, lower, upper in zip(ends, [0.0, *bounds], bounds, strict=False)
            ]
            forks[begin] = _Fork(bounds[:-1], choices)
        found = forks[0]
        assert found is not None, "no word is empty"
        return found


def _numbers(key: int, count: int) -> Sequence[int]:
    """``count`` random integers of 64 bits."""
    return struct.unpack(f"<{count}Q", random_bytes(key, 8 * count))
