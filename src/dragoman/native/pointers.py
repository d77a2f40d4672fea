"""How tensors are handed to C: addresses, row strides, and the names of element types."""

from __future__ import annotations

import torch
from torch import Tensor

SUFFIXES = {torch.float32: "fp32", torch.bfloat16: "bf16"}
"""Element types that kernels exist for, as their names end."""


def address(tensor: Tensor | None) -> int | None:
    """Where a tensor's first element lies; None (a null pointer) for no tensor."""
    return None if tensor is None else tensor.data_ptr()


def as_rows(tensor: Tensor) -> Tensor:
    """(..., N) -> (P, N) with neighbouring columns; a copy only if strides demand it."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    return rows if rows.stride(-1) == 1 or rows.shape[-1] == 1 else rows.contiguous()


def assert_row_keys(row_keys: Tensor | None, rows: int) -> None:
    """A kernel reads a key for each row (``dropout.py``), where there are keys."""
    if row_keys is not None:
        assert (
            row_keys.shape == (rows,) and row_keys.dtype == torch.int32 and row_keys.is_contiguous()
        )


def is_plain(*tensors: Tensor | None) -> bool:
    """Whether all tensors lie in this machine's memory and are fp32 or bf16."""
    return all(t is None or (t.device.type == "cpu" and t.dtype in SUFFIXES) for t in tensors)
