"""A Transformer that translates in int8, a whole step of the search in one native call.

``Int8Transformer`` obeys the contract of ``models/interface.py``: what ``Transformer`` encodes,
starts and steps, it does from packed int8 weights, with activations quantised row by row as they
come (no calibration). Teacher forcing (``decode``, ``project``) takes the plain path, and ``best``
under constraints the logits of all tokens, so nothing that search can do is missing.

The kernels are in ``native/src/decode*``; their plain twin, and the reference, is the model itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.models.interface import Adjust, DecodeState, Memory, Model
from dragoman.models.settings import TransformerSettings
from dragoman.models.shortlist import Shortlist
from dragoman.models.transformer.int8_weights import PositionTable, sizes, weights
from dragoman.models.transformer.model import UNKNOWN, Transformer
from dragoman.native import decoder, library
from dragoman.native.abi import Step
from dragoman.native.decoder import NativeModel, NativeState
from dragoman.nn.layout import Sequences
from dragoman.nn.settings import AttentionSettings

MOST_CANDIDATES = 64
"""Up to this k the best tokens are kept while logits pass by; beyond, all logits are sorted."""


class Int8State(DecodeState):
    """A search under way in native memory. One thread at a time; any number of states at once."""

    def __init__(self, model: NativeModel, vocabulary: int, positions: PositionTable) -> None:
        self.native_state = NativeState(model)
        self._vocabulary = vocabulary
        self._positions = positions
        self._step = self.native_state.stepping()
        self._table: Tensor | None = None

    @property
    def rows(self) -> int:
        return self.native_state.rows

    @property
    def lengths(self) -> Tensor:
        out = torch.empty(self.rows, dtype=torch.int64)
        self.native_state.lengths(out)
        return out

    def select(self, rows: Tensor) -> None:
        if not self.native_state.select(_as(rows, torch.int64)):
            raise IndexError(f"select: rows {rows.tolist()} of a state that has {self.rows}")

    def admit(self, memory: Memory) -> None:
        key_mask = None if memory.key_mask is None else _as(memory.key_mask, torch.uint8)
        tokens = None if memory.tokens is None else _as(memory.tokens, torch.int64)
        lengths = torch.tensor(memory.layout.lengths, dtype=torch.int32)
        self.native_state.admit(_as(memory.rows, torch.float32), lengths, key_mask, tokens)

    def allowed(self) -> Tensor:
        """(N, V) bool: which tokens may follow each row by the shortlist of its source."""
        out = torch.empty(self.rows, self._vocabulary, dtype=torch.bool)
        self.native_state.allowed(out)
        return out

    def native(self, k: int, length: int) -> Step | None:
        step = self._step
        if k > min(MOST_CANDIDATES, self._vocabulary):
            return None
        if length > step.known:
            # Held here, since another thread may have the model make a longer one.
            self._table, step.positions, step.known = self._positions.reach(length)
        return step


class Int8Transformer(Model):
    """``model`` in int8. Its weights are packed now; later changes to ``model`` do not show.

    Safe to share between threads as long as each state stays with one of them.

    Errors: ``DragomanError`` where ``why_not`` of its settings gives a reason.
    """

    def __init__(
        self, model: Transformer, shortlist: Shortlist | None = None, *, checked: bool = False
    ) -> None:
        """``shortlist``: ``best`` then chooses among what it allows each source, and its
        log-probabilities are relative to that choice; a token that a constraint leaves as the only
        one is taken all the same. ``step`` knows all tokens still. ``checked``: the caller has
        asked ``why_not``.
        """
        missing = None if checked else why_not(model.settings)
        if missing is not None:
            raise DragomanError(f"int8 cannot be had: {missing}; use precision bf16 or fp32")
        self.model = model
        self.settings = model.settings
        packed = weights(model)
        source, target = packed[-3], packed[-2]
        assert source is not None and target is not None
        self.vocabulary = len(target)
        self._native = NativeModel(*sizes(model, len(source), len(target)), packed)
        self.has_shortlist = shortlist is not None
        if shortlist is not None:
            self._native.use_shortlist(shortlist.always, shortlist.offsets, shortlist.candidates)
        self._source_positions = PositionTable(model.source_positions, self._native.width)
        self.target_positions = PositionTable(model.target_positions, self._native.width)

    # ---- reading

    def encode(self, source: Sequences) -> Memory:
        """Packed ids -> Memory with fp32 rows (P, D)."""
        layout = source.layout
        tokens = _as(source.values, torch.int64)
        key_mask = None if self.settings.attend_unknown else source.values != UNKNOWN
        as_bytes = None if key_mask is None else key_mask.to(torch.uint8)
        rows, positions, _ = self._source_positions.reach(layout.longest)
        lengths = torch.tensor(layout.lengths, dtype=torch.int32)
        out = torch.empty(layout.total, self.settings.model_dim)
        done = self._native.encode(tokens, lengths, as_bytes, positions, out)
        del rows  # alive until here
        if not done:
            raise IndexError("encode: a token is not in the source vocabulary")
        return Memory(out, layout, key_mask, tokens)

    # ---- writing

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Teacher forcing, by the plain model."""
        return self.model.decode(target_in, memory)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """Logits of given hidden rows, by the plain model."""
        return self.model.project(hidden, ids)

    def start(self, memory: Memory) -> Int8State:
        state = Int8State(self._native, self.vocabulary, self.target_positions)
        state.admit(memory)
        return state

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, Int8State)  # a state comes back to the model that made it
        out, native = torch.empty(tokens.shape[0], self.vocabulary), state.native_state
        self._take(lambda x, at, known: native.step(x, at, known, out), tokens, state)
        return out

    def best(
        self, tokens: Tensor, state: DecodeState, k: int, adjust: Adjust | None = None
    ) -> tuple[Tensor, Tensor]:
        assert isinstance(state, Int8State)
        k = min(k, self.vocabulary)
        if adjust is not None or k > MOST_CANDIDATES:
            if self.has_shortlist:
                return self._best_of_short(tokens, state, k, adjust)
            return super().best(tokens, state, k, adjust)
        shape, native = (tokens.shape[0], k), state.native_state
        scores, ids = torch.empty(shape), torch.empty(shape, dtype=torch.int64)
        self._take(lambda x, at, known: native.best(x, at, known, scores, ids), tokens, state)
        return scores, ids

    def _best_of_short(
        self, tokens: Tensor, state: Int8State, k: int, adjust: Adjust | None
    ) -> tuple[Tensor, Tensor]:
        """``best`` from all logits, with the probabilities that the fused one gives."""
        logits, allowed = self.step(tokens, state), state.allowed()
        total = logits.masked_fill(~allowed, -torch.inf).logsumexp(-1, keepdim=True)  # (N, 1)
        # What is not on the list costs what it would if it were.
        scores = logits - torch.where(allowed, total, torch.logaddexp(total, logits))
        if adjust is not None:
            scores = adjust(scores)
        forced = scores.isfinite().sum(-1, keepdim=True) == 1
        return torch.topk(scores.masked_fill(~(allowed | forced), -torch.inf), k, dim=-1)

    def _take(
        self, kernel: Callable[[Tensor, int, int], int], tokens: Tensor, state: Int8State
    ) -> None:
        """Hand ``tokens`` (N, t) to a kernel, with a table of positions that reaches far enough."""
        given = _as(tokens, torch.int64)
        table = self.target_positions.kept
        while wanted := kernel(given, table[1], table[2]):
            if wanted == -1:
                raise IndexError("step: a token is not in the target vocabulary")
            assert wanted > 0, f"{len(given)} rows of tokens for a state of {state.rows}"
            table = self.target_positions.reach(wanted)


def _as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor as the kernels read it; the same object where it is so already."""
    if tensor.dtype != dtype:
        tensor = tensor.to(dtype)
    return tensor if tensor.is_contiguous() else tensor.contiguous()


# ---- whether it can be had


def why_not(settings: TransformerSettings) -> str | None:
    """Why such a model cannot be run by the native int8 kernels here; None if it can."""
    positions = settings.positions
    if positions.combine == "concatenate" or positions.kind == "normalised":
        return f"its kernels do not know {positions.kind} positions ({positions.combine})"
    return why_not_here()


def why_not_here() -> str | None:
    """Why no model can be run by the native int8 kernels on this machine; None if some can."""
    if not library.available():
        return library.status().reason
    if not decoder.supported():
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
        fast = Int8Transformer(plain, checked=True)
        expected = plain.step(tokens, plain.start(plain.encode(source)))
        found = fast.step(tokens, fast.start(fast.encode(source)))
        return bool((found - expected).norm() < 0.05 * expected.norm())
