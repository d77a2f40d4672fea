"""The scores of additive attention (Bahdanau et al., 2015, A.1.2), v · tanh(q + k).

There is a sum of D numbers for each pair of a query and a key: they are never all held, and going
back they are made once more.

B sources, R queries of a source, S longest source, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from dragoman.native import loader
from dragoman.native.pointers import SUFFIXES, address, is_plain

CELLS = 1 << 25
"""Numbers that the twin holds at once: all of it would be B x R x S x D of them."""


def additive_scores(query: Tensor, keys: Tensor, energy: Tensor, allowed: Tensor) -> Tensor:
    """(B, R, D), (B, S, D) of one type, (D,), (B, S) bool -> (B, R, S).

    Where a key is not allowed the score means nothing; callers mask it.
    """
    if not (is_plain(query, keys, energy) and query.dtype == keys.dtype and loader.trains()):
        return additive_scores_plain(query, keys, energy)
    out: Tensor = _Scores.apply(query, keys, energy, allowed)  # type: ignore[no-untyped-call]
    return out


def additive_scores_plain(query: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
    """The twin, which scores all keys."""
    out: Tensor = _PlainScores.apply(query, keys, energy.to(query.dtype))  # type: ignore[no-untyped-call]
    return out


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, energy: Tensor, allowed: Tensor) -> Tensor:
        query, keys, allowed = query.contiguous(), keys.contiguous(), allowed.contiguous()
        # As the twin rounds it.
        vector = energy.detach().to(query.dtype).float().contiguous()
        batch, count, width = query.shape
        scores = query.new_empty(batch, count, keys.shape[1])
        kernel = loader.kernel(f"additive_forward_{SUFFIXES[query.dtype]}")
        kernel(
            *map(address, (query, keys, vector, allowed, scores)),
            batch, count, keys.shape[1], width,
        )  # fmt: skip
        ctx.save_for_backward(query, keys, vector, allowed)
        ctx.dtype = energy.dtype
        return scores

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, keys, vector, allowed = ctx.saved_tensors
        batch, count, width = query.shape
        of_query, of_keys = torch.empty_like(query), torch.empty_like(keys)
        sums = torch.empty(batch, width)
        kernel = loader.kernel(f"additive_backward_{SUFFIXES[query.dtype]}")
        grad = grads[0].contiguous()
        tensors = (grad, query, keys, vector, allowed, of_query, of_keys, sums)
        kernel(*map(address, tensors), batch, count, keys.shape[1], width)
        return of_query, of_keys, sums.sum(dim=0).to(ctx.dtype), None


class _PlainScores(torch.autograd.Function):
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
