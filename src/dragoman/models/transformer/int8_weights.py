"""The data of a Transformer for the int8 kernels: its sizes, weights and positions.

Weights are arrays with the names that they have in a file: nothing here needs torch. The size of
packed weights depends only on the settings, the numbers of tokens and the instruction set, so one
process can load the weights that another one has packed (``models/catalogue/packed_models.py``).

Shapes: D model width, F feed-forward width, H heads, K and Kv widths of a head's keys and values, V
vocabulary.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import SearchError
from dragoman.models.settings import BEGIN, UNKNOWN, TransformerSettings
from dragoman.native.abi import ACTIVATIONS, Factors, Shape
from dragoman.native.decoder import NativeModel
from dragoman.nn.settings import PositionSettings

Array = npt.NDArray[np.float32]
Named = Mapping[str, Array]
"""The weights of a model by their names in a file."""


class PositionTable:
    """The first rows of a position encoding, as the kernels read them. The table grows when more
    are needed."""

    def __init__(
        self, settings: PositionSettings, learned: Array | None, model_dim: int, width: int
    ) -> None:
        """``learned``: (maximum, D), the table of a learned encoding; None for a fixed one.
        ``width``: the width of a row, at least D; the columns beyond D are zero."""
        self._settings = settings
        self._learned = learned
        self._model_dim = model_dim
        self._width = width
        self._lock = threading.Lock()
        self.kept: tuple[Array, int, int] = (np.zeros((0, width), np.float32), 0, 0)
        """The rows, their address and their number. Keep a reference to the rows while the address
        is in use."""

    def reach(self, length: int) -> tuple[Array, int, int]:
        """Return the table (n, width) with at least ``length`` rows, its address, and n. Several
        threads may call this at once.

        Errors: ``SearchError`` for a position beyond a learned table.
        """
        with self._lock:
            if length > self.kept[2]:
                made = self._make(length)
                rows = np.zeros((len(made), self._width), np.float32)
                rows[:, : made.shape[1]] = made
                self.kept = (rows, rows.ctypes.data, len(rows))
            return self.kept

    def _make(self, length: int) -> Array:
        if self._learned is None:
            return _fixed_rows(self._settings.kind, max(256, 2 * length), self._model_dim)
        if length > len(self._learned):
            raise SearchError(
                f"position {length} is beyond this model's learned table of {len(self._learned)} "
                "positions. Shorten the sequence, or train with a larger "
                "model.positions.maximum or with sinusoidal positions"
            )
        return self._learned


def _fixed_rows(kind: str, count: int, width: int) -> Array:
    """Return the first rows (count, width) of an encoding that is neither learned nor depends on a
    length, as ``nn/embedding.py`` computes them."""
    positions, rows = np.arange(count)[:, None], np.zeros((count, width))
    if kind == "sinusoidal":  # paper §3.5
        even = np.arange(0, width, 2, dtype=np.float64)
        angles = positions * np.exp(even * (-math.log(10000.0) / width))
        rows[:, 0::2] = np.sin(angles)
        rows[:, 1::2] = np.cos(angles)[:, : width // 2]
    elif kind == "marian":  # all sines before all cosines
        half = width // 2
        angles = positions * np.exp(np.arange(half) * (-math.log(1e4) / max(half - 1, 1)))
        rows[:, :half], rows[:, half : 2 * half] = np.sin(angles), np.cos(angles)
    elif kind == "binary":  # the lowest digit first, and zeros beyond the 63rd
        digits = np.arange(min(width, 63))
        rows[:, : len(digits)] = (positions >> digits) & 1
    elif kind == "index":
        rows += positions
    else:
        assert kind == "none", f"the kernels know no {kind} positions"
    return rows.astype(np.float32)


def sizes(settings: TransformerSettings, source: int, target: int) -> tuple[Shape, Factors]:
    """Return the sizes and factors, for the kernels, of a model with ``source`` and ``target``
    tokens."""
    attention = settings.attention
    key_width, value_width = _head_widths(settings)
    shape = Shape(
        model_dim=settings.model_dim,
        ffn_dim=settings.ffn_dim,
        heads=attention.num_heads,
        key_width=key_width,
        value_width=value_width,
        encoder_layers=settings.encoder_layers,
        decoder_layers=settings.decoder_layers,
        source_vocabulary=source,
        target_vocabulary=target,
        pre_norm=settings.norm == "pre",
        hidden_token=-1 if settings.attend_unknown else UNKNOWN,
        one_embedding=settings.tie == "all",
        zero_token=BEGIN if settings.zero_start else -1,
        activation=ACTIVATIONS.index(settings.activation),
    )
    scale = key_width**-0.5 if attention.scaled else 1.0
    embedding, epsilon = settings.embedding_scale, settings.norm_epsilon
    factors = Factors(attention=scale, embedding=embedding, epsilon=epsilon)
    return shape, factors


def _head_widths(settings: TransformerSettings) -> tuple[int, int]:
    """Return K and Kv, the widths of a head's keys and values."""
    attention = settings.attention
    key_width = attention.key_width or settings.model_dim // attention.num_heads
    return key_width, attention.value_width or key_width


def shapes(settings: TransformerSettings, source: int, target: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every weight by name, for a model with ``source`` and ``target`` tokens.
    A file must have these shapes, because the kernels trust the settings. The layers are in the
    order of ``pack_model`` (``in_order``)."""
    width, ffn, heads = settings.model_dim, settings.ffn_dim, settings.attention.num_heads
    keys, values = (heads * size for size in _head_widths(settings))
    by_name: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int, *, sliced: bool = False) -> None:
        # Each head sees a slice of its input alone (nn/linear.py).
        by_head = (heads, outputs // heads, inputs // heads)
        by_name[f"{name}.weight"] = by_head if sliced else (outputs, inputs)
        by_name[f"{name}.bias"] = (outputs,)

    def norm(name: str) -> None:
        by_name[f"{name}.weight"] = by_name[f"{name}.bias"] = (width,)

    def attention(name: str) -> None:
        for part, outputs in (("query", keys), ("key", keys), ("value", values)):
            linear(f"{name}.{part}", outputs, width, sliced=not settings.attention.whole_input)
        linear(f"{name}.output", width, values)
        norm(f"{name}_norm")

    def feed_forward(name: str) -> None:
        linear(f"{name}.inner", ffn, width)
        linear(f"{name}.outer", width, ffn)
        norm(f"{name}_norm")

    by_name["source_embedding.weight"] = (source, width)
    if settings.tie != "all":
        by_name["target_embedding.weight"] = (target, width)
    if settings.tie == "none":
        by_name["output.weight"] = (target, width)
    if settings.output_bias:
        by_name["output_bias"] = (target,)
    if settings.positions.kind == "learned":
        for side in ("source", "target"):
            by_name[f"{side}_positions.table"] = (settings.positions.maximum, width)
    for i in range(settings.encoder_layers):
        attention(f"encoder.{i}.attention")
        feed_forward(f"encoder.{i}.feed_forward")
    for i in range(settings.decoder_layers):
        attention(f"decoder.{i}.self_attention")
        attention(f"decoder.{i}.cross_attention")
        feed_forward(f"decoder.{i}.feed_forward")
    if settings.norm == "pre":
        norm("encoder_norm")
        norm("decoder_norm")
    return by_name


def in_order(settings: TransformerSettings, named: Named) -> list[Array | None]:
    """Return every weight in fp32, in the order of ``pack_model`` in ``native/src/decode_pack.h``.
    The last four are the embeddings of source and target, the output matrix and its bias."""
    layers = ("encoder.", "decoder.")
    names = [name for name in shapes(settings, 1, 1) if name.startswith(layers)]
    names += [
        f"{side}_norm.{part}" for side in ("encoder", "decoder") for part in ("weight", "bias")
    ]
    source = named["source_embedding.weight"]
    target = named.get("target_embedding.weight", source)
    ends = (source, target, named.get("output.weight", target), named.get("output_bias"))
    return [None if array is None else _plain(array) for array in (*map(named.get, names), *ends)]


def _plain(weight: Array) -> Array:
    """Return a weight in fp32 in C order, with the slices of the heads joined into one matrix."""
    whole = _block_diagonal(weight) if weight.ndim == 3 else weight
    return np.ascontiguousarray(whole, np.float32)


def _block_diagonal(blocks: Array) -> Array:
    """Put blocks on the diagonal of a matrix of zeros: (H, K, D / H) -> (H x K, D)."""
    heads, rows, columns = blocks.shape
    whole = np.zeros((heads, rows, heads, columns), np.float32)
    whole[np.arange(heads), :, np.arange(heads)] = blocks
    return whole.reshape(heads * rows, heads * columns)


SIDES = ("source", "target")


class Int8Model:
    """The packed weights of one model. Any number of searches and threads may share them."""

    def __init__(self, settings: TransformerSettings, source: int, target: int) -> None:
        """Allocate memory for the weights of a model with ``source`` and ``target`` tokens. Fill it
        by ``pack``, or by copying the ``parts`` of such a model."""
        self.settings = settings
        self.vocabulary = target
        self.native = NativeModel(*sizes(settings, source, target))
        maximum = settings.positions.maximum if settings.positions.kind == "learned" else None
        self.learned: dict[str, Array] = {
            side: np.zeros((maximum, settings.model_dim), np.float32)
            for side in SIDES
            if maximum is not None
        }
        """The learned tables of positions, (maximum, D), by side; empty for a fixed encoding."""

    @classmethod
    def of(cls, settings: TransformerSettings, source: int, target: int, named: Named) -> Int8Model:
        """Pack the weights of a model. Later changes of ``named`` have no effect."""
        made = cls(settings, source, target)
        made.pack(named)
        return made

    def pack(self, named: Named) -> None:
        """Pack weights into a new model. Call this only once. ``named``: weights of the shapes that
        ``int8_weights.shapes`` gives; they are not needed afterwards."""
        self.native.pack(in_order(self.settings, named))
        for side, table in self.learned.items():
            table[...] = named[f"{side}_positions.table"]

    @property
    def parts(self) -> Sequence[npt.NDArray[np.uint8]]:
        """The memory of all weights, which is valid as long as the model exists."""
        return [
            *self.native.parts,
            *(table.reshape(-1).view(np.uint8) for table in self.learned.values()),
        ]
