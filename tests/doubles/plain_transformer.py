"""The paper's model over a weights file in NumPy alone, to compare figures with. Not a test.

Norms after each sub-layer, or before it and once at the end; sines, ReLU, biases everywhere,
embeddings scaled by √d and shared with the output: what the tests' runs are. fp64, one sentence at
a time, no batch, no cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float64]


class Sublayer(NamedTuple):
    """Rows around one sub-layer, (T, D) each."""

    name: str
    stream: Array
    added: Array
    after: Array


class Reading(NamedTuple):
    """What a stack of layers made of a sentence."""

    rows: Array
    attention: Mapping[str, Array]
    """``encoder.0.attention`` -> (H, T, S) weights."""
    sublayers: Sequence[Sublayer]


def softmax(scores: Array) -> Array:
    """Over the last axis."""
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    share: Array = grown / grown.sum(-1, keepdims=True)
    return share


class PlainTransformer:
    """The model of a run folder with ``heads`` heads."""

    def __init__(self, run: Path, heads: int) -> None:
        self.heads = heads
        self.weights: dict[str, Array] = {
            name: array.astype(np.float64)
            for name, array in load_file(run / "model.safetensors").items()
        }
        self.is_pre = "encoder_norm.weight" in self.weights
        names = [name.split(".")[:2] for name in self.weights]
        self.layers = {
            side: 1 + max(int(name[1]) for name in names if name[0] == side)
            for side in ("encoder", "decoder")
        }

    def encode(self, ids: Sequence[int], *, positions: bool = True) -> Reading:
        """Source tokens -> (S, D)."""
        x = self._embedded(ids, positions=positions)
        attention: dict[str, Array] = {}
        passed: list[Sublayer] = []
        for i in range(self.layers["encoder"]):
            x = self._attend(f"encoder.{i}.attention", x, None, None, attention, passed)
            x = self._feed(f"encoder.{i}.feed_forward", x, passed)
        return Reading(self._normed("encoder", x) if self.is_pre else x, attention, passed)

    def decode(self, ids: Sequence[int], memory: Array) -> Reading:
        """Target tokens, the start symbol first -> (T, D)."""
        x = self._embedded(ids, positions=True)
        causal = np.tri(len(ids), dtype=bool)
        attention: dict[str, Array] = {}
        passed: list[Sublayer] = []
        for i in range(self.layers["decoder"]):
            name = f"decoder.{i}"
            x = self._attend(f"{name}.self_attention", x, None, causal, attention, passed)
            x = self._attend(f"{name}.cross_attention", x, memory, None, attention, passed)
            x = self._feed(f"{name}.feed_forward", x, passed)
        return Reading(self._normed("decoder", x) if self.is_pre else x, attention, passed)

    def logits(self, rows: Array) -> Array:
        """(T, D) -> (T, V)."""
        made: Array = rows @ self.weights["source_embedding.weight"].T
        return made

    def _embedded(self, ids: Sequence[int], *, positions: bool) -> Array:
        table = self.weights["source_embedding.weight"]
        width = table.shape[1]
        x: Array = table[list(ids)] * width**0.5
        if positions:
            angles = np.arange(len(x))[:, None] / 10000 ** (np.arange(0, width, 2) / width)
            x[:, 0::2] += np.sin(angles)
            x[:, 1::2] += np.cos(angles)
        return x

    def _linear(self, name: str, x: Array) -> Array:
        made: Array = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return made

    def _normed(self, name: str, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)
        gain, bias = (self.weights[f"{name}_norm.{part}"] for part in ("weight", "bias"))
        made: Array = scaled * gain + bias
        return made

    def _added(self, name: str, x: Array, added: Array, passed: list[Sublayer]) -> Array:
        after = x + added if self.is_pre else self._normed(name, x + added)
        passed.append(Sublayer(name, x, added, after))
        return after

    def _attend(
        self, name: str, x: Array, memory: Array | None, allowed: NDArray[np.bool_] | None,
        attention: dict[str, Array], passed: list[Sublayer],
    ) -> Array:  # fmt: skip
        def split(part: str, rows: Array) -> Array:
            made = self._linear(f"{name}.{part}", rows)
            return made.reshape(len(rows), self.heads, -1).transpose(1, 0, 2)

        read = self._normed(name, x) if self.is_pre else x
        keys = read if memory is None else memory
        query, key, value = split("query", read), split("key", keys), split("value", keys)
        scores = query @ key.transpose(0, 2, 1) / query.shape[-1] ** 0.5
        if allowed is not None:
            scores = np.where(allowed, scores, -np.inf)
        attention[name] = softmax(scores)
        mixed = (attention[name] @ value).transpose(1, 0, 2).reshape(len(x), -1)
        return self._added(name, x, self._linear(f"{name}.output", mixed), passed)

    def _feed(self, name: str, x: Array, passed: list[Sublayer]) -> Array:
        read = self._normed(name, x) if self.is_pre else x
        inner = np.maximum(self._linear(f"{name}.inner", read), 0)
        return self._added(name, x, self._linear(f"{name}.outer", inner), passed)
