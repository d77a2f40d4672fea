"""Word alignment read from cross-attention, and its alignment error rate (AER).

Each target word is linked to the source word that it attends to most. Attention is not the same as
alignment: the step that *chose* a word shows where the model looked to choose it; the next step,
which has read the word, often aligns better (Chen et al. 2020; Kobayashi et al. 2020). Both are
measured.

The attention to a word is the sum of the attention to its pieces; the attention of a word is the
mean of that of its pieces.

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
"""(T, S): the attention weight of each token of an output to each token of its source."""
TokenPair = tuple[Sequence[int], Sequence[int]]
"""The tokens of a source and of its output, without start and end symbols."""

When = Literal["choosing", "having read"]
MOMENTS: tuple[When, ...] = ("choosing", "having read")


def by_words(alignment: Alignment, numbers: Sequence[int], words: int) -> Alignment:
    """Sum the attention (T, S) to the tokens of each source word. Return (T, S'). ``numbers`` (S,):
    the number of each token's word, as ``Form.tokens_of_words`` gives them."""
    looked: Alignment = np.zeros((len(alignment), words))
    np.add.at(looked.T, list(numbers), alignment.T)
    return looked


@dataclass(frozen=True)
class AligningHead:
    """The attention head that aligns: its layer and head, counted from 0, and the step that is
    read."""

    when: When
    layer: int
    head: int | None
    """The number of the head; None: the mean of the heads."""

    def __str__(self) -> str:
        head = "mean of the heads" if self.head is None else f"head {self.head + 1}"
        return f"layer {self.layer + 1}, {head}, the step {self.when} the word"

    @property
    def option(self) -> str:
        """The command line options that choose this head."""
        head = "*" if self.head is None else str(self.head + 1)
        step = "" if self.when == "having read" else " --step choosing"
        return f"--head '{self.layer + 1}.{head}'{step}"

    @classmethod
    def parse(cls, text: str, when: str) -> AligningHead:
        """Parse ``2.1`` (layer 2, head 1) or ``2.*`` (the mean of the heads of layer 2). ``when``:
        "choosing" or "reading". Errors: ``DragomanError``."""
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
    def of_guided(
        cls, guided: GuidedSettings, layers: Sequence[AttentionLayer]
    ) -> AligningHead | None:
        """The head that guided alignment teaches; None if it teaches none."""
        if not guided.weight:
            return None
        return cls("having read", *guided.place([layer.heads for layer in layers]))

    @classmethod
    def guess(cls, cross: Weights) -> AligningHead:
        """Choose a head without gold links: the mean of the heads of the layer whose attention is
        most concentrated on single tokens."""
        looked = cross[..., :-1, :-1].mean(axis=1)  # (L, T, S)
        return cls("choosing", int(looked.max(axis=-1, initial=0).sum(axis=-1).argmax()), None)

    def weights(self, cross: Weights) -> Weights:
        """Select the weights of this head, (T, S), from the cross-attention (L, H, T + 1, S + 1),
        whose last row and column are end symbols."""
        heads = moment(cross, self.when)[self.layer]
        weights: Weights = heads.mean(axis=0) if self.head is None else heads[self.head]
        return weights

    @property
    def place(self) -> tuple[int, int]:
        """The place of this head in tables of (L, H + 1), whose last column is the mean of a
        layer's heads."""
        return self.layer, -1 if self.head is None else self.head

    def check(self, layers: Sequence[AttentionLayer]) -> None:
        """Raise ``DragomanError`` if the cross-attention of a model has no such layer or head."""
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
    """Select the rows of the steps that chose each token, or of the steps that have read it:
    (…, T + 1, S + 1) with end symbols -> (…, T, S)."""
    return cross[..., 1:, :-1] if when == "having read" else cross[..., :-1, :-1]


@dataclass(frozen=True)
class HeadLinks:
    """The source word that each target word of one pair attends to most, for every head."""

    target: NDArray[np.int64]
    """(T',): the numbers of the target words that have tokens. Only these are linked."""
    source: dict[When, NDArray[np.int64]]
    """(L, H + 1, T'): the source word of each linked target word, for every head and, last, for the
    mean of a layer's heads."""
    looked_at_by: dict[When, NDArray[np.int64]]
    """(L, H + 1, S'): the target word that attends most to each source word that has tokens."""
    source_words: NDArray[np.int64]
    """(S',): the numbers of the source words that have tokens."""
    guess: AligningHead
    """The head that is expected to align the pair best, estimated without gold links."""
    sizes: tuple[int, int]
    """The numbers of words of the source and of the target."""

    @classmethod
    def of(
        cls,
        cross: Weights,
        source_words: Sequence[int],
        target_words: Sequence[int],
        sizes: tuple[int, int],
    ) -> HeadLinks:
        """Find the links of every head. ``cross`` (L, H, T + 1, S + 1): row t belongs to the step
        that chose token t, the last row to the step that chose the end symbol; the last column is
        the end symbol of the source. ``source_words`` (S,) and ``target_words`` (T,): the number of
        each token's word. Errors: ``DataError`` for 0 layers."""
        if not len(cross):
            raise DataError("this model has no attention over its source, so it cannot align")
        source, of_source = np.unique(np.array(source_words, np.int64), return_inverse=True)
        target, of_target = np.unique(np.array(target_words, np.int64), return_inverse=True)
        if not len(source):
            target = target[:0]
        links: dict[When, NDArray[np.int64]] = {}
        back: dict[When, NDArray[np.int64]] = {}
        for when in MOMENTS:
            heads = moment(cross, when)
            heads = np.concatenate([heads, heads.mean(axis=1, keepdims=True)], axis=1)
            links[when] = back[when] = np.zeros((*heads.shape[:2], 0), np.int64)
            if len(target):
                looked = by_word(heads, of_target.tolist(), of_source.tolist())
                links[when] = source[looked.argmax(axis=-1)]
                back[when] = target[looked.argmax(axis=-2)]
        source = source if len(target) else source[:0]
        return cls(target, links, back, source, AligningHead.guess(cross), sizes)

    @classmethod
    def of_record(cls, record: AttentionRecord) -> HeadLinks:
        """Find the links from a record whose tokens are pieces with their ``▁``; each side must end
        with the end symbol."""
        (source, of_source), (target, of_target) = (
            words(side[:-1]) for side in (record.source, record.target)
        )
        return cls.of(record.cross, of_source, of_target, (len(source), len(target)))

    def by(self, head: AligningHead) -> Links:
        """Return the links that a head makes from each target word."""
        row = self.source[head.when][head.place]
        return frozenset(zip(row.tolist(), self.target.tolist(), strict=True))

    def back_by(self, head: AligningHead) -> Links:
        """Return the links that a head makes from each source word to the target word that attends
        most to it."""
        row = self.looked_at_by[head.when][head.place]
        return frozenset(zip(self.source_words.tolist(), row.tolist(), strict=True))


Counts = NDArray[np.int64]
"""(N, L, H + 1, 4): for each pair, layer and head (last: the mean of the layer's heads), |A|, |S|,
|A ∩ S| and |A ∩ P| (``metrics/alignment.py``)."""


@dataclass(frozen=True)
class AlignmentScores:
    """The counts over some sentence pairs from which the AER of every layer and head follows."""

    counts: dict[When, Counts]

    @classmethod
    def of(cls, looked: Sequence[HeadLinks], gold: Sequence[Gold]) -> AlignmentScores:
        """Compare links with gold links. Errors: ``DataError`` for gold links outside of their
        sentences, or if the numbers of pairs differ."""
        check_gold(gold, (of_pair.sizes for of_pair in looked))
        both = list(zip(looked, gold, strict=True))
        return cls(
            {
                when: np.array(
                    [_counts(pair.target, pair.source[when], links) for pair, links in both]
                )
                for when in MOMENTS
            }
        )

    @property
    def sentences(self) -> int:
        return len(self.counts["choosing"])

    @property
    def heads(self) -> dict[When, NDArray[np.float64]]:
        """(L, H + 1): the AER of each head and, last, of the mean of the layer's heads."""
        return {when: _rates(counts) for when, counts in self.counts.items()}

    @property
    def best(self) -> AligningHead:
        """The head with the lowest AER. It is an oracle, because the gold links choose it."""
        tables = self.heads
        when: When = min(tables, key=lambda name: float(tables[name].min()))
        layer, head = np.unravel_index(int(tables[when].argmin()), tables[when].shape)
        mean = int(head) == tables[when].shape[1] - 1
        return AligningHead(when, int(layer), None if mean else int(head))

    def part(self, first: int, last: int | None = None) -> AlignmentScores:
        """Return the scores of pairs ``first`` to ``last`` alone, ``last`` excluded."""
        return replace(self, counts={w: c[first:last] for w, c in self.counts.items()})

    def quality(self, head: AligningHead) -> AlignmentQuality:
        """Return the alignment error rate of one head and its parts, over all pairs together."""
        counts = self.counts[head.when][:, *head.place]
        return AlignmentQuality(*counts.sum(axis=0).tolist())

    def to_dict(self) -> dict[str, Any]:
        """Return the scores in a form that JSON can hold."""
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
    """Count the links of one pair: target words (T',) with their source words (L, H + 1, T') ->
    (L, H + 1, 4)."""
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
    """Compute the AER over all pairs together: (N, L, H + 1, 4) -> (L, H + 1); 0 where there are no
    links."""
    predicted, sure, predicted_sure, predicted_possible = np.moveaxis(counts.sum(axis=0), -1, 0)
    size = predicted + sure
    hits = predicted_sure + predicted_possible
    return np.where(size > 0, 1 - hits / np.maximum(size, 1), 0.0)
