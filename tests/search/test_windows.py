"""Texts scored window by window: the same whatever is cut and put together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from implementations import TARGET, decoder
from torch import Tensor

from dragoman.models.interface import Memory
from dragoman.nn.layout import Layout, Sequences
from dragoman.search.forced_decoding import score_windows, whole

BOS, EOS = 1, 2
NOTHING = torch.tensor([EOS])


def texts(*lengths: int) -> list[list[int]]:
    random = np.random.default_rng(1)
    return [random.integers(3, TARGET, length).tolist() for length in lengths]


def plain(model: object, whole: list[int], begin: int, end: int) -> list[float]:
    """log P of places ``begin`` to ``end`` of BOS … EOS, token by token from ``begin``."""
    state = model.start(model.encode(Sequences.of([NOTHING])))  # type: ignore[attr-defined]
    found = []
    for read, wanted in zip(whole[begin:end], whole[begin + 1 :], strict=False):
        logits = model.step(torch.tensor([[read]]), state)[0]  # type: ignore[attr-defined]
        found.append(float(torch.log_softmax(logits, 0)[wanted]))
    return found


@pytest.mark.usefixtures("in_fp64")
@pytest.mark.parametrize("budget", [1, 17, 10_000])
def test_a_long_text_equals_a_plain_loop_over_its_windows(budget: int) -> None:
    model, some = decoder(), texts(23, 0, 5, 40, 8)
    for context, stride in ((100, 50), (8, 8), (8, 3), (8, 1)):
        found = list(
            whole(
                score_windows(
                    model, some, source=NOTHING, bos=BOS, eos=EOS,
                    context=context, stride=stride, tokens_per_batch=budget,
                )
            )
        )  # fmt: skip
        assert [len(one) for one in found] == [len(text) + 1 for text in some]
        for text, one in zip(some, found, strict=True):
            tokens = [BOS, *text, EOS]
            expected = plain(model, tokens, 0, context)
            while len(expected) < len(text) + 1:
                begin = len(expected) - (context - stride)
                expected += plain(model, tokens, begin, begin + context)[context - stride :]
            assert one == pytest.approx(expected, rel=1e-6), (context, stride)


class Uniform:
    """Knows nothing."""

    def encode(self, source: Sequences) -> Memory:
        return Memory(torch.zeros(0, 1), Layout([0] * source.layout.batch))

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        return torch.zeros(target_in.layout.total, 1)

    def project(self, hidden: Tensor) -> Tensor:
        return hidden.new_zeros(len(hidden), TARGET)


def test_who_knows_nothing_needs_log2_v_bits_a_token() -> None:
    (found,) = whole(
        score_windows(Uniform(), texts(30), source=NOTHING, bos=BOS, eos=EOS, context=7, stride=2)
    )
    assert [-one / math.log(2) for one in found] == pytest.approx([math.log2(TARGET)] * 31)


def test_texts_are_read_as_their_scores_are_taken() -> None:
    """However many there are, no more of them are held than are scored together."""
    read = 0

    def endless() -> Iterator[list[int]]:
        nonlocal read
        while read < 10_000:
            read += 1
            yield [3] * 20

    scored = whole(
        score_windows(
            Uniform(), endless(), source=NOTHING, bos=BOS, eos=EOS,
            context=8, stride=4, tokens_per_batch=64,
        )
    )  # fmt: skip
    assert [len(next(scored)) for _ in range(5)] == [21] * 5 and read < 10
