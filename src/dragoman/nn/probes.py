"""Probes record what happens inside a forward pass, and change it, during a ``with`` block.

    with Probe() as probe:
        memory = model.encode(source)
    for attention in model.attentions:
        probe.attention[attention.name]         # (B, H, T, S)

A probe belongs to the thread (and asyncio task) that opened it, never to a module, so requests that
are served at the same time do not affect each other. While no probe is open, the cost is one read
of a context variable.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar, Token
from typing import Literal

import torch
from torch import Tensor

opened: ContextVar[Probe | None] = ContextVar("probe", default=None)
"""The probe that is open in this thread; None if there is none."""

Point = Literal["query", "key", "value", "heads", "stream", "input", "added", "after"]
"""A place in an equation whose value a probe can keep.

An attention (paper §3.2) has ``query``, ``key`` and ``value``, the Q, K and V of every head,
(B, H, T, K), (B, H, S, K), (B, H, S, Kv), and ``heads``, the output of every head, (B, H, T, Kv).

A sub-layer within its residual connection (§3.1) has packed rows (P, D): ``stream``, the x that
enters; ``input``, the argument of Sublayer(·) (x, or with pre-norm LayerNorm(x)); ``added``, the
value of Sublayer(·); ``after``, the x of the next sub-layer.
"""


class Probe:
    """Records attention weights and activations, by the names of the attentions and layers, and
    intervenes in a forward pass.

    ``attention[name]`` holds the weights (B, H, T, S) of the latest call of that attention,
    ``activations[name]`` the packed rows (P, D) of a layer, and ``taken[name, point]`` the values
    at the requested ``points`` of every attention and sub-layer that has them. The model defines
    the names (``attentions`` and ``sublayers`` of ``models/``).

    ``heads_off`` names heads, as (attention name, head), whose output is set to zero. ``hidden``
    are positions of the source that no attention may attend to; the other tokens keep their
    positions. ``positions_off``: the encoder gets no positions of the source tokens. ``record``:
    False to record no attention weights and activations.
    """

    def __init__(
        self,
        *,
        heads_off: Collection[tuple[str, int]] = (),
        hidden: Collection[int] = (),
        positions_off: bool = False,
        points: Collection[Point] = (),
        record: bool = True,
    ) -> None:
        self.attention: dict[str, Tensor] = {}
        self.activations: dict[str, Tensor] = {}
        self.taken: dict[tuple[str, Point], Tensor] = {}
        self.positions_off = positions_off
        self._heads_off = frozenset(heads_off)
        self._hidden = tuple(hidden)
        self._points = frozenset(points)
        self._record = record
        self._token: Token[Probe | None] | None = None

    def __enter__(self) -> Probe:
        self._token = opened.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        opened.reset(self._token)

    def take_embedded(self, rows: Tensor) -> Tensor:
        """Called with the input (P, D) of a first layer while this probe is open. Return the input
        that the layer reads instead. A subclass that needs gradients of the input overrides
        this."""
        return rows

    def take_attention(self, name: str, weights: Tensor) -> None:
        """Record the weights of an attention. Every attention calls this while the probe is
        open."""
        if self._record:
            self.attention[name] = weights.detach()

    def take_activation(self, name: str, rows: Tensor) -> None:
        """Record the output rows of a layer. Every layer calls this while the probe is open."""
        if self._record:
            self.activations[name] = rows.detach()

    def take(self, name: str, values: dict[Point, Tensor]) -> None:
        """Record the values at the requested points. Every attention and sub-layer calls this while
        the probe is open."""
        for point in self._points & values.keys():
            self.taken[name, point] = values[point].detach()

    def maps(self, names: Sequence[str], rows: int, columns: int, dtype: torch.dtype) -> Tensor:
        """Return the recorded weights (L, H, rows, columns) of the attentions ``names`` for the
        first sequence, and forget them. L is 0 if ``names`` is empty."""
        maps = [self.attention.pop(name)[0].to(dtype) for name in names]
        return torch.stack(maps) if maps else torch.zeros(0, 0, rows, columns, dtype=dtype)

    def head_mask(self, name: str, heads: int, device: torch.device) -> Tensor | None:
        """Return factors (H,) float, 0 for a head that is switched off; None if this attention
        keeps all heads."""
        off = [head for attention, head in self._heads_off if attention == name]
        if not off:
            return None
        mask = torch.ones(heads, device=device)
        mask[off] = 0.0
        return mask

    def source_key_mask(self, positions: Tensor) -> Tensor | None:
        """Return flags (P,), False for the ``positions`` (P,) of the source that are hidden; None
        if none is."""
        if not self._hidden:
            return None
        hidden = torch.tensor(self._hidden, device=positions.device)
        return ~torch.isin(positions, hidden)


class Guide:
    """Gets the attention weights of one head with their gradient graph, which guided alignment
    trains.

        with Guide("decoder.2.cross_attention", 0) as guide:
            hidden = model.decode(target_in, memory)
        guide.weights                             # (B, T, S), part of the graph

    A probe records all weights and prevents the use of kernels; a guide only costs the computation
    of one head, in addition to the usual one. A guide belongs to the thread that opened it.
    """

    def __init__(self, name: str, head: int) -> None:
        self.name = name
        self.head = head
        self.weights: Tensor | None = None
        """(B, T, S), without dropout; None until the attention is called."""
        self._token: Token[Guide] | None = None

    def __enter__(self) -> Guide:
        self._token = guiding.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        guiding.reset(self._token)


guiding: ContextVar[Guide] = ContextVar("guide", default=Guide("", 0))  # noqa: B039 (never written to)
"""The guide that is open in this thread, or one that names no attention."""


def offer_weights(name: str, weights: Tensor) -> None:
    """Give weights (B, H, T, S) to the guide and the probe that are open. An attention that
    computes its weights anyway calls this."""
    if (guide := guiding.get()).name == name:
        guide.weights = weights[:, guide.head]
    if (probe := opened.get()) is not None:
        probe.take_attention(name, weights)
