"""Which source tokens each token of a translation came from, by the model's own attention.

The translation is run through the plain model once more, all its tokens known; the fast paths that
found it keep no attention. Only sentences with tags inside are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.models.interface import Network
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.serving.tag_projection import Alignment
from dragoman.serving.turns import Turns

Pair = tuple[Sequence[int], Sequence[int]]
"""Tokens of a source and of its translation, without begin and end symbols."""

MOST_WEIGHTS = 4_000_000
"""Attention weights held at once, over all layers and heads: 16 MB."""


class Aligner:
    """Aligns for one model, in a thread of its own; those who ask take turns."""

    def __init__(self, model: Network, *, bos: int, eos: int) -> None:
        """``bos``: of the target; ``eos``: of the source."""
        self._model = model
        self._bos, self._eos = bos, eos
        self._turns = Turns("align")

    async def align(self, pairs: Sequence[Pair], client: str) -> list[Alignment]:
        """(T, S) for each pair. A caller that is cancelled is done after the batch under way."""
        batches = await self._turns.all(client, map(self._align, self._batches(pairs)))
        return [alignment for batch in batches for alignment in batch]

    def close(self) -> None:
        self._turns.close()

    def _batches(self, pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
        maps = sum(attention.heads for attention in self._model.attentions)
        batch: list[Pair] = []
        longest = 0
        for pair in pairs:
            length = max(longest, *(len(tokens) + 1 for tokens in pair))
            if batch and maps * (len(batch) + 1) * length * length > MOST_WEIGHTS:
                yield batch
                batch, length = [], max(len(tokens) + 1 for tokens in pair)
            batch.append(pair)
            longest = length
        if batch:
            yield batch

    def _align(self, pairs: Sequence[Pair]) -> list[Alignment]:
        sources = Sequences.of([torch.tensor([*source, self._eos]) for source, _ in pairs])
        targets = Sequences.of([torch.tensor([self._bos, *target]) for _, target in pairs])
        with torch.inference_mode(), Probe() as probe:
            self._model.decode(targets, self._model.encode(sources))
        # (L, B, T, S), the mean of each layer's heads
        cross = torch.stack(
            [probe.attention[a.name].mean(dim=1) for a in self._model.attentions_of("cross")]
        ).numpy()
        return [
            _sharpest(cross[:, number], len(source), len(target))
            for number, (source, target) in enumerate(pairs)
        ]


def _sharpest(cross: NDArray[np.float32], source: int, target: int) -> Alignment:
    """(L, T', S') -> (target, source) of the layer that looks most surely at one token."""
    every = cross[:, :target, :source].astype(np.float64)
    if not every.size:
        return np.zeros((target, source))
    best: Alignment = every[every.max(axis=-1).mean(axis=-1).argmax()]
    return best


def in_step(source: int, target: int) -> Alignment:
    """(target, source) for a translation that keeps the order of its source: a guess where no
    model can be asked."""
    places = (np.arange(target) + 0.5) * source / max(1, target) - 0.5
    weights = np.clip(1 - np.abs(places[:, None] - np.arange(source)), 0, None)
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9))
