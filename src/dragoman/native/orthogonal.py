"""The matrices that are nearest to given ones among the (semi-)orthogonal ones, for an optimizer
(``training/muon.py``).

Kernels (``src/orthogonal.cpp``) take all matrices at once, one thread each, and compute the same
products as plain torch, in fp32 or bf16.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.native import loader
from dragoman.native.abi import POINTER, WHOLE
from dragoman.native.linear import Precision
from dragoman.native.pointers import address


def is_supported(shapes: Sequence[Sequence[int]], precision: Precision) -> bool:
    """True if this machine has the kernel for matrices of these shapes (N, R, C); bf16 takes
    numbers in pairs."""
    if not loader.is_loaded() or loader.function(f"orthogonal_{precision}") is None:
        return False
    return precision == "fp32" or not any(n % 2 for _, *sizes in shapes for n in sizes)


def orthogonalise(parts: Sequence[Tensor], precision: Precision) -> None:
    """Replace each matrix of each (N, R, C) fp32 by what ``orthogonal_plain`` makes of it."""
    matrices = [matrix for part in parts for matrix in part]
    wide = [m.mT.contiguous() if m.shape[0] > m.shape[1] else m for m in matrices]
    rows, columns = ((WHOLE * len(wide))(*(m.shape[side] for m in wide)) for side in (0, 1))
    kernel = loader.kernel(f"orthogonal_{precision}")
    kernel((POINTER * len(wide))(*map(address, wide)), rows, columns, len(wide))
    for matrix, turned in zip(matrices, wide, strict=True):
        if turned is not matrix:
            matrix.copy_(turned.mT)


def orthogonal_plain(matrices: Tensor, precision: Precision = "fp32") -> Tensor:
    """For each matrix of (N, R, C), return roughly the nearest (semi-)orthogonal matrix, in fp32.

    The function makes five steps of a Newton–Schulz iteration, whose polynomial 3.4445 σ - 4.7750
    σ³ + 2.0315 σ⁵ takes all but the least singular values to between 0.7 and 1.2 (Jordan et al.
    2024).
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.transpose(-2, -1) if tall else matrices
    x = x / torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    x = x.bfloat16() if precision == "bf16" else x
    for _ in range(5):
        gram = x @ x.transpose(-2, -1)  # (N, R, R)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.transpose(-2, -1) if tall else x).float()
