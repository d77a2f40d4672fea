"""How a recurrent decoder finds what it needs in its source.

    score(q, m) = q · m                              dot: q is the decoder's row itself
    score(q, m) = q · m,   q = W_a h                 general (Luong et al., 2015, §3.1)
    score(q, m) = v · tanh(q + k)                    additive (Bahdanau et al., 2015, A.1.2):
                                                     q = W_a h, k = U_a m

    found = Σ_s softmax(score)_s m_s

One head. Products are divided by √D, which the papers do not: rows begin at the size of embeddings.

Shapes: B sources, S longest source, R queries of a source, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.models.source import Source
from dragoman.nn.attention import softmax
from dragoman.nn.linear import Computing, Precision

CELLS = 1 << 25
"""Numbers that an additive attention holds at once: it needs B x R x S x D of them."""


class Energy(Computing):
    """v of the additive score, and the attention by it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1, width))
        nn.init.xavier_uniform_(self.weight)

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """A vector is multiplied by in the type of what it meets."""

    def forward(self, query: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """(B, R, D) over a source -> what is found (B, R, D), and weights (B, R, S)."""
        scores: Tensor = _Scores.apply(  # type: ignore[no-untyped-call]
            query, source.keys, self.weight[0].to(query.dtype)
        )
        weights = softmax(scores, source.allowed[:, None])
        return weights @ source.values, weights


class _Scores(torch.autograd.Function):
    """v · tanh(q + k) of every pair: (B, R, D), (B, S, D), (D,) -> (B, R, S).

    There are B x R x S x D sums: they are never all held, and going back they are made once more.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
        ctx.save_for_backward(query, keys, energy)
        parts = [torch.tanh(part) @ energy for _, part in _sums(query, keys)]
        return torch.cat(parts, dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, keys, energy = ctx.saved_tensors
        of_query, of_keys = torch.empty_like(query), torch.zeros_like(keys)
        of_energy = torch.zeros_like(energy)
        for places, part in _sums(query, keys):
            bent, grad = part.tanh_(), grads[0][:, places]  # (B, r, S, D), (B, r, S)
            of_energy += grad.flatten() @ bent.flatten(0, 2)
            slope = bent.square_().neg_().add_(1).mul_(grad[..., None]).mul_(energy)
            of_query[:, places] = slope.sum(dim=2)
            of_keys += slope.sum(dim=1)
        return of_query, of_keys, of_energy


def _sums(query: Tensor, keys: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """q + k, some queries of each source at a time: (B, r, S, D), and which ones."""
    batch, count, width = query.shape
    at_once = max(1, CELLS // max(1, batch * keys.shape[1] * width))
    for begin in range(0, count, at_once):
        places = slice(begin, begin + at_once)
        yield places, query[:, places, None] + keys[:, None]
