"""Linear layers on packed weights, against torch in double precision."""

from __future__ import annotations

import pytest
import torch
from native_levels import cosine, is_close, leaves, level, pull, skip_without
from torch.nn import functional as F

from dragoman.native import linear
from dragoman.native.dropout import Drop, factors
from dragoman.native.linear import PackedWeights, Precision
from dragoman.native.pointers import add_directly

__all__ = ["level"]

SHAPES = [
    # rows, inputs, outputs of each of the weights that are packed together
    (0, 8, (8,)),
    (1, 2, (2,)),
    (7, 8, (6,)),
    (13, 64, (64, 2)),
    (40, 32, (77,)),
    (9, 30, (64, 3)),
    (100, 96, (34, 70, 6)),
    (301, 256, (256, 256, 256)),
    (50, 1100, (130,)),
    (3, 2052, (1026,)),
]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_equals_torch(
    rows: int, inputs: int, outputs: tuple[int, ...], precision: Precision, level: str
) -> None:
    skip_without(level, precision)
    torch.manual_seed(0)
    weights = leaves(*(torch.randn(n, inputs) for n in outputs))
    biases = leaves(*(torch.randn(n) for n in outputs))
    packed = PackedWeights(weights, precision)
    (x,) = leaves(torch.randn(rows, inputs), dtype=packed.dtype)
    rounded = leaves(*(w.to(packed.dtype) for w in weights), dtype=torch.float64)
    their_biases = leaves(*biases, dtype=torch.float64)
    (their_x,) = leaves(x, dtype=torch.float64)
    out = linear.linear(x, weights, biases, packed)
    wanted = F.linear(their_x, torch.cat(rounded), torch.cat(their_biases))
    pull(out, wanted)
    assert out.dtype == packed.dtype and is_close(out, wanted, packed.dtype)
    assert is_close(x.grad, their_x.grad, packed.dtype)
    for ours, theirs in zip([*weights, *biases], [*rounded, *their_biases], strict=True):
        # Sums over rows are fp32 in both precisions.
        assert ours.grad is not None and ours.grad.dtype == torch.float32
        assert is_close(ours.grad, theirs.grad, torch.float32)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_feed_forward_equals_torch(precision: Precision, level: str) -> None:
    skip_without(level, precision)
    torch.manual_seed(1)
    parameters = leaves(
        torch.randn(1100, 60) / 60**0.5,
        torch.randn(1100),
        torch.randn(60, 1100) / 33,
        torch.randn(60),
    )
    packed = PackedWeights(parameters[:1], precision), PackedWeights(parameters[2:3], precision)
    (x,) = leaves(torch.randn(2, 33, 60), dtype=packed[0].dtype)
    (theirs, *their_parameters) = leaves(x, *parameters, dtype=torch.float64)
    w, b, u, c = parameters
    row_keys = torch.randint(-(2**31), 2**31 - 1, (66,), dtype=torch.int32)
    out = linear.feed_forward(x, (w, b), (u, c), packed, drop=Drop(0.3, 5, row_keys))
    mask = factors(row_keys, 1100, 0.3, 5, torch.float64).view(2, 33, 1100)
    w, b, u, c = their_parameters
    wanted = F.linear(F.relu(F.linear(theirs, w, b)) * mask, u, c)
    pull(out, wanted)
    assert is_close(out, wanted, packed[0].dtype)
    # bf16 weights move a few hidden units across the ReLU's bend.
    least = 0.9999 if precision == "fp32" else 0.995
    pairs = zip([x, *parameters], [theirs, *their_parameters], strict=True)
    assert all(cosine(ours.grad, their.grad) > least for ours, their in pairs)


def test_a_strided_input_needs_no_copy(level: str) -> None:
    skip_without(level, "bf16")
    weight = torch.randn(32, 16)
    packed = PackedWeights([weight], "bf16")
    wide = torch.randn(9, 48).bfloat16()
    part = wide[:, 16:32]
    assert torch.equal(
        linear.linear(part, [weight], [], packed),
        linear.linear(part.contiguous(), [weight], [], packed),
    )


def test_weights_are_packed_again_when_they_change(level: str) -> None:
    skip_without(level, "fp32")
    flat = torch.randn(6 * 4)
    weight = torch.nn.Parameter(torch.empty(6, 4))
    weight.data = flat.view(6, 4)
    packed = PackedWeights([weight], "fp32")
    x = torch.randn(3, 4)
    assert is_close(linear.linear(x, [weight], [], packed), x @ weight.t(), torch.float32)
    with torch.no_grad():
        weight.mul_(2)
    assert is_close(linear.linear(x, [weight], [], packed), x @ weight.t(), torch.float32)
    flat.mul_(3)  # torch's version counter of the parameter does not see this
    linear.weights_changed()
    assert is_close(linear.linear(x, [weight], [], packed), x @ weight.t(), torch.float32)


def test_gradients_can_be_added_directly(level: str) -> None:
    skip_without(level, "fp32")
    weights, biases = (
        leaves(torch.randn(6, 4), torch.randn(8, 4)),
        leaves(*map(torch.randn, (6, 8))),
    )
    packed = PackedWeights(weights, "fp32")
    x = torch.randn(5, 4)
    linear.linear(x, weights, biases, packed).sum().backward()
    parameters = [*weights, *biases]
    once = [p.grad.clone() for p in parameters if p.grad is not None]
    buffers = [p.grad for p in parameters]
    add_directly(parameters)
    linear.linear(x, weights, biases, packed).sum().backward()
    for parameter, first, buffer in zip(parameters, once, buffers, strict=True):
        assert parameter.grad is buffer
        assert is_close(parameter.grad, 2 * first, torch.float32)


def test_results_do_not_depend_on_the_number_of_threads(level: str) -> None:
    skip_without(level, "bf16")
    (weight,) = leaves(torch.randn(300, 200))
    packed = PackedWeights([weight], "bf16")
    (x,) = leaves(torch.randn(513, 200))
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            x.grad = weight.grad = None
            out = linear.linear(x, [weight], [], packed)
            out.float().square().sum().backward()
            results.append((out.detach(), x.grad, weight.grad))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_bf16_takes_inputs_in_pairs(level: str) -> None:
    skip_without(level, "bf16")
    assert linear.is_supported(7, 5, "fp32") and linear.is_supported(8, 7, "bf16")
    assert not linear.is_supported(7, 8, "bf16")
