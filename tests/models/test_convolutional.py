"""The convolutional model beside one written down over padded grids, with torch's Conv1d."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from implementations import SOURCE, TARGET, convolutional
from model_gradient import logits_and_gradient
from pydantic import ValidationError
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from dragoman.base.errors import SearchError
from dragoman.models.convolutional import Convolutional
from dragoman.models.settings import ConvolutionalSettings
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import Precision, kernels_fit, use_precision
from dragoman.nn.probes import Probe

pytestmark = pytest.mark.usefixtures("in_fp64")

HALF = math.sqrt(0.5)
NEAR = {"atol": 0.02, "rtol": 0.02}
CHOICES: dict[str, dict[str, Any]] = {
    "four and three": {},
    "windows of five": {"kernel_width": 5, "tie": "target", "encoder_layers": 2},
}


def sequences(vocabulary: int, *lengths: int) -> Sequences:
    return Sequences.of([torch.randint(3, vocabulary, (length,)) for length in lengths])


def written_down(model: Convolutional, sources: list[Tensor], targets: list[Tensor]) -> Tensor:
    """Sentences (S_i,), (T_i,) -> (P, D), what the output layer reads; inside, all are padded."""
    settings, weights = model.settings, dict(model.named_parameters())
    kernel = settings.kernel_width

    def normed(name: str) -> tuple[Tensor, Tensor]:
        v, g = weights[f"{name}.direction"], weights[f"{name}.length"]
        return F.normalize(v, dim=1) * g[:, None], weights[f"{name}.bias"]

    def linear(name: str, x: Tensor) -> Tensor:
        return F.linear(x, *normed(name))

    def convolved(name: str, x: Tensor, before: int) -> Tensor:
        weight, bias = normed(f"{name}.convolution")
        weight = weight.unflatten(1, (kernel, -1)).transpose(1, 2)
        padded = F.pad(x.transpose(1, 2), (before, kernel - 1 - before))
        return F.glu(F.conv1d(padded, weight, bias), dim=1).transpose(1, 2)

    def padded(sequences: list[Tensor]) -> tuple[Tensor, Tensor]:
        grid = pad_sequence(sequences, batch_first=True, padding_value=-1)
        return grid.clamp(min=0), grid >= 0

    source, is_source = padded(sources)
    target, is_target = padded(targets)
    words = weights["source_embedding.weight"]
    e = words[source] + weights["source_positions.table"][: source.shape[1]]
    x = linear("encoder_in", e)
    for number in range(settings.encoder_layers):
        x = x * is_source[..., None]  # what stands behind an end is nothing
        x = (convolved(f"encoder.{number}", x, kernel // 2) + x) * HALF
    z = linear("encoder_out", x)
    lengths = is_source.sum(dim=1)[:, None, None]
    words = weights.get("target_embedding.weight", words)
    g = words[target] + weights["target_positions.table"][: target.shape[1]]
    x = linear("decoder_in", g)
    for number in range(settings.decoder_layers):
        v = convolved(f"decoder.{number}.block", x, kernel - 1)
        query = (linear(f"decoder.{number}.query", v) + g) * HALF
        scores = (query @ z.mT).masked_fill(~is_source[:, None], -math.inf)
        found = scores.softmax(-1) @ ((z + e) * HALF) * lengths * (1 / lengths).sqrt()
        x = ((linear(f"decoder.{number}.found", found) + v) * HALF + x) * HALF
    return linear("decoder_out", x)[is_target]


@pytest.mark.parametrize("choice", CHOICES)
def test_it_computes_what_is_written_down(choice: str) -> None:
    """Rows, and gradients: those of the encoder's layers are divided by the attentions (§3.4)."""
    model = convolutional(**CHOICES[choice]).requires_grad_(True)
    source, target = sequences(SOURCE, 5, 1, 7), sequences(TARGET, 4, 6, 2)
    found = model.decode(target, model.encode(source))
    expected = written_down(
        model,
        list(source.values.split(list(source.layout.lengths))),
        list(target.values.split(list(target.layout.lengths))),
    )
    assert float((found - expected).detach().abs().max()) < 1e-9
    weights = torch.randn_like(found)
    for name in ("encoder_out.bias", "encoder.0.convolution.direction", "decoder.0.found.length"):
        (ours,), (whole,) = (
            torch.autograd.grad(
                (one * weights).sum(), [model.get_parameter(name)], retain_graph=True
            )
            for one in (found, expected)
        )
        share = 1 / model.settings.decoder_layers if name.startswith("encoder") else 1
        torch.testing.assert_close(ours, whole * share, atol=1e-9, rtol=0)


@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.999999), ("bf16", 0.99)])
def test_native_kernels_follow_plain_torch(precision: Precision, least: float) -> None:
    torch.set_default_dtype(torch.float32)
    model = convolutional(model_dim=32, channels=32, tie="none").requires_grad_(True)
    if not kernels_fit(model, precision):
        pytest.skip("no native kernels on this machine")
    source, target = sequences(SOURCE, 9, 1, 7), sequences(TARGET, 8, 3, 9)
    of = model, source, target, torch.randn(20, TARGET)
    exact = logits_and_gradient(*of)
    use_precision(model, precision, by_kernels=True)
    for found, expected in zip(logits_and_gradient(*of), exact, strict=True):
        assert torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0) > least
    with Probe() as probe, torch.no_grad():
        hidden = model.decode(target, model.encode(source))
        some = model.project(hidden, torch.tensor([3, 1]))
    torch.testing.assert_close(some.float(), model.project(hidden)[:, [3, 1]].float(), **NEAR)
    assert len(probe.attention) == 3
    use_precision(model, "bf16")
    for found, expected in zip(logits_and_gradient(*of), exact, strict=True):
        assert torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0) > 0.99


def test_an_output_keeps_the_variance_of_its_input() -> None:
    """What §3.5 is for: at the beginning no layer makes its rows larger or smaller."""
    torch.set_default_dtype(torch.float32)
    settings = ConvolutionalSettings(encoder_layers=8, decoder_layers=1, dropout=0.0)
    model = Convolutional(settings, 1000, 1000).eval()
    with torch.no_grad():
        embedded = model._embed(torch.randint(1000, (64,)), torch.arange(64), "source")
        keys, _ = model.encode(sequences(1000, 64)).rows.chunk(2, dim=-1)
    assert 0.2 < float(keys.var() / embedded.var()) < 5


def test_an_output_of_its_own_begins_with_logits_of_its_rows_variance() -> None:
    """§3.5: weights of N(0, √(1/n)), and as dropout scales the rows up, times the share kept."""
    torch.set_default_dtype(torch.float32)
    settings = ConvolutionalSettings(
        model_dim=256, encoder_layers=1, decoder_layers=1, dropout=0.5, tie="none"
    )
    output = Convolutional(settings, 100, 1000).output
    assert output is not None
    assert float(output.weight.detach().std()) == pytest.approx(math.sqrt(0.5 / 256), rel=0.02)


@pytest.mark.parametrize("side", ["source", "target"])
def test_positions_of_the_source_are_switched_off_for_the_length_of_a_probe(side: str) -> None:
    model, tokens = convolutional(), torch.tensor([5, 5])
    places = torch.arange(2)
    with torch.no_grad(), Probe(positions_off=True):
        first, second = model._embed(tokens, places, side)  # type: ignore[arg-type]
    assert torch.equal(first, second) is (side == "source"), "the order of what is written stays"


def test_a_position_beyond_the_last_is_refused_in_words() -> None:
    model = convolutional(positions=8)
    with pytest.raises(SearchError, match=r"position 9 is beyond .* 8 positions"):
        model.encode(sequences(SOURCE, 9))


def test_an_even_window_is_refused() -> None:
    with pytest.raises(ValidationError, match="kernel_width 4 must be odd"):
        ConvolutionalSettings(kernel_width=4)
