"""The recurrent model beside one that is written down, sentence by sentence, with torch's cells."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from implementations import SOURCE, TARGET, recurrent
from model_gradient import logits_and_gradient
from pydantic import ValidationError
from torch import Tensor, nn

from dragoman.models.recurrent import Recurrent
from dragoman.models.settings import RecurrentSettings
from dragoman.native import additive
from dragoman.nn.dropout import drawing
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import Precision, kernels_fit, use_precision
from dragoman.nn.probes import Probe

pytestmark = pytest.mark.usefixtures("in_fp64")

CHOICES: dict[str, dict[str, Any]] = {
    "Luong": {},
    "Luong, dot, fed": {"attention": "dot", "input_feeding": True, "decoder_layers": 3},
    "additive": {"attention": "additive"},
    "GNMT": {"attends": "first", "attention": "additive", "decoder_layers": 3},
    "GNMT, fed": {"attends": "first", "attention": "additive", "input_feeding": True},
}


def sequences(vocabulary: int, *lengths: int) -> Sequences:
    return Sequences.of([torch.randint(3, vocabulary, (length,)) for length in lengths])


def written_down(model: Recurrent, source: Tensor, target: Tensor) -> Tensor:
    """(S,), (T,) of one sentence -> (T, D), what the output layer reads."""
    settings, width = model.settings, model.settings.model_dim
    weights = model.state_dict()

    def cell(name: str, inputs: int) -> nn.LSTMCell:
        found = nn.LSTMCell(inputs, width)
        of_input = [weights[f"{name}.weight_ih_l0"]]
        if f"{name}.context.weight" in weights:
            of_input.append(weights[f"{name}.context.weight"])
        found.load_state_dict(
            {
                "weight_ih": torch.cat(of_input, dim=1),
                "weight_hh": weights[f"{name}.weight_hh_l0"],
                "bias_ih": weights[f"{name}.bias_ih_l0"],
                "bias_hh": weights[f"{name}.bias_hh_l0"],
            }
        )
        return found

    x = weights["source_embedding.weight"][source] * width**0.5
    for number in range(settings.encoder_layers):
        both = number == 0
        layer = nn.LSTM(width, width // 2 if both else width, bidirectional=both)
        begins = f"encoder.{number}."
        of_layer = {n.removeprefix(begins): w for n, w in weights.items() if n.startswith(begins)}
        layer.load_state_dict(of_layer)
        out, _ = layer(x)
        x = out + x if number else out
    memory = x  # (S, D)

    def look(h: Tensor) -> Tensor:
        query = h if settings.attention == "dot" else weights["query.weight"] @ h
        if settings.attention == "additive":
            keys = memory @ weights["key.weight"].T + weights["key.bias"]
            scores = torch.tanh(keys + query) @ weights["energy.weight"][0]
        else:
            scores = memory @ query / width**0.5
        return scores.softmax(0) @ memory

    layers, fed = settings.decoder_layers, settings.input_feeding
    gnmt = settings.attends == "first"
    reads = [2 * width if (fed if n == 0 else gnmt) else width for n in range(layers)]
    cells = [cell(f"decoder.{n}", reads[n]) for n in range(layers)]
    first = weights["first.weight"] @ memory.mean(0) + weights["first.bias"]
    states = [(h, torch.zeros(width)) for h in first.tanh().split(width)]
    found, outs = torch.zeros(width), []
    for token in target:
        x = weights["source_embedding.weight"][token] * width**0.5
        for n in range(layers):
            given = torch.cat([x, found]) if reads[n] > width else x
            states[n] = h, _ = cells[n](given, states[n])
            x = h + x if n else h
            if gnmt and n == 0:
                found = look(x)
        if not gnmt:
            both_of = torch.cat([look(x), x])
            x = found = torch.tanh(weights["combine.weight"] @ both_of + weights["combine.bias"])
        outs.append(x)
    return torch.stack(outs)


@pytest.mark.parametrize("choice", CHOICES)
def test_it_computes_what_is_written_down(choice: str) -> None:
    model = recurrent(**CHOICES[choice])
    source, target = sequences(SOURCE, 5, 1, 7), sequences(TARGET, 4, 6, 2)
    with torch.no_grad():
        found = model.decode(target, model.encode(source))
    pairs = zip(
        source.values.split(list(source.layout.lengths)),
        target.values.split(list(target.layout.lengths)),
        found.split(list(target.layout.lengths)),
        strict=True,
    )
    for one, other, rows in pairs:
        with torch.no_grad():
            expected = written_down(model, one, other)
        assert float((rows - expected).abs().max()) < 1e-9


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.999999), ("bf16", 0.995)])
def test_native_kernels_follow_plain_torch(choice: str, precision: Precision, least: float) -> None:
    torch.set_default_dtype(torch.float32)
    model = recurrent(model_dim=32, **CHOICES[choice]).requires_grad_(True)
    if not kernels_fit(model, precision):
        pytest.skip("no native kernels on this machine")
    source, target = sequences(SOURCE, 9, 1, 7), sequences(TARGET, 8, 3, 9)
    of = model, source, target, torch.randn(20, TARGET)
    exact = logits_and_gradient(*of)
    use_precision(model, precision, by_kernels=True)
    for found, expected in zip(logits_and_gradient(*of), exact, strict=True):
        assert torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0) > least
    with Probe() as probe, torch.no_grad():
        model.decode(target, model.encode(source))
    assert len(probe.attention) == 1
    use_precision(model, "bf16")
    for found, expected in zip(logits_and_gradient(*of), exact, strict=True):
        assert torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0) > 0.995


@pytest.mark.parametrize("choice", ["additive", "GNMT, fed"])
def test_an_additive_attention_in_parts_is_the_whole(
    choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = recurrent(**CHOICES[choice]).requires_grad_(True)
    source, target = sequences(SOURCE, 5, 7), sequences(TARGET, 6, 3)

    def gradient() -> Tensor:
        model.zero_grad()
        model.decode(target, model.encode(source)).square().sum().backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    whole = gradient()
    monkeypatch.setattr(additive, "CELLS", 1)
    torch.testing.assert_close(gradient(), whole, atol=1e-12, rtol=0)


@pytest.mark.parametrize("fed", [False, True])
def test_variational_dropout_draws_one_mask_a_sentence(fed: bool) -> None:
    """What is left out at one token is left out at all of them; plain dropout is not so."""

    def left_out(kind: str) -> list[Tensor]:
        model = recurrent(dropout=0.5, dropout_kind=kind, input_feeding=fed).train()
        source, target = sequences(SOURCE, 5, 3), sequences(TARGET, 6, 7)
        with drawing(3), torch.no_grad():
            rows = model.decode(target, model.encode(source))
        return [one == 0 for one in rows.split([6, 7])]

    one, other = left_out("variational")
    assert not torch.equal(one[0], other[0])
    for sentence in (one, other):
        assert bool((sentence == sentence[0]).all())
        assert 0 < int(sentence[0].sum()) < len(sentence[0])
    assert not any(bool((sentence == sentence[0]).all()) for sentence in left_out("plain"))


def test_gnmt_of_one_layer_is_refused() -> None:
    with pytest.raises(ValidationError, match="decoder_layers = 2"):
        RecurrentSettings(attends="first", decoder_layers=1)
