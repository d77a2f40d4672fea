"""What the int8 kernels are handed of a Transformer: sizes, weights in order, position vectors."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import torch
from torch import Tensor

from dragoman.models.transformer.model import UNKNOWN, Transformer
from dragoman.native.abi import Factors, Shape
from dragoman.nn.layers import LayerNorm
from dragoman.nn.positions import Positions


class PositionTable:
    """The first rows of a position encoding, as the kernels read them; grown when asked for."""

    def __init__(self, positions: Positions, width: int) -> None:
        self._positions = positions
        self._width = width
        self._lock = threading.Lock()
        self.kept: tuple[Tensor, int, int] = (torch.zeros(0, width), 0, 0)
        """(rows, their address, how many): whoever holds it keeps the rows alive."""

    def reach(self, length: int) -> tuple[Tensor, int, int]:
        """At least ``length`` rows, (n, width rounded up). Safe from several threads.

        Errors: ``SearchError`` for a position beyond a learned table.
        """
        with self._lock:
            if length > self.kept[2]:
                wanted = max(256, 2 * length)
                if self._positions.table is not None:
                    wanted = max(length, len(self._positions.table))
                with torch.no_grad():
                    made = self._positions(torch.arange(wanted), None, torch.float32)
                rows = torch.zeros(wanted, self._width)
                rows[:, : made.shape[1]] = made
                self.kept = (rows, rows.data_ptr(), wanted)
            return self.kept


def sizes(model: Transformer, source: int, target: int) -> tuple[Shape, Factors]:
    """Of a model with so many source and target tokens."""
    settings = model.settings
    attention = settings.attention
    key_width = attention.key_width or settings.model_dim // attention.num_heads
    shape = Shape(
        model_dim=settings.model_dim,
        ffn_dim=settings.ffn_dim,
        heads=attention.num_heads,
        key_width=key_width,
        value_width=attention.value_width or key_width,
        encoder_layers=settings.encoder_layers,
        decoder_layers=settings.decoder_layers,
        source_vocabulary=source,
        target_vocabulary=target,
        pre_norm=settings.norm == "pre",
        hidden_token=-1 if settings.attend_unknown else UNKNOWN,
    )
    scale = key_width**-0.5 if attention.scaled else 1.0
    factors = Factors(attention=scale, embedding=settings.model_dim**0.5, epsilon=LayerNorm.eps)
    return shape, factors


def weights(model: Transformer) -> list[Tensor | None]:
    """Every weight in fp32, in the order of ``pack_model`` in ``native/src/decode_model.h``; the
    last three are the embeddings of source and target, and the output matrix."""
    return [None if w is None else w.detach().float().contiguous() for w in _in_order(model)]


def _in_order(model: Transformer) -> Iterator[Tensor | None]:
    named = dict(model.named_parameters())

    def pair(name: str) -> tuple[Tensor | None, Tensor | None]:
        weight = named.get(f"{name}.weight")
        if weight is not None and weight.dim() == 3:  # each head sees a slice of its input alone
            weight = torch.block_diag(*weight.detach())
        return weight, named.get(f"{name}.bias")

    def attention(name: str) -> Iterator[Tensor | None]:
        for part in ("query", "key", "value", "output"):
            yield from pair(f"{name}.{part}")
        yield from pair(f"{name}_norm")

    def feed_forward(name: str) -> Iterator[Tensor | None]:
        yield from pair(f"{name}.inner")
        yield from pair(f"{name}.outer")
        yield from pair(f"{name}_norm")

    for i in range(model.settings.encoder_layers):
        yield from attention(f"encoder.{i}.attention")
        yield from feed_forward(f"encoder.{i}.feed_forward")
    for i in range(model.settings.decoder_layers):
        yield from attention(f"decoder.{i}.self_attention")
        yield from attention(f"decoder.{i}.cross_attention")
        yield from feed_forward(f"decoder.{i}.feed_forward")
    yield from pair("encoder_norm")
    yield from pair("decoder_norm")
    source = named["source_embedding.weight"]
    target = named.get("target_embedding.weight", source)
    yield from (source, target, named.get("output.weight", target))
