"""The prepared path equals the plain one to within rounding, however rows come, go and move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from random_transformer import distance, random_sources, random_transformer
from searching import search

from dragoman.models.catalogue.fastest import Path, beside_ctc
from dragoman.models.interface import Memory
from dragoman.models.on_torch import OnTorch
from dragoman.models.prepared import COLUMNS, best_of
from dragoman.models.searched import Floats32
from dragoman.models.transformer.cpu import PreparedTransformer
from dragoman.nn import linear as nn_linear
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import InferenceLinear, Linear, has_onednn, round_up
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings

BOS, EOS = 1, 2

SHAPES: dict[str, dict[str, Any]] = {
    "even": {"model_dim": 64, "ffn_dim": 128, "attention": {"num_heads": 8}},
    "pre-norm": {"norm": "pre"},
    "odd width": {"model_dim": 33, "ffn_dim": 67, "attention": {"num_heads": 3}},
    "one head, free widths": {"attention": {"num_heads": 1, "key_width": 5, "value_width": 19}},
    "unscaled, sliced": {"attention": {"num_heads": 4, "scaled": False, "whole_input": False}},
    "untied": {"tie": "none", "decoder_layers": 3},
    "target tied": {"tie": "target", "positions": {"kind": "learned"}},
    "normalised positions": {"positions": {"kind": "normalised"}, "encoder_layers": 1},
    "positions beside": {"tie": "none", "positions": {"combine": "concatenate", "width": 8}},
    "unknown hidden": {"attend_unknown": False, "norm": "pre"},
}


@pytest.mark.parametrize("name", SHAPES)
@torch.no_grad()
def test_a_search_that_does_everything(name: str) -> None:
    """Steps of one token and of several, rows that move, double, go and come: as the plain one."""
    model = random_transformer(**SHAPES[name])
    fast = PreparedTransformer(model, torch.float32)
    generator = torch.Generator().manual_seed(1)
    source, more = (
        Sequences.of(random_sources((7, 1, 23, 4, 11))),
        Sequences.of(random_sources((31, 2), seed=3)),
    )
    memories = [(m.encode(source), m.encode(more)) for m in (model, fast)]
    for plain_memory, fast_memory in zip(*memories, strict=True):
        assert distance(fast_memory.rows, plain_memory.rows) < 1e-5
    states = [model.start(memories[0][0]), fast.start(memories[1][0])]

    def same(new: int) -> None:
        tokens = torch.randint(0, 50, (len(states[0].lengths), new), generator=generator)
        expected, found = model.step(tokens, states[0]), fast.step(tokens, states[1])
        assert distance(found, expected) < 1e-5
        assert torch.equal(states[0].lengths, states[1].lengths)

    def select(*rows: int) -> None:
        for state in states:
            state.select(torch.tensor(rows))

    same(1)
    same(3)
    select(0, 0, 0, 1, 2, 2, 3, 4)  # some rows twice
    same(1)
    select(1, 0, 2, 4, 5, 5, 7, 7)  # within sources, one of which goes
    same(1)
    select(0, 1, 2, 4, 5, 6, 7)  # one goes
    same(2)
    for state, (_, memory) in zip(states, memories, strict=True):
        state.admit(memory)  # two come
    same(1)
    select(0, 1, 2, 6, 7, 8, 8, 8)
    for _ in range(40):  # past the first room for keys
        same(1)
    select(7)
    same(2)
    select(0, 0, 0)
    same(1)


@torch.no_grad()
def test_constraints_see_every_token() -> None:
    model = random_transformer(vocabulary=300)
    fast, source = (
        PreparedTransformer(model, torch.float32),
        Sequences.of(random_sources((4, 9), 300)),
    )

    def only(log_probabilities: Floats32) -> Floats32:
        assert log_probabilities.shape == (2, 300)
        out = np.full_like(log_probabilities, -np.inf)
        out[:, 77] = log_probabilities[:, 77]
        return out

    tokens = torch.full((2, 1), BOS)
    found = fast.best(tokens, fast.start(fast.encode(source)), 1, only)
    expected = model.best(tokens, model.start(model.encode(source)), 1, only)
    assert found[1].tolist() == [[77], [77]]
    torch.testing.assert_close(found[0], expected[0])


@pytest.mark.parametrize("beam", [1, 3])
def test_searches_are_the_same(beam: int) -> None:
    """Natural ends, a small batch that is refilled: every hypothesis as the plain model finds it,
    whatever stood beside it."""
    model = random_transformer(vocabulary=40)
    fast = PreparedTransformer(model, torch.float32)
    generator = torch.Generator().manual_seed(5)
    settings = SearchSettings(beam=beam, n_best=min(beam, 2), max_length=20)
    lengths = torch.randint(1, 30, (30,), generator=generator).tolist()
    requests = [Request(torch.randint(3, 40, (n,), generator=generator), settings) for n in lengths]
    expected = list(search(model, requests, bos=BOS, eos=EOS, capacity_rows=12))
    found = list(search(fast, requests, bos=BOS, eos=EOS, capacity_rows=12, workers=2))
    for ours, plain in zip(found, expected, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in plain]
        assert [h.score for h in ours] == pytest.approx([h.score for h in plain], abs=1e-4)


@torch.no_grad()
def test_bf16_is_as_near_as_bf16_is() -> None:
    model = random_transformer()
    fast, source = (
        PreparedTransformer(model, torch.bfloat16),
        Sequences.of(random_sources((7, 1, 23))),
    )
    memory = fast.encode(source)
    assert distance(memory.rows, model.encode(source).rows) < 0.03
    tokens = torch.randint(0, 50, (3, 4))
    expected = model.step(tokens, model.start(model.encode(source)))
    assert distance(fast.step(tokens, fast.start(memory)).float(), expected) < 0.03


@torch.no_grad()
def test_ctc_beside_a_decoder_hears_rows_of_low_precision() -> None:
    model = random_transformer()
    fast = PreparedTransformer(model, torch.bfloat16)
    head = Linear(model.settings.model_dim, 51)
    path = Path("bf16", "", OnTorch(fast), fast)
    heard = beside_ctc(path, head, 0.3, eos=EOS, device="cpu").searched
    scores, ids = heard.begin([np.array([4, 5, EOS])]).best(np.array([[BOS]]), 2)
    assert scores.shape == ids.shape == (1, 2) and np.isfinite(scores).all()


@torch.no_grad()
def test_a_source_of_which_nothing_may_be_seen() -> None:
    model = random_transformer(attend_unknown=False)
    fast = PreparedTransformer(model, torch.float32)
    source = Sequences.of([torch.zeros(3, dtype=torch.int64), torch.tensor([4, 0, 6])])
    plain, ours = model.encode(source), fast.encode(source)
    assert distance(ours.rows, plain.rows) < 1e-5
    tokens = torch.tensor([[0, 5], [0, 0]])
    expected = model.step(tokens, model.start(Memory(plain.rows, plain.layout, plain.key_mask)))
    assert distance(fast.step(tokens, fast.start(ours)), expected) < 1e-5


@pytest.mark.parametrize("k", [1, 4, 60])
def test_candidates_are_those_of_a_sort(k: int) -> None:
    generator = torch.Generator().manual_seed(k)
    logits = 5.0 * torch.randn(9, 4 * COLUMNS, generator=generator)
    expected = torch.log_softmax(logits, -1).topk(k)
    found = best_of(logits.clone(), k)
    torch.testing.assert_close(found[0], expected.values)
    assert torch.equal(found[1], expected.indices)
    far = best_of(logits - 1000.0, k)[0]
    torch.testing.assert_close(far, expected.values, atol=1e-3, rtol=0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("onednn", [True, False])
def test_it_is_linear(dtype: torch.dtype, onednn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if onednn and not has_onednn(dtype):
        pytest.skip("this torch has no packed linear maps for this type")
    if not onednn:
        monkeypatch.setattr(nn_linear, "has_onednn", lambda _: False)
    weight, bias, x = torch.randn(37, 21), torch.randn(37), torch.randn(5, 21)
    expected = x @ weight.t() + bias
    x = x.to(dtype)
    assert distance(InferenceLinear(weight, bias, dtype)(x).float(), expected) < 0.01
    for name, activation in nn_linear.ACTIVATIONS.items():
        found = InferenceLinear(weight, bias, dtype)(x, then=name).float()
        assert distance(found, activation(expected)) < 0.01
    assert distance(InferenceLinear(weight, None, dtype)(x).float(), expected - bias) < 0.01


def test_a_packed_linear_map_that_is_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_onednn(torch.float32):
        pytest.skip("this torch has no packed linear maps for this type")
    plain = nn_linear.F.linear
    monkeypatch.setattr(nn_linear.F, "linear", lambda *given: 1.05 * plain(*given))
    assert not has_onednn.__wrapped__(torch.float32)


def test_few_counts_of_rows() -> None:
    for rows in range(1, 3000):
        assert rows <= round_up(rows) <= rows * 9 / 8
    assert len({round_up(rows) for rows in range(1025, 2049)}) == 8
