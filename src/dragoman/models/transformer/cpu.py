"""The steps of a Transformer that is prepared for inference on plain torch
(``models/prepared.py``): the fast path where there are no kernels.

They compute the same as ``advance`` of the prepared network, to within rounding, in four fifths of
the time: queries, keys and values come from one product, and keys and values are rarely copied. The
remaining time is close to that of the products alone.

The plain ``nn/cache.py`` copies all of its keys and values whenever a row is dropped or moved.
Here, a row of the search is in a *slot*, and keys and values are copied only when one row continues
as two, when many slots are empty, or when sources are added. At a step, all slots write into the
same *column*, whatever their own position: a row that was added later begins at a later column, and
the columns before it are masked.

Attention is computed in fp32 whatever the precision of the products: its matrices are tiny, and
oneDNN, which multiplies in bf16, compiles code for each of their shapes.

Shapes: P packed rows, D model width, N rows, n slots, B sources under way, R slots of one source at
most, T columns, S longest source, t new positions, H heads, K and Kv widths of a head's keys and
values.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.models.interface import DecodeState, Memory
from dragoman.models.prepared import PreparedNetwork
from dragoman.models.settings import UNKNOWN
from dragoman.models.transformer.model import Following, NextWord, Transformer
from dragoman.nn.layers import DecoderLayer
from dragoman.nn.layout import join
from dragoman.nn.linear import InferenceLinear, Linear, SlicedLinear, round_up

MOST_IDLE = 8
"""The number of histories of ended searches that are kept, so that later searches can use their
memory."""
GROWTH = 32
"""The number of columns by which a history grows beyond those that are needed."""


class History:
    """The keys and values of past positions in all layers: tables (T, n, W) with the same columns
    and slots, one per width W in ``widths``.

    The block of memory of a table never shrinks. To select slots, each table is copied into the
    block of the table before it, so one spare block serves all tables, and a search under way needs
    no new memory: fresh pages cost as much as the products of a short search. Blocks begin as zeros
    and only ever get finite numbers, so the memory beyond the columns in use is finite.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        self._widths = tuple(widths)
        self._blocks = [torch.zeros(0) for _ in widths]
        self._spare = torch.zeros(0)
        self.slots = 0
        """The number n of slots in each table."""

    def reach(self, columns: int, used: int) -> None:
        """Make room for ``columns`` columns, of which the first ``used`` are in use."""
        for i, width in enumerate(self._widths):
            row = self.slots * width
            if columns * row > len(self._blocks[i]):
                grown = torch.zeros((columns + GROWTH) * row)
                grown[: used * row] = self._blocks[i][: used * row]
                self._blocks[i] = grown

    def table(self, i: int, columns: int) -> Tensor:
        """Return the first ``columns`` columns of table ``i``: (T, n, W)."""
        shape = (columns, self.slots, self._widths[i])
        return self._blocks[i][: columns * self.slots * self._widths[i]].view(shape)

    def select(self, first: int, end: int, index: Tensor) -> None:
        """Keep columns ``first`` to ``end`` of slots ``index`` (n,), in that order."""
        count, slots = end - first, len(index)
        for i, width in enumerate(self._widths):
            size = count * slots * width
            if size > len(self._spare):
                self._spare = torch.zeros(size + GROWTH * slots * width)
            kept = self.table(i, end)[first:]
            out = self._spare[:size].view(count, slots, width)
            torch.index_select(kept, 1, index, out=out)
            self._blocks[i], self._spare = self._spare, self._blocks[i]
        self.slots = slots


MASKED = torch.finfo(torch.float32).min / 2
"""The number added to the score of a key that may not be attended to. It is finite, so that nothing
becomes NaN."""


def columns(length: int) -> int:
    """Round ``length`` up to a multiple of 8, at least 16: torch's softmax takes eight times as
    long for fewer than 16 columns."""
    return max(16, -(-length // 8) * 8)


@dataclass(frozen=True)
class Mask:
    """The keys that each query may attend to."""

    bias: Tensor
    """(Z or 1, t or 1, T): the bias of scores, 0 or ``MASKED``; Z = batch x H."""
    may_be_blind: bool = False
    """True if a query may have nothing to attend to; its output is then zero."""

    @classmethod
    def of(cls, allowed: Tensor, heads: int, may_be_blind: bool = False) -> Mask:
        """Make a mask from flags (batch or 1, t or 1, T) bool, True = may attend."""
        bias = torch.zeros(allowed.shape).masked_fill_(~allowed, MASKED)
        return cls(bias.repeat_interleave(heads, 0) if len(bias) > 1 else bias, may_be_blind)


@dataclass(frozen=True)
class Heads:
    """Attention in fp32, with the heads next to each other in the first dimension."""

    count: int
    """The number of heads H."""
    scale: float

    def split(self, rows: Tensor, batch: int) -> Tensor:
        """Split rows into heads, in fp32: (batch x L, H x K) -> (batch x H, L, K)."""
        grid = rows.view(batch, -1, self.count, rows.shape[1] // self.count).transpose(1, 2)
        return grid.to(torch.float32, memory_format=torch.contiguous_format).flatten(0, 1)

    def join(self, heads: Tensor, dtype: torch.dtype) -> Tensor:
        """Join heads into rows: (batch x H, L, Kv) -> (batch x L, H x Kv)."""
        grid = heads.unflatten(0, (-1, self.count)).transpose(1, 2).to(dtype)
        joined: Tensor = grid.reshape(-1, self.count * heads.shape[2])
        return joined

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
        """Compute equation 1 of the paper: (Z, t, K), (Z, T, K), (Z, T, Kv) -> (Z, t, Kv)."""
        scores = torch.baddbmm(mask.bias, query, key.transpose(1, 2), alpha=self.scale)
        weights = torch.softmax(scores, -1)
        if mask.may_be_blind:
            weights = weights.masked_fill_(mask.bias < 0, 0.0)
        return torch.bmm(weights, value)


@dataclass
class Sources:
    """The keys and values of the sources under way, to which the decoder attends."""

    keys: list[Tensor]
    """The keys (B x H, S, K) of each layer."""
    values: list[Tensor]
    """The values (B x H, S, Kv) of each layer."""
    allowed: Tensor
    """(B, S) bool, True where a position may be attended to."""
    may_be_blind: bool

    def select(self, kept: Tensor, heads: int) -> Sources:
        """Return only the sources ``kept`` (M,)."""
        of_heads = (kept[:, None] * heads + torch.arange(heads)).flatten()
        keys, values = ([x.index_select(0, of_heads) for x in y] for y in (self.keys, self.values))
        return Sources(keys, values, self.allowed[kept], self.may_be_blind)

    def join(self, other: Sources) -> Sources:
        """Return the sources of both, with the shorter ones extended by masked positions."""
        return Sources(
            list(map(join, self.keys, other.keys)),
            list(map(join, self.values, other.values)),
            join(self.allowed, other.allowed),
            self.may_be_blind or other.may_be_blind,
        )


class CpuState(DecodeState):
    """The state of a search on plain torch. Only one thread at a time may use a state.

    After ``begin``, the layers of a step call ``append`` and read ``mask``, ``sources`` and
    ``source_mask``. ``take`` reorders rows: queries of slots by ``cells``, so that those of one
    source are adjacent, the results back by ``places``, and the last result by ``standing``, from
    slots to rows.
    """

    def __init__(
        self,
        heads: Heads,
        history: History,
        read: Callable[[Memory], Sources],
        *,
        hides: bool,
        next_word: NextWord | None = None,
    ) -> None:
        """``history``: for each layer a table of keys, H x K wide, and one of values, H x Kv wide;
        only this search may use it. ``read``: makes the keys and values of sources. ``hides``: True
        if unknown tokens may not be attended to."""
        self._heads = heads
        self._history = history
        self._read = read
        self.following = None if next_word is None else Following(next_word)
        """The words of the sources, for a decoder with hints about the next word; else None."""
        history.slots = 1
        self._row_slots = torch.zeros(0, dtype=torch.int64)  # (N,)
        self.starts = torch.zeros(1, dtype=torch.int64)
        """(n,) the column of each slot's position 0."""
        self._owners = torch.zeros(1, dtype=torch.int64)
        """(n,) the number of the source that each slot continues."""
        self._column = 0
        """The column into which the next token is written."""
        self._key_mask = torch.ones(0, 1, dtype=torch.bool) if hides else None
        """(T, n), False for tokens that may not be attended to; None if all may be."""
        self.standing: Tensor | None = self._row_slots
        """(N,) the slot of each row; None: row i is in slot i, and no slot is empty."""
        self.new = 1
        """The number t of new positions in the step under way."""
        self._is_even = True
        """True if all slots began at the same column."""
        self.cells: Tensor | None = None
        """(B x R,) the slots sorted by source, with repeated slots for sources that have fewer than
        R; None: the slots are in order."""
        self.places: Tensor | None = None
        """(n,) the place of each slot in ``cells``; None: the slots are in order."""
        self.mask = Mask(torch.zeros(1, 1, 0))
        self.sources: Sources | None = None
        self.source_mask = self.mask

    # ---- the contract

    @property
    def lengths(self) -> Tensor:
        return self._column - self.starts[self._row_slots]

    def select(self, rows: Tensor) -> None:
        if self.following is not None:
            self.following.select(rows)
        kept = self._row_slots[rows]
        if len(set(kept.tolist())) < len(kept) or round_up(len(kept)) < len(self.starts):
            self._gather(kept, len(kept))
        else:
            whole = len(kept) == len(self.starts) and torch.equal(kept, torch.arange(len(kept)))
            self._row_slots, self.standing = kept, None if whole else kept

    def admit(self, memory: Memory) -> None:
        if self.following is not None:
            self.following.admit(memory)
        sources = self._read(memory)
        before, new = len(self._row_slots), len(sources.allowed)
        self._gather(self._row_slots, before + new)
        known = 0 if self.sources is None else len(self.sources.allowed)
        self.sources = sources if self.sources is None else self.sources.join(sources)
        self._row_slots = torch.arange(before + new)
        self.standing = None if before + new == len(self.starts) else self._row_slots
        self.starts[before:] = self._column
        self._is_even = bool((self.starts == self.starts[0]).all())
        self._owners[before : before + new] = known + torch.arange(new)
        if self._key_mask is not None:
            self._key_mask[:, before:] = True
        self._arrange()

    # ---- a step

    def spread(self, of_rows: Tensor) -> Tensor:
        """Put rows into slots: (N, ...) -> (n, ...). Empty slots get arbitrary values."""
        if self.standing is None:
            return of_rows
        of_slots = of_rows.new_ones(len(self.starts), *of_rows.shape[1:])
        return of_slots.index_copy_(0, self.standing, of_rows)

    def begin(self, tokens: Tensor) -> Tensor:
        """Begin a step that reads ``tokens`` (n, t), those of the slots. Return their positions (n,
        t), for empty slots too."""
        self.new, begin = tokens.shape[1], self._column
        end = self._column = begin + self.new
        self._history.reach(columns(end), begin)
        every, place = torch.arange(columns(end)), torch.arange(begin, end)
        allowed = (every <= place[:, None])[None]  # (1, t, T)
        if not self._is_even:
            allowed = allowed & (every >= self.starts[:, None, None])
        if self._key_mask is not None:
            self._key_mask = torch.cat([self._key_mask[:begin], (tokens != UNKNOWN).t()])
            seen = F.pad(self._key_mask, (0, 0, 0, len(every) - end))
            allowed = allowed & seen.t()[:, None]  # (n, t, T)
        self.mask = Mask.of(allowed, self._heads.count, self._key_mask is not None)
        return place - self.starts[:, None]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys (n x t, H x K) and values (n x t, H x Kv) of a layer. Return all keys so
        far, (n x H, T, K), and all values."""
        by_head, seen = [], self.mask.bias.shape[2]
        for i, new in ((2 * layer, keys), (2 * layer + 1, values)):
            table = self._history.table(i, seen)  # (T, n, H x K)
            grid = new.unflatten(0, (-1, self.new)).transpose(0, 1)  # (t, n, H x K)
            table[self._column - self.new : self._column] = grid
            heads = table.view(seen, len(self.starts) * self._heads.count, -1)
            by_head.append(heads.transpose(0, 1))
        return by_head[0], by_head[1]

    # ---- inside

    def _gather(self, kept: Tensor, wanted: int) -> None:
        """Copy slots ``kept`` (N,) to slots 0..N-1 of as many as ``wanted`` rows need."""
        index = kept.new_zeros(round_up(wanted))
        index[: len(kept)] = kept
        first = int(self.starts[kept].min()) if len(kept) else self._column
        self._history.select(first, self._column, index)
        if self._key_mask is not None:
            self._key_mask = self._key_mask[first : self._column, index]
        self.starts = (self.starts[index] - first).clamp_(min=0)
        self._column -= first
        self._row_slots = torch.arange(len(kept))
        self.standing = None if len(kept) == len(index) else self._row_slots
        owners = self._owners[index]
        if self.sources is None:
            self._owners = owners
            return
        kept_sources, of_rows = torch.unique_consecutive(owners[: len(kept)], return_inverse=True)
        assert len(kept_sources) == len(kept_sources.unique()), "rows of one source stand together"
        same_sources = len(kept_sources) == len(self.sources.allowed)
        if not same_sources:
            self.sources = self.sources.select(kept_sources, self._heads.count)
        owners = torch.zeros_like(owners)
        owners[: len(kept)] = of_rows
        changed = not same_sources or not torch.equal(owners, self._owners)
        self._owners = owners
        self._is_even = bool((self.starts == self.starts[0]).all())
        if changed and len(kept) == wanted:
            self._arrange()

    def _arrange(self) -> None:
        """Recompute ``cells``, ``places`` and ``source_mask`` after rows or sources were added,
        dropped or moved."""
        assert self.sources is not None
        sources, rows = len(self.sources.allowed), len(self._row_slots)
        owners = self._owners[:rows]
        counts = torch.bincount(owners, minlength=sources)
        most = int(counts.max()) if rows else 1
        first = counts.cumsum(0) - counts
        if rows == sources * most == len(self.starts):
            self.cells = self.places = None
        else:
            cells = first[:, None] + torch.arange(most).minimum(counts[:, None] - 1)  # (B, R)
            self.cells = cells.flatten()
            self.places = self._owners.new_zeros(len(self.starts))
            self.places[:rows] = owners * most + torch.arange(rows) - first[owners]
        allowed = self.sources.allowed[:, None]  # (B, 1, S)
        self.source_mask = Mask.of(allowed, self._heads.count, self.sources.may_be_blind)


def take(rows: Tensor, index: Tensor | None, new: int = 1) -> Tensor:
    """Select blocks (M,) of ``new`` rows each: (n x t, W) -> (M x t, W). With ``index`` None,
    return ``rows`` unchanged."""
    if index is None:
        return rows
    if new > 1:
        index = (index[:, None] * new + torch.arange(new)).flatten()
    return rows.index_select(0, index)


class _CpuLayer:
    """The matrices and norms of one decoder layer that a step uses."""

    def __init__(self, layer: DecoderLayer, dtype: torch.dtype) -> None:
        attention, cross, feed = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.joint = _side_by_side(dtype, attention.query, attention.key, attention.value)
        """The map to queries, keys and values: (P, D) -> (P, H x (2 K + Kv))."""
        self.self_output = _side_by_side(dtype, attention.output)
        self.query = _side_by_side(dtype, cross.query)
        self.memory = _side_by_side(dtype, cross.key, cross.value)
        """The map to keys and values of the sources: (P, D) -> (P, H x (K + Kv))."""
        self.cross_output = _side_by_side(dtype, cross.output)
        self._activation = feed.activation
        self._inner = _side_by_side(dtype, feed.inner)
        self._outer = _side_by_side(dtype, feed.outer)
        self.norms = (
            layer.self_attention_norm, layer.cross_attention_norm, layer.feed_forward_norm,
        )  # fmt: skip

    def feed(self, x: Tensor) -> Tensor:
        """Compute equation 2 of the paper: (P, D) -> (P, D)."""
        return self._outer(self._inner(x, then=self._activation))


class PreparedTransformer(PreparedNetwork):
    """A prepared Transformer whose steps are faster than those of other prepared networks."""

    _network: Transformer

    @torch.no_grad()
    def __init__(self, network: Transformer, dtype: torch.dtype) -> None:
        super().__init__(network, dtype)
        network = self._network
        self._dtype = dtype
        self._pre, self._residual = network.settings.norm == "pre", network.settings.residual
        attention = next(iter(network.decoder)).cross_attention
        heads = attention.heads
        self._heads = Heads(heads, attention.scale)
        self._widths = (heads * attention.key_width, heads * attention.value_width)
        self._layers = [_CpuLayer(layer, dtype) for layer in network.decoder]
        self._idle: deque[History] = deque(maxlen=MOST_IDLE)

    @torch.no_grad()
    def start(self, memory: Memory) -> CpuState:
        try:
            history = self._idle.pop()
        except IndexError:
            history = History(self._widths * len(self._layers))
        hides, next_word = not self._network.settings.attend_unknown, self._network.next_word
        state = CpuState(self._heads, history, self._sources_of, hides=hides, next_word=next_word)
        weakref.finalize(state, self._idle.append, history)
        state.admit(memory)
        return state

    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, CpuState)  # a state comes back to the model that made it
        network, new = self._network, tokens.shape[1]
        next_words = None if state.following is None else state.following.next_word_rows(tokens)
        tokens = state.spread(tokens)
        x = network.embed_target(tokens.flatten(), state.begin(tokens).flatten())  # (n x t, D)
        if next_words is not None:
            x = x + state.spread(next_words.unflatten(0, (-1, new))).flatten(0, 1)
        for i, layer in enumerate(self._layers):
            sublayers: tuple[Callable[[Tensor], Tensor], ...] = (
                partial(self._look_back, i, layer, state),
                partial(self._look_over, i, layer, state),
                layer.feed,
            )
            for sublayer, norm in zip(sublayers, layer.norms, strict=True):
                added = sublayer(norm.forward(x) if self._pre else x)
                x = x + added if self._residual else added
                x = x if self._pre else norm.forward(x)
        x = take(x.unflatten(0, (-1, new))[:, -1], state.standing)  # (N, D)
        return x if network.decoder_norm is None else network.decoder_norm.forward(x)

    def _look_back(self, i: int, layer: _CpuLayer, state: CpuState, x: Tensor) -> Tensor:
        heads = self._heads
        query, key, value = layer.joint(x).split((self._widths[0], *self._widths), dim=1)
        keys, values = state.append(i, key, value)
        context = heads.attend(heads.split(query, len(state.starts)), keys, values, state.mask)
        return layer.self_output(heads.join(context, self._dtype))

    def _look_over(self, i: int, layer: _CpuLayer, state: CpuState, x: Tensor) -> Tensor:
        heads, sources = self._heads, state.sources
        assert sources is not None
        query = heads.split(take(layer.query(x), state.cells, state.new), len(sources.allowed))
        context = heads.attend(query, sources.keys[i], sources.values[i], state.source_mask)
        return layer.cross_output(take(heads.join(context, self._dtype), state.places, state.new))

    def _sources_of(self, memory: Memory) -> Sources:
        """Return the keys and values of the sources in every layer."""
        layout, heads = memory.layout, self._heads
        allowed = layout.mask if memory.key_mask is None else layout.pad(memory.key_mask)
        spare = columns(layout.longest) - layout.longest
        keys, values = [], []
        for layer in self._layers:
            rows = layer.memory.any_rows(memory.rows)
            grid = F.pad(layout.pad(rows), (0, 0, 0, spare))  # (B, S, H x (K + Kv))
            key, value = grid.flatten(0, 1).split(self._widths, dim=1)
            keys.append(heads.split(key, layout.batch))
            values.append(heads.split(value, layout.batch))
        return Sources(keys, values, F.pad(allowed, (0, spare)), memory.key_mask is not None)


def _side_by_side(dtype: torch.dtype, *layers: Linear | SlicedLinear) -> InferenceLinear:
    """Join linear maps of the same input into one."""
    # Of sliced maps each head sees a slice of its input alone.
    weights: list[Tensor] = [
        w if (w := layer.weight).dim() == 2 else torch.block_diag(*w) for layer in layers
    ]
    biases: list[Tensor] = [layer.bias for layer in layers if layer.bias is not None]
    return InferenceLinear(torch.cat(weights), torch.cat(biases), dtype)
