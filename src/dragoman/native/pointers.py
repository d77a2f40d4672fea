"""Tensors as C receives them: addresses, row strides, names of element types, gradients.

A trainer that keeps one buffer of gradients saves a pass over all of them when kernels add to it
themselves, instead of returning a tensor to autograd. It says so once, with ``add_directly``;
``torch.autograd.grad`` and hooks on these parameters then see nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

SUFFIXES = {torch.float32: "fp32", torch.bfloat16: "bf16"}
"""Element types that kernels exist for, as their names end."""


def address(tensor: Tensor | None) -> int | None:
    """The address of a tensor's first element; None (a null pointer) for no tensor."""
    return None if tensor is None else tensor.data_ptr()


def as_rows(tensor: Tensor) -> Tensor:
    """(..., N) -> (P, N) with neighbouring columns; a copy only if strides demand it."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    return rows if rows.stride(-1) == 1 or rows.shape[-1] == 1 else rows.contiguous()


def is_plain(*tensors: Tensor | None) -> bool:
    """True if all tensors are in this machine's memory and are fp32 or bf16."""
    return all(t is None or (t.device.type == "cpu" and t.dtype in SUFFIXES) for t in tensors)


_ATTRIBUTE = "dragoman_adds_directly"
_returning = False


def add_directly(parameters: Iterable[Tensor], *, on: bool = True) -> None:
    """From now on kernels add the gradients of ``parameters`` to their ``.grad`` themselves."""
    for parameter in parameters:
        setattr(parameter, _ATTRIBUTE, on)


@contextmanager
def returning_gradients() -> Iterator[None]:
    """Let kernels return all gradients to autograd inside, whatever ``add_directly`` said. A
    gradient that is computed before its scale is known needs this."""
    global _returning
    before, _returning = _returning, True
    try:
        yield
    finally:
        _returning = before


def sink(parameter: Tensor) -> Tensor | None:
    """The buffer to which a kernel adds this parameter's gradient; None: it goes to autograd."""
    if _returning or not getattr(parameter, _ATTRIBUTE, False):
        return None
    grad = parameter.grad
    usable = grad is not None and grad.is_contiguous() and grad.dtype == torch.float32
    return grad if usable else None
