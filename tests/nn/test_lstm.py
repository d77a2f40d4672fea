"""The LSTM layer: equal to torch's own, all steps at once or one at a time, by kernels or not."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from dragoman.nn.layout import Layout
from dragoman.nn.linear import Precision, kernels_fit, refresh, use_precision
from dragoman.nn.lstm import Lstm
from dragoman.nn.recurrence import Steps

pytestmark = pytest.mark.usefixtures("in_fp64")

LENGTHS = [3, 7, 1, 7, 4]
ROWS, WAYS = sum(LENGTHS), (False, True)


def apart(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    return float((found - expected).detach().abs().max())


def run(
    layer: Lstm, x: Tensor, layout: Layout, begin: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    return layer(layer.read(x), layout, begin)  # type: ignore[no-any-return]


@pytest.mark.parametrize("both_ways", WAYS)
def test_it_is_the_lstm_of_torch(both_ways: bool) -> None:
    """Outputs, the states after sequences of unequal lengths, and every gradient."""
    layer, layout = Lstm(6, 5, both_ways=both_ways), Layout(LENGTHS)
    theirs = nn.LSTM(6, 5, bidirectional=both_ways)
    theirs.load_state_dict(layer.state_dict())
    ways = 1 + both_ways
    begin = [torch.randn(5, 5 * ways).requires_grad_() for _ in "hc"]
    x = torch.randn(ROWS, 6).requires_grad_()
    hidden, cells = run(layer, x, layout, (begin[0], begin[1]))
    packed = pack_sequence(list(x.split(LENGTHS)), enforce_sorted=False)
    starts = [one.unflatten(1, (ways, 5)).transpose(0, 1) for one in begin]
    out, ends = theirs(packed, (starts[0], starts[1]))
    out = layout.pack(pad_packed_sequence(out, batch_first=True)[0])
    # Where each direction ends: at the last row, and at the first.
    lasts = [Steps(layout, backwards=way == 1).last for way in range(ways)]
    ours = [
        torch.stack([one.unflatten(1, (ways, 5))[lasts[way], way] for way in range(ways)])
        for one in (hidden, cells)
    ]
    for found, expected in zip((hidden, *ours), (out, *ends), strict=True):
        assert apart(found, expected) < 1e-9
    weights = [torch.randn_like(one) for one in (out, *ends)]
    read = (x, *begin)
    gradients = [
        torch.autograd.grad(
            sum(((one * w).sum() for one, w in zip(all_of, weights, strict=True)), torch.zeros(())),
            [*read, *by.parameters()],
        )
        for by, all_of in ((layer, (hidden, *ours)), (theirs, (out, *ends)))
    ]
    for found, expected in zip(*gradients, strict=True):
        assert apart(found, expected) < 1e-9


def test_one_step_at_a_time_is_all_at_once() -> None:
    layer, layout = Lstm(6, 5), Layout([4, 4, 4])
    x, kept = torch.randn(12, 6), torch.rand(3, 5)
    begin = torch.randn(3, 5), torch.randn(3, 5)
    gates = layer.read(x)
    hidden, cells = layer(gates, layout, begin, kept)
    now = begin
    for place, row in enumerate(layout.pad(gates).unbind(dim=1)):
        now = layer.step(row, *now, kept)
        for one, every in zip(now, (hidden, cells), strict=True):
            assert apart(one, layout.pad(every)[:, place]) < 1e-12


def test_a_mask_from_step_to_step_is_differentiated() -> None:
    """By torch through single steps, and by our own node through all."""
    layer, layout = Lstm(6, 5), Layout([4, 4])
    x, kept = torch.randn(8, 6).requires_grad_(), torch.rand(2, 5)
    now = torch.zeros(2, 5), torch.zeros(2, 5)
    outs = []
    for row in layout.pad(layer.read(x)).unbind(dim=1):
        now = layer.step(row, *now, kept)
        outs.append(now[0])
    weights = torch.randn(8, 5)
    sought = [x, *layer.parameters()]
    by_steps = torch.autograd.grad((layout.pack(torch.stack(outs, 1)) * weights).sum(), sought)
    at_once = torch.autograd.grad(
        (layer(layer.read(x), layout, None, kept)[0] * weights).sum(), sought
    )
    for found, expected in zip(at_once, by_steps, strict=True):
        assert apart(found, expected) < 1e-12


def test_a_context_is_read_as_if_it_were_more_input() -> None:
    layer, layout = Lstm(4, 5, context=3), Layout(LENGTHS)
    assert layer.context is not None
    joint = nn.LSTM(7, 5)
    weights = {name: p for name, p in layer.state_dict().items() if name != "context.weight"}
    both = torch.cat([layer.weight_ih_l0, layer.context.weight], dim=1)
    joint.load_state_dict(weights | {"weight_ih_l0": both})
    x, context = torch.randn(ROWS, 4), torch.randn(ROWS, 3)
    hidden, _ = layer(layer.read(x) + layer.context(context), layout)
    together = torch.cat([x, context], dim=1)
    expected, _ = joint(pack_sequence(list(together.split(LENGTHS)), enforce_sorted=False))
    expected = layout.pack(pad_packed_sequence(expected, batch_first=True)[0])
    assert apart(hidden, expected) < 1e-9


@pytest.mark.parametrize("by_kernels", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_kernels_and_low_precision_follow(precision: Precision, by_kernels: bool) -> None:
    torch.set_default_dtype(torch.float32)
    layer, layout = Lstm(36, 20, both_ways=True), Layout(LENGTHS)
    if by_kernels and not kernels_fit(layer, precision):
        pytest.skip("no native kernels on this machine")
    x, weights = torch.randn(ROWS, 36).requires_grad_(), torch.randn(ROWS, 40)

    def gradient(of: Lstm) -> tuple[Tensor, Tensor]:
        hidden, _ = run(of, x, layout)
        slopes = torch.autograd.grad((hidden * weights).sum(), [x, *of.parameters()])
        return hidden.detach().double(), torch.cat([slope.flatten().double() for slope in slopes])

    plain = deepcopy(layer)
    use_precision(layer, precision, by_kernels=by_kernels)
    for _ in range(2):
        for found, expected in zip(gradient(layer), gradient(plain), strict=True):
            alike = torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0)
            assert alike > (1 - 1e-11 if precision == "fp32" else 0.999)
        with torch.no_grad():  # the copies that it computes by are then old
            for parameter in (*layer.parameters(), *plain.parameters()):
                parameter.mul_(-1.5)
        refresh(layer)
