"""Scaled dot-product attention and its multi-head form (paper §3.2).

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                                     (equation 1)
    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O
    head_i             = Attention(Q W_i^Q, K W_i^K, V W_i^V)                       (§3.2.2)

``scaled_dot_product`` is the plain formula and the reference; torch has a kernel of its own, which
on a GPU never holds the (T, S) weights. Both need a padded (B, L) grid; everywhere else, rows are
packed (see ``layout.py``). Paper to code: h ``num_heads``, d_k ``key_width``, d_v ``value_width``,
W^Q ``query``, W^K ``key``, W^V ``value``, W^O ``output``.

Masks are boolean; True = may attend. They are made for the padded grid, since only there a cell may
be empty, and broadcast over heads: (B or 1, 1, T or 1, S), with B sequences, T queries, S keys.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.native import attention as native
from dragoman.native import linear as native_linear
from dragoman.native.dropout import new_drop, numbers
from dragoman.nn import probes
from dragoman.nn.cache import LayerCache
from dragoman.nn.dropout import attention_factors
from dragoman.nn.layout import Layout
from dragoman.nn.linear import Computing, Linear, Precision, SlicedLinear, joint_parameters
from dragoman.nn.settings import AttentionSettings


def scaled_dot_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    scale: float,
    rate: float = 0.0,
    row_keys: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute equation 1 literally. Return outputs (B, H, T, Kv) and weights (B, H, T, S).

    ``query`` (B, H, T, K), ``key`` (B, H, S, K), ``value`` (B, H, S, Kv).

    ``mask`` broadcasts to (B, H, T, S), True = may attend. A query that may attend to nothing gets
    weights of zero. ``rate``: the rate of dropout on the weights; ``row_keys`` (B, T): the keys of
    the query rows for dropout. The returned weights are without dropout.
    """
    weights = softmax((query * scale) @ key.transpose(-2, -1), mask)  # (B, H, T, S)
    dropped = weights
    if rate > 0.0:
        heads, queries, keys = weights.shape[-3:]
        if row_keys is None:
            row_keys = numbers(weights.shape[0] * queries, weights.device).view(-1, queries)
        factors = attention_factors(row_keys, heads, keys, rate, weights.dtype)
        dropped = F.dropout(weights, rate) if factors is None else weights * factors
    return dropped @ value, weights


def softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Turn scores (..., S) into weights that sum to 1 over the cells where ``mask`` is True (may
    attend), or are all 0 if there are none."""
    if mask is None:
        return torch.softmax(scores, dim=-1)
    # The lowest finite value instead of -inf: a row with nothing to attend to stays finite.
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


class MultiHeadAttention(Computing):
    """Multi-head attention over packed rows.

    ``name`` identifies the attention for probes, such as "decoder.2.cross_attention".
    """

    def __init__(self, settings: AttentionSettings, model_dim: int, name: str) -> None:
        super().__init__()
        self.name = name
        self.path = settings.path
        self.rate = settings.dropout
        self.heads = settings.num_heads
        self.key_width = settings.key_width or model_dim // self.heads
        self.value_width = settings.value_width or self.key_width
        self.scale = 1.0 / math.sqrt(self.key_width) if settings.scaled else 1.0
        keys, values = self.heads * self.key_width, self.heads * self.value_width
        # Gain 1/√2: queries, keys and values are drawn as the one (D, 3D) matrix they form
        # together. Post-norm models do not start to learn when they are drawn wider.
        gain = 1.0 / math.sqrt(2.0)
        if settings.whole_input:
            self.query: Linear | SlicedLinear = Linear(model_dim, keys, gain=gain, hidden=True)
            self.key: Linear | SlicedLinear = Linear(model_dim, keys, gain=gain, hidden=True)
            self.value: Linear | SlicedLinear = Linear(model_dim, values, gain=gain, hidden=True)
        else:
            self.query = SlicedLinear(model_dim, keys, self.heads, gain=gain)
            self.key = SlicedLinear(model_dim, keys, self.heads, gain=gain)
            self.value = SlicedLinear(model_dim, values, self.heads, gain=gain)
        self.output = Linear(values, model_dim, hidden=True)
        self._joint: tuple[native_linear.PackedWeights, native_linear.PackedWeights] | None = None

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """Pack W^Q, W^K, W^V as one matrix, and W^K, W^V as another, if kernels are used."""
        self._joint = None
        if by_kernels:
            weights = [part.weight for part in (self.query, self.key, self.value)]
            self._joint = (
                native_linear.PackedWeights(weights, precision),
                native_linear.PackedWeights(weights[1:], precision),
            )

    def forward(
        self,
        queries: Tensor,
        query_layout: Layout,
        keys: Tensor | None = None,
        key_layout: Layout | None = None,
        *,
        key_mask: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Let queries (Pq, D) attend to keys (Pk, D) of the same B sequences. Return (Pq, D).
        Without ``keys``, the queries attend to themselves.

        ``key_mask`` (Pk,) bool is False for keys that are hidden; ``causal`` hides the keys after
        each query.
        """
        if keys is None or key_layout is None:
            keys, key_layout = queries, query_layout
        if (guide := probes.guiding.get()).name == self.name:
            guide.weights = self._weights_of(
                guide.head, queries, query_layout, keys, key_layout, key_mask
            )
        if self._joint is not None and key_mask is None and probes.opened.get() is None:
            return self._by_kernels(queries, query_layout, keys, key_layout, causal)
        query, key, value = self.query(queries), self.key(keys), self.value(keys)
        mask = mask_of_keys(key_layout, key_mask)
        if causal:
            mask = both_masks(mask, causal_mask(key_layout.longest, queries.device))
        out = self.attend(
            self.split(query_layout.pad(query)),  # (B, H, T, K)
            self.split(key_layout.pad(key)),  # (B, H, S, K)
            self.split(key_layout.pad(value)),  # (B, H, S, Kv)
            mask,
            query_layout,
        )
        return self.output(query_layout.pack(self.join(out)))  # type: ignore[no-any-return]

    def _weights_of(
        self,
        head: int,
        queries: Tensor,
        query_layout: Layout,
        keys: Tensor,
        key_layout: Layout,
        key_mask: Tensor | None,
    ) -> Tensor:
        """Return the weights (B, T, S) of one head in fp32, without dropout and without a causal
        mask."""
        query = self.split(query_layout.pad(self.query(queries)))[:, head]  # (B, T, K)
        key = self.split(key_layout.pad(self.key(keys)))[:, head]  # (B, S, K)
        scores = (query.float() * self.scale) @ key.float().transpose(-2, -1)  # (B, T, S)
        mask = mask_of_keys(key_layout, key_mask)
        return softmax(scores, None if mask is None else mask[:, 0])

    def _by_kernels(
        self, queries: Tensor, query_layout: Layout, keys: Tensor, key_layout: Layout, causal: bool
    ) -> Tensor:
        """Compute ``forward`` without padding: the kernels attend directly to packed sentences."""
        parts = [p for p in (self.query, self.key, self.value) if isinstance(p, Linear)]
        assert self._joint is not None and len(parts) == 3
        drop = new_drop(self.rate if self.training else 0.0, query_layout.row_keys)
        if queries is keys:
            tensors = [native_linear.linear(queries, *joint_parameters(*parts), self._joint[0])]
        else:
            joint = native_linear.linear(keys, *joint_parameters(*parts[1:]), self._joint[1])
            tensors = [self.query(queries), joint]
        out = native.attention(
            tensors,
            query_layout.offsets,
            key_layout.offsets,
            heads=self.heads,
            scale=self.scale,
            key_width=self.key_width,
            causal=causal,
            drop=drop,
        )
        return self.output(out)  # type: ignore[no-any-return]

    def step(self, x: Tensor, new: int, cache: LayerCache) -> Tensor:
        """Let ``new`` further positions of each row attend to themselves and to all positions
        before them, whose keys and values are in ``cache``: (N x new, D) -> the same shape."""
        grid = x.unflatten(0, (-1, new))  # (N, t, D)
        key, value, mask = cache.append(self.split(self.key(grid)), self.split(self.value(grid)))
        out = self.join(self.attend(self.split(self.query(grid)), key, value, mask))
        return self.output(out.flatten(0, 1))  # type: ignore[no-any-return]

    def look_over(self, x: Tensor, new: int, cache: LayerCache) -> Tensor:
        """Let ``new`` further positions of each row attend to the row's source, whose keys and
        values are in ``cache``: (N x new, D) -> the same shape."""
        queries = cache.shared.queries_by_source(new)
        query = self.split(queries.pad(self.query(x)))  # (B, H, rows x t, K)
        mask = cache.shared.source_mask
        out = self.attend(query, cache.source_key, cache.source_value, mask)
        return self.output(queries.pack(self.join(out)))  # type: ignore[no-any-return]

    def split(self, grid: Tensor) -> Tensor:
        """Split the columns of a grid into heads: (B, L, H x K) -> (B, H, L, K)."""
        heads: Tensor = grid.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return heads

    def join(self, heads: Tensor) -> Tensor:
        """Concat(head_1, ..., head_h): (B, H, T, Kv) -> (B, T, H x Kv)."""
        return heads.transpose(1, 2).flatten(-2)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        layout: Layout | None = None,
    ) -> Tensor:
        """Compute attention on the path that ``settings.path`` chooses: (B, H, T, K), (B, H, S, K),
        (B, H, S, Kv) -> (B, H, T, Kv).

        ``layout`` is the layout of the queries, which has the row keys for dropout.
        """
        rate = self.rate if self.training else 0.0
        row_keys = layout.row_keys if layout is not None and rate > 0.0 else None
        probe = probes.opened.get()
        # Measured on CPUs: for narrow heads the fused kernel is slower than the plain formula,
        # and ten times slower in bf16 with a mask. On a GPU it is the one to use.
        plain = self.path == "plain" or (self.path == "auto" and query.device.type == "cpu")
        if probe is None and not plain and row_keys is None:  # torch's kernel draws its own masks
            return F.scaled_dot_product_attention(query, key, value, mask, rate, scale=self.scale)
        out, weights = scaled_dot_product(
            query, key, value, mask, scale=self.scale, rate=rate,
            row_keys=None if row_keys is None or layout is None else layout.pad(row_keys),
        )  # fmt: skip
        if probe is not None:
            probe.take_attention(self.name, weights)
            kept = probe.head_mask(self.name, self.heads, out.device)
            if kept is not None:
                out = out * kept[:, None, None].to(out.dtype)
            probe.take(self.name, {"query": query, "key": key, "value": value, "heads": out})
        return out


def mask_of_keys(keys: Layout, key_mask: Tensor | None) -> Tensor | None:
    """Return the mask (B, 1, 1, S), in which no query attends to an empty cell, nor to a key for
    which ``key_mask`` (P,) is False, such as an unknown token. None if every key may be attended
    to."""
    if key_mask is not None:
        return keys.pad(key_mask)[:, None, None, :]  # empty cells get False
    return None if keys.is_even else keys.mask[:, None, None, :]


def causal_mask(length: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the mask (1, 1, T, T) in which the query at position t attends to keys 0..t (paper
    §3.2.3)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def both_masks(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """Combine two masks: a key must be allowed by both. None allows everything."""
    if first is None:
        return second
    return first if second is None else first & second
