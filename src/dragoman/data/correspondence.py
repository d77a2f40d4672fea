"""This module takes a sample of a corpus while it is read, in evenly spread blocks of consecutive
pairs, and judges from it whether line n of one side translates line n of the other.

The sample is cut into parts. The pairs of each part are scored with a dictionary that is learned
from the other parts (``alignment.py``), so that no pair is evidence for itself. True
pairs are compared with strangers: sources with targets from elsewhere in the sample.

- *unrelated*: half of the strangers score less than their own median, and hardly any true pair
  does; so twice the share of pairs below it is the share of strangers among them.
- *moved*: a run of lines whose sources score better with the target some lines further on.
- *reversed*: pairs whose source consists of words of the target side, and the reverse.

No step depends on a language: words are cut to their beginnings, so that inflections count as one
word; scripts without spaces are read character by character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dragoman.alignment import Dictionary, learn_dictionary
from dragoman.forms.form import Pair
from dragoman.forms.languages import SPACELESS

_WORDS = 16
"""At most this many words of a side are used; the dictionary grows with their square."""
_CHARACTERS = 400
"""At most this many characters of a side are used."""
_WORD = re.compile(r"[^\W\d_]+|\d+")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_LINKS = 500_000
"""The most pairs of words in the sample. This limits the time."""
_MOST_PARTS = 8
"""The number of parts of a small sample: each dictionary is learned from seven eighths of it. A
large sample has two parts, so that learning takes as long."""
_ROUNDS = 3
_SAME_WORD = 0.3
"""The least p(t | s) of a word that is in both sides, such as a name or a number."""
_ENOUGH_WORDS = 10
"""A pair is judged if both sides together have this many words. A limit for each side would leave
out many pairs of a long and a short side, which are mostly unrelated."""
_FURTHEST = 3
"""A shift of the sides of up to this many lines is detected."""
_MOVED_GAIN = 0.5
"""A block is moved if its score at another place is higher by this."""
_SUSPICIOUS = 0.025
"""From this share of unrelated pairs on, all lines may have moved, and a rough sample is searched.
"""
_ROUGH_BLOCKS = 32
"""This many blocks are enough to find the shift."""
_PER_BLOCK = 12
"""This many pairs of a block are scored at another place."""
_RUN = 2
"""This many consecutive blocks must agree."""
_REVERSED = 2.0
"""Each side of an exchanged pair is likelier as the other side by this many nats."""
_MIXED = 0.5
"""If the sides share more than this part of their words, so many pairs may be exchanged that
neither side has words of its own."""
_CLEARER = 0.5
"""Exchanged pairs explain the shared words if at most this part of them is left after they are
turned round."""
_TURNS = 30
_EXAMPLES = 3

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_BLOCK = 32
"""The number of pairs in a block."""
_BLOCKS = 128

Block = list[Pair]
Item = TypeVar("Item")


class BlockSampler:
    """This class samples blocks of consecutive pairs, evenly spread over a corpus of any length."""

    def __init__(self) -> None:
        self._kept: list[Block] = []
        self._every = 1

    def watch(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield all pairs, and keep some of them."""
        block: Block = []
        number = count = 0
        for pair in pairs:
            if number % self._every == 0:
                block.append(pair)
            count += 1
            if count == _BLOCK:
                self._keep(block)
                block, count, number = [], 0, number + 1
            yield pair
        self._keep(block)

    @property
    def blocks(self) -> list[Block]:
        """The sampled blocks in order, at most 128."""
        return spread(self._kept, _BLOCKS)

    def _keep(self, block: Block) -> None:
        if block:
            self._kept.append(block)
        if len(self._kept) >= 2 * _BLOCKS:
            self._kept = self._kept[::2]
            self._every *= 2


def sample_blocks(pairs: Iterable[Pair]) -> list[Block]:
    """Read pairs, and return blocks of consecutive ones, as ``BlockSampler`` samples them."""
    sampler = BlockSampler()
    for _ in sampler.watch(pairs):
        pass
    return sampler.blocks


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most ``most`` of the items, evenly spread."""
    places = np.linspace(0, len(items) - 1, min(len(items), most)).round().astype(int)
    return [items[place] for place in places.tolist()]


@dataclass(frozen=True)
class Moved:
    """A run of lines whose translations are some lines away."""

    first: int
    """The line in the file, from 1, of the first moved block."""
    last: int
    from_start: bool
    """True if no earlier block is in its place."""
    to_end: bool
    by: int
    """The translation of line n is line n + ``by``."""
    examples: tuple[tuple[Pair, Pair], ...]
    """Pairs as they are, each with the pair whose target translates their source."""


@dataclass(frozen=True)
class Correspondence:
    """The result of judging the pairs of a sample."""

    pairs: int
    judged: int
    """The number of pairs that are long enough to be judged one by one."""
    unrelated: float
    """The share of pairs that score like strangers."""
    least: tuple[Pair, ...]
    """The pairs with the lowest scores."""
    moved: tuple[Moved, ...]
    reversed: float
    """The share of pairs whose sides are exchanged."""
    exchanged: tuple[Pair, ...]
    """The first pairs that seem to be exchanged."""
    others: tuple[Pair, ...]
    """The first pairs that are not exchanged."""
    common: float
    """The share of running words that both sides have equally often."""


def find_correspondence(blocks: Sequence[Block]) -> Correspondence:
    """Judge blocks of consecutive pairs. This takes about half a second for any content."""
    sample = _SampledPairs(blocks)
    exchanged, common = sample.find_exchanged()
    rest = np.setdiff1d(np.arange(len(sample.pairs)), exchanged)
    here = sample.judge(0)
    moved = _find_moved(blocks, sample, here)
    judged = here.usable[sample.long[here.usable]]
    true = here.true[judged]
    # More words make a score more certain.
    worth = (true - true.mean()) * sample.shorter[judged] if len(judged) else true
    least = judged[np.argsort(worth, kind="stable")[:_EXAMPLES]]
    return Correspondence(
        pairs=len(sample.pairs),
        judged=len(judged),
        unrelated=_unrelated_share(here, judged, sample.judged_of_strangers()),
        least=tuple(sample.pairs[place] for place in sorted(least.tolist())),
        moved=moved,
        reversed=len(exchanged) / max(1, len(sample.pairs)),
        exchanged=tuple(sample.pairs[place] for place in exchanged[:_EXAMPLES].tolist()),
        others=tuple(sample.pairs[place] for place in rest[:_EXAMPLES].tolist()),
        common=common,
    )


@dataclass(frozen=True)
class _Judged:
    """Scores of sources with the targets at an offset in lines; nan for places that have none."""

    usable: Integers
    true: Floats
    strangers: Floats
    dictionaries: tuple[Dictionary, ...]
    """One dictionary for each part of the sample, learned from the other parts."""

    @property
    def gain(self) -> float:
        """The mean score of the pairs minus that of strangers."""
        if not len(self.usable):
            return 0.0
        return float(self.true[self.usable].mean() - self.strangers[self.usable].mean())


class _SampledPairs:
    """The pairs of a sample as numbers of words. A place is the number of a pair in the sample."""

    def __init__(self, blocks: Sequence[Block], most_parts: int = _MOST_PARTS) -> None:
        cut = [[(words_of(p.source), words_of(p.target)) for p in block] for block in blocks]
        links = sum(len(s) * len(t) for block in cut for s, t in block)
        kept = spread(range(len(blocks)), max(2, len(blocks) * _LINKS // max(_LINKS, links)))
        self.blocks = [blocks[number] for number in kept]
        self.pairs = [pair for block in self.blocks for pair in block]
        numbers: dict[str, int] = {}

        def number_words(words: list[str]) -> Integers:
            return np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64)

        words = [sides for number in kept for sides in cut[number]]
        self.sources = [number_words(source) for source, _ in words]
        self.targets = [number_words(target) for _, target in words]
        self.size = len(numbers)
        self.block_of = np.repeat(np.arange(len(kept)), [len(block) for block in self.blocks])
        parts = _LINKS // max(1, sum(len(s) * len(t) for s, t in words)) + 1
        self.part_of = self.block_of % min(max(2, parts), most_parts)
        self.shorter = shorter = np.array([min(len(s), len(t)) for s, t in words], np.int64)
        both = np.array([len(s) + len(t) for s, t in words], np.int64)
        same = np.array([p.source.strip() == p.target.strip() for p in self.pairs], bool)
        self.speaks = (shorter > 1) & ~same
        self.long = self.speaks & (both >= _ENOUGH_WORDS)
        counts = self._counts(self.targets)
        self.frequency = (counts + 0.5) / (counts.sum() + 0.5 * max(1, self.size))

    def places(self, by: int) -> Integers:
        """Return the places with a target ``by`` lines further on in their block, if both have
        enough words."""
        every = np.arange(len(self.pairs))
        other = every + by
        inside = (other >= 0) & (other < len(every))
        inside[inside] = self.block_of[other[inside]] == self.block_of[inside]
        inside[inside] = self.speaks[inside] & self.speaks[other[inside]]
        return every[inside]

    def judged_of_strangers(self) -> int:
        """Return how many pairs would be long enough to be judged if all of them were strangers."""
        places = self.places(0).tolist()
        sources = np.array([len(self.sources[place]) for place in places], np.int64)
        targets = np.array([len(self.targets[place]) for place in places], np.int64)
        return int((sources + np.roll(targets, len(places) // 2) >= _ENOUGH_WORDS).sum())

    def judge(self, by: int, dictionaries: tuple[Dictionary, ...] | None = None) -> _Judged:
        """Score pairs at an offset, with dictionaries learned at that offset if none are given."""
        places = self.places(by)
        if dictionaries is None:
            dictionaries = tuple(
                self._learn(places[self.part_of[places] != number], by)
                for number in range(self.part_of.max(initial=0) + 1)
            )
        true, strangers = (np.full(len(self.pairs), np.nan) for _ in range(2))
        for number, dictionary in enumerate(dictionaries):
            part = places[self.part_of[places] == number]
            true[part] = self._scores(dictionary, part, part + by)
            strangers[part] = self._scores(dictionary, part, np.roll(part, len(part) // 2) + by)
        return _Judged(places, true, strangers, dictionaries)

    def by_block(self, by: int, dictionaries: tuple[Dictionary, ...]) -> Floats:
        """Return the mean score of some pairs of each block at an offset; nan for blocks with too
        few."""
        places = self.places(by)
        starts = np.searchsorted(self.block_of[places], np.arange(len(self.blocks)))
        rank = np.arange(len(places)) - starts[self.block_of[places]]
        places = places[rank < _PER_BLOCK]
        totals, counts = np.zeros(len(self.blocks)), np.zeros(len(self.blocks))
        for number, dictionary in enumerate(dictionaries):
            part = places[self.part_of[places] == number]
            block = self.block_of[part]
            totals += np.bincount(block, self._scores(dictionary, part, part + by), len(totals))
            counts += np.bincount(block, minlength=len(totals))
        return np.where(counts >= _PER_BLOCK // 2, totals / np.maximum(counts, 1), np.nan)

    def find_exchanged(self) -> tuple[Integers, float]:
        """Return the places whose sides are exchanged, and the share of words in common."""
        places, common = self._swaps(self.sources, self.targets)
        if common <= _MIXED:
            return places, common
        # If about half of the pairs are exchanged, both sides have the same words: turn round the
        # exchanged pairs, count again, and so on, until the sides differ. Two sides of one language
        # never do.
        turned = np.zeros(len(self.pairs), bool)
        swapped, left = places, common
        for _ in range(_TURNS):
            if not len(swapped):
                break
            turned[swapped] ^= True
            sides = list(zip(self.sources, self.targets, turned.tolist(), strict=True))
            swapped, left = self._swaps(
                [t if round_ else s for s, t, round_ in sides],
                [s if round_ else t for s, t, round_ in sides],
            )
        if left > _CLEARER * common:
            return places, common
        return np.flatnonzero(turned if turned.mean() <= 0.5 else ~turned), left

    def _swaps(self, left: list[Integers], right: list[Integers]) -> tuple[Integers, float]:
        """Return the places of exchanged pairs, and the share of words that two sides share."""
        sources, targets = self._counts(left), self._counts(right)
        common = np.minimum(sources / max(1, sources.sum()), targets / max(1, targets.sum())).sum()
        wrong = [
            _sums(np.log((own - 0.5) / own.sum()) - np.log((other + 0.5) / total), side)
            < -_REVERSED
            for side, own, other, total in (
                # A word is no evidence for itself, so its own place is not counted.
                (left, np.maximum(sources, 1), targets, max(1, targets.sum())),
                (right, np.maximum(targets, 1), sources, max(1, sources.sum())),
            )
        ]
        return np.flatnonzero(wrong[0] & wrong[1]), float(common)

    def _learn(self, places: Integers, by: int) -> Dictionary:
        return learn_dictionary(
            ((self.sources[place], self.targets[place + by]) for place in places.tolist()),
            self.size, self.size, rounds=_ROUNDS, most=2 * _LINKS,
        )  # fmt: skip

    def _scores(self, dictionary: Dictionary, sources: Integers, targets: Integers) -> Floats:
        """Return the mean over t of log(1 + 0.9 p(t | s) / p(t)) with the best s for each t."""
        if not len(sources):
            return np.zeros(0)
        left = [self.sources[place] for place in sources.tolist()]
        right = [self.targets[place] for place in targets.tolist()]
        grids = [
            (s[None, :] * self.size + t[:, None]).ravel() for s, t in zip(left, right, strict=True)
        ]
        keys = np.concatenate(grids)
        probability = np.where(keys // self.size == keys % self.size, _SAME_WORD, 0.0)
        if len(dictionary.cells):
            at = np.minimum(dictionary.cells.searchsorted(keys), len(dictionary.cells) - 1)
            known = dictionary.cells[at] == keys
            # A link that is expected once counts half, because two words may meet by chance.
            sure = dictionary.probability * dictionary.expected / (dictionary.expected + 1)
            probability = np.maximum(probability, np.where(known, sure[at], 0.0))
        words = np.array([len(t) for t in right])
        width = np.repeat([len(s) for s in left], words)
        best = np.maximum.reduceat(probability, np.cumsum(width) - width)
        gains = np.log1p(0.9 * best / self.frequency[np.concatenate(right)])
        scores: Floats = np.add.reduceat(gains, np.cumsum(words) - words) / words
        return scores

    def _counts(self, side: list[Integers]) -> Integers:
        return np.bincount(np.concatenate([*side, np.zeros(0, np.int64)]), minlength=self.size)


def _find_moved(blocks: Sequence[Block], sample: _SampledPairs, here: _Judged) -> tuple[Moved, ...]:
    """Return runs of blocks whose lines belong to targets some lines away."""
    best, dictionaries = 0, here.dictionaries
    if _unrelated_share(here, here.usable, len(here.usable)) > _SUSPICIOUS:
        # If all lines are moved, nothing is learned at their own places: search where learning
        # works.
        rough = _SampledPairs(spread(blocks, _ROUGH_BLOCKS), 2)
        gains = {by: rough.judge(by).gain for by in range(-_FURTHEST, _FURTHEST + 1)}
        best = max(gains, key=gains.__getitem__)
        if gains[best] < gains[0] + _MOVED_GAIN:
            best = 0
        if best:
            dictionaries = sample.judge(best).dictionaries
    offsets = range(-_FURTHEST, _FURTHEST + 1)
    table = np.stack([sample.by_block(by, dictionaries) for by in offsets])  # (offset, block)
    table[np.isnan(table)] = -np.inf
    order = np.sort(table, axis=0)
    # Where sentences repeat, several places score equally: such a block follows its neighbours.
    clear = order[-1] > order[-2] + _MOVED_GAIN
    places = (table.argmax(axis=0) - _FURTHEST).tolist()
    moves = [(number, by) for number, by in enumerate(places) if clear[number]]
    runs = [
        (by, [number for number, _ in run]) for by, run in groupby(moves, key=lambda item: item[1])
    ]
    return tuple(
        _make_moved(sample, numbers, by, dictionaries, place == 0, place == len(runs) - 1)
        for place, (by, numbers) in enumerate(runs)
        if by and len(numbers) >= _RUN
    )


def _make_moved(
    sample: _SampledPairs,
    numbers: list[int],
    by: int,
    dictionaries: tuple[Dictionary, ...],
    from_start: bool,
    to_end: bool,
) -> Moved:
    judged = sample.judge(by, dictionaries)
    inside = judged.usable[np.isin(sample.block_of[judged.usable], numbers)]
    inside = inside[sample.long[inside]]
    best = inside[np.argsort(-judged.true[inside], kind="stable")[:_EXAMPLES]]
    best.sort()
    return Moved(
        sample.blocks[numbers[0]][0].line,
        sample.blocks[numbers[-1]][-1].line,
        from_start,
        to_end,
        by,
        tuple((sample.pairs[place], sample.pairs[place + by]) for place in best.tolist()),
    )


def _unrelated_share(judged: _Judged, places: Integers, strangers: int) -> float:
    """Return the share of pairs that score like strangers. ``strangers``: the number of places with
    pairs to judge if all were strangers."""
    if not len(places):
        return 0.0
    below = judged.true[places] < np.median(judged.strangers[places])
    return min(1.0, 2 * float(below.sum()) / max(1, strangers))


def _sums(values: Floats, side: list[Integers]) -> Floats:
    """Return the sum of the values of each sentence's words."""
    lengths = [len(words) for words in side]
    place = np.repeat(np.arange(len(side)), lengths)
    words = np.concatenate([*side, np.zeros(0, np.int64)])
    return np.bincount(place, values[words], len(side)).astype(np.float64)


def words_of(text: str) -> list[str]:
    """Return the first words of a text, cut to their beginnings."""
    words: list[str] = []
    for word in _WORD.findall(text[:_CHARACTERS].lower()):
        if SPACELESS.match(word):
            words.extend(word)
        else:
            words.append(word[: 2 if _HANGUL.match(word) else 5])
        if len(words) >= _WORDS:
            break
    return words[:_WORDS]
