"""Cross-entropy without stored logits, against torch's own in double precision."""

from __future__ import annotations

import pytest
import torch
from native_levels import cosine, is_close, leaves, level, skip_without
from torch.nn import functional as F

from dragoman.native import loss
from dragoman.native.linear import PackedWeights, Precision

__all__ = ["level"]


@pytest.fixture(autouse=True)
def every_level(level: str) -> None:
    skip_without(level, "fp32")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("rows", "width", "vocabulary", "smoothing"),
    [
        (5, 8, 50, 0.0),
        (60, 32, 77, 0.1),
        (1, 64, 1001, 0.1),
        (1100, 64, 30, 0.1),
        (50, 1100, 20, 0.2),
    ],
)
def test_equals_torch(
    rows: int, width: int, vocabulary: int, smoothing: float, precision: Precision, level: str
) -> None:
    skip_without(level, precision)
    torch.manual_seed(0)
    (weight,) = leaves(torch.randn(vocabulary, width) / width**0.5 * 2)
    packed = PackedWeights([weight], precision)
    (hidden,) = leaves(torch.randn(rows, width), dtype=packed.dtype)
    targets = torch.randint(vocabulary, (rows,))
    (their_hidden, their_weight) = leaves(hidden, weight.to(packed.dtype), dtype=torch.float64)
    total, nll = loss.cross_entropy(hidden, weight, targets, packed, smoothing=smoothing)
    logits = their_hidden @ their_weight.t()
    wanted = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    total.backward()
    wanted.backward()
    # The logits are fp32 sums of exact products, in both precisions.
    assert total.item() == pytest.approx(wanted.item(), rel=1e-5)
    assert nll.item() == pytest.approx(
        F.cross_entropy(logits, targets, reduction="sum").item(), rel=1e-5
    )
    assert is_close(hidden.grad, their_hidden.grad, packed.dtype)
    least = 0.999999 if precision == "fp32" else 0.9999
    assert cosine(weight.grad, their_weight.grad) > least


def test_without_gradients_the_sums_are_the_same() -> None:
    (weight, hidden) = leaves(torch.randn(40, 16), torch.randn(9, 16))
    packed, targets = PackedWeights([weight], "fp32"), torch.arange(9)
    with_gradient = loss.cross_entropy(hidden, weight, targets, packed, smoothing=0.1)
    with torch.no_grad():
        without = loss.cross_entropy(hidden, weight, targets, packed, smoothing=0.1)
    assert torch.equal(with_gradient[0], without[0]) and torch.equal(with_gradient[1], without[1])


def test_a_scaled_loss_scales_its_gradients() -> None:
    (weight, hidden) = leaves(torch.randn(40, 16), torch.randn(9, 16))
    packed, targets = PackedWeights([weight], "fp32"), torch.arange(9)
    loss.cross_entropy(hidden, weight, targets, packed)[0].backward()
    once = hidden.grad.clone(), weight.grad.clone()
    hidden.grad = weight.grad = None
    (loss.cross_entropy(hidden, weight, targets, packed)[0] * 0.25).backward()
    assert is_close(hidden.grad, once[0] * 0.25, torch.float32)
    assert is_close(weight.grad, once[1] * 0.25, torch.float32)


def test_no_rows_no_loss() -> None:
    (weight, hidden) = leaves(torch.randn(40, 16), torch.randn(0, 16))
    packed = PackedWeights([weight], "fp32")
    total, nll = loss.cross_entropy(hidden, weight, torch.zeros(0, dtype=torch.int64), packed)
    total.backward()
    assert total.item() == nll.item() == 0.0 and not weight.grad.any()


def test_a_target_outside_the_vocabulary_is_refused() -> None:
    (weight, hidden) = leaves(torch.randn(40, 16), torch.randn(1, 16))
    with pytest.raises(IndexError, match="vocabulary of 40"):
        loss.cross_entropy(hidden, weight, torch.tensor([40]), PackedWeights([weight], "fp32"))


def test_infinite_hidden_rows_show_in_the_loss() -> None:
    (weight, hidden) = leaves(torch.randn(40, 16), torch.full((2, 16), torch.inf))
    total, _ = loss.cross_entropy(
        hidden, weight, torch.tensor([0, 1]), PackedWeights([weight], "fp32")
    )
    assert not torch.isfinite(total)
