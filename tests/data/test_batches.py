"""Packed batches: special symbols, layouts, halves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.batches import Batch, make_batch, make_sources

BOS, EOS = 1, 2
sentences = st.lists(st.lists(st.integers(3, 99), max_size=6), min_size=2, max_size=8)


def _batch(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    return make_batch(
        [np.array(s, np.int32) for s in sources], [np.array(t, np.int32) for t in targets], BOS, EOS
    )


def _unpack(values: torch.Tensor, lengths: tuple[int, ...]) -> list[list[int]]:
    return [part.tolist() for part in values.split(list(lengths))]


@given(sentences)
def test_special_symbols_stand_where_they_should(targets: list[list[int]]) -> None:
    sources = [target[::-1] for target in targets]
    batch = _batch(sources, targets)
    lengths = batch.target_in.layout.lengths
    assert _unpack(batch.source.values, batch.source.layout.lengths) == [[*s, EOS] for s in sources]
    assert _unpack(batch.target_in.values, lengths) == [[BOS, *t] for t in targets]
    assert _unpack(batch.target_out, lengths) == [[*t, EOS] for t in targets]
    assert batch.target_tokens == sum(len(t) + 1 for t in targets) == len(batch.target_out)
    assert batch.ids == tuple(range(len(targets)))
    assert torch.equal(
        make_sources([np.array(s, np.int32) for s in sources], EOS).values, batch.source.values
    )


@given(sentences)
def test_halves_hold_the_same_sentences(targets: list[list[int]]) -> None:
    batch = _batch([target[:2] for target in targets], targets)
    first, second = batch.split()
    assert len(first) > 0 and len(second) > 0
    assert first.ids + second.ids == batch.ids
    for name in ("source", "target_in"):
        whole, parts = getattr(batch, name), [getattr(half, name) for half in (first, second)]
        assert torch.equal(torch.cat([part.values for part in parts]), whole.values)
        assert parts[0].layout.lengths + parts[1].layout.lengths == whole.layout.lengths
    assert torch.equal(torch.cat([first.target_out, second.target_out]), batch.target_out)
    longest = batch.target_in.layout.longest
    assert abs(first.target_tokens - second.target_tokens) <= 2 * longest


def test_one_sentence_cannot_be_halved() -> None:
    with pytest.raises(ValueError, match="one example"):
        _batch([[5]], [[6]]).split()


def test_sides_must_agree() -> None:
    with pytest.raises(ValueError, match="1 sources but 2 targets"):
        _batch([[5]], [[6], [7]])


def test_to_keeps_everything() -> None:
    batch = _batch([[5], [6, 7]], [[8, 9], [3]])
    moved = batch.to("cpu")
    assert torch.equal(moved.target_out, batch.target_out) and moved.ids == batch.ids


def test_where_nothing_is_read_each_source_is_the_end_symbol() -> None:
    targets = [np.array(t, np.int32) for t in ([5, 6], [], [7])]
    batch = make_batch(None, targets, BOS, EOS)
    assert batch.source.values.tolist() == [EOS] * 3 and batch.source.layout.lengths == (1, 1, 1)
    assert batch.target_in.values.tolist() == [BOS, 5, 6, BOS, BOS, 7]
    assert batch.target_out.tolist() == [5, 6, EOS, EOS, 7, EOS]
    assert "3 examples" in batch.summary()
