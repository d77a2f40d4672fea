"""BPE-dropout (Provilkov et al., 2020): each merge of the trained table is left out with a
probability p."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from dragoman.forms.subwords.sampling import (
    CACHED_NODES,
    CACHED_WORD,
    Pieces,
    Sampler,
    WordPieces,
    join_unknown,
    random_bytes,
)

_MASK_BITS = 64
_MASKS = 1 << 16


@dataclass(slots=True)
class _Node:
    """One segmentation of a word, reached by dropping certain merges and no later one."""

    decisions: int
    """Ones in the place of every decision taken on the way."""
    ids: tuple[int, ...]
    children: dict[int, _Node] = field(default_factory=dict)
    """By the bit of the next merge to drop."""


class BpeDropout(Sampler):
    """BPE-dropout over a trained table of merges.

    A departure from Algorithm 1 of the paper, and as SentencePiece has it: whether a merge is left
    out is decided once, when its turn comes, not anew at each later step.

    A word's decisions are the low bits of a mask, each set with probability p. Segmentations of a
    word form a tree over the positions of its dropped merges; it is grown as masks arrive and
    remembered, so the common case is one look-up and one AND per word.
    """

    def __init__(self, pieces: Pieces, probability: float) -> None:
        self._pieces = pieces
        self._split = WordPieces(pieces)
        self._whole = frozenset(pieces.whole)
        self._ranks = {piece: -score for piece, score in pieces.scores.items()}
        self._masks = _drop_masks(probability)
        self._roots: dict[str, _Node] = {}
        self._nodes = 0

    def segment(self, normalised: str, key: int) -> list[int]:
        words = self._split.of(normalised)
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
        """As many mask bits as a long word may need, from masks that follow the drawn one."""
        count = -(-3 * length // _MASK_BITS)
        mask = 0
        for place, random in enumerate(_draws(draw, count)):
            mask |= self._masks[random] << (place * _MASK_BITS)
        return mask

    def _merge(self, word: str, drops: int) -> tuple[int, tuple[int, ...]]:
        """Byte-pair encoding with the n-th applicable merge left out where bit n of drops is set.

        Returns ones in the place of each decision taken, and the ids.
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
    """``count`` random numbers of masks."""
    return list(np.frombuffer(random_bytes(key, 2 * count), "<u2").tolist())


def _drop_masks(probability: float) -> list[int]:
    """2^16 masks of 64 bits, each bit set with the given probability; always the same ones.

    Raw output of a counter-based generator, whose stream NumPy promises not to change.
    """
    raw = np.random.Philox(key=2020).random_raw(_MASKS * _MASK_BITS // 4)
    drops = raw.view(np.uint16).reshape(_MASKS, _MASK_BITS) < round(probability * 2**16)
    packed = np.packbits(drops, axis=1, bitorder="little").view("<u8")  # (MASKS, 64) -> (MASKS, 1)
    return list(packed[:, 0].tolist())
