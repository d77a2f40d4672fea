"""Asking one head for its attention weights, to be differentiated: what guided alignment trains.

    with Guide("decoder.2.cross_attention", 0) as guide:
        hidden = model.decode(target_in, memory)
    guide.weights                             # (B, T, S), part of the graph

A probe (``probes.py``) records all weights and lets no kernel compute them; a guide costs the one
head that it asks for, beside whatever computes the rest. It belongs to the thread that opened it.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

from torch import Tensor

_open: ContextVar[Guide | None] = ContextVar("guide", default=None)


class Guide:
    """Which head of which attention, by its name, and after a forward pass its weights."""

    def __init__(self, name: str, head: int) -> None:
        self.name = name
        self.head = head
        self.weights: Tensor | None = None
        """(B, T, S), without dropout; None before the attention was called."""
        self._token: Token[Guide | None] | None = None

    def __enter__(self) -> Guide:
        self._token = _open.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _open.reset(self._token)


def wanted(name: str) -> Guide | None:
    """The guide that asks for this attention, if one is open here."""
    guide = _open.get()
    return guide if guide is not None and guide.name == name else None


def offer(name: str, weights: Tensor) -> None:
    """(B, H, T, S): called by an attention that has its weights at hand anyway."""
    guide = wanted(name)
    if guide is not None:
        guide.weights = weights[:, guide.head]
