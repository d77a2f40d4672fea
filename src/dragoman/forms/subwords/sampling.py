"""Random segmentations for training, as a pure function of (text, key).

Two samplers cut a word differently each time that a model reads it: ``BpeDropout`` and
``UnigramSampling``.

SentencePiece has both, but draws from one generator per thread, so the segmentation of a sentence
depends on the sentences before it. Here the random numbers come from a hash of the key, so an
interrupted run, or one with more processes, sees the same segmentations. The distribution is
SentencePiece's own; a test compares the two.

Both process the *normalised* text (spaces written as U+2581) word by word, which is exact as long
as no piece crosses a word boundary, and both cache words, which makes them fast.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import accumulate

import numpy as np

SPACE = "▁"
"""U+2581, which SentencePiece writes for a space."""

CACHED_WORD = 22
"""The most characters of a cached word; longer ones hardly repeat. In BPE-dropout a word of n
has at most 3(n - 1) decisions, so one mask of 64 bits is enough up to here."""
CACHED_NODES = 1 << 18
"""The number of cached segmentations at which the cache is cleared: about 80 MB."""


@dataclass(frozen=True)
class Pieces:
    """The part of a trained vocabulary that a sampler needs."""

    scores: dict[str, float]
    """The score of every piece that text can become (no control, unknown or byte pieces)."""
    ids: dict[str, int]
    """The id of every piece in ``scores``."""
    bytes: Sequence[int] | None
    """The ids of the 256 byte pieces; None without byte fallback."""
    unknown: int
    whole: Sequence[str] = ()
    """The symbols that are never cut into pieces."""

    def of(self, symbol: str) -> tuple[int, ...]:
        """Return the id of a symbol, or of its UTF-8 bytes, or of ``<unk>``."""
        known = self.ids.get(symbol)
        if known is not None:
            return (known,)
        if self.bytes is None:
            return (self.unknown,)
        return tuple(self.bytes[byte] for byte in symbol.encode("utf-8"))


class Sampler(ABC):
    """A random segmentation that depends on a key alone. It cuts normalised text where no piece can
    cross: before U+2581, and around whole symbols."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._nodes = 0
        """The number of nodes that the cache holds."""
        self._reach_across = any(SPACE in piece[1:] for piece in pieces.scores)
        self._whole = frozenset(pieces.whole)
        longest_first = sorted(self._whole, key=len, reverse=True)
        self._cut = (
            re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
            if longest_first
            else None
        )

    @abstractmethod
    def segment(self, normalised: str, key: int) -> list[int]:
        """Return the token ids of a normalised text. Equal arguments give equal ids."""

    def _words(self, normalised: str) -> list[str]:
        if self._cut is None:
            return self._plain(normalised)
        words: list[str] = []
        for part in self._cut.split(normalised):
            words.extend([part] if part in self._whole else self._plain(part))
        return words

    def _plain(self, text: str) -> list[str]:
        if self._reach_across:
            return [text] if text else []
        first, *others = text.split(SPACE)
        words = [SPACE + other for other in others]
        return [first, *words] if first else words


def random_bytes(key: int, count: int) -> bytes:
    """Return ``count`` random bytes, a pure function of the key."""
    return hashlib.shake_128((key & (2**64 - 1)).to_bytes(8, "little")).digest(count)


def join_unknown(ids: list[int], pieces: Pieces) -> list[int]:
    """Replace neighbouring unknown symbols by one ``<unk>``, as SentencePiece does."""
    if pieces.bytes is not None or pieces.unknown not in ids:
        return ids
    unknown = pieces.unknown
    return [
        token
        for place, token in enumerate(ids)
        if token != unknown or place == 0 or ids[place - 1] != unknown
    ]


@dataclass(frozen=True, slots=True)
class _Fork:
    """A place in a word, and the pieces that may follow there, as parts of the interval [0, 1)."""

    bounds: list[float]
    """The upper ends of all parts but the last."""
    choices: list[tuple[tuple[int, ...], _Fork | None, float, float]]
    """The ids of a piece, the place after it (None: the word ends), the lower end, and 1 /
    length."""


class UnigramSampling(Sampler):
    """Unigram sampling (Kudo, 2018, section 3.2): a segmentation is drawn with a probability
    proportional to P(segmentation)^α, by filtering from the end and sampling from the beginning.
    All segmentations are possible.

    One number in [0, 1) draws a whole word: the part of the interval that it falls into names the
    next piece, and where it falls within that part, stretched to [0, 1) again, the one after. The
    53 bits of a double are enough for words that are remembered; long ones take a number a piece.
    """

    def __init__(self, pieces: Pieces, alpha: float) -> None:
        super().__init__(pieces)
        self._alpha = alpha
        self._longest = max(map(len, pieces.scores), default=1)
        # SentencePiece: unknown characters cost ten more than the least likely piece.
        self._unknown_score = min(pieces.scores.values(), default=0.0) - 10.0
        self._forks: dict[str, _Fork] = {}

    def segment(self, normalised: str, key: int) -> list[int]:
        words = self._words(normalised)
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
        """Filter from the end: compute at each place the log-sum of all ways from there, and the
        share of each next piece."""
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
        fork = forks[0]
        assert fork is not None, "no word is empty"
        return fork


def _numbers(key: int, count: int) -> Sequence[int]:
    """Return ``count`` random integers of 64 bits."""
    return struct.unpack(f"<{count}Q", random_bytes(key, 8 * count))


_MASK_BITS = 64
_MASKS = 1 << 16


@dataclass(slots=True)
class _Node:
    """One segmentation of a word, reached by dropping certain merges and no later one."""

    decisions: int
    """A number with ones at the bits of all decisions on the way."""
    ids: tuple[int, ...]
    children: dict[int, _Node] = field(default_factory=dict)
    """The next nodes, by the bit of the next merge to drop."""


class BpeDropout(Sampler):
    """BPE-dropout (Provilkov et al., 2020): each merge of the trained table is left out with a
    probability p.

    Unlike Algorithm 1 of the paper, and like SentencePiece, it decides once for each merge, in its
    turn, and not again at each later step.

    A word's decisions are the low bits of a mask, each set with probability p. Segmentations of a
    word form a tree over the positions of its dropped merges; it is grown as masks arrive and
    remembered, so the common case is one look-up and one AND per word.
    """

    def __init__(self, pieces: Pieces, probability: float) -> None:
        super().__init__(pieces)
        self._ranks = {piece: -score for piece, score in pieces.scores.items()}
        self._masks = _drop_masks(probability)
        self._roots: dict[str, _Node] = {}

    def segment(self, normalised: str, key: int) -> list[int]:
        words = self._words(normalised)
        draws = _draws(key, len(words))
        masks, roots, ids = self._masks, self._roots, list[int]()
        for word, draw in zip(words, draws, strict=True):
            node = roots.get(word)
            mask = masks[draw]
            if node is None:
                if len(word) > CACHED_WORD:
                    ids.extend(self._merge(word, self._long_mask(draw, len(word)))[1])
                    continue
                node = roots[word] = self._node(word, 0)
            drops = 0
            while mask & node.decisions:
                lowest = mask & node.decisions & -(mask & node.decisions)
                drops |= lowest
                mask ^= lowest
                child = node.children.get(lowest)
                if child is None:
                    child = node.children[lowest] = self._node(word, drops)
                node = child
            ids.extend(node.ids)
        return join_unknown(ids, self._pieces)

    def _node(self, word: str, drops: int) -> _Node:
        if self._nodes >= CACHED_NODES:
            self._roots.clear()
            self._nodes = 0
        self._nodes += 1
        return _Node(*self._merge(word, drops))

    def _long_mask(self, draw: int, length: int) -> int:
        """Return as many mask bits as a long word may need, from masks that follow the drawn
        one."""
        count = -(-3 * length // _MASK_BITS)
        mask = 0
        for place, random in enumerate(_draws(draw, count)):
            mask |= self._masks[random] << (place * _MASK_BITS)
        return mask

    def _merge(self, word: str, drops: int) -> tuple[int, tuple[int, ...]]:
        """Encode a word by its merges, without the n-th applicable merge if bit n of drops is set.

        Returns ones at the bits of all decisions taken, and the ids.
        """
        if word in self._whole:
            return 0, self._pieces.of(word)
        ranks = self._ranks
        symbols: list[str] = list(word)
        before = list(range(-1, len(word) - 1))
        after = list(range(1, len(word) + 1))
        end = len(word)
        agenda: list[tuple[float, int, int, int]] = []
        for left in range(end - 1):
            rank = ranks.get(symbols[left] + symbols[left + 1])
            if rank is not None:
                agenda.append((rank, left, left + 1, 2))
        heapify(agenda)
        bit = 1
        while agenda:
            _, left, right, length = heappop(agenda)
            if not symbols[left] or len(symbols[left]) + len(symbols[right]) != length:
                continue  # one of the two was merged meanwhile
            dropped = drops & bit
            bit <<= 1
            if dropped:
                continue
            symbols[left] += symbols[right]
            symbols[right] = ""
            following = after[left] = after[right]
            if following < end:
                before[following] = left
                joined = symbols[left] + symbols[following]
                rank = ranks.get(joined)
                if rank is not None:
                    heappush(agenda, (rank, left, following, len(joined)))
            previous = before[left]
            if previous >= 0:
                joined = symbols[previous] + symbols[left]
                rank = ranks.get(joined)
                if rank is not None:
                    heappush(agenda, (rank, previous, left, len(joined)))
        of = self._pieces.of
        return bit - 1, tuple(token for symbol in symbols if symbol for token in of(symbol))


def _draws(key: int, count: int) -> list[int]:
    """Return ``count`` random numbers of masks."""
    return list(np.frombuffer(random_bytes(key, 2 * count), "<u2").tolist())


def _drop_masks(probability: float) -> list[int]:
    """Return 2^16 masks of 64 bits, each bit set with the given probability; always the same
    masks.

    They are raw output of a counter-based generator, whose stream NumPy promises not to change.
    """
    raw = np.random.Philox(key=2020).random_raw(_MASKS * _MASK_BITS // 4)
    drops = raw.view(np.uint16).reshape(_MASKS, _MASK_BITS) < round(probability * 2**16)
    packed = np.packbits(drops, axis=1, bitorder="little").view("<u8")  # (MASKS, 64) -> (MASKS, 1)
    return list(packed[:, 0].tolist())
