"""Linear layers for training, on weights that are packed once per update.

    linear        y = x Wᵀ + b, also for several matrices that read the same x
    feed_forward  Dropout(ReLU(x W_1ᵀ + b_1)) W_2ᵀ + b_2                    (paper, equation 2)

Parameters are fp32; ``PackedWeights`` holds them in the order the matrix kernel reads, in fp32 or
bf16, once for y = x Wᵀ and once for dx = dy W. Sums are kept in fp32 and the gradients of weights
and biases are fp32. Bias, ReLU and dropout happen while a result is still in registers.

P rows, K inputs, N outputs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from dragoman.native import loader
from dragoman.native.abi import POINTER, WHOLE, Part
from dragoman.native.dropout import NO_DROP, Drop
from dragoman.native.pointers import SUFFIXES, address, as_rows, sink

Precision = Literal["fp32", "bf16"]

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def is_supported(inputs: int, outputs: int, precision: Precision) -> bool:
    """True if this machine has the kernels, for these sizes (bf16 takes inputs in pairs)."""
    if not loader.is_loaded() or loader.function(f"pack_weights_{precision}") is None:
        return False
    return precision == "fp32" or inputs % 2 == 0


_changes = 0


def weights_changed() -> None:
    """Weights were written where torch's version counters do not see it: pack them again.

    So it is with parameters that are views into one flat buffer, after a step on the buffer.
    """
    global _changes
    _changes += 1


class PackedWeights:
    """Weights (N_i, K) fp32 of linear maps that read the same input, packed as one (sum N_i, K).

    They are packed when first used, and again after a change that torch has seen
    (``load_state_dict``, an optimizer of torch's) or that ``weights_changed`` tells of. The
    level that was in use when this was made decides how they are laid out, and its kernels read
    them.
    """

    def __init__(self, weights: Sequence[Tensor], precision: Precision) -> None:
        self.weights = tuple(weights)
        self.precision: Precision = precision
        self.dtype = TYPES[precision]
        self.inputs = weights[0].shape[1]
        self.sizes = tuple(weight.shape[0] for weight in weights)
        self.outputs = sum(self.sizes)
        self._level = loader.level_in_use()
        words = self.kernel(f"packed_words_{precision}")
        self._sizes = words(self.outputs, self.inputs), words(self.inputs, self.outputs)
        self._forward: Tensor | None = None
        self._backward: Tensor | None = None
        self._seen: tuple[tuple[int, int], ...] = ()

    def kernel(self, name: str) -> Any:
        """A kernel that reads these words: of the level for which they are laid out."""
        return loader.kernel(name, self._level)

    def forward_words(self) -> Tensor:
        """B operand of x Wᵀ, up to date."""
        if self._forward is None or self._seen != self._state():
            self._pack()
        assert self._forward is not None
        return self._forward

    def backward_words(self) -> Tensor:
        """B operand of dy W, as of the last ``forward_words``."""
        assert self._backward is not None
        return self._backward

    def _pack(self) -> None:
        if self._forward is None or self._backward is None:
            self._forward, self._backward = (
                torch.empty(size, dtype=torch.int32) for size in self._sizes
            )
        weights = [weight.detach().contiguous() for weight in self.weights]
        addresses = (POINTER * len(weights))(*map(address, weights))
        sizes = (WHOLE * len(weights))(*self.sizes)
        pack = self.kernel(f"pack_weights_{self.precision}")
        words = map(address, (self._forward, self._backward))
        pack(addresses, sizes, len(weights), self.inputs, *words)
        self._seen = self._state()

    def _state(self) -> tuple[tuple[int, int], ...]:
        seen = ((weight.data_ptr(), weight._version) for weight in self.weights)
        return ((_changes, 0), *seen)


def linear(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], packed: PackedWeights
) -> Tensor:
    """x (..., K) -> (..., sum N_i): every x W_iᵀ + b_i, side by side, in ``packed``'s precision.

    ``biases`` is empty for a map without bias.
    """
    out: Tensor = _Linear.apply(x, packed, len(weights), *weights, *biases)  # type: ignore[no-untyped-call]
    return out


def feed_forward(
    x: Tensor,
    inner: tuple[Tensor, Tensor],
    outer: tuple[Tensor, Tensor],
    packed: tuple[PackedWeights, PackedWeights],
    *,
    drop: Drop = NO_DROP,
) -> Tensor:
    """Dropout(ReLU(x W_1ᵀ + b_1)) W_2ᵀ + b_2: (..., D) -> (..., D).

    ``inner`` and ``outer`` are (weight, bias); ``drop`` is on the hidden activations.
    """
    out: Tensor = _FeedForward.apply(x, *inner, *outer, *packed, drop)  # type: ignore[no-untyped-call]
    return out


# ---- products on rows


def forward_rows(
    x: Tensor, packed: PackedWeights, bias: Tensor | None, relu: Drop | None = None
) -> Tensor:
    """x (P, K) -> (P, N); if ``relu`` is given, a ReLU and then that dropout follow."""
    out = torch.empty((x.shape[0], packed.outputs), dtype=packed.dtype)
    kernel = packed.kernel(f"linear_{'forward' if relu is None else 'relu'}_{packed.precision}")
    kernel(
        address(x),
        x.stride(0),
        address(packed.forward_words()),
        address(bias),
        address(out),
        out.stride(0),
        x.shape[0],
        packed.outputs,
        packed.inputs,
        *(() if relu is None else relu.for_kernel(len(x))),
    )
    return out


def backward_input_rows(
    grad: Tensor, packed: PackedWeights, hidden: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """dy (P, N), or (P, N + 1) in bf16 with an odd N -> dx (P, K); on through the ReLU and dropout
    that made ``hidden``, if given."""
    out = torch.empty((grad.shape[0], packed.inputs), dtype=packed.dtype)
    kernel = packed.kernel(f"linear_backward_input_{packed.precision}")
    kernel(
        address(grad),
        grad.stride(0),
        address(packed.backward_words()),
        address(out),
        out.stride(0),
        *grad.shape,
        packed.inputs,
        address(hidden),
        0 if hidden is None else hidden.stride(0),
        dropout,
    )
    return out


def weight_gradients(
    grad: Tensor, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]
) -> list[Tensor | None]:
    """dW_i = dy_iᵀ x, then all db_i, in fp32; None for what was added to ``.grad`` directly."""
    out: list[Tensor | None] = []
    parts = (Part * len(weights))()
    kept = []
    for parameter in (*weights, *biases):
        place = sink(parameter)
        out.append(torch.empty(parameter.shape) if place is None else None)
        kept.append(out[-1] if place is None else place)
    for i, weight in enumerate(weights):
        bias = kept[len(weights) + i] if biases else None
        add = out[i] is None
        if bias is not None and (out[len(weights) + i] is None) != add:
            raise RuntimeError("only one of a weight and its bias adds to its .grad directly")
        parts[i] = Part(address(kept[i]), address(bias), weight.shape[0], int(add))
    kernel = loader.kernel(f"linear_backward_weight_{SUFFIXES[grad.dtype]}")
    places = (address(grad), grad.stride(0), address(x), x.stride(0))
    kernel(*places, ctypes.addressof(parts), len(weights), grad.shape[0], x.shape[1])
    return out


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, packed: PackedWeights, count: int, *parameters: Tensor
    ) -> Tensor:
        biases = [bias.detach() for bias in parameters[count:]]
        rows = as_rows(x.detach().to(packed.dtype))
        bias = None if not biases else biases[0] if len(biases) == 1 else torch.cat(biases)
        ctx.save_for_backward(rows)
        ctx.packed, ctx.parameters, ctx.dtype = packed, (count, parameters), x.dtype
        return forward_rows(rows, packed, bias).view(*x.shape[:-1], packed.outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        (rows,) = ctx.saved_tensors
        packed: PackedWeights = ctx.packed
        count, parameters = ctx.parameters
        grad = as_rows(grads[0].to(packed.dtype))
        if packed.precision == "bf16" and packed.outputs % 2:  # it is multiplied in pairs
            grad = pad(grad, (0, 1))
        slopes = weight_gradients(grad, rows, parameters[:count], parameters[count:])
        dx = None
        if ctx.needs_input_grad[0]:
            dx = backward_input_rows(grad, packed).to(ctx.dtype)
            dx = dx.view(*grads[0].shape[:-1], packed.inputs)
        return (dx, None, None, *slopes)


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        inner_weight: Tensor,
        inner_bias: Tensor,
        outer_weight: Tensor,
        outer_bias: Tensor,
        inner: PackedWeights,
        outer: PackedWeights,
        drop: Drop,
    ) -> Tensor:
        rows = as_rows(x.detach().to(inner.dtype))
        hidden = forward_rows(rows, inner, inner_bias.detach(), drop)
        ctx.save_for_backward(rows, hidden)
        ctx.packed, ctx.dropout, ctx.dtype = (inner, outer), drop.rate, x.dtype
        ctx.parameters = (inner_weight, inner_bias, outer_weight, outer_bias)
        out = forward_rows(hidden, outer, outer_bias.detach())
        return out.view(*x.shape[:-1], outer.outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        rows, hidden = ctx.saved_tensors
        inner, outer = ctx.packed
        inner_weight, inner_bias, outer_weight, outer_bias = ctx.parameters
        grad = as_rows(grads[0].to(outer.dtype))
        outer_slopes = weight_gradients(grad, hidden, [outer_weight], [outer_bias])
        inner_grad = backward_input_rows(grad, outer, hidden, ctx.dropout)
        inner_slopes = weight_gradients(inner_grad, rows, [inner_weight], [inner_bias])
        dx = None
        if ctx.needs_input_grad[0]:
            dx = backward_input_rows(inner_grad, inner).to(ctx.dtype)
            dx = dx.view(*grads[0].shape[:-1], inner.inputs)
        return (dx, *inner_slopes, *outer_slopes, *[None] * 3)
