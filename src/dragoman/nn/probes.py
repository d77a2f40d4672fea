"""Looking inside a forward pass, and reaching in, for the length of a ``with``.

    with Probe() as probe:
        memory = model.encode(source)
    for attention in model.attentions:
        probe.attention[attention.name]         # (B, H, T, S)

A probe belongs to the thread (and task) that opened it, never to a module, so requests served
side by side do not see each other. When none is open the cost is one look at a context variable.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar, Token
from typing import Literal

import torch
from torch import Tensor

opened: ContextVar[Probe | None] = ContextVar("probe", default=None)
"""The probe that is open here, if any."""

Point = Literal["query", "key", "value", "heads", "stream", "input", "added", "after"]
"""A place in an equation whose value can be kept.

Of an attention (paper §3.2): Q, K and V of every head, (B, H, T, K), (B, H, S, K), (B, H, S, Kv),
and ``heads``, what each makes of them, (B, H, T, Kv).

Of a sub-layer within its residual connection (§3.1), packed rows (P, D): ``stream``, the x that
comes in; ``input``, what Sublayer(·) is given (x, or with pre-norm LayerNorm(x)); ``added``, what
it makes of that; ``after``, what goes on to the next sub-layer.
"""


class Probe:
    """Records attention weights and activations by the name of what made them.

    ``attention[name]`` holds the weights (B, H, T, S) of the latest call of that attention,
    ``activations[name]`` the packed rows (P, D) of a layer, and ``taken[name, point]`` the values
    of those ``points`` that were asked for, of every attention and sub-layer that has them. Names
    are the model's to say (``attentions`` and ``sublayers`` of ``models/``).

    ``heads_off`` names heads, as (attention name, head), whose output is set to zero. ``hidden``
    are positions of the source that no attention may look at, as if the words were not there.
    ``positions_off``: the encoder is not told where the tokens of the source stand.
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
        """Called with what a first layer is to read, (P, D), while this probe is open -> what it
        reads in its place. Whoever wants to differentiate by it overrides this."""
        return rows

    def take_attention(self, name: str, weights: Tensor) -> None:
        """Called by every attention while this probe is open."""
        if self._record:
            self.attention[name] = weights.detach()

    def take_activation(self, name: str, rows: Tensor) -> None:
        """Called by every layer while this probe is open."""
        if self._record:
            self.activations[name] = rows.detach()

    def take(self, name: str, values: dict[Point, Tensor]) -> None:
        """Called by every attention and sub-layer while this probe is open."""
        for point in self._points & values.keys():
            self.taken[name, point] = values[point].detach()

    def maps(self, names: Sequence[str], rows: int, columns: int, dtype: torch.dtype) -> Tensor:
        """(L, H, rows, columns) of the first sequence, by those attentions; L is 0 where none is
        named. What was recorded of them is let go on the way."""
        maps = [self.attention.pop(name)[0].to(dtype) for name in names]
        return torch.stack(maps) if maps else torch.zeros(0, 0, rows, columns, dtype=dtype)

    def head_mask(self, name: str, heads: int, device: torch.device) -> Tensor | None:
        """(H,) float, 0 for a head that is switched off; None if this attention keeps all."""
        off = [head for attention, head in self._heads_off if attention == name]
        if not off:
            return None
        mask = torch.ones(heads, device=device)
        mask[off] = 0.0
        return mask

    def source_key_mask(self, positions: Tensor) -> Tensor | None:
        """(P,) positions of the source -> (P,) bool, False where one is hidden; None if none is."""
        if not self._hidden:
            return None
        hidden = torch.tensor(self._hidden, device=positions.device)
        return ~torch.isin(positions, hidden)


class Guide:
    """Asks one head for its attention weights, to be differentiated: what guided alignment trains.

        with Guide("decoder.2.cross_attention", 0) as guide:
            hidden = model.decode(target_in, memory)
        guide.weights                             # (B, T, S), part of the graph

    A probe records all weights and lets no kernel compute them; a guide costs the one head that it
    asks for, beside whatever computes the rest. It belongs to the thread that opened it.
    """

    def __init__(self, name: str, head: int) -> None:
        self.name = name
        self.head = head
        self.weights: Tensor | None = None
        """(B, T, S), without dropout; None before the attention was called."""
        self._token: Token[Guide] | None = None

    def __enter__(self) -> Guide:
        self._token = guiding.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        guiding.reset(self._token)


guiding: ContextVar[Guide] = ContextVar("guide", default=Guide("", 0))  # noqa: B039 (never written to)
"""The guide that is open here; else one that asks for no attention."""


def offer_weights(name: str, weights: Tensor) -> None:
    """Give weights (B, H, T, S) to the guide and the probe that are open here: called by an
    attention that has them at hand anyway."""
    if (guide := guiding.get()).name == name:
        guide.weights = weights[:, guide.head]
    if (probe := opened.get()) is not None:
        probe.take_attention(name, weights)
