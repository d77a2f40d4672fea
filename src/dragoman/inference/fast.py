"""A Transformer that translates in int8, a whole step of the search in one native call.

``FastTransformer`` obeys the contract of ``models/interface.py``: what ``Transformer`` encodes,
starts and steps, it does from packed int8 weights, with activations quantised row by row as they
come (no calibration). Teacher forcing (``decode``, ``project``) takes the plain path, and ``best``
under constraints the logits of all tokens, so nothing that search can do is missing.

``fastest`` chooses between it and plain torch (``prepared.py``), and says in one line why.

The kernels are in ``native/src/decode*``; their plain twin, and the reference, is the model itself.
"""

from __future__ import annotations

import pathlib
import threading
import weakref
from collections.abc import Iterator
from ctypes import c_int, c_void_p, cast
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import torch
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.inference.measured import Trial, microseconds
from dragoman.inference.prepared import PreparedTransformer
from dragoman.inference.settings import Precision
from dragoman.inference.shortlist import Shortlist
from dragoman.models.interface import (
    Adjust,
    DecodeState,
    Encodes,
    Generates,
    Memory,
    NativeStep,
    Network,
)
from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer import UNKNOWN, Transformer
from dragoman.native import library
from dragoman.nn.layers import LayerNorm
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import use_precision
from dragoman.nn.positions import Positions
from dragoman.nn.settings import AttentionSettings

MOST_CANDIDATES = 64
"""Up to this k the best tokens are kept while logits pass by; beyond, all logits are sorted."""


TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True)
class Path:
    """How a model will be run on this machine."""

    model: FastTransformer | PreparedTransformer | Network
    """Encodes and Generates: a fast one, or the model that was given."""
    precision: Literal["int8", "bf16", "fp32"]
    reason: str
    """One line for people: what was chosen and why."""
    one_core_each: bool = True
    """Whether threads with a core and a batch each do more than one thread on all cores."""


def fastest(
    model: Network,
    precision: Precision = "auto",
    shortlist: Shortlist | None = None,
    remembered: pathlib.Path | None = None,
) -> Path:
    """The fastest way to run ``model`` in inference within ``precision``.

    "auto" is what was measured to be fastest on this machine (``measured.py``), if ``remembered``
    names a folder to keep that in. Without one it is int8 where there are kernels for it, else
    plain torch in bf16 where the processor has it, else in fp32. "int8" where it cannot be had is
    not an error: it falls back and says so. A shortlist is for int8 alone. "fp32" when asked for
    is ``model`` itself, the reference.
    """
    model.eval()
    if precision == "fp32" or not isinstance(model, Transformer):
        use_precision(model, "fp32")
        asked = "as asked for" if precision == "fp32" else None
        why = asked or f"the one way to run a {model.settings.kind} model"
        line = f"fp32 on plain torch, {why}" + _left_out(shortlist)
        return Path(model, "fp32", line, one_core_each=False)
    if precision == "bf16":
        return _plain(model, precision, "bf16 on plain torch, as asked for", shortlist)
    missing = why_not(model)
    others: list[Literal["bf16", "fp32"]] = ["bf16", "fp32"] if _has_bf16() else ["fp32"]
    times: dict[str, int] = {}
    if remembered is not None and (precision == "auto" or missing is not None):
        native = [] if why_not_here() else ["int8"]
        times = microseconds(remembered, {n: partial(_trial, n) for n in (*native, *others)})
        others.sort(key=times.__getitem__)
    if missing is not None:
        return _plain(model, others[0], f"no int8, because {missing}", shortlist)
    line = f"int8, native kernels for {library.status().level}"
    if times:
        gain = times[others[0]] / times["int8"]
        if gain < 1:
            slower = f"measured faster here than int8 ({1 / gain:.1f} times)"
            return _plain(model, others[0], slower, shortlist)
        line += f", {gain:.0f} times as fast here as {others[0]} on plain torch"
    line += "" if shortlist is None else "; vocabulary shortlist"
    return Path(FastTransformer(model, shortlist, checked=True), "int8", line)


def as_it_is(model: Network) -> Path:
    """A model run by itself, as it was made or trained."""
    return Path(model, "fp32", "plain torch", one_core_each=False)


UNITS = {
    "avx512": "on AVX512-VNNI, keys and values on bf16 units",
    "avx512vnni": "on AVX512-VNNI, without bf16 units",
    "avxvnni": "on AVX-VNNI, two thirds as fast as AVX512-VNNI",
    "avx2": "on AVX2 alone, whose products are of words: a quarter of AVX512-VNNI's speed",
}
"""What the int8 kernels run on at each of ``library.LEVELS``."""


def in_words() -> str:
    """How translations are computed on this machine unless told otherwise; one line."""
    missing = why_not_here()
    if missing is not None:
        return f"{'bf16' if _has_bf16() else 'fp32'} on plain torch: no int8, because {missing}"
    return f"int8 {UNITS[str(library.status().level)]}"


def _plain(
    model: Transformer, precision: Literal["bf16", "fp32"], why: str, shortlist: Shortlist | None
) -> Path:
    line = why if why.startswith(precision) else f"{precision} on plain torch: {why}"
    prepared = PreparedTransformer(model, TYPES[precision])
    return Path(prepared, precision, line + _left_out(shortlist))


def _left_out(shortlist: Shortlist | None) -> str:
    return "" if shortlist is None else "; the shortlist is left out: it is for int8"


def _trial(precision: str) -> Trial:
    """A small model that reads some sentences and writes some tokens, one way or another."""
    settings = TransformerSettings(model_dim=256, ffn_dim=1024, encoder_layers=1, decoder_layers=1)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        plain = Transformer(settings, 2000, 2000).eval()
    model: FastTransformer | PreparedTransformer
    if precision == "int8":
        model = FastTransformer(plain, checked=True)
    else:
        model = PreparedTransformer(plain, TYPES[precision])
    source = Sequences.of([torch.arange(3, 15)] * 16)
    tokens = torch.ones(16, 1, dtype=torch.int64)

    def work() -> None:
        with torch.no_grad():
            state = model.start(model.encode(source))
            for _ in range(6):
                model.best(tokens, state, 1)

    return work


def why_not(model: Transformer) -> str | None:
    """Why ``model`` cannot be run by the native int8 kernels here; None if it can."""
    positions = model.settings.positions
    if positions.combine == "concatenate" or positions.kind == "normalised":
        return f"its kernels do not know {positions.kind} positions ({positions.combine})"
    return why_not_here()


def why_not_here() -> str | None:
    """Why no model can be run by the native int8 kernels on this machine; None if some can."""
    if not library.available():
        return library.status().reason
    if _Kernels.bind() is None:
        return "the native library has no int8 decoder for this processor"
    return None if _agrees() else "its kernels do not agree with plain torch on this machine"


@cache
def _agrees() -> bool:
    """Whether the kernels and plain torch give one tiny model the same logits; once a process."""
    attention = AttentionSettings(num_heads=2)
    settings = TransformerSettings(
        model_dim=32, ffn_dim=64, encoder_layers=1, decoder_layers=1, attention=attention
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        plain = Transformer(settings, 70, 70).eval()
        source = Sequences.of([torch.arange(3, 10), torch.arange(20, 22)])
        tokens = torch.tensor([[1, 5, 9], [1, 60, 3]])
        fast = FastTransformer(plain, checked=True)
        expected = plain.step(tokens, plain.start(plain.encode(source)))
        found = fast.step(tokens, fast.start(fast.encode(source)))
        return bool((found - expected).norm() < 0.05 * expected.norm())


def _has_bf16() -> bool:
    """Whether bf16 matrix products are faster than fp32 ones on this processor."""
    information = pathlib.Path("/proc/cpuinfo")
    text = information.read_text(encoding="utf-8") if information.exists() else ""
    return "avx512_bf16" in text or "amx_bf16" in text


@dataclass(frozen=True)
class _Kernels:
    """The C interface of ``native/src/decode.cpp``, bound once per model (one level for all)."""

    model_new: Any
    model_free: Any
    model_width: Any
    model_shortlist: Any
    encode: Any
    state_new: Any
    state_free: Any
    state_rows: Any
    state_lengths: Any
    state_admit: Any
    state_allowed: Any
    state_select: Any
    step: Any
    best: Any

    @classmethod
    def bind(cls) -> _Kernels | None:
        handle, number = c_void_p, c_int
        table: dict[str, tuple[tuple[Any, ...], Any]] = {
            "model_new": ((handle, handle, handle), handle),
            "model_free": ((handle,), None),
            "model_width": ((handle,), number),
            "model_shortlist": ((handle, handle, number, handle, handle), None),
            "encode": ((handle, handle, handle, number, handle, handle, handle), number),
            "state_new": ((handle,), handle),
            "state_free": ((handle,), None),
            "state_rows": ((handle,), number),
            "state_lengths": ((handle, handle), None),
            "state_admit": ((handle, handle, handle, number, handle, handle), None),
            "state_allowed": ((handle, handle), None),
            "state_select": ((handle, handle, number), number),
            "step": ((handle, handle, number, number, handle, number, handle), number),
            "best": (
                (handle, handle, number, number, handle, number, number, handle, handle),
                number,
            ),
        }
        found = {
            name: library.function(f"decode_{name}", *arguments, result=result)
            for name, (arguments, result) in table.items()
        }
        if any(function is None for function in found.values()):
            return None
        return cls(**found)


class _PositionTable:
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


class FastState(DecodeState):
    """A search under way in native memory. One thread at a time; any number of states at once."""

    def __init__(self, model: FastTransformer) -> None:
        self.handle = model.take_state()
        self._model = model  # the native state points into the native model
        self._free = weakref.finalize(self, model.leave_state, self.handle)
        self._step = NativeStep(model.best_address, model.select_address, self.handle)
        self._table: Tensor | None = None

    @property
    def rows(self) -> int:
        return int(self._model.kernels.state_rows(self.handle))

    @property
    def lengths(self) -> Tensor:
        out = torch.empty(self.rows, dtype=torch.int64)
        self._model.kernels.state_lengths(self.handle, out.data_ptr())
        return out

    def select(self, rows: Tensor) -> None:
        wanted = _as(rows, torch.int64)
        kernels = self._model.kernels
        if not kernels.state_select(self.handle, wanted.data_ptr(), wanted.shape[0]):
            raise IndexError(f"select: rows {rows.tolist()} of a state that has {self.rows}")

    def admit(self, memory: Memory) -> None:
        rows = _as(memory.rows, torch.float32)
        visible = None if memory.visible is None else _as(memory.visible, torch.uint8)
        lengths = torch.tensor(memory.layout.lengths, dtype=torch.int32)
        self._model.kernels.state_admit(
            self.handle, rows.data_ptr(), lengths.data_ptr(), len(lengths), _address(visible),
            _address(None if memory.tokens is None else _as(memory.tokens, torch.int64)),
        )  # fmt: skip

    def allowed(self) -> Tensor:
        """(N, V) bool: which tokens may follow each row by the shortlist of its source."""
        out = torch.empty(self.rows, self._model.vocabulary, dtype=torch.bool)
        self._model.kernels.state_allowed(self.handle, out.data_ptr())
        return out

    def native(self, k: int, length: int) -> NativeStep | None:
        model, step = self._model, self._step
        if k > min(MOST_CANDIDATES, model.vocabulary):
            return None
        if length > step.known:
            # Held here, since another thread may have the model make a longer one.
            self._table, step.positions, step.known = model.target_positions.reach(length)
        return step


class FastTransformer(Encodes, Generates):
    """``model`` in int8. Its weights are packed now; later changes to ``model`` do not show.

    Safe to share between threads as long as each state stays with one of them.

    Errors: ``DragomanError`` where ``why_not(model)`` gives a reason.
    """

    def __init__(
        self, model: Transformer, shortlist: Shortlist | None = None, *, checked: bool = False
    ) -> None:
        """``shortlist``: ``best`` then chooses among what it allows each source, and its
        log-probabilities are relative to that choice; a token that a constraint leaves as the only
        one is taken all the same. ``step`` knows all tokens still. ``checked``: the caller has
        asked ``why_not``.
        """
        missing = None if checked else why_not(model)
        kernels = _Kernels.bind()
        if missing is not None or kernels is None:
            raise DragomanError(f"int8 cannot be had: {missing}; use precision bf16 or fp32")
        self.model = model
        self.settings = model.settings
        self.kernels = kernels
        weights = [None if w is None else w.detach().float().contiguous() for w in _weights(model)]
        source, target = weights[-3], weights[-2]
        assert source is not None and target is not None
        self.vocabulary = len(target)
        shape, factors = _sizes(model, len(source), len(target))
        pointers = (c_void_p * len(weights))(*(_address(w) for w in weights))
        self.handle: int = kernels.model_new(shape.data_ptr(), factors.data_ptr(), pointers)
        self._idle: list[int] = []
        self._free = weakref.finalize(self, _free_model, kernels, self.handle, self._idle)
        self.has_shortlist = shortlist is not None
        width = kernels.model_width(self.handle)
        if shortlist is not None:
            kernels.model_shortlist(
                self.handle, shortlist.always.ctypes.data, len(shortlist.always),
                shortlist.offsets.ctypes.data, shortlist.candidates.ctypes.data,
            )  # fmt: skip
        self._source_positions = _PositionTable(model.source_positions, width)
        self.target_positions = _PositionTable(model.target_positions, width)
        self.best_address = cast(kernels.best, c_void_p).value
        self.select_address = cast(kernels.state_select, c_void_p).value

    # ---- reading

    def encode(self, source: Sequences) -> Memory:
        """Packed ids -> Memory with fp32 rows (P, D)."""
        layout = source.layout
        tokens = _as(source.values, torch.int64)
        visible = None if self.settings.attend_unknown else source.values != UNKNOWN
        shown = None if visible is None else visible.to(torch.uint8)
        rows, positions, _ = self._source_positions.reach(layout.longest)
        lengths = torch.tensor(layout.lengths, dtype=torch.int32)
        out = torch.empty(layout.total, self.settings.model_dim)
        done = self.kernels.encode(
            self.handle, tokens.data_ptr(), lengths.data_ptr(), layout.batch, _address(shown),
            positions, out.data_ptr(),
        )  # fmt: skip
        del rows  # alive until here
        if done != 0:
            raise IndexError("encode: a token is not in the source vocabulary")
        return Memory(out, layout, visible, tokens)

    # ---- writing

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Teacher forcing, by the plain model."""
        return self.model.decode(target_in, memory)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """Logits of given hidden rows, by the plain model."""
        return self.model.project(hidden, ids)

    def start(self, memory: Memory) -> FastState:
        state = FastState(self)
        state.admit(memory)
        return state

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        out = torch.empty(tokens.shape[0], self.vocabulary)
        self._take(self.kernels.step, tokens, state, (out.data_ptr(),))
        return out

    def best(
        self, tokens: Tensor, state: DecodeState, k: int, adjust: Adjust | None = None
    ) -> tuple[Tensor, Tensor]:
        k = min(k, self.vocabulary)
        if adjust is not None or k > MOST_CANDIDATES:
            if self.has_shortlist:
                return self._best_of_short(tokens, state, k, adjust)
            return super().best(tokens, state, k, adjust)
        shape = (tokens.shape[0], k)
        scores, ids = torch.empty(shape), torch.empty(shape, dtype=torch.int64)
        self._take(self.kernels.best, tokens, state, (k, scores.data_ptr(), ids.data_ptr()))
        return scores, ids

    def _best_of_short(
        self, tokens: Tensor, state: DecodeState, k: int, adjust: Adjust | None
    ) -> tuple[Tensor, Tensor]:
        """``best`` from all logits, with the probabilities that the fused one gives."""
        assert isinstance(state, FastState)
        logits, allowed = self.step(tokens, state), state.allowed()
        total = logits.masked_fill(~allowed, -torch.inf).logsumexp(-1, keepdim=True)  # (N, 1)
        # What is not on the list costs what it would if it were.
        scores = logits - torch.where(allowed, total, torch.logaddexp(total, logits))
        if adjust is not None:
            scores = adjust(scores)
        forced = scores.isfinite().sum(-1, keepdim=True) == 1
        return torch.topk(scores.masked_fill(~(allowed | forced), -torch.inf), k, dim=-1)

    def take_state(self) -> int:
        """A native state without rows: one that has served, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return int(self.kernels.state_new(self.handle))

    @property
    def leave_state(self) -> Any:
        """What takes a native state back; it must not hold on to this object."""
        return partial(_leave_state, self.kernels, self._idle)

    def _take(self, kernel: Any, tokens: Tensor, state: DecodeState, rest: tuple[int, ...]) -> None:
        """Hand ``tokens`` (N, t) to a kernel, with a table of positions that reaches far enough."""
        assert isinstance(state, FastState)  # a state comes back to the model that made it
        given = _as(tokens, torch.int64)
        rows, new = given.shape
        table = self.target_positions.kept
        while wanted := kernel(
            state.handle, given.data_ptr(), rows, new, table[1], table[2], *rest
        ):
            if wanted == -1:
                raise IndexError("step: a token is not in the target vocabulary")
            assert wanted > 0, f"{rows} rows of tokens for a state of {state.rows}"
            table = self.target_positions.reach(wanted)


# ---- native memory

MOST_IDLE = 8
"""States kept for the next search: their pages of memory are the dear part of a short one."""


def _leave_state(kernels: _Kernels, idle: list[int], handle: int) -> None:
    if len(idle) >= MOST_IDLE:
        kernels.state_free(handle)
        return
    kernels.state_select(handle, None, 0)
    idle.append(handle)


def _free_model(kernels: _Kernels, handle: int, idle: list[int]) -> None:
    while idle:
        kernels.state_free(idle.pop())
    kernels.model_free(handle)


# ---- what the kernels are handed


def _as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor as the kernels read it; the same object where it is so already."""
    if tensor.dtype != dtype:
        tensor = tensor.to(dtype)
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _sizes(model: Transformer, source: int, target: int) -> tuple[Tensor, Tensor]:
    """``Shape`` and ``Factors`` of ``native/src/decode_model.h``."""
    settings = model.settings
    attention = settings.attention
    key_width = attention.key_width or settings.model_dim // attention.num_heads
    shape = (
        settings.model_dim, settings.ffn_dim, attention.num_heads,
        key_width, attention.value_width or key_width,
        settings.encoder_layers, settings.decoder_layers, source, target,
        int(settings.norm == "pre"), -1 if settings.attend_unknown else UNKNOWN,
    )  # fmt: skip
    scale = key_width**-0.5 if attention.scaled else 1.0
    factors = (scale, settings.model_dim**0.5, LayerNorm.eps)
    return torch.tensor(shape, dtype=torch.int32), torch.tensor(factors, dtype=torch.float32)


def _weights(model: Transformer) -> Iterator[Tensor | None]:
    """Every weight in the order of ``pack_model`` in ``native/src/decode_model.h``."""
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
