"""What training minimises, beside the plain formulas."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from implementations import transformer
from torch.nn import functional as F

from dragoman.data.batches import Batch, make_batch
from dragoman.models.ensemble import Ensemble
from dragoman.models.interface import Memory
from dragoman.models.transformer.model import Transformer
from dragoman.native.pointers import add_directly
from dragoman.nn import dropout
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import kernels_fit, use_precision
from dragoman.training.losses.loss import PiecewiseCrossEntropy, SoftTargets
from dragoman.training.losses.objectives import (
    LIKELY,
    Consistent,
    Taught,
    cross_entropy_of,
    predict,
)


@pytest.mark.parametrize(("by_kernels", "directly"), [(False, False), (True, False), (True, True)])
def test_the_loss_has_the_output_bias(by_kernels: bool, directly: bool) -> None:
    torch.manual_seed(1)
    model = transformer(model_dim=64, ffn_dim=128, output_bias=True).requires_grad_()
    if by_kernels and not kernels_fit(model, "fp32"):
        pytest.skip("no native kernels on this machine")
    use_precision(model, "fp32", by_kernels)
    hidden, targets = torch.randn(9, 64, requires_grad=True), torch.randint(0, 40, (9,))
    if directly:  # as in training
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        add_directly(model.parameters())
    loss, nll = cross_entropy_of(model, 0.1)(hidden, targets)
    (2 * loss).backward()
    bias, weight = model.output_bias, model.source_embedding.weight
    assert bias is not None and bias.grad is not None and hidden.grad is not None
    assert weight.grad is not None
    found = [grad / 2 for grad in (bias.grad, hidden.grad, weight.grad)]
    logits = F.linear(hidden, weight, bias)
    expected = F.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum")
    grads = torch.autograd.grad(expected, (bias, hidden, weight))
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    plain = F.cross_entropy(logits, targets, reduction="sum")
    assert nll.item() == pytest.approx(plain.item(), rel=1e-5)
    torch.testing.assert_close(found, list(grads), rtol=1e-4, atol=1e-5)


def likeliest(soft: torch.Tensor, count: int) -> torch.Tensor:
    """Keep the ``count`` likeliest tokens of each row, and spread the rest over all tokens."""
    kept, tokens = soft.topk(count)
    rest = (1 - kept.sum(-1, keepdim=True)) / soft.shape[-1]
    return rest.expand_as(soft).scatter_add(-1, tokens, kept)


@pytest.mark.parametrize("likely", [None, 4])
@pytest.mark.parametrize(("smoothing", "weight"), [(0.1, 0.3), (0.0, 1.0), (0.2, 0.0)])
def test_soft_targets_have_their_share_of_the_loss(
    smoothing: float, weight: float, likely: int | None
) -> None:
    torch.manual_seed(2)
    rows, width, vocabulary = 7, 5, 11
    hidden = torch.randn(rows, width, dtype=torch.float64, requires_grad=True)
    output = torch.randn(vocabulary, width, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, vocabulary, (rows,))
    soft = torch.softmax(torch.randn(rows, vocabulary, dtype=torch.float64), dim=-1)
    given, tokens = soft, None
    if likely:
        kept, tokens = soft.topk(likely)
        given = kept.float()
        soft = likeliest(soft, likely)
    logits = hidden @ output.T
    right = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    expected = (1 - weight) * right + weight * F.cross_entropy(logits, soft, reduction="sum")
    gradients = torch.autograd.grad(expected, (hidden, output))

    pieces = PiecewiseCrossEntropy(
        lambda rows: rows @ output.T, [output], smoothing, logits_at_once=3 * vocabulary
    )

    def of_rows(first: int, last: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        return given[first:last], None if tokens is None else tokens[first:last]

    loss, nll = pieces(hidden, targets, SoftTargets(weight, of_rows))
    loss.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    plain = F.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(nll, plain, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close((hidden.grad, output.grad), gradients, rtol=1e-5, atol=1e-5)


def test_a_student_learns_the_mean_distribution_of_its_teachers() -> None:
    torch.manual_seed(3)
    student, *teachers = (transformer(dropout=0.0) for _ in range(3))
    student.requires_grad_()
    batch = some_batch()
    objective = Taught(student, partial(predict, Ensemble(teachers)), 0.1, 0.4)
    sums = objective(student, batch)
    sums.loss.backward()
    found = {name: p.grad.clone() for name, p in student.named_parameters() if p.grad is not None}
    student.zero_grad()

    def probabilities(model: Transformer) -> torch.Tensor:
        return logits_of(model, batch).softmax(-1)

    wanted = torch.stack([probabilities(model) for model in teachers]).mean(0).detach()
    wanted = likeliest(wanted, LIKELY)
    logits = logits_of(student, batch)
    right = F.cross_entropy(logits, batch.target_out, label_smoothing=0.1, reduction="sum")
    expected = 0.6 * right + 0.4 * F.cross_entropy(logits, wanted, reduction="sum")
    expected.backward()
    assert sums.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert sums.tokens == batch.target_tokens
    for name, parameter in student.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-3, atol=1e-5)
    assert all(p.grad is None for model in teachers for p in model.parameters())


def test_both_passes_of_r_drop_have_their_own_masks_and_learn_from_each_other() -> None:
    torch.manual_seed(4)
    model = transformer(dropout=0.3).requires_grad_().train()
    batch = some_batch()
    seen: list[torch.Tensor] = []
    decode = model.decode

    def recorded(target_in: Sequences, memory: Memory) -> torch.Tensor:
        seen.append(decode(target_in, memory))
        return seen[-1]

    model.decode = recorded  # type: ignore[method-assign]
    with dropout.drawing(7, by_kernels=False):
        sums = Consistent(model, 0.1, 0.5)(model, batch)
    first, second = seen[0].split(batch.target_tokens)
    assert not torch.allclose(first, second)
    ours, theirs = model.project(first), model.project(second)
    expected = 0.0
    for logits, other in ((ours, theirs), (theirs, ours)):
        right = F.cross_entropy(logits, batch.target_out, label_smoothing=0.1, reduction="sum")
        agreeing = F.cross_entropy(logits, other.detach().softmax(-1), reduction="sum")
        expected += (0.5 * right + 0.5 * agreeing).item() / 2
    assert sums.loss.item() == pytest.approx(expected, rel=1e-5)
    assert sums.tokens == batch.target_tokens
    both = [F.cross_entropy(x, batch.target_out, reduction="sum").item() for x in (ours, theirs)]
    assert sums.nll.item() == pytest.approx(sum(both) / 2, rel=1e-5)


def some_batch() -> Batch:
    pairs = [([5, 6, 7], [8, 9]), ([10, 11], [12, 13, 14, 15])]
    sources, targets = (
        [np.array(side, np.int32) for side in sides] for sides in zip(*pairs, strict=True)
    )
    return make_batch(sources, targets, 1, 2, [3, 8])


def logits_of(model: Transformer, batch: Batch) -> torch.Tensor:
    return model.project(model.decode(batch.target_in, model.encode(batch.source)))
