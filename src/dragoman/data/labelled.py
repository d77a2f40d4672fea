"""Texts and their labels, or sentences and the tags of their words -> the packed tensors of one
micro-batch.

A text is read whole, up to a number of tokens; what is behind is not read. So are rows, which no
symbol stands beside. One that a model reads ends with EOS, as every source does; before one that a
model of the left alone goes over stands BOS, as before every text that it has learned to write.

Words are what stands between spaces. Each is cut into tokens by itself, so that it is known whose
each token is. The tags of words that are not read are not learned.

Shapes: B texts, P packed rows, W words in all (see ``nn/layout.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.base.wording import plural
from dragoman.data.batches import ExampleBatch, Values, first_row_keys_of, join, join_rows, rows_of
from dragoman.data.hashing import hashes
from dragoman.forms.form import Form
from dragoman.nn.layout import Layout, Sequences


@dataclass(frozen=True)
class TextLayout:
    """How a text is laid before a model."""

    symbol: int | None
    """BOS or EOS; None: there is none."""
    before: bool
    """Whether it stands before the text, and not behind it."""
    longest: int
    """Tokens that are read, the symbol counted."""

    def length(self, tokens: int) -> int:
        """How many of a text's tokens are read, the symbol not counted."""
        return min(tokens, self.longest - self.symbols)

    def size(self, tokens: int) -> int:
        """How many rows are read of a text of so many tokens, the symbol counted."""
        return self.length(tokens) + self.symbols

    @property
    def symbols(self) -> int:
        """How many symbols stand beside a text: 1 or 0."""
        return int(self.symbol is not None)

    def texts(self, texts: Sequence[Values], row_keys: Tensor | None = None) -> Sequences:
        """Join B texts, each cut to what is read of it. ``row_keys``: see ``Layout``."""
        cut = [text[: self.longest - self.symbols] for text in texts]
        if self.symbol is None:
            return Sequences(
                join_rows(cut), Layout([len(one) for one in cut], first_row_keys=row_keys)
            )
        symbol = np.array([self.symbol], np.int32)
        parts = [
            part for text in cut for part in ((symbol, text) if self.before else (text, symbol))
        ]
        return Sequences(
            join(parts), Layout([len(text) + 1 for text in cut], first_row_keys=row_keys)
        )


@dataclass(frozen=True)
class LabelledBatch(ExampleBatch):
    """One micro-batch: what ``LabelObjective`` of ``training/losses/objectives.py`` takes."""

    source: Sequences
    """(P,) int64 ids of the texts."""
    labels: Tensor
    """(B,) int64, the value of each one's label."""
    ids: tuple[int, ...]
    """Which example of the store each text is."""
    others: Tensor | None = None
    """(B,) the label of what each was mixed with; None: nothing is mixed."""
    shares: Tensor | None = None
    """(B,) how much of each is of its own label, from 0 to 1."""

    @property
    def measured(self) -> Layout:
        return self.source.layout

    def summary(self) -> str:
        """How large it is."""
        layout = self.source.layout
        read = f"{plural(len(self), 'text')}, {plural(layout.total, 'token')}"
        return f"{read}, the longest {layout.longest}"

    def part(self, first: int, last: int) -> LabelledBatch:
        return LabelledBatch(
            rows_of(self.source, first, last), self.labels[first:last], self.ids[first:last],
            None if self.others is None else self.others[first:last],
            None if self.shares is None else self.shares[first:last],
        )  # fmt: skip


def labelled_batch(
    texts: Sequence[Values],
    labels: Sequence[int],
    reading: TextLayout,
    ids: Sequence[int] | None = None,
) -> LabelledBatch:
    """Join B texts and the values of their labels. ``ids`` names the examples, and dropout knows
    their rows by it; left out, they are numbered from 0."""
    row_keys = None if ids is None else first_row_keys_of(ids)
    numbers = range(len(texts)) if ids is None else (int(i) for i in ids)
    values = torch.tensor(list(labels), dtype=torch.int64)
    return LabelledBatch(reading.texts(texts, row_keys), values, tuple(numbers))


_KEPT = 200_000
"""Words whose tokens are remembered,"""
_LONGEST_KEPT = 60
"""and the most letters of one: longer ones are addresses and accidents."""
_WAYS = 16
"""Cuts of a word that are drawn."""
Pieces = Sequence[Sequence[int]]
"""The tokens of each word of a sentence, one at least."""


class WordCutter:
    """Cuts words into tokens, each by itself."""

    def __init__(self, form: Form) -> None:
        assert form.vocabulary is not None, "what is tagged is a text"
        self._form = form
        self._unknown = form.vocabulary.unknown
        self._before = " " if form.vocabulary.settings.lossless else ""
        self._kept: dict[str, list[int]] = {}
        self._drawn: dict[tuple[str, int], list[int]] = {}

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """The tokens of each word; of one of which nothing can be written the unknown token."""
        words = {word for sentence in sentences for word in sentence}
        kept = self._kept
        found = {word: kept[word] for word in words if word in kept}
        new = list(words - found.keys())
        cut = self._form.tokens([self._before + word for word in new])
        found |= {word: one or [self._unknown] for word, one in zip(new, cut, strict=True)}
        short = {word: found[word] for word in new if len(word) <= _LONGEST_KEPT}
        if len(kept) + len(short) > _KEPT:
            kept = {}  # another thread may read what there was
        kept.update(short)
        self._kept = kept
        return [[found[word] for word in sentence] for sentence in sentences]

    def sampled(self, words: Sequence[str], draw: int) -> Pieces:
        """Of one sentence, each word cut in one of ``_WAYS`` ways, which were drawn at random as
        the vocabulary's settings say: a pure function of the words and of ``draw``.

        Each draw is a call for one word, too slow to be made anew each time.
        """
        ways = hashes(np.arange(len(words)), draw) % np.uint64(_WAYS)
        return [self._way(word, way) for word, way in zip(words, ways.tolist(), strict=True)]

    def _way(self, word: str, way: int) -> list[int]:
        found = self._drawn.get((word, way))
        if found is None:
            vocabulary = self._form.vocabulary
            assert vocabulary is not None
            found = vocabulary.sample(self._before + word, way).tolist() or [self._unknown]
            if len(self._drawn) >= _KEPT:
                self._drawn.clear()
            self._drawn[word, way] = found
        return found


@dataclass(frozen=True)
class WordRows:
    """Sentences as a model reads them, and whose each row is."""

    source: Sequences
    """(P,) int64 ids of the tokens, a symbol before or behind those of a sentence."""
    words: Sequences
    """(P,) int64: the number of each row's word in its sentence; -1 of a symbol. Laid out as
    ``source``."""
    counts: tuple[int, ...]
    """Words that are read of each sentence."""

    @classmethod
    def of(
        cls, sentences: Sequence[Pieces], reading: TextLayout, row_keys: Tensor | None = None
    ) -> WordRows:
        """Join B sentences, each cut to what is read of it. ``row_keys``: see ``Layout``."""
        tokens = [np.array([t for word in one for t in word], np.int32) for one in sentences]
        words = [
            np.repeat(np.arange(len(one), dtype=np.int32), [len(word) for word in one])
            for one in sentences
        ]
        source = reading.texts(tokens, row_keys)
        symbol, most = np.array([-1], np.int32), reading.longest - 1
        parts = [
            part
            for one in words
            for part in ((symbol, one[:most]) if reading.before else (one[:most], symbol))
        ]
        counts = tuple(int(one[:most][-1]) + 1 if len(one) and most else 0 for one in words)
        return cls(source, Sequences(join(parts), source.layout), counts)

    def to(self, device: torch.device | str) -> WordRows:
        """The same on another device."""
        return WordRows(self.source.to(device), self.words.to(device), self.counts)

    def part(self, first: int, last: int) -> WordRows:
        """Sentences ``first`` to ``last`` alone."""
        source = rows_of(self.source, first, last)
        words = Sequences(rows_of(self.words, first, last).values, source.layout)
        return WordRows(source, words, self.counts[first:last])

    def windows(self, rows: Tensor) -> Tensor:
        """The means of each word's rows, between those of its neighbours: (P, D) -> (W, 3 D) fp32;
        zeros before and behind a sentence."""
        means = self.mean(rows)
        layout = Layout(self.counts, means.device)
        last = layout.offsets[1:].long()[layout.sequence] - 1
        place = torch.arange(len(means), device=means.device)
        before = means.roll(1, 0).masked_fill((layout.positions == 0)[:, None], 0.0)
        behind = means.roll(-1, 0).masked_fill((place == last)[:, None], 0.0)
        return torch.cat([before, means, behind], dim=1)

    def mean(self, rows: Tensor) -> Tensor:
        """The mean of each word's rows: (P, D) -> (W, D) fp32."""
        count = sum(self.counts)
        layout = self.source.layout
        begins = Layout(self.counts, layout.device).offsets[:-1].long()
        local = self.words.values
        place = torch.where(local < 0, count, local + begins[layout.sequence])
        sums = rows.new_zeros(count + 1, rows.shape[1], dtype=torch.float32)
        sums = sums.index_add(0, place, rows.float())[:count]
        return sums / torch.bincount(place, minlength=count + 1)[:count, None]


@dataclass(frozen=True)
class TaggedBatch(ExampleBatch):
    """One micro-batch."""

    read: WordRows
    tags: Tensor
    """(W,) int64, the value of each word's tag."""
    ids: tuple[int, ...]
    """Which example of the store each sentence is."""

    @property
    def measured(self) -> Layout:
        return self.read.source.layout

    def summary(self) -> str:
        """How large it is."""
        layout = self.read.source.layout
        read = f"{plural(len(self), 'sentence')}, {plural(layout.total, 'token')}"
        return f"{read}, the longest {layout.longest}"

    def part(self, first: int, last: int) -> TaggedBatch:
        begin, end = (sum(self.read.counts[:place]) for place in (first, last))
        return TaggedBatch(self.read.part(first, last), self.tags[begin:end], self.ids[first:last])


def tagged_batch(
    sentences: Sequence[Pieces],
    tags: Sequence[Sequence[int]],
    reading: TextLayout,
    ids: Sequence[int] | None = None,
) -> TaggedBatch:
    """Join B sentences and the values of their tags. ``ids`` names the examples, and dropout knows
    their rows by it; left out, they are numbered from 0."""
    row_keys = None if ids is None else first_row_keys_of(ids)
    read = WordRows.of(sentences, reading, row_keys)
    kept = [value for one, count in zip(tags, read.counts, strict=True) for value in one[:count]]
    numbers = range(len(sentences)) if ids is None else (int(i) for i in ids)
    return TaggedBatch(read, torch.tensor(kept, dtype=torch.int64), tuple(numbers))
