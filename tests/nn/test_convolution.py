"""Convolutions of packed rows: those of ``torch.nn.Conv1d`` over each sequence by itself."""

from __future__ import annotations

import math
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from dragoman.nn.convolution import ConvolutionWindows, NormedLinear, unfold
from dragoman.nn.layout import Layout
from dragoman.nn.linear import Precision, kernels_fit, use_precision

pytestmark = pytest.mark.usefixtures("in_fp64")

LENGTHS = [3, 7, 1, 4]
ROWS, WIDTH = sum(LENGTHS), 6


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_a_block_is_a_gated_convolution_of_torch(kernel: int, causal: bool) -> None:
    """Weight norm, convolution and gated linear unit, and the gradients of all."""
    layer = NormedLinear(kernel * WIDTH, 8, std=0.3)
    with torch.no_grad():
        layer.bias.normal_()
        layer.length.mul_(1.5)
    theirs = weight_norm(nn.Conv1d(WIDTH, 8, kernel))
    with torch.no_grad():
        theirs.bias.copy_(layer.bias)  # type: ignore[union-attr, arg-type]
        of_weight = theirs.parametrizations.weight
        of_weight.original0.copy_(layer.length[:, None, None])
        of_weight.original1.copy_(layer.direction.unflatten(1, (kernel, WIDTH)).transpose(1, 2))
    layout, x = Layout(LENGTHS), torch.randn(ROWS, WIDTH).requires_grad_()
    windows = (ConvolutionWindows.behind if causal else ConvolutionWindows.around)(layout, kernel)
    found = F.glu(layer(unfold(x, windows)), dim=-1)
    before = kernel - 1 if causal else kernel // 2
    outs = [
        F.glu(theirs(F.pad(part.t(), (before, kernel - 1 - before)))[None], dim=1)[0].t()
        for part in x.split(LENGTHS)
    ]
    expected = torch.cat(outs)
    assert float((found - expected).detach().abs().max()) < 1e-9
    weights = torch.randn_like(found)
    ours = [x, layer.bias, layer.length, layer.direction]
    others = [x, theirs.bias, of_weight.original0, of_weight.original1]
    pairs = zip(
        torch.autograd.grad((found * weights).sum(), ours),
        torch.autograd.grad((expected * weights).sum(), others),
        strict=True,
    )
    for number, (one, other) in enumerate(pairs):
        if number == 3:
            other = other.transpose(1, 2)
        assert float((one.flatten() - other.flatten()).abs().max()) < 1e-9


def test_weights_begin_as_they_were_drawn() -> None:
    layer = NormedLinear(300, 200, std=math.sqrt(4 * 0.8 / 300))
    torch.testing.assert_close(layer.weight, layer.direction)
    assert float(layer.weight.detach().std()) == pytest.approx(math.sqrt(4 * 0.8 / 300), rel=0.02)
    assert not bool(layer.bias.any())


@pytest.mark.parametrize("by_kernels", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_kernels_and_low_precision_follow(precision: Precision, by_kernels: bool) -> None:
    torch.set_default_dtype(torch.float32)
    layer, x = NormedLinear(32, 16, std=0.3), torch.randn(20, 32).requires_grad_()
    if by_kernels and not kernels_fit(layer, precision):
        pytest.skip("no native kernels on this machine")
    weights, plain = torch.randn(20, 16), deepcopy(layer)

    def gradient(of: NormedLinear) -> list[Tensor]:
        out = of(x)
        slopes = torch.autograd.grad((out * weights).sum(), [x, *of.parameters()])
        return [one.detach().double().flatten() for one in (out, *slopes)]

    use_precision(layer, precision, by_kernels=by_kernels)
    for _ in range(2):
        for found, expected in zip(gradient(layer), gradient(plain), strict=True):
            alike = torch.cosine_similarity(found, expected, dim=0)
            assert alike > (0.9999999 if precision == "fp32" else 0.999)
        with torch.no_grad():
            for parameter in (*layer.parameters(), *plain.parameters()):
                parameter.mul_(-1.5)
