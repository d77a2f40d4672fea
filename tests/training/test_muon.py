"""Muon beside torch's own, and which parameters it moves."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from implementations import EVERY_NETWORK
from torch import Tensor, nn
from training_toy import Toy

from dragoman.native import library
from dragoman.native.orthogonal import is_supported, orthogonal_plain, orthogonalise
from dragoman.nn.embedding import Embedding
from dragoman.nn.layers import LayerNorm
from dragoman.nn.linear import Linear, Precision
from dragoman.training.distributed import Ranks
from dragoman.training.muon import Muon, hidden_matrices
from dragoman.training.optimizer import Adam, FlatParameters, within
from dragoman.training.settings import OptimizerSettings


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 10**6), st.floats(1e-6, 1e6))
def test_directions_are_orthogonal_whatever_shape_and_size(
    rows: int, columns: int, seed: int, size: float
) -> None:
    draw = torch.Generator().manual_seed(seed)
    left, _ = torch.linalg.qr(torch.randn(rows, rows, generator=draw, dtype=torch.float64))
    right, _ = torch.linalg.qr(torch.randn(columns, columns, generator=draw, dtype=torch.float64))
    least = min(rows, columns)
    values = torch.linspace(1.0, 0.3, least, dtype=torch.float64)
    matrix = (left[:, :least] * (size * values)) @ right[:least]
    found = orthogonal_plain(matrix.float()[None])[0].double()
    nearest = left[:, :least] @ right[:least]
    turned = left[:, :least].T @ found @ right[:least].T  # diagonal: the same singular vectors
    assert found.shape == matrix.shape
    torch.testing.assert_close(turned, turned.diagonal().diag(), rtol=0, atol=1e-3)
    assert ((turned.diagonal() > 0.6) & (turned.diagonal() < 1.3)).all()
    assert (found * nearest).sum() > 0.6 * least


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 90), st.integers(1, 150)), min_size=1),
    st.sampled_from(["fp32", "bf16"]),
    st.integers(0, 10**6),
)
def test_kernels_give_the_directions_of_plain_torch(
    shapes: list[tuple[int, int, int]], precision: Precision, seed: int
) -> None:
    if precision == "bf16":  # numbers in pairs
        shapes = [(count, 2 * rows, 2 * columns) for count, rows, columns in shapes]
    if not library.available() or not is_supported(shapes, precision):
        pytest.skip("no such kernel here")
    draw = torch.Generator().manual_seed(seed)
    ours = [torch.randn(shape, generator=draw) for shape in shapes]
    wanted = [orthogonal_plain(part, precision) for part in ours]
    orthogonalise(ours, precision)
    for found, plain in zip(ours, wanted, strict=True):
        if precision == "fp32":
            torch.testing.assert_close(found, plain, rtol=0, atol=1e-3)
        else:  # what is rounded differs
            assert ((found - plain).norm() <= 0.05 * plain.norm()).all()


def test_where_there_is_no_momentum_nothing_moves() -> None:
    assert not orthogonal_plain(torch.zeros(2, 3, 5)).any()


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("threads", [0, 2])  # in plain torch, and by kernels
def test_it_is_torchs_muon(decay: float, precision: str, threads: int) -> None:
    """Of one matrix, whose turn comes in every other update, for twice the way. torch multiplies in
    bf16, whose rounding is what may differ."""
    torch.manual_seed(0)
    ours, theirs = Linear(24, 40, bias=False, hidden=True), nn.Linear(24, 40, bias=False)
    theirs.load_state_dict({"weight": ours.weight.detach().clone()})
    flat = FlatParameters(ours.named_parameters())
    settings = OptimizerSettings(kind="muon", weight_decay=decay)
    adam = Adam(flat, settings)
    muon = Muon(ours, flat, adam, Ranks())
    reference = torch.optim.Muon(
        theirs.parameters(), lr=0.2, weight_decay=decay, adjust_lr_fn="match_rms_adamw"
    )
    for number in range(6):
        before = theirs.weight.detach().clone()
        theirs.weight.grad = torch.randn_like(theirs.weight)
        assert ours.weight.grad is not None
        ours.weight.grad.copy_(5 * theirs.weight.grad)
        reference.step()
        muon.step(0.1, 5.0, precision, threads)  # type: ignore[arg-type]
        adam.steps += 1
        step = (theirs.weight - before).norm()
        if number % 2:
            assert torch.equal(ours.weight, before)
        else:
            assert (ours.weight - theirs.weight).norm() < 0.05 * step
        ours.weight.data.copy_(theirs.weight.data)


@pytest.mark.parametrize("name", EVERY_NETWORK)
def test_each_parameter_is_moved_by_one_of_the_two(name: str) -> None:
    model = EVERY_NETWORK[name]()
    flat = FlatParameters(model.named_parameters())
    adam = Adam(flat, OptimizerSettings())
    muon = Muon(model, flat, adam, Ranks())
    moved = hidden_matrices(model)
    assert moved
    begun = flat.values.clone()
    flat.gradients.normal_()
    muon.step(0.01)
    by_muon = changed(flat, begun)
    adam.step(0.01, shares=within([], muon.left))
    muon.step(0.01)
    assert set(by_muon) <= set(moved)
    assert set(changed(flat, begun)) == {name for name, _ in model.named_parameters()}
    for path, module in model.named_modules():
        if isinstance(module, Embedding | LayerNorm) or path == "output":
            assert not {f"{path}.{name}" for name, _ in module.named_parameters()} & set(moved)


def changed(flat: FlatParameters, before: Tensor) -> list[str]:
    ways = flat.views(flat.values - before)
    return [name for name, way in ways.items() if way.any()]


def test_frozen_matrices_have_no_momentum() -> None:
    model = Toy()
    flat = FlatParameters(model.named_parameters())
    adam = Adam(flat, OptimizerSettings())
    muon = Muon(model, flat, adam, Ranks())
    flat.gradients.normal_()
    before = {name: value.clone() for name, value in flat.views(flat.values).items()}
    inner = flat.spans["inner.weight"]
    shares = [(inner, 0.0), (slice(inner.stop, len(flat.values)), 0.5)]
    for _ in range(2):  # each has its turn
        muon.step(0.1, shares=shares)
        adam.steps += 1
    after, momenta = flat.views(flat.values), flat.views(adam.first)
    assert torch.equal(after["inner.weight"], before["inner.weight"])
    assert not momenta["inner.weight"].any() and momenta["outer.weight"].any()
    # Orthogonal, of 8 singular values near 1: a step of 0.2 x 2 x 0.1 x 0.5 x √16 each.
    step = torch.linalg.svdvals(after["outer.weight"] - before["outer.weight"])
    assert ((step > 0.08 * 0.6) & (step < 0.08 * 1.3)).all()
