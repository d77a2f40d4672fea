"""Multi-head attention over packed rows, forward and backward (paper §3.2, equation 1).

    attention    of packed sentences
    look         one head of a search, forward alone

Queries, keys and values are three tensors, or stand side by side as one product made them: all in
one, or keys and values in one. There is no padding and no stored weight matrix: memory grows
linearly with length. Rows are fp32 or bf16; scores and sums are fp32. What a key may hide (masks
other than causal) and what a probe wants to see is left to ``nn.attention``.

B sentences, Pq and Pk rows of queries and keys, H heads, K key width, Kv value width. Offsets are
(B + 1,) int32: rows of sentence b are ``offsets[b]:offsets[b + 1]``.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dragoman.native import loader
from dragoman.native.abi import Attention
from dragoman.native.dropout import NO_DROP, Drop, factors, numbers
from dragoman.native.pointers import SUFFIXES, address, is_plain


def attention(
    tensors: Sequence[Tensor],
    query_offsets: Tensor,
    key_offsets: Tensor,
    *,
    heads: int,
    scale: float,
    key_width: int | None = None,
    causal: bool = False,
    drop: Drop = NO_DROP,
) -> Tensor:
    """query (Pq, H x K), key (Pk, H x K), value (Pk, H x Kv) -> (Pq, H x Kv).

    ``tensors`` are these three; query and (Pk, H x K + H x Kv); or one, which has all side by side,
    for which ``key_width`` K is needed. ``causal``: query i of a sentence sees its keys 0..i.
    ``drop`` is on the weights, and its keys (Pq,) are those of the queries (``dropout.py``). A
    sentence without keys gives rows of zeros.
    """
    keys = tensors[0].shape[-1] if key_width is None else heads * key_width
    widths = (keys, keys, tensors[-1].shape[-1] - (3 - len(tensors)) * keys)
    same = len({tensor.dtype for tensor in tensors}) == 1
    if not (same and is_plain(*tensors) and loader.trains()):
        query, key, value = _views(tensors, widths)
        return attention_plain(
            query, key, value, query_offsets, key_offsets,
            heads=heads, causal=causal, scale=scale, drop=drop,
        )  # fmt: skip
    choices = (heads, causal, scale, drop)
    out: Tensor = _Function.apply(query_offsets, key_offsets, widths, choices, *tensors)  # type: ignore[no-untyped-call]
    return out


def attention_plain(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    *,
    heads: int,
    causal: bool,
    scale: float,
    drop: Drop = NO_DROP,
) -> Tensor:
    """The twin: equation 1 sentence by sentence, with the same dropout mask."""
    outs = []
    row_keys = numbers(len(query)) if drop.row_keys is None else drop.row_keys
    starts = list(zip(query_offsets.tolist(), key_offsets.tolist(), strict=True))
    for (q0, k0), (q1, k1) in itertools.pairwise(starts):
        q = query[q0:q1].unflatten(-1, (heads, -1)).transpose(0, 1)  # (H, T, K)
        k = key[k0:k1].unflatten(-1, (heads, -1)).transpose(0, 1)  # (H, S, K)
        v = value[k0:k1].unflatten(-1, (heads, -1)).transpose(0, 1)  # (H, S, Kv)
        scores = (q * scale) @ k.transpose(-2, -1)  # (H, T, S)
        if causal:
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        if drop.rate > 0.0:
            own = row_keys[q0:q1, None].long() * heads + torch.arange(heads)  # (T, H)
            mask = factors(own.flatten(), k1 - k0, drop.rate, drop.seed, scores.dtype)
            weights = weights * mask.unflatten(0, (-1, heads)).transpose(0, 1)
        outs.append((weights @ v).transpose(0, 1).flatten(1))  # (T, H x Kv)
    if not outs:
        return query.new_zeros((0, value.shape[-1]))
    return torch.cat(outs)


def _takes_pairs(query: Tensor, key: Tensor, value: Tensor, heads: int) -> bool:
    """True if there is a bf16 kernel, which takes numbers in pairs, and these widths fit it."""
    if query.dtype != torch.bfloat16 or loader.function("attention_pairs_forward_bf16") is None:
        return False
    widths = (query.shape[-1] // heads, value.shape[-1] // heads)
    strides = (tensor.stride(0) for tensor in (query, key, value))
    return all(number % 2 == 0 for number in (*widths, *strides))


def _rows(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _views(tensors: Sequence[Tensor], widths: tuple[int, int, int]) -> list[Tensor]:
    """Queries, keys and values as views of one, two or three tensors."""
    if len(tensors) == 1:
        return list(tensors[0].split(widths, dim=-1))
    if len(tensors) == 2:
        return [tensors[0], *tensors[1].split(widths[1:], dim=-1)]
    return list(tensors)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query_offsets: Tensor,
        key_offsets: Tensor,
        widths: tuple[int, int, int],
        choices: tuple[int, bool, float, Drop],
        *tensors: Tensor,
    ) -> Tensor:
        tensors = tuple(_rows(tensor) for tensor in tensors)
        query, key, value = _views(tensors, widths)
        heads, causal, scale, drop = choices
        rate, seed, row_keys = drop.for_kernel(len(query))
        out = torch.empty((query.shape[0], widths[2]), dtype=query.dtype)
        keep = any(ctx.needs_input_grad)
        pairs = _takes_pairs(query, key, value, heads)
        # What the backward pass needs to make the weights again, per row and head.
        sums = torch.empty(query.shape[0] * heads * (1 + pairs)) if keep else None
        at = Attention(
            address(query_offsets),
            address(key_offsets),
            row_keys,
            len(query_offsets) - 1,
            heads,
            widths[0] // heads,
            widths[2] // heads,
            query.stride(0),
            key.stride(0),
            value.stride(0),
            out.stride(0),
            int(causal),
            scale,
            rate,
            seed,
        )
        kind = "attention_pairs" if pairs else "attention"
        kernel = loader.kernel(f"{kind}_forward_{SUFFIXES[query.dtype]}")
        kernel(ctypes.byref(at), *map(address, (query, key, value, out, sums)))
        if sums is not None:
            ctx.save_for_backward(query_offsets, key_offsets, sums, *tensors)
            ctx.at, ctx.widths, ctx.kind = at, widths, kind
            ctx.row_keys = drop.row_keys  # lives as long as its address
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        _, _, sums, *tensors = ctx.saved_tensors
        query, key, value = _views(tuple(tensors), ctx.widths)
        at: Attention = ctx.at
        grad = grads[0].to(query.dtype)
        if grad.stride(-1) != 1 or grad.stride(0) != at.out_row:
            grad = grad.contiguous()
        slopes = tuple(torch.empty_like(tensor) for tensor in tensors)
        dquery, dkey, dvalue = _views(slopes, ctx.widths)
        kernel = loader.kernel(f"{ctx.kind}_backward_{SUFFIXES[query.dtype]}")
        kernel(
            ctypes.byref(at),
            *map(address, (query, key, value, sums, grad)),
            *(place for t in (dquery, dkey, dvalue) for place in (address(t), t.stride(0))),
        )
        return (None, None, None, None, *slopes)


def look_supported() -> bool:
    """True if this machine has the kernel of ``look``."""
    return loader.function("look") is not None


def look(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    allowed: Tensor,
    counts: Sequence[int],
    *,
    scale: float = 1.0,
    energy: Tensor | None = None,
    factors: Tensor | None = None,
) -> Tensor:
    """The rows of a search look at their sources with one head, in one pass (``src/look.cpp``).

    What rows (N, K) fp32 find in keys (B, S, K) and values (B, S, Kv), where ``allowed`` (B, S):
    (N, Kv); 0 where nothing is.

    ``counts``: the number of rows of each source, in order. Scores are scale q · k, or
    energy · tanh(q + k) where there is an ``energy`` (K,). ``factors`` (B,) multiply what is found.
    """
    kernel = loader.kernel("look")
    query, keys, values, allowed = (
        tensor.contiguous() for tensor in (query.float(), keys.float(), values.float(), allowed)
    )
    energy = None if energy is None else energy.detach().float().contiguous()
    factors = None if factors is None else factors.float().contiguous()
    places = torch.tensor(counts, dtype=torch.int64)
    batch, source, width = keys.shape
    out = query.new_empty(len(query), values.shape[2])
    tensors = (query, keys, values, allowed, places, energy, factors, out)
    kernel(*map(address, tensors), batch, source, width, values.shape[2], scale)
    return out
