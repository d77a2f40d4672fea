"""A step of an LSTM without its products, in one pass, and its gradients.

    i, f, o = σ(a), g = tanh(a),  a = gates + bias + again
    c = f ∘ before + i ∘ g
    h = o ∘ tanh(c)                   (Hochreiter and Schmidhuber, 1997; f: Gers et al., 2000)

Gates, products and hidden vectors are fp32 or bf16, bias, cells and activations fp32.
N rows, H width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dragoman.native import loader
from dragoman.native.pointers import SUFFIXES, address, as_rows, is_plain


def takes(gates: Tensor, before: Tensor) -> bool:
    """True if the kernels support such rows and cells."""
    return is_plain(gates, before) and before.dtype == torch.float32 and loader.trains()


def cell(gates: Tensor, again: Tensor, bias: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """One step: gates = x W_ihᵀ, again = h W_hhᵀ (N, 4H) of one type, in torch's order i, f, g, o,
    bias (4H,), cells before (N, H) -> hidden vectors (N, H) of that type, cells (N, H)."""
    if not (takes(gates, before) and gates.dtype == again.dtype and bias.dtype == torch.float32):
        return cell_plain(gates, again, bias, before)
    out: tuple[Tensor, Tensor] = _LstmCell.apply(gates, again, bias, before)  # type: ignore[no-untyped-call]
    return out


def cell_plain(gates: Tensor, again: Tensor, bias: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """The reference for ``cell``, in plain torch."""
    i, f, g, o = (gates.to(before.dtype) + again + bias).chunk(4, dim=-1)
    now = f.sigmoid() * before + i.sigmoid() * g.tanh()
    return (o.sigmoid() * now.tanh()).to(gates.dtype), now


class _LstmCell(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, again: Tensor, bias: Tensor, before: Tensor
    ) -> tuple[Tensor, Tensor]:
        before = before.contiguous()
        active = torch.empty(gates.shape)
        cells, hidden = torch.empty_like(before), torch.empty_like(before, dtype=gates.dtype)
        forward_step(
            as_rows(gates), None, bias.contiguous(), again.contiguous(), before,
            active, cells, hidden,
        )  # fmt: skip
        ctx.save_for_backward(active, cells, before)
        ctx.dtype = gates.dtype
        ctx.set_materialize_grads(False)
        return hidden, cells

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        active, cells, before = ctx.saved_tensors
        of_hidden, of_cell = (None if grad is None else as_rows(grad) for grad in grads)
        of_gates = torch.empty(active.shape, dtype=ctx.dtype)
        sent = torch.empty_like(cells)
        backward_step(
            of_hidden, of_cell, None, active, cells, before, None, sent, of_gates, going=0
        )
        return of_gates, of_gates, of_gates.sum(dim=0, dtype=torch.float32), sent


def forward_step(
    gates: Tensor,
    rows: Tensor | None,
    bias: Tensor,
    again: Tensor,
    before: Tensor,
    active: Tensor,
    cells: Tensor,
    hiddens: Tensor,
) -> None:
    """One step of N sequences, without autograd; ``active`` (N, 4H), ``cells`` and ``hiddens``
    (N, H) are written.

    ``rows`` (N,) int64 are those of ``gates``, which may lie apart; None: the first N. ``before``
    may have more rows than are used. All but ``gates`` are contiguous.
    """
    assert gates.dtype == again.dtype == hiddens.dtype and gates.stride(1) == 1
    kernel = loader.kernel(f"lstm_forward_{SUFFIXES[gates.dtype]}")
    tensors = (rows, bias, again, before, active, cells, hiddens)
    kernel(address(gates), gates.stride(0), *map(address, tensors), *hiddens.shape)


def backward_step(
    of_hidden: Tensor | None,
    of_cell: Tensor | None,
    rows: Tensor | None,
    active: Tensor,
    cells: Tensor,
    before: Tensor,
    later_hidden: Tensor | None,
    later_cell: Tensor,
    of_gates: Tensor,
    *,
    going: int,
) -> None:
    """The way back through one step of N sequences: ``of_gates`` (N, 4H) is written.

    ``of_hidden`` and ``of_cell`` come from outside and are read at ``rows``; ``later_hidden`` and
    ``later_cell`` are what the step behind this one sent to the first ``going`` rows, and
    ``later_cell`` (N, H) becomes what this one sends.
    """
    assert of_hidden is None or of_hidden.dtype == of_gates.dtype
    assert later_hidden is None or later_hidden.dtype == of_gates.dtype
    kernel = loader.kernel(f"lstm_backward_{SUFFIXES[of_gates.dtype]}")
    outside = [
        part
        for tensor in (of_hidden, of_cell)
        for part in (address(tensor), 0 if tensor is None else tensor.stride(0))
    ]
    tensors = (rows, active, cells, before, later_hidden, later_cell, of_gates)
    kernel(*outside, *map(address, tensors), len(of_gates), going, of_gates.shape[1] // 4)
