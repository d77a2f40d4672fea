"""This module packs labelled texts, or sentences with tagged words, into the tensors of one
micro-batch.

A text is read up to a number of tokens; the rest is ignored. The same holds for rows, which get no
symbol. A text for an encoder ends with EOS, as every source does; a text for a causal model begins
with BOS, as every text that it has learned to write.

Words are separated by spaces. Each is cut into tokens by itself, so that the word of each token is
known. The tags of words that are not read are not learned.

Shapes: B texts, P packed rows, W words in all (see ``nn/layout.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import ExampleBatch, Values, number_examples, rows_of, with_symbol
from dragoman.data.hashing import hashes
from dragoman.forms.form import Form
from dragoman.nn.layout import Layout, Sequences


@dataclass(frozen=True)
class TextLayout:
    """The symbol that a model reads with a text, and the most tokens it reads."""

    symbol: int | None
    """The token BOS or EOS; None for no symbol."""
    before: bool
    """True if the symbol precedes the text, False if it follows."""
    longest: int
    """The most tokens that are read, with the symbol."""

    def length(self, tokens: int) -> int:
        """Return how many of a text's tokens are read, without the symbol."""
        return min(tokens, self.longest - self.symbols)

    def size(self, tokens: int) -> int:
        """Return how many rows are read of a text of ``tokens`` tokens, with the symbol."""
        return self.length(tokens) + self.symbols

    @property
    def symbols(self) -> int:
        """The number of symbols with a text: 1 or 0."""
        return int(self.symbol is not None)

    def texts(self, texts: Sequence[Values], row_keys: Tensor | None = None) -> Sequences:
        """Join B texts, each cut to the part that is read. ``row_keys``: see ``Layout``."""
        cut = [text[: self.longest - self.symbols] for text in texts]
        return with_symbol(cut, self.symbol, row_keys, before=self.before)


@dataclass(frozen=True)
class LabelledBatch(ExampleBatch):
    """A micro-batch of labelled texts for ``LabelObjective``
    (``training/losses/objectives.py``)."""

    source: Sequences
    """(P,) int64 ids of the texts."""
    labels: Tensor
    """(B,) int64, the value of each text's label."""
    ids: tuple[int, ...]
    """The number of each text's example in the store."""
    others: Tensor | None = None
    """(B,) the label of the example that each is mixed with; None without mixing."""
    shares: Tensor | None = None
    """(B,) the share of each example's own label, from 0 to 1."""

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
    """Join B texts and the values of their labels. ``ids`` are the numbers of the examples, from
    which dropout derives the keys of their rows; without them, examples are numbered from 0."""
    numbers, row_keys = number_examples(ids, len(texts))
    values = torch.tensor(list(labels), dtype=torch.int64)
    return LabelledBatch(reading.texts(texts, row_keys), values, numbers)


_KEPT = 200_000
"""At most this many words are cached with their tokens."""
_LONGEST_KEPT = 60
"""Words with more letters are not cached: they are addresses and accidents."""
_WAYS = 16
"""The number of different random cuts of a word."""
Pieces = Sequence[Sequence[int]]
"""The tokens of each word of a sentence, at least one token each."""


class WordCutter:
    """This class cuts words into tokens, each word by itself."""

    def __init__(self, form: Form) -> None:
        assert form.vocabulary is not None, "what is tagged is a text"
        self._form = form
        self._unknown = form.vocabulary.unknown
        self._before = " " if form.vocabulary.settings.lossless else ""
        self._kept: dict[str, list[int]] = {}
        self._drawn: dict[tuple[str, int], list[int]] = {}

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """Return the tokens of each word; the unknown token for a word that has none."""
        words = {word for sentence in sentences for word in sentence}
        kept = self._kept
        tokens = {word: kept[word] for word in words if word in kept}
        new = list(words - tokens.keys())
        cut = self._form.tokens([self._before + word for word in new])
        tokens |= {word: ids or [self._unknown] for word, ids in zip(new, cut, strict=True)}
        short = {word: tokens[word] for word in new if len(word) <= _LONGEST_KEPT}
        if len(kept) + len(short) > _KEPT:
            kept = {}  # another thread may read the old dictionary
        kept.update(short)
        self._kept = kept
        return [[tokens[word] for word in sentence] for sentence in sentences]

    def sample(self, words: Sequence[str], draw: int) -> Pieces:
        """Return one sentence's words, each cut in one of ``_WAYS`` ways, which are drawn at random
        by the settings of the vocabulary: a pure function of the words and of ``draw``.

        Each way takes a call for one word, which is too slow to repeat.
        """
        ways = hashes(np.arange(len(words)), draw) % np.uint64(_WAYS)
        return [self._way(word, way) for word, way in zip(words, ways.tolist(), strict=True)]

    def _way(self, word: str, way: int) -> list[int]:
        pieces = self._drawn.get((word, way))
        if pieces is None:
            vocabulary = self._form.vocabulary
            assert vocabulary is not None
            pieces = vocabulary.sample(self._before + word, way).tolist() or [self._unknown]
            if len(self._drawn) >= _KEPT:
                self._drawn.clear()
            self._drawn[word, way] = pieces
        return pieces


@dataclass(frozen=True)
class WordRows:
    """Sentences as a model reads them, with the word of each row."""

    source: Sequences
    """(P,) int64 ids of the tokens, with the symbol of each sentence."""
    words: Sequences
    """(P,) int64: the number of each row's word in its sentence; -1 for a symbol. The layout is
    that of ``source``."""
    counts: tuple[int, ...]
    """The number of words that are read of each sentence."""

    @classmethod
    def of(
        cls, sentences: Sequence[Pieces], reading: TextLayout, row_keys: Tensor | None = None
    ) -> WordRows:
        """Join B sentences, each cut to the part that is read. ``row_keys``: see ``Layout``."""
        tokens = [np.array([t for word in text for t in word], np.int32) for text in sentences]
        words = [
            np.repeat(np.arange(len(sentence), dtype=np.int32), [len(word) for word in sentence])
            for sentence in sentences
        ]
        source = reading.texts(tokens, row_keys)
        words = [row[: reading.longest - 1] for row in words]
        numbers = with_symbol(words, -1, before=reading.before).values
        counts = tuple(int(row[-1]) + 1 if len(row) else 0 for row in words)
        return cls(source, Sequences(numbers, source.layout), counts)

    def to(self, device: torch.device | str) -> WordRows:
        """Return the same rows on another device."""
        return WordRows(self.source.to(device), self.words.to(device), self.counts)

    def part(self, first: int, last: int) -> WordRows:
        """Return the sentences from ``first`` to ``last``, last excluded."""
        source = rows_of(self.source, first, last)
        words = Sequences(rows_of(self.words, first, last).values, source.layout)
        return WordRows(source, words, self.counts[first:last])

    def windows(self, rows: Tensor) -> Tensor:
        """Return the mean of each word's rows between those of its neighbours, with zeros outside
        the sentence: (P, D) -> (W, 3 D) fp32."""
        means = self.mean(rows)
        layout = Layout(self.counts, means.device)
        last = layout.offsets[1:].long()[layout.sequence] - 1
        place = torch.arange(len(means), device=means.device)
        before = means.roll(1, 0).masked_fill((layout.positions == 0)[:, None], 0.0)
        behind = means.roll(-1, 0).masked_fill((place == last)[:, None], 0.0)
        return torch.cat([before, means, behind], dim=1)

    def mean(self, rows: Tensor) -> Tensor:
        """Return the mean of each word's rows: (P, D) -> (W, D) fp32."""
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
    """A micro-batch of sentences whose words have tags."""

    read: WordRows
    tags: Tensor
    """(W,) int64, the value of each word's tag."""
    ids: tuple[int, ...]
    """The number of each sentence's example in the store."""

    @property
    def measured(self) -> Layout:
        return self.read.source.layout

    def part(self, first: int, last: int) -> TaggedBatch:
        begin, end = (sum(self.read.counts[:place]) for place in (first, last))
        return TaggedBatch(self.read.part(first, last), self.tags[begin:end], self.ids[first:last])


def tagged_batch(
    sentences: Sequence[Pieces],
    tags: Sequence[Sequence[int]],
    reading: TextLayout,
    ids: Sequence[int] | None = None,
) -> TaggedBatch:
    """Join B sentences and the values of their tags. ``ids`` are the numbers of the examples, from
    which dropout derives the keys of their rows; without them, examples are numbered from 0."""
    numbers, row_keys = number_examples(ids, len(sentences))
    read = WordRows.of(sentences, reading, row_keys)
    kept = [value for own, count in zip(tags, read.counts, strict=True) for value in own[:count]]
    return TaggedBatch(read, torch.tensor(kept, dtype=torch.int64), numbers)
