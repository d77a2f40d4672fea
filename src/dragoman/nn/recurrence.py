"""The recurrence of an LSTM over packed rows: all steps of all sequences, in one node of autograd.

    i, f, g, o = σ(a), σ(a), tanh(a), σ(a),   a = x_t W_ihᵀ + h_{t-1} W_hhᵀ + b
    c_t = f ∘ c_{t-1} + i ∘ g
    h_t = o ∘ tanh(c_t)               (Hochreiter and Schmidhuber, 1997; f: Gers et al., 2000)

Only h_{t-1} W_hhᵀ must wait for the step before. x W_ihᵀ is an argument, computed for all rows at
once, and the gradient of W_hh is also one product over all rows. A step computes only the sequences
that have not ended, the longest first, so nothing is computed for padding.

Shapes: B sequences, P packed rows, H width, n sequences that have not ended at a step.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.native import linear as native
from dragoman.native import lstm
from dragoman.nn.layout import Layout
from dragoman.nn.linear import InferenceLinear


class Steps:
    """The order in which a recurrence goes through packed rows: the first rows of all sequences,
    then the second rows of those that have one, and so on. ``backwards``: the last rows first."""

    def __init__(self, layout: Layout, *, backwards: bool = False) -> None:
        self.batch = layout.batch
        lengths = torch.tensor(layout.lengths, dtype=torch.int64)
        order = lengths.argsort(descending=True, stable=True)
        lengths = lengths[order]
        steps = torch.arange(layout.longest)[:, None]  # (T, 1)
        going = steps < lengths  # (T, B)
        first = layout.offsets[:-1].long().cpu()[order]
        rows = first + (lengths - 1 - steps if backwards else steps)
        ranks = torch.arange(self.batch).expand_as(going)
        self.sizes: list[int] = going.sum(dim=1).tolist()
        """The number of sequences in each step."""
        device = layout.device
        self.order = order.to(device)
        """(B,) the sequences sorted by length, the longest first."""
        self.ranks = order.argsort().to(device)
        """(B,) the place of each sequence in ``order``."""
        self.rows = rows[going].to(device)
        """(P,) the packed row at each place in the order of steps."""
        self.places = self.rows.argsort()
        """(P,) the place of each packed row in the order of steps."""
        begins = [0, *itertools.accumulate(self.sizes)]
        past = torch.tensor([layout.total, *begins[:-2]][: len(self.sizes)])[:, None]
        self.before = (past + ranks)[going].to(device)
        """(P,) for each place, the place of the same sequence in the step before; P + rank if there
        is none."""
        self.last = first.add(0 if backwards else lengths - 1).to(device)[self.ranks]
        """(B,) the packed row of each sequence's last step."""

    def __iter__(self) -> Iterator[slice]:
        """Yield the places of each step."""
        begin = 0
        for size in self.sizes:
            yield slice(begin, begin + size)
            begin += size


@dataclass(frozen=True)
class Products:
    """A weight (N, K), and how products with it are computed (``nn/linear.py``)."""

    weight: Tensor
    low: Tensor | None = None
    packed: native.PackedWeights | None = None
    prepared: InferenceLinear | None = None
    """The weight as laid out for inference; there is no backward pass with it."""

    @property
    def dtype(self) -> torch.dtype:
        """The type of the factors and results."""
        if self.prepared is not None:
            return self.prepared.dtype
        return self.packed.dtype if self.packed is not None else self._weight_in_use.dtype

    def forward(self, x: Tensor) -> Tensor:
        """Compute x Wᵀ: (n, K) -> (n, N)."""
        if self.prepared is not None:
            return self.prepared.any_rows(x)
        if self.packed is not None:
            return native.forward_rows(x, self.packed, None)
        return x @ self._weight_in_use.t()

    def backward(self, grad: Tensor) -> Tensor:
        """Compute dy W: (n, N) -> (n, K)."""
        if self.packed is not None:
            return native.backward_input_rows(grad, self.packed)
        return grad @ self._weight_in_use

    def gradient(self, grad: Tensor, x: Tensor) -> Tensor | None:
        """Return dyᵀ x, the gradient of the weight; None if a kernel has added it to ``.grad``
        itself."""
        if self.packed is not None:
            return native.weight_gradients(grad, x, [self.weight], [])[0]
        return (grad.t() @ x).to(self.weight.dtype)

    @property
    def _weight_in_use(self) -> Tensor:
        return self.weight.detach() if self.low is None else self.low


def recur(
    gates: Tensor,
    hidden: Tensor,
    cell: Tensor,
    weight: Products,
    bias: Tensor,
    steps: Steps,
    kept: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute all steps. Return hidden vectors (P, H), in the type of the products, and cells
    (P, H).

    ``gates`` (P, 4H): x W_ihᵀ, in torch's order i, f, g, o. ``hidden``, ``cell`` (B, H): the
    initial state of the sequences. ``kept`` (B, H): the factors of hidden vectors between one step
    and the next (dropout that is the same at every step: Gal and Ghahramani, 2016).
    """
    out: tuple[Tensor, Tensor] = _Recurrence.apply(  # type: ignore[no-untyped-call]
        gates, hidden, cell, weight.weight, bias, weight, steps, kept
    )
    return out


class _Recurrence(torch.autograd.Function):
    """The autograd function of ``recur``. Inside, all rows are in the order of steps; cells and
    gates are never of low precision."""

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        hidden: Tensor,
        cell: Tensor,
        weight: Tensor,
        bias: Tensor,
        products: Products,
        steps: Steps,
        kept: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        width = weight.shape[1]
        begin_h = hidden[steps.order].to(products.dtype)
        begin_c = cell[steps.order].to(weight.dtype)
        kept = None if kept is None else kept[steps.order].to(products.dtype)
        by_kernels = products.packed is not None and lstm.takes(gates, begin_c)
        acting = begin_c.new_empty((len(gates), 4 * width))
        hiddens = begin_h.new_empty((len(gates), width))
        cells = begin_c.new_empty((len(gates), width))
        if not by_kernels:
            torch.add(gates.index_select(0, steps.rows), bias, out=acting)
        h, c = begin_h, begin_c
        for places in steps:
            n = places.stop - places.start
            again = products.forward(h[:n] if kept is None else h[:n] * kept[:n])
            now, next_h, next_c = acting[places], hiddens[places], cells[places]
            if by_kernels:
                lstm.forward_step(gates, steps.rows[places], bias, again, c, now, next_c, next_h)
            else:
                now += again
                now[:, : 2 * width].sigmoid_()
                now[:, 2 * width : 3 * width].tanh_()
                now[:, 3 * width :].sigmoid_()
                i, f, g, o = now.chunk(4, dim=1)  # (n, H) each
                torch.mul(f, c[:n], out=next_c).addcmul_(i, g)
                next_h.copy_(next_c.tanh().mul_(o))
            h, c = next_h, next_c
        ctx.save_for_backward(acting, hiddens, cells, begin_h, begin_c)
        ctx.products, ctx.steps, ctx.kept = products, steps, kept
        ctx.dtypes = gates.dtype, hidden.dtype, cell.dtype
        ctx.way_back = _back_by_kernels if by_kernels else _back
        ctx.set_materialize_grads(False)
        return hiddens.index_select(0, steps.places), cells.index_select(0, steps.places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        acting, hiddens, cells, begin_h, begin_c = ctx.saved_tensors
        products: Products = ctx.products
        steps: Steps = ctx.steps
        kept: Tensor | None = ctx.kept
        sums, later_h, later_c = ctx.way_back(grads, acting, cells, begin_c, products, steps, kept)
        before = torch.cat([hiddens, begin_h])[steps.before]
        if kept is not None:
            ranks = torch.cat([torch.arange(size, device=kept.device) for size in steps.sizes])
            before = before * kept[ranks]
        of_gates, of_begin_h, of_begin_c = ctx.dtypes
        return (
            sums.index_select(0, steps.places).to(of_gates),
            later_h[steps.ranks].to(of_begin_h),
            later_c[steps.ranks].to(of_begin_c),
            products.gradient(sums, before),
            sums.sum(dim=0, dtype=cells.dtype),
            None,
            None,
            None,
        )


def _back_by_kernels(
    grads: tuple[Tensor | None, Tensor | None],
    acting: Tensor,
    cells: Tensor,
    begin_c: Tensor,
    products: Products,
    steps: Steps,
    kept: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the backward pass by kernels: from the gradients of hidden vectors and cells (P, H),
    return those of the sums within the gates (P, 4H), in the order of steps, and of the initial
    hidden vectors and cells (B, H), longest first."""
    of_hidden, of_cell = grads
    of_hidden = None if of_hidden is None else of_hidden.to(products.dtype).contiguous()
    of_cell = None if of_cell is None else of_cell.to(cells.dtype).contiguous()
    sums = acting.new_empty(acting.shape, dtype=products.dtype)
    later_h = sums.new_zeros(begin_c.shape)
    later_c = torch.zeros_like(begin_c)
    n = 0
    order = list(steps)
    for places, past in zip(reversed(order), [*reversed(order[:-1]), None], strict=True):
        going, n = n, places.stop - places.start  # how many go on behind this step
        before = begin_c if past is None else cells[past]
        lstm.backward_step(
            of_hidden, of_cell, steps.rows[places], acting[places], cells[places], before,
            later_h, later_c, sums[places], going=going,
        )  # fmt: skip
        back = products.backward(sums[places])
        later_h[:n] = back if kept is None else back * kept[:n]
    return sums, later_h, later_c


def _back(
    grads: tuple[Tensor | None, Tensor | None],
    acting: Tensor,
    cells: Tensor,
    begin_c: Tensor,
    products: Products,
    steps: Steps,
    kept: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of ``_back_by_kernels`` in torch."""
    batch, width = begin_c.shape
    of_hidden, of_cell = (
        None if grad is None else grad.index_select(0, steps.rows).to(cells.dtype) for grad in grads
    )
    # What no step has to wait for: how each gate's sum changes c_t and h_t, for all rows.
    i, f, g, o = acting.chunk(4, dim=1)
    bent = cells.tanh()
    slopes = torch.empty_like(acting)  # (P, 4H)
    of_i, of_f, of_g, of_o = slopes.chunk(4, dim=1)
    torch.mul(1 - i, i, out=of_i).mul_(g)
    torch.mul(1 - f, f, out=of_f).mul_(torch.cat([cells, begin_c])[steps.before])
    torch.addcmul(i, i * g, g, value=-1, out=of_g)
    torch.mul(1 - o, o, out=of_o).mul_(bent)
    through = bent.square_().neg_().add_(1).mul_(o)  # dh / dc
    sums = acting.new_empty(acting.shape, dtype=products.dtype)
    later_h, later_c = cells.new_zeros(batch, width), cells.new_zeros(batch, width)
    n = 0
    for places in reversed(list(steps)):
        going, n = n, places.stop - places.start  # how many go on behind this step
        dh = later_h[:n] if of_hidden is None else of_hidden[places]
        if of_hidden is not None:
            dh[:going] += later_h[:going]
        dc = dh * through[places]
        dc[:going] += later_c[:going]
        if of_cell is not None:
            dc += of_cell[places]
        slope = slopes[places]
        slope[:, : 3 * width].unflatten(1, (3, width)).mul_(dc[:, None])
        slope[:, 3 * width :].mul_(dh)
        sums[places] = slope
        torch.mul(dc, f[places], out=later_c[:n])
        back = products.backward(sums[places])
        later_h[:n] = back if kept is None else back * kept[:n]
    return sums, later_h, later_c
