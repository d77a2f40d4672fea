"""A Transformer prepared for translating on plain torch: the way where there are no kernels.

``CpuTransformer`` obeys the contract of ``models/interface.py``. It computes what
``Transformer`` computes, to within rounding, in bf16 or fp32, in a third of the time and less:
weights are laid out once (``nn/inference_linear.py``), queries, keys and values come from one
product, keys and values are not copied about (``cpu_state.py``), and the best tokens are found
without sorting (``models/candidates.py``). What remains is close to the products themselves.

Shapes: P packed rows (``nn/layout.py``), D model width, H heads, N rows, n slots, t new positions.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.models.candidates import COLUMNS, NEVER, best_of
from dragoman.models.interface import Adjust, DecodeState, Memory, Model
from dragoman.models.settings import UNKNOWN
from dragoman.models.transformer.cpu_state import CpuState, Heads, Mask, Sources, columns
from dragoman.models.transformer.history import History
from dragoman.models.transformer.model import Transformer
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.inference_linear import InferenceLinear, rounded
from dragoman.nn.layers import FeedForward, LayerNorm, NoNorm
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Linear, SlicedLinear

CELLS = 1 << 18
"""Scores of one head that are held at once while sources are read: bounds long ones."""

MOST_IDLE = 8
"""Memory of searches kept for the next ones."""


Norming = Callable[[Tensor], Tensor]
"""(P, D) -> (P, D)."""


class _Norm:
    """LayerNorm with gain and bias in fp32, whatever the rows are."""

    def __init__(self, norm: LayerNorm) -> None:
        self._weight, self._bias = norm.weight.detach(), norm.bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self._weight.shape, self._weight, self._bias, LayerNorm.eps)


class _PlainFeedForward:
    """Equation 2 of the paper: (P, D) -> (P, D)."""

    def __init__(self, part: FeedForward, dtype: torch.dtype) -> None:
        self._inner = _side_by_side(dtype, part.inner)
        self._outer = _side_by_side(dtype, part.outer)

    def __call__(self, x: Tensor) -> Tensor:
        return self._outer(self._inner(x, relu=True))


@dataclass(frozen=True)
class _EncoderLayer:
    joint: InferenceLinear
    """Queries, keys and values: (P, D) -> (P, H x (2 K + Kv))."""
    output: InferenceLinear
    attention_norm: Norming
    feed_forward: _PlainFeedForward
    feed_forward_norm: Norming


@dataclass(frozen=True)
class _DecoderLayer:
    joint: InferenceLinear
    self_output: InferenceLinear
    self_norm: Norming
    query: InferenceLinear
    memory: InferenceLinear
    """Keys and values of the sources: (P, D) -> (P, H x (K + Kv))."""
    cross_output: InferenceLinear
    cross_norm: Norming
    feed_forward: _PlainFeedForward
    feed_forward_norm: Norming


class CpuTransformer(Model):
    """``model`` in ``dtype``. Its weights are packed now; later changes to it do not show, but in
    its embeddings. Teacher forcing (``decode``, ``project``) is done by ``model`` itself.

    Safe to share between threads as long as each state stays with one of them.
    """

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self.model = model
        self._dtype = dtype
        settings = model.settings
        self._pre = settings.norm == "pre"
        self._residual = settings.residual

        def norming(norm: LayerNorm | NoNorm) -> Norming:
            return _Norm(norm) if isinstance(norm, LayerNorm) else norm

        attention = model.decoder[0].cross_attention
        assert isinstance(attention, MultiHeadAttention)
        self._heads = Heads(attention.heads, attention.scale)
        keys, values = (attention.heads * w for w in (attention.key_width, attention.value_width))
        self._widths = (keys, values)
        with torch.no_grad():
            self._encoder = [
                _EncoderLayer(
                    joint=_joint(dtype, layer.attention),
                    output=_side_by_side(dtype, layer.attention.output),
                    attention_norm=norming(layer.attention_norm),
                    feed_forward=_PlainFeedForward(layer.feed_forward, dtype),
                    feed_forward_norm=norming(layer.feed_forward_norm),
                )
                for layer in model.encoder
            ]
            self._decoder = [
                _DecoderLayer(
                    joint=_joint(dtype, layer.self_attention),
                    self_output=_side_by_side(dtype, layer.self_attention.output),
                    self_norm=norming(layer.self_attention_norm),
                    query=_side_by_side(dtype, layer.cross_attention.query),
                    memory=_side_by_side(
                        dtype, layer.cross_attention.key, layer.cross_attention.value
                    ),
                    cross_output=_side_by_side(dtype, layer.cross_attention.output),
                    cross_norm=norming(layer.cross_attention_norm),
                    feed_forward=_PlainFeedForward(layer.feed_forward, dtype),
                    feed_forward_norm=norming(layer.feed_forward_norm),
                )
                for layer in model.decoder
            ]
            weight = model.output_layer.weight
            self.vocabulary = len(weight)
            spare = -len(weight) % COLUMNS
            bias = torch.zeros(len(weight) + spare)
            bias[len(weight) :] = NEVER
            self._output = InferenceLinear(
                F.pad(weight, (0, 0, 0, spare)), bias if spare else None, dtype
            )
        self._idle: deque[History] = deque(maxlen=MOST_IDLE)
        self._encoder_norm = None if model.encoder_norm is None else _Norm(model.encoder_norm)
        self._decoder_norm = None if model.decoder_norm is None else _Norm(model.decoder_norm)

    # ---- reading

    @torch.no_grad()
    def encode(self, source: Sequences) -> Memory:
        embedded, layout, tokens = self.model.embed_source(source)
        key_mask = None
        if tokens is not None and not self.model.settings.attend_unknown:
            key_mask = tokens != UNKNOWN
        x = self._rows(embedded)
        grids = list(_grids(layout, key_mask, self._heads.count, len(x)))
        for layer in self._encoder:
            x = self._around(x, self._reading(layer, grids), layer.attention_norm)
            x = self._around(x, layer.feed_forward, layer.feed_forward_norm)
        if self._encoder_norm is not None:
            x = self._encoder_norm(x)
        return Memory(x[: layout.total].float(), layout, key_mask, tokens)

    def _reading(self, layer: _EncoderLayer, grids: list[_Grid]) -> Callable[[Tensor], Tensor]:
        heads = self._heads

        def read(x: Tensor) -> Tensor:
            joint, parts = layer.joint(x), []
            for grid in grids:
                rows = joint.index_select(0, grid.rows)
                query, key, value = (
                    heads.split(part, grid.batch) for part in rows.split(self._joint_widths, dim=1)
                )
                out = heads.join(heads.attend(query, key, value, grid.mask), self._dtype)
                parts.append(out.index_select(0, grid.cells))
            return layer.output(parts[0] if len(parts) == 1 else torch.cat(parts))

        return read

    # ---- writing

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Teacher forcing, by the plain model."""
        return self.model.decode(target_in, memory)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """Logits of given hidden rows, by the plain model."""
        return self.model.project(hidden, ids)

    @torch.no_grad()
    def start(self, memory: Memory) -> CpuState:
        try:
            history = self._idle.pop()
        except IndexError:
            history = History(self._widths * len(self._decoder))
        hides = not self.model.settings.attend_unknown
        next_word = self.model.next_word
        state = CpuState(self._heads, history, self._sources_of, hides=hides, next_word=next_word)
        weakref.finalize(state, self._idle.append, history)
        state.admit(memory)
        return state

    @torch.no_grad()
    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, CpuState)  # a state comes back to the model that made it
        logits = self._output(self._advance(tokens, state))
        return state.collect(logits)[:, : self.vocabulary]

    @torch.no_grad()
    def best(
        self, tokens: Tensor, state: DecodeState, k: int, adjust: Adjust | None = None
    ) -> tuple[Tensor, Tensor]:
        if adjust is not None or k > min(COLUMNS, self.vocabulary):
            return super().best(tokens, state, k, adjust)
        assert isinstance(state, CpuState)
        log_probabilities, ids = best_of(self._output(self._advance(tokens, state)), k)
        return state.collect(log_probabilities), state.collect(ids)

    def _advance(self, tokens: Tensor, state: CpuState) -> Tensor:
        """Take in ``tokens`` (N, t) -> (n, D), what follows the last of each slot."""
        new = tokens.shape[1]
        next_word_rows = None if state.following is None else state.following.next_word_rows(tokens)
        tokens = state.spread(tokens)
        key_mask = None if self.model.settings.attend_unknown else tokens != UNKNOWN
        places = state.positions(new)
        x = self.model.embed_target(tokens.flatten(), places.flatten())
        if next_word_rows is not None:
            x = x + state.spread(next_word_rows.unflatten(0, (-1, new))).flatten(0, 1)
        x = x.to(self._dtype)
        state.begin(new, key_mask)
        for i, layer in enumerate(self._decoder):
            x = self._around(x, self._looking_back(i, layer, state), layer.self_norm)
            x = self._around(x, self._looking_over(i, layer, state), layer.cross_norm)
            x = self._around(x, layer.feed_forward, layer.feed_forward_norm)
        state.end(new)
        if new > 1:
            x = x.unflatten(0, (-1, new))[:, -1].contiguous()
        return x if self._decoder_norm is None else self._decoder_norm(x)

    def _looking_back(
        self, i: int, layer: _DecoderLayer, state: CpuState
    ) -> Callable[[Tensor], Tensor]:
        heads = self._heads

        def look(x: Tensor) -> Tensor:
            query, key, value = layer.joint(x).split(self._joint_widths, dim=1)
            keys, values = state.append(i, key, value)
            out = heads.attend(heads.split(query, state.slots), keys, values, state.mask)
            return layer.self_output(heads.join(out, self._dtype))

        return look

    def _looking_over(
        self, i: int, layer: _DecoderLayer, state: CpuState
    ) -> Callable[[Tensor], Tensor]:
        heads, sources = self._heads, state.sources
        assert sources is not None

        def look(x: Tensor) -> Tensor:
            query = heads.split(state.by_source(layer.query(x)), len(sources.allowed))
            out = heads.attend(query, sources.keys[i], sources.values[i], state.source_mask)
            return layer.cross_output(state.by_slot(heads.join(out, self._dtype)))

        return look

    @torch.no_grad()
    def _sources_of(self, memory: Memory) -> Sources:
        """Keys and values of the sources, in every layer."""
        rows, heads = self._rows(memory.rows), self._heads
        grid = _grid(memory.layout, memory.key_mask, heads.count, 0, len(rows))
        keys, values = [], []
        for layer in self._decoder:
            joint = layer.memory(rows).index_select(0, grid.rows)
            key, value = joint.split(self._widths, dim=1)
            keys.append(heads.split(key, grid.batch))
            values.append(heads.split(value, grid.batch))
        return Sources(keys, values, grid.allowed, memory.key_mask is not None)

    # ---- inside

    @property
    def _joint_widths(self) -> tuple[int, int, int]:
        return self._widths[0], *self._widths

    def _rows(self, x: Tensor) -> Tensor:
        """Rows in the precision of the products, as many as these take at a time."""
        return F.pad(x.to(self._dtype), (0, 0, 0, rounded(len(x)) - len(x)))

    def _around(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: Norming) -> Tensor:
        """A sub-layer inside its residual connection and norm: (P, D) -> (P, D)."""
        added = sublayer(norm(x) if self._pre else x)
        after = x + added if self._residual else added
        return after if self._pre else norm(after)


# ---- weights


def _side_by_side(dtype: torch.dtype, *layers: Linear | SlicedLinear) -> InferenceLinear:
    """Linear maps of one input as one."""
    weights: list[Tensor] = []
    biases: list[Tensor] = []
    for layer in layers:
        weight: Tensor = layer.weight
        if isinstance(layer, SlicedLinear):  # each head sees a slice of its input alone
            weight = torch.block_diag(*weight)
        weights.append(weight)
        assert layer.bias is not None
        biases.append(layer.bias)
    return InferenceLinear(torch.cat(weights), torch.cat(biases), dtype)


def _joint(dtype: torch.dtype, attention: MultiHeadAttention) -> InferenceLinear:
    return _side_by_side(dtype, attention.query, attention.key, attention.value)


# ---- packed rows and grids


@dataclass(frozen=True)
class _Grid:
    """Some sequences laid into a (batch, S) grid."""

    batch: int
    rows: Tensor
    """(batch x S,) the packed row of each cell; any for an empty one."""
    cells: Tensor
    """The cell of each packed row, some more at the end."""
    allowed: Tensor
    """(batch, S) bool, True where a row stands that may be attended to."""
    mask: Mask


def _grid(layout: Layout, key_mask: Tensor | None, heads: int, begin: int, total: int) -> _Grid:
    """Sequences whose rows begin at ``begin`` of all; as many cells as make ``total``."""
    length = columns(layout.longest)
    lengths = torch.tensor(layout.lengths)
    places = torch.arange(length)
    rows = layout.offsets[:-1].long()[:, None] + places.minimum(lengths[:, None] - 1)
    allowed = places < lengths[:, None]
    if key_mask is not None:
        allowed = allowed & key_mask[rows]
    cells = F.pad(layout.sequence * length + layout.positions, (0, total - layout.total))
    mask = Mask.of(allowed[:, None], heads, key_mask is not None)
    return _Grid(layout.batch, (rows + begin).flatten(), cells, allowed, mask)


def _grids(layout: Layout, key_mask: Tensor | None, heads: int, total: int) -> Iterator[_Grid]:
    """All sequences in grids of not too many scores; cells for ``total`` rows."""
    first = begin = 0
    while first < layout.batch:
        end, longest = first, 0
        while end < layout.batch:
            longest = max(longest, columns(layout.lengths[end]))
            if end > first and (end + 1 - first) * longest**2 > CELLS:
                break
            end += 1
        part = Layout(layout.lengths[first:end])
        of_part = None if key_mask is None else key_mask[begin : begin + part.total]
        rows = total - begin if end == layout.batch else part.total
        yield _grid(part, of_part, heads, begin, rows)
        first, begin = end, begin + part.total
