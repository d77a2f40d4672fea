"""The layers of encoder and decoder (paper §3.1, §3.3).

A sub-layer is wrapped by a residual connection and a layer norm:

- post-norm, the paper's: x = LayerNorm(x + Dropout(Sublayer(x)))
- pre-norm, what many later models use: x = x + Dropout(Sublayer(LayerNorm(x))), and one more norm
  at the end of the stack

Either can be left out, to see its effect: without a norm x = x + Dropout(Sublayer(x)), without the
residual connection x = LayerNorm(Dropout(Sublayer(x))).

Rows are packed, (P, D); see ``layout.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.native import linear as native_linear
from dragoman.native import norm as native_norm
from dragoman.native.dropout import new_drop
from dragoman.nn import probes
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.cache import LayerCache
from dragoman.nn.dropout import Dropout
from dragoman.nn.layout import Layout
from dragoman.nn.linear import ACTIVATIONS, Computing, Linear, Precision
from dragoman.nn.settings import NORM_EPSILON, Activation, LayerSettings

Layer = TypeVar("Layer", bound=nn.Module)
Settings = TypeVar("Settings")


class LayerNorm(Computing):
    """Layer normalisation with gain and bias in fp32, whatever the precision of the rows. On a GPU,
    they are rounded to the precision of the rows for each use.

    ``sublayer`` identifies, for probes, the sub-layer whose residual connection the norm belongs
    to, such as "decoder.2.feed_forward"; it is empty for the norm at the end of a pre-norm stack.
    """

    def __init__(self, width: int, sublayer: str = "", eps: float = NORM_EPSILON) -> None:
        super().__init__()
        self.sublayer = sublayer
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self._by_kernels = False

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        self._by_kernels = by_kernels

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension of x (..., D)."""
        if self._by_kernels:
            return native_norm.layer_norm(x, self.weight, self.bias, eps=self.eps)
        if x.is_cuda and x.dtype != self.weight.dtype:
            # torch's kernel for GPUs asks for one type, and computes in fp32 inside.
            return native_norm.layer_norm_plain(x, self.weight, self.bias, eps=self.eps)
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)

    def after(
        self, x: Tensor, sublayer: Tensor, dropout: Dropout, row_keys: Tensor | None
    ) -> Tensor:
        """Compute post-norm in one call: LayerNorm(x + Dropout(sublayer)). ``row_keys``: see
        dropout.py."""
        if self._by_kernels:
            drop = new_drop(dropout.rate_now, row_keys)
            return native_norm.layer_norm(
                x, self.weight, self.bias, added=sublayer, eps=self.eps, drop=drop
            )
        return self.forward(dropout.forward(sublayer, row_keys, onto=x))


class NoNorm(nn.Module):
    """A placeholder for a layer norm, which returns rows unchanged."""

    def __init__(self, sublayer: str) -> None:
        """``sublayer``: see ``LayerNorm``."""
        super().__init__()
        self.sublayer = sublayer

    def forward(self, x: Tensor) -> Tensor:
        """Return x (..., D) unchanged."""
        return x


Sublayer = tuple[Callable[[Tensor], Tensor], LayerNorm | NoNorm]
"""The function that a sub-layer computes, (P, D) -> (P, D), and its norm."""


class Around(nn.Module):
    """The wrapping of each sub-layer of a layer: dropout, residual connection and norm.

    ``name`` identifies the layer for probes.
    """

    def __init__(self, settings: LayerSettings, name: str = "") -> None:
        super().__init__()
        self.settings = settings
        self.name = name
        self.dropout = Dropout(settings.dropout)

    def new_norm(self, sublayer: str) -> LayerNorm | NoNorm:
        """Make the norm of one sub-layer."""
        settings = self.settings
        if settings.norm == "none":
            return NoNorm(sublayer)
        return LayerNorm(settings.model_dim, sublayer, settings.norm_epsilon)

    def last_norm(self) -> LayerNorm | None:
        """Make the norm at the end of a stack; None unless the stack is pre-norm."""
        settings = self.settings
        if settings.norm != "pre":
            return None
        return LayerNorm(settings.model_dim, eps=settings.norm_epsilon)

    def forward(self, x: Tensor, row_keys: Tensor | None, *sublayers: Sublayer) -> Tensor:
        """Pass rows (P, D) through sub-layers, in their order. ``row_keys``: see dropout.py."""
        settings, probe = self.settings, probes.opened.get()
        for sublayer, norm in sublayers:
            given = norm(x) if settings.norm == "pre" else x
            added = sublayer(given)
            if settings.norm == "post" and settings.residual:
                assert isinstance(norm, LayerNorm)
                after = norm.after(x, added, self.dropout, row_keys)
            else:
                onto = x if settings.residual else None
                after = self.dropout.forward(added, row_keys, onto=onto)
                if settings.norm == "post":
                    after = norm(after)
            if probe is not None:
                points: dict[probes.Point, Tensor] = {"stream": x, "input": given}
                probe.take(norm.sublayer, {**points, "added": added, "after": after})
            x = after
        if probe is not None:
            probe.take_activation(self.name, x)
        return x


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (equation 2), for each position separately. The
    setting ``activation`` may replace max(0, ·) by another function."""

    def __init__(self, settings: LayerSettings) -> None:
        super().__init__()
        self.inner = Linear(settings.model_dim, settings.ffn_dim, hidden=True)
        self.outer = Linear(settings.ffn_dim, settings.model_dim, hidden=True)
        self.activation: Activation = settings.activation
        self.dropout = Dropout(settings.activation_dropout)

    def forward(self, x: Tensor, row_keys: Tensor | None = None) -> Tensor:
        """Compute FFN(x) of rows (P, D). ``row_keys`` (P,) of the rows, for dropout."""
        inner, outer = self.inner, self.outer
        if inner.packed is not None and outer.packed is not None and self.activation == "relu":
            assert inner.bias is not None and outer.bias is not None
            return native_linear.feed_forward(
                x,
                (inner.weight, inner.bias),
                (outer.weight, outer.bias),
                (inner.packed, outer.packed),
                drop=new_drop(self.dropout.rate_now, row_keys),
            )
        hidden = ACTIVATIONS[self.activation](inner(x))
        return outer(self.dropout(hidden, row_keys))  # type: ignore[no-any-return]


class Stack(nn.ModuleList, Generic[Layer]):
    """A ``ModuleList`` with the type of its layers, for type checkers."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Layer]: ...


def stack_of(
    make: Callable[[Settings, str], Layer], settings: Settings, name: str, count: int
) -> Stack[Layer]:
    """Make ``count`` layers, whose names are ``name`` with their numbers from 0."""
    return Stack([make(settings, f"{name}.{number}") for number in range(count)])


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward: a layer of an encoder, or of a decoder without an
    encoder."""

    def __init__(self, settings: LayerSettings, name: str) -> None:
        super().__init__()
        self.around = Around(settings, name)
        self.attention = MultiHeadAttention(
            settings.attention, settings.model_dim, f"{name}.attention"
        )
        self.attention_norm = self.around.new_norm(f"{name}.attention")
        self.feed_forward = FeedForward(settings)
        self.feed_forward_norm = self.around.new_norm(f"{name}.feed_forward")

    def forward(
        self, x: Tensor, layout: Layout, key_mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """Compute the layer for rows (P, D). ``causal``: no position attends to later ones."""
        row_keys = layout.row_keys if self.training else None
        attend = partial(self.attention, query_layout=layout, key_mask=key_mask, causal=causal)
        return self.around.forward(
            x,
            row_keys,
            (attend, self.attention_norm),
            (partial(self.feed_forward, row_keys=row_keys), self.feed_forward_norm),
        )

    def step(self, x: Tensor, new: int, cache: LayerCache) -> Tensor:
        """Compute the layer for ``new`` further positions of each row, with the past positions in
        ``cache``: (N x new, D) -> the same shape."""
        return self.around.forward(
            x,
            None,
            (partial(self.attention.step, new=new, cache=cache), self.attention_norm),
            (self.feed_forward, self.feed_forward_norm),
        )


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's memory, then feed-forward."""

    def __init__(self, settings: LayerSettings, name: str) -> None:
        super().__init__()
        self.around = Around(settings, name)
        width, attention = settings.model_dim, settings.attention
        self.self_attention = MultiHeadAttention(attention, width, f"{name}.self_attention")
        self.self_attention_norm = self.around.new_norm(f"{name}.self_attention")
        self.cross_attention = MultiHeadAttention(attention, width, f"{name}.cross_attention")
        self.cross_attention_norm = self.around.new_norm(f"{name}.cross_attention")
        self.feed_forward = FeedForward(settings)
        self.feed_forward_norm = self.around.new_norm(f"{name}.feed_forward")

    def forward(
        self,
        x: Tensor,
        layout: Layout,
        key_mask: Tensor | None,
        memory: Tensor,
        memory_layout: Layout,
        memory_key_mask: Tensor | None,
        *,
        causal: bool = True,
    ) -> Tensor:
        """Compute the layer for all positions at once: (P, D) over a memory (Ps, D) -> (P, D).
        ``causal``: no position attends to later ones."""
        row_keys = layout.row_keys if self.training else None
        look_back = partial(
            self.self_attention, query_layout=layout, key_mask=key_mask, causal=causal
        )
        look_over = partial(
            self.cross_attention,
            query_layout=layout,
            keys=memory,
            key_layout=memory_layout,
            key_mask=memory_key_mask,
        )
        return self.around.forward(
            x,
            row_keys,
            (look_back, self.self_attention_norm),
            (look_over, self.cross_attention_norm),
            (partial(self.feed_forward, row_keys=row_keys), self.feed_forward_norm),
        )

    def step(self, x: Tensor, new: int, cache: LayerCache) -> Tensor:
        """Compute the layer for ``new`` further positions of each row, with the past positions in
        ``cache``: (N x new, D) -> the same shape."""
        return self.around.forward(
            x,
            None,
            (partial(self.self_attention.step, new=new, cache=cache), self.self_attention_norm),
            (
                partial(self.cross_attention.look_over, new=new, cache=cache),
                self.cross_attention_norm,
            ),
            (self.feed_forward, self.feed_forward_norm),
        )
