"""Hints for a decoder about the source word that its output reaches next.

An output that keeps the order of its source (the brackets and tags of a tree) shows how many words
it has passed. The encoder's row of the first word that it has not passed, or of the end, is added
to the decoder's input, so that the decoder need not learn to count (deterministic attention: Ma et
al., 2017, *Deterministic Attention for Sequence-to-Sequence Constituent Parsing*).

Shapes: B sources, P packed rows, N rows of a search, t new tokens, D width, W most words of a
source, including its end.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from dragoman.models.interface import Memory
from dragoman.nn.layout import Layout, Sequences, join
from dragoman.nn.linear import Linear

_SPECIAL = 3
"""The number of special tokens at the beginning of every vocabulary, which stand for no word:
unknown, begin, end."""


class NextWord(nn.Module):
    """The hints about the next word. By default, each source token begins a word, and each target
    token that is not special stands for one; ``tell`` sets which tokens really do."""

    begins: Tensor
    """(source vocabulary,) bool: True for a token that begins a word, as the end symbol does."""
    stands: Tensor
    """(target vocabulary,) int64: 1 for a token that stands for a word, else 0."""

    def __init__(self, source_vocabulary: int, target_vocabulary: int, width: int) -> None:
        super().__init__()
        self.row = Linear(width, width, bias=False)
        begins = torch.tensor([True] * source_vocabulary)
        stands = torch.tensor([int(token >= _SPECIAL) for token in range(target_vocabulary)])
        self.register_buffer("begins", begins, persistent=False)
        self.register_buffer("stands", stands, persistent=False)

    def tell(self, begins: Tensor, stands: Iterable[int]) -> None:
        """Set which tokens begin and stand for words. ``begins``: as the attribute; ``stands``: the
        ids of the target tokens that stand for a word."""
        self.begins.copy_(begins)
        self.stands.zero_()
        self.stands[torch.tensor(list(stands))] = 1

    def words(self, memory: Memory) -> tuple[Tensor, Layout]:
        """Return the hint for each word of B sources: packed rows (P, D) and their layout."""
        assert memory.tokens is not None, "words are those of the tokens that were read"
        layout = memory.layout
        begins = self.begins[memory.tokens]
        begins[layout.offsets[:-1].long()] = True
        counts = torch.bincount(layout.sequence[begins], minlength=layout.batch)
        return self.row(memory.rows[begins]), Layout(counts.tolist(), layout.device)

    def next_word_rows(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Return the hints (P, D) for the tokens of ``target_in``, under teacher forcing."""
        words, of_words = self.words(memory)
        layout = target_in.layout
        stands = self.stands[target_in.values]
        past = stands.cumsum(0)
        before = (past - stands)[layout.offsets[:-1].long()]
        past = past - before[layout.sequence]
        begin, end = of_words.offsets[:-1].long(), of_words.offsets[1:].long()
        place = torch.minimum(begin[layout.sequence] + past, end[layout.sequence] - 1)
        return words.index_select(0, place)


class Following:
    """The hints during a search: the words of its sources, and the number of words that each row
    has passed."""

    def __init__(self, next_word: NextWord) -> None:
        """Begin without rows, which ``admit`` adds."""
        self._next_word = next_word
        none = next_word.stands[:0]
        self._last = self._owners = self._past = none
        """The place of each source's last word (B,), the source of each row (N,), and the number of
        words that each row has passed (N,)."""
        self._words = none.to(next_word.row.weight.dtype)[:, None, None]
        """(B, W, D) the hint for each word of each source."""

    def next_word_rows(self, tokens: Tensor) -> Tensor:
        """Count the words in the new ``tokens`` (N, t), and return the hints (N x t, D) for
        them."""
        past = self._past[:, None] + self._next_word.stands[tokens].cumsum(1)  # (N, t)
        self._past = past[:, -1]
        place = torch.minimum(past, self._last[self._owners][:, None])
        return self._words[self._owners[:, None], place].flatten(0, 1)

    def select(self, rows: Tensor) -> None:
        """Keep some rows, as ``DecodeState.select`` does."""
        rows = rows.to(self._owners.device)
        self._past = self._past[rows]
        kept, self._owners = torch.unique(self._owners[rows], return_inverse=True)
        if len(kept) < len(self._words):
            self._words, self._last = self._words[kept], self._last[kept]

    def admit(self, memory: Memory) -> None:
        """Add the sources of ``memory``, with one row each, as ``DecodeState.admit`` does."""
        words, layout = self._next_word.words(memory)
        grid, owners = layout.pad(words), torch.arange(layout.batch, device=layout.device)
        last = torch.tensor(layout.lengths, device=layout.device) - 1
        self._words = join(self._words, grid) if len(self._words) else grid
        self._owners = torch.cat([self._owners, len(self._last) + owners])
        self._last = torch.cat([self._last, last])
        self._past = torch.cat([self._past, torch.zeros_like(owners)])
