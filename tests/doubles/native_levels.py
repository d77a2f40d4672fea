"""What the tests of native kernels share: each instruction set in turn, and how results compare."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from dragoman.native import library, linear
from dragoman.native.linear import Precision


@contextmanager
def kernels_of(level: str) -> Iterator[None]:
    """The kernels of one instruction set alone, or "off" for none of any. The test is skipped where
    library or processor has none of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGOMAN_NATIVE", level)
        library.reset()
        try:
            if level != "off" and not library.available():
                pytest.skip(f"no native kernels for {level} here")
            yield
        finally:
            patch.undo()
            library.reset()


@pytest.fixture(params=["amx", "amxtwin", "avx512", "avx2"])
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set in turn."""
    with kernels_of(request.param):
        yield request.param


def skip_without(level: str, precision: Precision) -> None:
    if not linear.is_supported(8, 8, precision):
        pytest.skip(f"{level} has no products of {precision} numbers")


def is_close(ours: Tensor | None, theirs: Tensor | None, dtype: torch.dtype) -> bool:
    """Equal within the rounding of ``dtype``: fp32 to 2e-5 of the largest number, bf16 to 2 %."""
    assert ours is not None and theirs is not None and ours.shape == theirs.shape
    if ours.numel() == 0:
        return True
    ours, theirs = ours.detach().double(), theirs.detach().double()
    tolerance = 2e-5 if dtype == torch.float32 else 2e-2
    return bool((ours - theirs).abs().max() <= tolerance * theirs.abs().max().clamp(min=1e-6))


def cosine(a: Tensor | None, b: Tensor | None) -> float:
    """Of the angle between two gradients."""
    assert a is not None and b is not None
    return torch.nn.functional.cosine_similarity(
        a.detach().double().flatten(), b.detach().double().flatten(), dim=0
    ).item()


def leaves(*tensors: Tensor, dtype: torch.dtype | None = None) -> list[Tensor]:
    """Copies that collect gradients; of ``dtype`` if given."""
    return [t.detach().clone().to(dtype or t.dtype).requires_grad_() for t in tensors]


def pull(out: Tensor, wanted: Tensor) -> None:
    """Run both backward from the same random slope."""
    slope = torch.randn(out.shape).to(out.dtype)
    (out.float() * slope.float()).sum().backward()
    (wanted * slope.to(wanted.dtype)).sum().backward()
