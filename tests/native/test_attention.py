"""Attention over packed rows, against the formula in double precision."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from native_levels import is_close, leaves, level, pull
from torch import Tensor

from dragoman.native import attention
from dragoman.native.dropout import Drop, factors

__all__ = ["level"]

TYPES = [torch.float32, torch.bfloat16]


def offsets(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32)


def formula(
    q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool, mask: Tensor | None
) -> Tensor:
    """One head of one sentence, equation 1: (T, K), (S, K), (S, Kv) -> (T, Kv)."""
    scores = q @ k.t() * scale
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf)
    weights = torch.softmax(scores, -1)
    return (weights if mask is None else weights * mask) @ v


def reference(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_lengths: list[int],
    key_lengths: list[int],
    heads: int,
    *,
    causal: bool,
    rate: float,
    seed: int,
    row_keys: Tensor | None = None,
) -> Tensor:
    sentences = []
    first = 0
    for q, k, v in zip(
        query.split(query_lengths), key.split(key_lengths), value.split(key_lengths), strict=True
    ):
        parts = zip(q.chunk(heads, -1), k.chunk(heads, -1), v.chunk(heads, -1), strict=True)
        outs = []
        for head, (a, b, c) in enumerate(parts):
            mask = None
            if row_keys is not None and rate:
                rows = row_keys[first : first + len(q)].long() * heads + head
                mask = factors(rows, len(k), rate, seed, torch.float64)
            outs.append(formula(a, b, c, a.shape[-1] ** -0.5, causal, mask))
        sentences.append(torch.cat(outs, -1))
        first += len(q)
    return torch.cat(sentences)


CASES = [
    # query lengths, key lengths, heads, key width, value width, causal, dropout
    ([3, 1, 17], [5, 2, 40], 2, 8, 8, False, 0.0),
    ([3, 1, 17], [3, 1, 17], 4, 32, 32, True, 0.1),
    ([70, 7], [70, 7], 3, 5, 9, True, 0.3),
    ([1], [1], 1, 64, 64, True, 0.0),
    ([20, 0, 4], [33, 3, 1], 2, 32, 48, False, 0.2),
    ([130, 2], [260, 5], 2, 16, 16, False, 0.1),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("ql", "kl", "heads", "k", "v", "causal", "rate"), CASES)
def test_equals_the_formula(
    ql: list[int],
    kl: list[int],
    heads: int,
    k: int,
    v: int,
    causal: bool,
    rate: float,
    dtype: torch.dtype,
    level: str,
) -> None:
    torch.manual_seed(0)
    widths = (heads * k, heads * k, heads * v)
    rows = (sum(ql), sum(kl), sum(kl))
    tensors = [torch.randn(r, w).to(dtype) for r, w in zip(rows, widths, strict=True)]
    theirs = leaves(*tensors, dtype=torch.float64)
    row_keys = torch.randint(-(2**31), 2**31 - 1, (sum(ql),), dtype=torch.int32)
    wanted = reference(*theirs, ql, kl, heads, causal=causal, rate=rate, seed=77, row_keys=row_keys)
    ours = leaves(*tensors)
    out = attention.attention(
        ours,
        offsets(ql),
        offsets(kl),
        heads=heads,
        scale=k**-0.5,
        causal=causal,
        drop=Drop(rate, 77, row_keys),
    )
    pull(out, wanted)
    assert out.dtype == dtype and is_close(out, wanted, dtype)
    for a, b in zip(ours, theirs, strict=True):
        if ql != [1]:  # one key: no choice, and gradients of queries and keys are rounding
            assert is_close(a.grad, b.grad, dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_joint_tensors_give_the_same_as_three(dtype: torch.dtype, level: str) -> None:
    lengths, others = [4, 9], [3, 12]
    here, there = offsets(lengths), offsets(others)
    (joint,) = leaves(torch.randn(13, 2 * 16 + 24), dtype=dtype)
    parts = leaves(*joint.split((16, 16, 24), -1))
    told: dict[str, Any] = {"heads": 4, "scale": 0.5}
    one = attention.attention([joint], here, here, key_width=4, causal=True, **told)
    three = attention.attention(parts, here, here, causal=True, **told)
    assert torch.equal(one, three)
    one.float().square().sum().backward()
    three.float().square().sum().backward()
    assert joint.grad is not None
    assert torch.equal(joint.grad, torch.cat([p.grad for p in parts if p.grad is not None], -1))

    query, memory = leaves(torch.randn(13, 16), torch.randn(15, 16 + 24), dtype=dtype)
    key, value = leaves(*memory.split((16, 24), -1))
    two = attention.attention([query, memory], here, there, **told)
    assert torch.equal(two, attention.attention([query, key, value], here, there, **told))


def test_a_long_sentence_among_short_ones(level: str) -> None:
    lengths = [3, 2000, 1]
    tensors = leaves(*(torch.randn(2004, 16) for _ in range(3)))
    theirs = leaves(*tensors, dtype=torch.float64)
    place = offsets(lengths)
    out = attention.attention(tensors, place, place, heads=1, scale=0.25, causal=True)
    wanted = reference(*theirs, lengths, lengths, 1, causal=True, rate=0.0, seed=0)
    pull(out, wanted)
    assert is_close(out, wanted, torch.float32)
    assert all(
        is_close(a.grad, b.grad, torch.float32) for a, b in zip(tensors, theirs, strict=True)
    )


def test_an_empty_batch_and_a_sentence_without_keys(level: str) -> None:
    nothing = torch.zeros(0, 8)
    told: dict[str, Any] = {"heads": 2, "scale": 0.5}
    out = attention.attention([nothing] * 3, offsets([]), offsets([]), **told)
    assert out.shape == (0, 8)
    query, key = torch.randn(3, 8), torch.randn(2, 8)
    out = attention.attention([query, key, key], offsets([1, 2]), offsets([0, 2]), **told)
    assert torch.equal(out[0], torch.zeros(8)) and out[1:].abs().sum() > 0


def test_sentences_do_not_see_each_other(level: str) -> None:
    torch.manual_seed(3)
    q, k, v = (torch.randn(12, 8) for _ in range(3))
    told: dict[str, Any] = {"heads": 2, "scale": 0.5}
    together = attention.attention([q, k, v], offsets([5, 7]), offsets([5, 7]), **told)
    alone = attention.attention([q[:5], k[:5], v[:5]], offsets([5]), offsets([5]), **told)
    assert torch.equal(together[:5], alone)


def test_nothing_is_seen_ahead(level: str) -> None:
    torch.manual_seed(4)
    q, k, v = (torch.randn(40, 8) for _ in range(3))
    place = offsets([40])
    before = attention.attention([q, k, v], place, place, heads=2, scale=0.5, causal=True)
    k[30:], v[30:] = 100.0, 100.0
    after = attention.attention([q, k, v], place, place, heads=2, scale=0.5, causal=True)
    assert torch.equal(before[:30], after[:30]) and not torch.equal(before[30:], after[30:])


def test_large_scores_stay_finite(level: str) -> None:
    q = torch.full((4, 8), 300.0)
    k = torch.cat([torch.full((2, 8), 300.0), torch.full((2, 8), -300.0)])
    v, place = torch.arange(32.0).view(4, 8), offsets([4])
    out = attention.attention([q, k, v], place, place, heads=1, scale=8**-0.5)
    assert torch.allclose(out, torch.arange(8.0) + 4)
