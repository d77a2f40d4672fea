"""Looking inside a forward pass, and reaching in, for the length of a ``with``.

    with Probe() as probe:
        memory = model.encode(source)
    probe.attention["encoder.0.attention"]      # (B, H, S, S)

A probe belongs to the thread (and task) that opened it, never to a module, so requests served
side by side do not see each other. When none is open the cost is one look at a context variable.
"""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar, Token

import torch
from torch import Tensor

_open: ContextVar[Probe | None] = ContextVar("probe", default=None)


class Probe:
    """Records attention weights and activations by the name of the module that made them.

    ``attention[name]`` holds the weights (B, H, T, S) of the latest call of that attention, or
    with ``every_step`` a list of all calls. ``activations[name]`` holds packed rows (P, D).
    ``heads_off`` names heads, as (attention name, head), whose output is set to zero. ``hidden``
    are positions of the source that no attention may look at, as if the words were not there.
    """

    def __init__(
        self,
        *,
        heads_off: Collection[tuple[str, int]] = (),
        hidden: Collection[int] = (),
        every_step: bool = False,
        record: bool = True,
    ) -> None:
        self.attention: dict[str, Tensor] = {}
        self.steps: dict[str, list[Tensor]] = {}
        self.activations: dict[str, Tensor] = {}
        self._heads_off = frozenset(heads_off)
        self._hidden = tuple(hidden)
        self._every_step = every_step
        self._record = record
        self._token: Token[Probe | None] | None = None

    def __enter__(self) -> Probe:
        self._token = _open.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _open.reset(self._token)

    def take_attention(self, name: str, weights: Tensor) -> None:
        """Called by every attention while this probe is open."""
        if not self._record:
            return
        self.attention[name] = weights.detach()
        if self._every_step:
            self.steps.setdefault(name, []).append(weights.detach())

    def take_activation(self, name: str, rows: Tensor) -> None:
        """Called by every layer while this probe is open."""
        if self._record:
            self.activations[name] = rows.detach()

    def head_mask(self, name: str, heads: int, device: torch.device) -> Tensor | None:
        """(H,) float, 0 for a head that is switched off; None if this attention keeps all."""
        off = [head for attention, head in self._heads_off if attention == name]
        if not off:
            return None
        mask = torch.ones(heads, device=device)
        mask[off] = 0.0
        return mask

    def source_shown(self, positions: Tensor) -> Tensor | None:
        """(P,) positions of the source -> (P,) bool, False where one is hidden; None if none is."""
        if not self._hidden:
            return None
        hidden = torch.tensor(self._hidden, device=positions.device)
        return ~torch.isin(positions, hidden)


def probe() -> Probe | None:
    """The probe that is open here, if any."""
    return _open.get()
