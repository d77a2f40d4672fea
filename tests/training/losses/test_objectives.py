"""What training minimises, beside the plain formulas."""

from __future__ import annotations

import pytest
import torch
from implementations import transformer
from torch.nn import functional as F

from dragoman.nn.linear import kernels_fit, use_precision
from dragoman.training.losses.objectives import cross_entropy_of


@pytest.mark.parametrize("by_kernels", [False, True])
def test_the_loss_has_the_output_bias(by_kernels: bool) -> None:
    torch.manual_seed(1)
    model = transformer(model_dim=64, ffn_dim=128, output_bias=True).requires_grad_()
    if by_kernels and not kernels_fit(model, "fp32"):
        pytest.skip("no native kernels on this machine")
    use_precision(model, "fp32", by_kernels)
    hidden, targets = torch.randn(9, 64, requires_grad=True), torch.randint(0, 40, (9,))
    loss, nll = cross_entropy_of(model, 0.1)(hidden, targets)
    loss.backward()
    bias, weight = model.output_bias, model.source_embedding.weight
    assert bias is not None and bias.grad is not None and hidden.grad is not None
    found = [grad.clone() for grad in (bias.grad, hidden.grad)]
    logits = F.linear(hidden, weight, bias)
    expected = F.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum")
    grads = torch.autograd.grad(expected, (bias, hidden))
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    plain = F.cross_entropy(logits, targets, reduction="sum")
    assert nll.item() == pytest.approx(plain.item(), rel=1e-5)
    torch.testing.assert_close(found, list(grads), rtol=1e-4, atol=1e-5)
