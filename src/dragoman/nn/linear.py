"""Linear maps whose weights are kept in fp32 and used in the precision of the run.

Parameters, gradients and the optimizer stay in fp32. In bf16 a layer holds a bf16 copy of its
weight, made once per update by ``refresh`` (autocast would cast every weight again in every
micro-batch), and the matrix products of forward and backward run on the copies.

``use_precision`` sets how a model computes: in which precision, and whether by plain torch (the
reference) or by native kernels, which training uses where the machine has them. For inference,
weights are cast and laid out once, for oneDNN or for the int8 kernels (``prepare``, ``lay_out``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.native import library
from dragoman.native import linear as native
from dragoman.native.int8 import Int8Map
from dragoman.nn.settings import Activation

Precision = Literal["fp32", "bf16"]

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "swish": F.silu,
    "gelu": F.gelu,
}


class Computing(nn.Module):
    """A module that can compute in several ways. ``use_precision`` chooses the way for a whole
    model."""

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """Compute in ``precision``, by native kernels or by plain torch. For a module that computes
        in only one way, this does nothing."""

    def fits(self, precision: Precision) -> bool:
        """True if this machine has native kernels for the module's sizes."""
        return True

    def copies(self) -> list[tuple[Tensor, Tensor]]:
        """Return the bf16 copies that the module holds, each with its fp32 weight."""
        return []

    def hidden_matrices(self) -> list[tuple[nn.Parameter, int]]:
        """Return the matrices of this module that map features to features, which the optimizer
        Muon updates (``training/muon.py``), each with the number of equal blocks of rows that are
        separate matrices. Modules inside this one name their own."""
        return []

    def prepare(self, dtype: torch.dtype) -> None:
        """Compute in ``dtype`` (int8: by kernels) on matrices that are laid out now. For inference
        only."""
        self.choose("fp32", by_kernels=False)


class Matrix(Computing):
    """One matrix, whose rows may belong to tokens."""

    def __init__(self, rows: int, columns: int) -> None:
        """Leave the matrix uninitialised: subclasses initialise it."""
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, columns))
        self.low: Tensor | None = None
        self.packed: native.PackedWeights | None = None

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        self.packed = native.PackedWeights([self.weight], precision) if by_kernels else None
        self.low = low_copy(self.weight, precision, by_kernels)

    def fits(self, precision: Precision) -> bool:
        outputs, inputs = self.weight.shape
        return native.is_supported(inputs, outputs, precision)

    def copies(self) -> list[tuple[Tensor, Tensor]]:
        return [] if self.low is None else [(self.low, self.weight)]

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """Compute logits without a bias, where the rows of the weight belong to tokens: (..., D) ->
        (..., V), or only those of the rows ``ids``."""
        if self.packed is not None and ids is None:
            return native.linear(hidden, [self.weight], [], self.packed)
        weight: Tensor = self.weight
        low = self.low
        if low is None:
            hidden = hidden.to(weight.dtype)  # which kernels may have made of low precision
        if ids is not None:
            weight, low = weight[ids], None if low is None else low[ids]
        return linear(hidden, weight, None, low)


class Linear(Matrix):
    """y = x Wᵀ + b over the last dimension: (..., in) -> (..., out).

    ``hidden``: inputs and outputs are both features of hidden layers, not data, labels or tokens.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        bias: bool = True,
        gain: float = 1.0,
        hidden: bool = False,
    ) -> None:
        super().__init__(outputs, inputs)
        self.hidden = hidden
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self.prepared: InferenceLinear | Int8Map | None = None
        nn.init.xavier_uniform_(self.weight, gain)

    def hidden_matrices(self) -> list[tuple[nn.Parameter, int]]:
        return [(self.weight, 1)] if self.hidden else []

    def prepare(self, dtype: torch.dtype) -> None:
        super().prepare(dtype)
        self.prepared = lay_out(self.weight, self.bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        if self.prepared is not None:
            return self.prepared.any_rows(x)
        if self.packed is not None:
            return native.linear(x, *joint_parameters(self), self.packed)
        return linear(x, self.weight, self.bias, self.low)


class PlainLinear(Linear):
    """A linear map that computes in fp32 in a model of any precision: for few rows over layers in
    bf16, or for data as it is stored. Its sizes therefore need not suit the kernels."""

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        pass

    def fits(self, precision: Precision) -> bool:
        return True

    def prepare(self, dtype: torch.dtype) -> None:
        pass


def joint_parameters(*layers: Linear) -> tuple[list[Tensor], list[Tensor]]:
    """Return the weights and biases of layers that read the same input, for one joint product."""
    return [layer.weight for layer in layers], [
        layer.bias for layer in layers if layer.bias is not None
    ]


class SlicedLinear(nn.Module):
    """The variant of a projection that some lectures teach: head h projects only slice h of its
    input.

    (..., D) -> (..., H x K) with weights (H, K, D / H) instead of the paper's (H x K, D).
    """

    def __init__(self, inputs: int, outputs: int, heads: int, *, gain: float = 1.0) -> None:
        super().__init__()
        self.heads = heads
        self.weight = nn.Parameter(torch.empty(heads, outputs // heads, inputs // heads))
        self.bias = nn.Parameter(torch.zeros(outputs))
        for head in self.weight.unbind():
            nn.init.xavier_uniform_(head, gain)

    def forward(self, x: Tensor) -> Tensor:
        slices = x.unflatten(-1, (self.heads, -1))  # (..., H, D / H)
        weight = self.weight.to(x.dtype)
        out = torch.einsum("...hi,hki->...hk", slices, weight)  # (..., H, K)
        return out.flatten(-2) + self.bias.to(x.dtype)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, low: Tensor | None) -> Tensor:
    """Compute x Wᵀ + b. With ``low``, the bf16 copy of ``weight``, compute and return the result in
    bf16."""
    if low is None:
        return F.linear(x, weight, bias)
    out: Tensor = _LowPrecisionLinear.apply(x, weight, bias, low)  # type: ignore[no-untyped-call]
    return out


class _LowPrecisionLinear(torch.autograd.Function):
    """Products on bf16 copies; the gradients of weight and bias come back in fp32."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, low: Tensor) -> Tensor:
        x = x.to(low.dtype)
        ctx.save_for_backward(x, low)
        ctx.has_bias = bias is not None
        return F.linear(x, low, None if bias is None else bias.to(low.dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        (grad,) = grads
        x, low = ctx.saved_tensors
        rows = grad.reshape(-1, grad.shape[-1])
        grad_weight = (rows.t() @ x.reshape(-1, x.shape[-1])).float()
        grad_bias = rows.sum(0, dtype=torch.float32) if ctx.has_bias else None
        return grad @ low, grad_weight, grad_bias, None


def use_precision(model: nn.Module, precision: Precision, by_kernels: bool = False) -> None:
    """Make all of ``model`` compute in ``precision``, by native kernels or plain torch.

    Parameters stay in fp32: the kernels accept nothing else, and plain torch in "fp32" uses them
    directly.
    """
    for module in model.modules():
        if isinstance(module, Computing):
            module.choose(precision, by_kernels)


def prepare(model: nn.Module, dtype: torch.dtype) -> None:
    """Make all of ``model`` compute in ``dtype``, on weights laid out for inference."""
    for module in model.modules():
        if isinstance(module, Computing):
            module.prepare(dtype)


def kernels_fit(model: nn.Module, precision: Precision) -> bool:
    """True if this machine has native kernels for every layer of ``model``.

    A module with its own weights that is not a ``Computing`` has no kernels, so the result is
    False.
    """
    if not library.available():
        return False
    for module in model.modules():
        if isinstance(module, Computing):
            if not module.fits(precision):
                return False
        elif any(True for _ in module.parameters(False)):
            return False
    return True


def low_copy(weight: Tensor, precision: Precision, by_kernels: bool) -> Tensor | None:
    """Return the bf16 copy of a weight with which plain torch multiplies; None if none is
    needed."""
    return weight.detach().bfloat16() if precision == "bf16" and not by_kernels else None


def refresh(model: nn.Module) -> None:
    """Cast the fp32 weights again, or have them packed again, after an optimizer step. Plain fp32
    needs no update."""
    native.weights_changed()
    pairs = [pair for m in model.modules() if isinstance(m, Computing) for pair in m.copies()]
    if pairs:
        torch._foreach_copy_([low for low, _ in pairs], [weight.detach() for _, weight in pairs])


def lay_out(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> InferenceLinear | Int8Map:
    """Make the linear map y = x Wᵀ + b for inference: in fp32 or bf16, or in int8 by kernels, which
    must be available."""
    if dtype == torch.int8:
        return Int8Map(weight, bias)
    return InferenceLinear(weight, bias, dtype)


class InferenceLinear:
    """y = x Wᵀ + b, or an activation of that, in one precision: (P, K) -> (P, N).

    torch's own ``F.linear`` lays out weights again in every call, and in fp32 calls a library that
    is slow on some processors: 2.3 times slower than oneDNN on an AMD Zen 5. The oneDNN operators
    used here are torch's own (``torch.compile`` calls them). If a build of torch lacks them, or
    they do not agree with ``F.linear``, ``F.linear`` is used.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self.dtype = dtype
        low = weight.detach().to(dtype).contiguous()
        self._bias = None if bias is None else bias.detach().to(dtype)
        self._by_onednn = has_onednn(dtype)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(low) if self._by_onednn else low

    def __call__(self, x: Tensor, *, then: Activation | None = None) -> Tensor:
        if self._by_onednn:
            fused = "relu" if then == "relu" else "none"
            out: Tensor = torch.ops.mkldnn._linear_pointwise.default(
                x, self._weight, self._bias, fused, [], ""
            )
            return out if then in (None, "relu") else ACTIVATIONS[then](out)
        out = F.linear(x, self._weight, self._bias)
        return out if then is None else ACTIVATIONS[then](out)

    def any_rows(self, x: Tensor) -> Tensor:
        """Map x (..., K) of any type and number of rows; oneDNN gets as many as
        ``round_up`` says."""
        rows = x.reshape(-1, x.shape[-1]).to(self.dtype)
        spare = round_up(len(rows)) - len(rows) if self._by_onednn else 0
        if not spare:
            return self(rows).view(*x.shape[:-1], -1)
        return self(F.pad(rows, (0, 0, 0, spare)))[: len(rows)].view(*x.shape[:-1], -1)


@cache
def has_onednn(dtype: torch.dtype) -> bool:
    """Return True if torch has oneDNN's packed linear map here, and its results are right. This is
    tested once per process."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        x, weight, bias = (torch.randn(shape).to(dtype) for shape in ((5, 24), (40, 24), (40,)))
        expected = F.relu(F.linear(x, weight, bias)).float()
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(weight)
            result = torch.ops.mkldnn._linear_pointwise.default(x, packed, bias, "relu", [], "")
        except (AttributeError, RuntimeError, TypeError):
            return False
        return bool((result.float() - expected).norm() < 0.01 * expected.norm())


def round_up(rows: int) -> int:
    """Round ``rows`` up to one of eight numbers per power of two.

    oneDNN compiles code for each new number of rows, which costs as much as ten products, and keeps
    the code.
    """
    rows = max(1, rows)
    step = 1 << max(0, (rows - 1).bit_length() - 4)
    return -(-rows // step) * step
