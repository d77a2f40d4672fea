"""Gradients that kernels add straight into ``parameter.grad``.

A trainer that keeps one buffer of gradients saves a pass over all of them when kernels add to it
themselves, in place of handing autograd a tensor to add. It says so once, with ``add_directly``;
``torch.autograd.grad`` and hooks on these parameters then see nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

_ATTRIBUTE = "dragoman_adds_directly"


def add_directly(parameters: Iterable[Tensor], *, on: bool = True) -> None:
    """From now on kernels add the gradients of ``parameters`` to their ``.grad`` themselves."""
    for parameter in parameters:
        setattr(parameter, _ATTRIBUTE, on)


def sink(parameter: Tensor) -> Tensor | None:
    """Where a kernel adds this parameter's gradient; None: it hands the gradient to autograd."""
    if not getattr(parameter, _ATTRIBUTE, False):
        return None
    grad = parameter.grad
    usable = grad is not None and grad.is_contiguous() and grad.dtype == torch.float32
    return grad if usable else None
