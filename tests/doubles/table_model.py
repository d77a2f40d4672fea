"""A toy model under the whole contract, and a search that tries every output.

What follows a prefix is a row of a random table, chosen by a hash of the source and the prefix. So
nothing is rounded, every prefix counts, and the truth can be found by trying all outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.models.interface import DecodeState, Memory, Model
from dragoman.nn.layout import Sequences
from dragoman.search.hypothesis import Hypothesis, hypothesis_of
from dragoman.search.request import Request
from dragoman.search.textbook import next_log_probabilities

BOS, EOS = 1, 2
ROWS = 9973


def mix(state: Tensor, token: Tensor) -> Tensor:
    return (state * 31 + token * 1009 + 17) % ROWS


class TableState(DecodeState):
    """Rows know their source by its number, so that broken bookkeeping is noticed."""

    def __init__(self, memory: Memory) -> None:
        self.hashes = torch.zeros(0, dtype=torch.int64)
        self.sources = torch.zeros(0, dtype=torch.int64)
        self.taken = torch.zeros(0, dtype=torch.int64)
        self.admitted = 0
        self.admit(memory)

    @property
    def rows(self) -> int:
        return len(self.taken)

    @property
    def lengths(self) -> Tensor:
        return self.taken

    def select(self, rows: Tensor) -> None:
        assert rows.dtype == torch.int64 and len(rows)
        self.hashes, self.sources = self.hashes[rows], self.sources[rows]
        self.taken = self.taken[rows]
        order = torch.unique_consecutive(self.sources)
        assert len(order) == len(order.unique()), "rows of one source must stand together"

    def admit(self, memory: Memory) -> None:
        batch = memory.layout.batch
        self.hashes = torch.cat([self.hashes, source_hashes(memory)])
        numbers = torch.arange(self.admitted, self.admitted + batch)
        self.sources = torch.cat([self.sources, numbers])
        self.taken = torch.cat([self.taken, torch.zeros(batch, dtype=torch.int64)])
        self.admitted += batch


def source_hashes(memory: Memory) -> Tensor:
    hashes = []
    for rows in memory.rows.split(list(memory.layout.lengths)):
        state = torch.tensor(1)
        for token in rows:
            state = mix(state, token)
        hashes.append(state)
    return torch.stack(hashes)


class TableModel(Model):
    """``sharpness`` spreads the logits; ``ending`` is added to that of the end symbol."""

    def __init__(
        self, vocabulary: int, seed: int = 0, sharpness: float = 1.5, ending: float = 0.0
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.logits = torch.randn(ROWS, vocabulary, generator=generator) * sharpness
        self.logits[:, EOS] += ending
        self.vocabulary = vocabulary
        self.encoded: list[int] = []
        self.stepped: list[int] = []
        self.wanted: list[tuple[int, bool]] = []

    def encode(self, source: Sequences) -> Memory:
        self.encoded.append(source.layout.batch)
        return Memory(source.values, source.layout)

    def start(self, memory: Memory) -> TableState:
        return TableState(memory)

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, TableState)
        assert tokens.shape == (state.rows, 1)
        assert (tokens[state.taken == 0] == BOS).all()
        self.stepped.append(state.rows)
        state.hashes = mix(state.hashes, tokens[:, 0])
        state.taken = state.taken + 1
        return self.logits[state.hashes]

    def best(self, tokens, state, k, constrain=None):  # type: ignore[no-untyped-def]
        self.wanted.append((k, constrain is not None))
        return super().best(tokens, state, k, constrain)

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        hidden = []
        for state, tokens in zip(
            source_hashes(memory),
            target_in.values.split(list(target_in.layout.lengths)),
            strict=True,
        ):
            for token in tokens:
                state = mix(state, token)
                hidden.append(state)
        return torch.stack(hidden)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        logits = self.logits[hidden]
        return logits if ids is None else logits[..., ids]


def exhaustive(model: TableModel, request: Request) -> list[Hypothesis]:
    """Every output up to the limit, scored, the n best of them."""
    settings = request.settings
    symbols = [token for token in range(model.vocabulary) if token != EOS]
    known: dict[tuple[int, ...], list[float]] = {}
    found = []
    for length in range(settings.min_length, request.limit + 1):
        for tokens in itertools.product(symbols, repeat=length):
            scores = []
            for place, token in enumerate((*tokens, EOS)):
                prefix = tokens[:place]
                if prefix not in known:
                    known[prefix] = next_log_probabilities(model, request.source, prefix, bos=BOS)
                scores.append(known[prefix][token])
            found.append(hypothesis_of(tokens, scores, settings, finished=True))
    return sorted(found, key=lambda h: -h.score)[: settings.n_best]


def same(first: Sequence[Hypothesis], second: Sequence[Hypothesis], within: float = 1e-5) -> bool:
    """Equal tokens, and scores equal within rounding."""
    return len(first) == len(second) and all(
        a.tokens == b.tokens
        and a.finished == b.finished
        and abs(a.score - b.score) <= within
        and abs(a.log_probability - b.log_probability) <= within
        and len(a.token_log_probabilities) == len(b.token_log_probabilities)
        and all(
            abs(x - y) <= within
            for x, y in zip(a.token_log_probabilities, b.token_log_probabilities, strict=True)
        )
        for a, b in zip(first, second, strict=True)
    )
