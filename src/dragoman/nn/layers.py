"""The layers of encoder and decoder (paper §3.1, §3.3).

A sub-layer is wrapped by a residual connection and a layer norm:

- post-norm, the paper's: x = LayerNorm(x + Dropout(Sublayer(x)))
- pre-norm, what many later models use: x = x + Dropout(Sublayer(LayerNorm(x))), and one more norm
  at the end of the stack

Either can be left out, to see what it is good for: without a norm x = x + Dropout(Sublayer(x)),
without the residual connection x = LayerNorm(Dropout(Sublayer(x))).

Rows are packed, (P, D); see ``layout.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.native import linear as native_linear
from dragoman.native import norm as native_norm
from dragoman.native.dropout import new_drop
from dragoman.nn import probes
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.cache import LayerCache
from dragoman.nn.dropout import Dropout, dropout
from dragoman.nn.layout import Layout
from dragoman.nn.linear import ACTIVATIONS, Computing, Linear, Precision
from dragoman.nn.settings import NORM_EPSILON, Activation, LayerSettings

Layer = TypeVar("Layer", bound=nn.Module)


class LayerNorm(Computing):
    """LayerNorm with gain and bias in fp32, whatever the precision of the rows; on a GPU they are
    rounded to that of the rows for each use.

    ``sublayer`` is what probes know the sub-layer by whose residual connection it belongs to,
    "decoder.2.feed_forward" say; the norm at the end of a pre-norm stack belongs to none.
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
        """(..., D) -> (..., D)."""
        if self._by_kernels:
            return native_norm.layer_norm(x, self.weight, self.bias, eps=self.eps)
        if x.is_cuda and x.dtype != self.weight.dtype:
            # torch's kernel for GPUs asks for one type, and computes in fp32 inside.
            return native_norm.layer_norm_plain(x, self.weight, self.bias, eps=self.eps)
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)

    def after(self, x: Tensor, sublayer: Tensor, rate: float, row_keys: Tensor | None) -> Tensor:
        """Post-norm in one call: LayerNorm(x + Dropout(sublayer)); ``row_keys``: dropout.py."""
        if self._by_kernels:
            drop = new_drop(rate if self.training else 0.0, row_keys)
            return native_norm.layer_norm(
                x, self.weight, self.bias, added=sublayer, eps=self.eps, drop=drop
            )
        return self.forward(dropout(sublayer, rate, self.training, row_keys, onto=x))


class NoNorm(nn.Module):
    """Stands where a layer norm would, and lets rows through as they are."""

    def __init__(self, sublayer: str) -> None:
        """``sublayer``: as that of a ``LayerNorm``."""
        super().__init__()
        self.sublayer = sublayer

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> the same."""
        return x


@dataclass(frozen=True)
class Around:
    """What stands around each sub-layer: dropout, its residual connection, its norm."""

    settings: LayerSettings

    def new_norm(self, width: int, sublayer: str) -> LayerNorm | NoNorm:
        """The norm of one sub-layer."""
        if self.settings.norm == "none":
            return NoNorm(sublayer)
        return LayerNorm(width, sublayer, self.settings.norm_epsilon)

    def last_norm(self, width: int) -> LayerNorm | None:
        """The norm at the end of a stack."""
        settings = self.settings
        return LayerNorm(width, eps=settings.norm_epsilon) if settings.norm == "pre" else None

    def __call__(
        self,
        x: Tensor,
        sublayer: Callable[[Tensor], Tensor],
        norm: LayerNorm | NoNorm,
        row_keys: Tensor | None,
    ) -> Tensor:
        """(P, D) -> (P, D). ``norm`` is that of the sub-layer, ``row_keys`` as in dropout.py."""
        settings = self.settings
        given = norm(x) if settings.norm == "pre" else x
        added = sublayer(given)
        if settings.norm == "post" and settings.residual:
            assert isinstance(norm, LayerNorm)
            after = norm.after(x, added, settings.dropout, row_keys)
        else:
            onto = x if settings.residual else None
            after = dropout(added, settings.dropout, norm.training, row_keys, onto=onto)
            if settings.norm == "post":
                after = norm(after)
        probe = probes.probe()
        if probe is not None:
            probe.take(norm.sublayer, {"stream": x, "input": given, "added": added, "after": after})
        return after


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (equation 2), each position by itself. The setting
    ``activation`` may put another function in the place of max(0, ·)."""

    def __init__(self, settings: LayerSettings) -> None:
        super().__init__()
        self.inner = Linear(settings.model_dim, settings.ffn_dim, hidden=True)
        self.outer = Linear(settings.ffn_dim, settings.model_dim, hidden=True)
        self.activation: Activation = settings.activation
        self.dropout = Dropout(settings.activation_dropout)

    def forward(self, x: Tensor, row_keys: Tensor | None = None) -> Tensor:
        """(P, D) -> (P, D); ``row_keys`` (P,) of the rows, for dropout."""
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


def show(name: str, x: Tensor) -> None:
    """Let an open probe have the rows (P, D) that leave a layer."""
    probe = probes.probe()
    if probe is not None:
        probe.take_activation(name, x)


class Stack(nn.ModuleList, Generic[Layer]):
    """A ``ModuleList`` that knows what its layers are."""

    def __iter__(self) -> Iterator[Layer]:
        return super().__iter__()  # type: ignore[return-value]


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward: of an encoder, or of a decoder without one."""

    def __init__(self, settings: LayerSettings, name: str) -> None:
        super().__init__()
        self.name = name
        self.around = Around(settings)
        width = settings.model_dim
        self.attention = MultiHeadAttention(settings.attention, width, f"{name}.attention")
        self.attention_norm = self.around.new_norm(width, f"{name}.attention")
        self.feed_forward = FeedForward(settings)
        self.feed_forward_norm = self.around.new_norm(width, f"{name}.feed_forward")

    def forward(
        self, x: Tensor, layout: Layout, key_mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """(P, D) -> (P, D). ``causal``: no position attends to later ones."""

        def attend(y: Tensor) -> Tensor:
            return self.attention(y, layout, y, layout, key_mask=key_mask, causal=causal)  # type: ignore[no-any-return]

        return self._wrap(x, attend, layout.row_keys if self.training else None)

    def step(self, x: Tensor, new: int, cache: LayerCache) -> Tensor:
        """``new`` further positions of each row, past ones from ``cache``: (N x new, D) -> same."""
        return self._wrap(x, lambda y: self.attention.step(y, new, cache), None)

    def _wrap(
        self, x: Tensor, attend: Callable[[Tensor], Tensor], row_keys: Tensor | None
    ) -> Tensor:
        feed = partial(self.feed_forward, row_keys=row_keys)
        x = self.around(x, attend, self.attention_norm, row_keys)
        x = self.around(x, feed, self.feed_forward_norm, row_keys)
        show(self.name, x)
        return x


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's memory, then feed-forward."""

    def __init__(self, settings: LayerSettings, name: str) -> None:
        super().__init__()
        self.name = name
        self.around = Around(settings)
        width = settings.model_dim
        self.self_attention = MultiHeadAttention(
            settings.attention, width, f"{name}.self_attention"
        )
        self.self_attention_norm = self.around.new_norm(width, f"{name}.self_attention")
        self.cross_attention = MultiHeadAttention(
            settings.attention, width, f"{name}.cross_attention"
        )
        self.cross_attention_norm = self.around.new_norm(width, f"{name}.cross_attention")
        self.feed_forward = FeedForward(settings)
        self.feed_forward_norm = self.around.new_norm(width, f"{name}.feed_forward")

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
        """All positions at once: (P, D) over a memory (Ps, D) -> (P, D). ``causal``: whether each
        looks at those before it alone."""

        def look_back(y: Tensor) -> Tensor:
            return self.self_attention(y, layout, y, layout, key_mask=key_mask, causal=causal)  # type: ignore[no-any-return]

        def look_over(y: Tensor) -> Tensor:
            return self.cross_attention(y, layout, memory, memory_layout, key_mask=memory_key_mask)  # type: ignore[no-any-return]

        return self._wrap(x, look_back, look_over, layout.row_keys if self.training else None)

    def step(self, x: Tensor, new: int, cache: LayerCache) -> Tensor:
        """``new`` further positions of each row, past ones from ``cache``: (N x new, D) -> same."""

        def look_back(y: Tensor) -> Tensor:
            return self.self_attention.step(y, new, cache)

        def look_over(y: Tensor) -> Tensor:
            attention = self.cross_attention
            queries = cache.queries_by_source(new)
            query = attention.split(queries.pad(attention.query(y)))  # (B, H, rows x t, K)
            out = attention.attend(query, cache.source_key, cache.source_value, cache.source_mask)
            return attention.output(queries.pack(attention.join(out)))  # type: ignore[no-any-return]

        return self._wrap(x, look_back, look_over, None)

    def _wrap(
        self,
        x: Tensor,
        look_back: Callable[[Tensor], Tensor],
        look_over: Callable[[Tensor], Tensor],
        row_keys: Tensor | None,
    ) -> Tensor:
        """The three sub-layers in their order, each within its residual connection."""
        feed = partial(self.feed_forward, row_keys=row_keys)
        x = self.around(x, look_back, self.self_attention_norm, row_keys)
        x = self.around(x, look_over, self.cross_attention_norm, row_keys)
        x = self.around(x, feed, self.feed_forward_norm, row_keys)
        show(self.name, x)
        return x
