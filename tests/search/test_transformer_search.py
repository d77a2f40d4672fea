"""Search over a real (random, tiny) Transformer: cached and batched as without cache and alone."""

from __future__ import annotations

import pytest
import torch
from searching import assert_force_decoding_agrees, search
from table_model import BOS, EOS, same

from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.model import Transformer
from dragoman.nn.settings import AttentionSettings
from dragoman.search.request import Request
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.search.textbook import textbook


@pytest.fixture(params=["post", "pre"])
def model(request: pytest.FixtureRequest) -> Transformer:
    torch.manual_seed(3)
    settings = TransformerSettings(
        model_dim=16,
        ffn_dim=24,
        encoder_layers=2,
        decoder_layers=2,
        attention=AttentionSettings(num_heads=2),
        norm=request.param,
        tie="target",
    )
    made = Transformer(settings, 13, 11)
    for parameter in made.parameters():
        # Far from the even distribution with which training begins.
        torch.nn.init.normal_(parameter, std=0.5)
    return made.eval()


def asked(count: int) -> list[Request]:
    generator = torch.Generator().manual_seed(1)
    requests = []
    for i in range(count):
        source = torch.randint(3, 13, (1 + i * 5 % 9,), generator=generator)
        settings = SearchSettings(
            beam=1 + i % 4,
            n_best=1 + i % (1 + i % 4),
            max_length=4 + i % 9,
            no_repeat_ngram=(0, 2)[i % 2],
        )
        requests.append(Request(torch.cat([source, torch.tensor([EOS])]), settings, (5,) * (i % 3)))
    return requests


@pytest.mark.parametrize("rows", [3, 64])
def test_as_in_the_textbook(model: Transformer, rows: int) -> None:
    requests = asked(14)
    found = search(model, requests, bos=BOS, eos=EOS, capacity_rows=rows)
    for request, hypotheses in zip(requests, found, strict=True):
        assert same(hypotheses, textbook(model, request, bos=BOS, eos=EOS), within=1e-4)


def test_force_decoding_agrees(model: Transformer) -> None:
    assert_force_decoding_agrees(model, asked(8), bos=BOS, eos=EOS)


def test_samples_do_not_depend_on_the_batch(model: Transformer) -> None:
    settings = SearchSettings(n_best=3, max_length=6, sampling=SamplingSettings(seed=2, top_k=5))
    request = Request(torch.tensor([5, 9, EOS]), settings)
    ((alone),) = search(model, [request], bos=BOS, eos=EOS)
    *_, together = search(model, [*asked(9), request], bos=BOS, eos=EOS, capacity_rows=20)
    assert same(together, alone, within=1e-4)
