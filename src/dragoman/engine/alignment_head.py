"""Which source word a target word comes from, read from cross-attention, and how often that is so.

A target word is linked to the source word that it looked at most. Attention is no alignment: the
step that *chose* a word says where the model looked to choose it; the step behind it, which has
read the word, often aligns better (Chen et al. 2020; Kobayashi et al. 2020). Both are measured.

A word is looked at by as much as its pieces together, and looks as its pieces do on average.

Shapes: L layers, H heads, S tokens of the source, T of the target, S' and T' their words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError, DragomanError
from dragoman.metrics.alignment import AlignmentQuality, Gold, Links, check_gold
from dragoman.pictures.records import by_word, words
from dragoman.training.settings import GuidedSettings

if TYPE_CHECKING:
    from dragoman.models.interface import AttentionLayer
    from dragoman.pictures.records import AttentionRecord

Weights = NDArray[np.floating]
Alignment = NDArray[np.float64]
"""(T, S): how much each token of an output looked at each of its source."""
TokenPair = tuple[Sequence[int], Sequence[int]]
"""Tokens of a source and of an output, without start and end symbols."""

When = Literal["choosing", "having read"]
MOMENTS: tuple[When, ...] = ("choosing", "having read")


def by_words(alignment: Alignment, numbers: Sequence[int], words: int) -> Alignment:
    """(T, S) -> (T, S'): a word of the source is looked at by as much as its tokens together.
    ``numbers``: of the word of each token, as ``Form.tokens_of_words`` has them."""
    looked: Alignment = np.zeros((len(alignment), words))
    np.add.at(looked.T, list(numbers), alignment.T)
    return looked


@dataclass(frozen=True)
class AligningHead:
    """Which attention aligns, layer and head counted from 0."""

    when: When
    layer: int
    head: int | None
    """None: the mean of the heads."""

    def __str__(self) -> str:
        head = "mean of the heads" if self.head is None else f"head {self.head + 1}"
        return f"layer {self.layer + 1}, {head}, the step {self.when} the word"

    @property
    def option(self) -> str:
        """The options of the command line that choose this head."""
        head = "*" if self.head is None else str(self.head + 1)
        step = "" if self.when == "having read" else " --step choosing"
        return f"--head '{self.layer + 1}.{head}'{step}"

    @classmethod
    def parse(cls, text: str, when: str) -> AligningHead:
        """``2.1``: layer 2, head 1; ``2.*``: the mean of its heads. Errors: ``DragomanError``."""
        match = re.fullmatch(r"(?:cross\.)?([1-9]\d{0,3})(?:\.([1-9]\d{0,3}|\*))?", text)
        if match is None:
            raise DragomanError(
                f"--head {text} must be LAYER.HEAD, counted from 1, such as 2.1, or 2.* for the "
                "mean of the heads of layer 2"
            )
        moments = {"choosing": MOMENTS[0], "reading": MOMENTS[1]}
        if when not in moments:
            raise DragomanError(f"--step {when} must be one of {', '.join(moments)}")
        head = None if match[2] in (None, "*") else int(match[2]) - 1
        return cls(moments[when], int(match[1]) - 1, head)

    @classmethod
    def taught(
        cls, guided: GuidedSettings, layers: Sequence[AttentionLayer]
    ) -> AligningHead | None:
        """The head that guided alignment teaches; None if it teaches none."""
        if not guided.weight:
            return None
        return cls("having read", *guided.place([one.heads for one in layers]))

    @classmethod
    def guess(cls, cross: Weights) -> AligningHead:
        """Without gold: the mean of the heads of the layer that looks most surely at one token."""
        looked = cross[..., :-1, :-1].mean(axis=1)  # (L, T, S)
        return cls("choosing", int(looked.max(axis=-1, initial=0).sum(axis=-1).argmax()), None)

    def weights(self, cross: Weights) -> Weights:
        """(L, H, T + 1, S + 1) with end symbols -> (T, S)."""
        heads = moment(cross, self.when)[self.layer]
        found: Weights = heads.mean(axis=0) if self.head is None else heads[self.head]
        return found

    @property
    def place(self) -> tuple[int, int]:
        """In tables of (L, H + 1), whose last column is the mean of a layer's heads."""
        return self.layer, -1 if self.head is None else self.head

    def check(self, layers: Sequence[AttentionLayer]) -> None:
        """Errors: ``DragomanError`` for a layer or head that a model's cross-attention has not."""
        if self.layer >= len(layers):
            raise DragomanError(
                f"there is no layer {self.layer + 1}: only {len(layers)} layers of this model "
                "attend to its source"
            )
        heads = layers[self.layer].heads
        if self.head is not None and self.head >= heads:
            raise DragomanError(
                f"there is no head {self.head + 1}: layer {self.layer + 1} has {heads}"
            )


def moment(cross: Weights, when: When) -> Weights:
    """(…, T + 1, S + 1) with end symbols -> (…, T, S): the step that chose each token, or the one
    that has read it."""
    return cross[..., 1:, :-1] if when == "having read" else cross[..., :-1, :-1]


@dataclass(frozen=True)
class HeadLinks:
    """Which source word each target word of a given pair looks at most, by every head."""

    target: NDArray[np.int64]
    """(T',): the target words that are linked, which are those that have tokens."""
    source: dict[When, NDArray[np.int64]]
    """(L, H + 1, T'): the source word of each, by every head and last by the mean of a layer's."""
    looked_at_by: dict[When, NDArray[np.int64]]
    """(L, H + 1, S'): the target word that looks most at each source word that has tokens."""
    source_words: NDArray[np.int64]
    """(S',): the numbers of the source words that have tokens."""
    guess: AligningHead
    """The head that aligns the pair best, as estimated without gold links."""
    sizes: tuple[int, int]
    """Words of the source and of the target."""

    @classmethod
    def of(
        cls,
        cross: Weights,
        source_words: Sequence[int],
        target_words: Sequence[int],
        sizes: tuple[int, int],
    ) -> HeadLinks:
        """``cross`` (L, H, T + 1, S + 1): row t is of the step that chose token t, the last of that
        which ended; the last column is the end symbol. ``source_words`` (S,) and ``target_words``
        (T,): the number of each token's word. Errors: ``DataError`` for 0 layers."""
        if not len(cross):
            raise DataError("this model has no attention over its source, so it cannot align")
        source, of_source = np.unique(np.array(source_words, np.int64), return_inverse=True)
        target, of_target = np.unique(np.array(target_words, np.int64), return_inverse=True)
        if not len(source):
            target = target[:0]
        found: dict[When, NDArray[np.int64]] = {}
        back: dict[When, NDArray[np.int64]] = {}
        for when in MOMENTS:
            heads = moment(cross, when)
            heads = np.concatenate([heads, heads.mean(axis=1, keepdims=True)], axis=1)
            found[when] = back[when] = np.zeros((*heads.shape[:2], 0), np.int64)
            if len(target):
                looked = by_word(heads, of_target.tolist(), of_source.tolist())
                found[when] = source[looked.argmax(axis=-1)]
                back[when] = target[looked.argmax(axis=-2)]
        source = source if len(target) else source[:0]
        return cls(target, found, back, source, AligningHead.guess(cross), sizes)

    @classmethod
    def of_record(cls, record: AttentionRecord) -> HeadLinks:
        """From a record whose tokens are pieces with their ``▁``; each side ends with the end
        symbol."""
        (source, of_source), (target, of_target) = (
            words(side[:-1]) for side in (record.source, record.target)
        )
        return cls.of(record.cross, of_source, of_target, (len(source), len(target)))

    def by(self, head: AligningHead) -> Links:
        """The links that a head makes."""
        row = self.source[head.when][head.place]
        return frozenset(zip(row.tolist(), self.target.tolist(), strict=True))

    def back_by(self, head: AligningHead) -> Links:
        """The links that a head makes from each source word to the target word that looks most at
        it."""
        row = self.looked_at_by[head.when][head.place]
        return frozenset(zip(self.source_words.tolist(), row.tolist(), strict=True))


Counts = NDArray[np.int64]
"""(N, L, H + 1, 4) of each pair, layer and head, last of the mean of the layer's heads: |A|, |S|,
|A ∩ S|, |A ∩ P| (``metrics/alignment.py``)."""


@dataclass(frozen=True)
class AlignmentScores:
    """The counts from which the AER of every layer and head over some sentence pairs follows."""

    counts: dict[When, Counts]

    @classmethod
    def of(cls, looked: Sequence[HeadLinks], gold: Sequence[Gold]) -> AlignmentScores:
        """Errors: ``DataError`` for links outside of their sentences, or of another number of
        them."""
        check_gold(gold, (one.sizes for one in looked))
        both = list(zip(looked, gold, strict=True))
        return cls(
            {
                when: np.array(
                    [_counts(one.target, one.source[when], links) for one, links in both]
                )
                for when in MOMENTS
            }
        )

    @property
    def sentences(self) -> int:
        return len(self.counts["choosing"])

    @property
    def heads(self) -> dict[When, NDArray[np.float64]]:
        """(L, H + 1): AER of each head, and last of the mean of the layer's heads."""
        return {when: _rates(counts) for when, counts in self.counts.items()}

    @property
    def best(self) -> AligningHead:
        """The head with the lowest AER. An oracle: it is chosen with the gold links."""
        tables = self.heads
        when: When = min(tables, key=lambda one: float(tables[one].min()))
        layer, head = np.unravel_index(int(tables[when].argmin()), tables[when].shape)
        mean = int(head) == tables[when].shape[1] - 1
        return AligningHead(when, int(layer), None if mean else int(head))

    def part(self, first: int, last: int | None = None) -> AlignmentScores:
        """The scores of pairs ``first`` to ``last`` alone, last excluded."""
        return replace(self, counts={w: c[first:last] for w, c in self.counts.items()})

    def quality(self, head: AligningHead) -> AlignmentQuality:
        """The alignment error rate of one head and its parts, over all pairs together."""
        counts = self.counts[head.when][:, *head.place]
        return AlignmentQuality(*counts.sum(axis=0).tolist())

    def to_dict(self) -> dict[str, Any]:
        """The scores as JSON can hold them."""
        best = self.best
        return {
            "sentences": self.sentences,
            "heads": {name: table.tolist() for name, table in self.heads.items()},
            "best": {
                "when": best.when,
                "layer": best.layer,
                "head": best.head,
                **self.quality(best).to_dict(),
                "oracle": True,
            },
        }


def _counts(target: NDArray[Any], source: NDArray[Any], gold: Gold) -> Counts:
    """(T',), (L, H + 1, T') -> (L, H + 1, 4)."""
    largest = [max((link[side] for link in gold.possible), default=0) for side in (0, 1)]
    sizes = 1 + np.maximum(largest, [source.max(initial=0), target.max(initial=0)])
    counted = [np.full(source.shape[:2], size) for size in (len(target), len(gold.sure))]
    for links in (gold.sure, gold.possible):
        linked = np.zeros(sizes, np.int64)
        if links:
            linked[tuple(np.array(sorted(links)).T)] = 1
        counted.append(linked[source, target].sum(axis=-1))
    return np.stack(counted, axis=-1)


def _rates(counts: Counts) -> NDArray[np.float64]:
    """(N, L, H + 1, 4) -> (L, H + 1) AER over all pairs together; without any link 0."""
    found, sure, found_sure, found_possible = np.moveaxis(counts.sum(axis=0), -1, 0)
    size = found + sure
    hits = found_sure + found_possible
    return np.where(size > 0, 1 - hits / np.maximum(size, 1), 0.0)
