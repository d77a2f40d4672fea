"""Search with a Transformer in int8 without torch. Each step is one native call.

``Int8Search`` implements the interface for a search (``models/searched.py``) with packed int8
weights (``int8_weights.py``); activations are quantised row by row as they are computed (no
calibration). The weights come from a file or from a model in torch (``int8.py``), and the results
are the same. Under constraints, ``best`` uses the logits of all tokens, so every feature of the
search works.

Shapes: B sources, P packed rows, D model width, N rows of a search, k candidates, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dragoman.models.searched import (
    Constrain,
    Floats32,
    Integers,
    SearchModel,
    SearchSession,
    Source,
)
from dragoman.models.settings import UNKNOWN, TransformerSettings
from dragoman.models.shortlist import Shortlist
from dragoman.models.transformer.int8_weights import SIDES, Int8Model, PositionTable
from dragoman.native.abi import Step
from dragoman.native.decoder import NativeState

MOST_CANDIDATES = 64
"""The greatest k for which the best tokens are kept while logits are computed. For a greater k, all
logits are sorted."""

Bytes = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.int32]


class Int8Search(SearchModel):
    """A Transformer in int8.

    Threads may share it, if each search stays within one thread.
    """

    def __init__(self, model: Int8Model, shortlist: Shortlist | None = None) -> None:
        """``shortlist``: limits ``best`` to the tokens that it allows for each source, and makes
        its log-probabilities relative to these; the only token that a constraint leaves is used
        even if it is not among them. ``step`` is not limited."""
        settings = self.settings = model.settings
        self.vocabulary = model.vocabulary
        self.has_shortlist = shortlist is not None
        self.native = model.native
        if shortlist is not None:
            self.native.use_shortlist(shortlist.always, shortlist.offsets, shortlist.candidates)
        self.source_positions, self.target_positions = (
            PositionTable(
                settings.positions, model.learned.get(side), settings.model_dim, self.native.width
            )
            for side in SIDES
        )

    # ---- reading

    def begin(self, sources: Sequence[Source]) -> Int8Searching:
        searching = Int8Searching(self)
        searching.admit(sources)
        return searching

    def encode(
        self, tokens: Integers, lengths: Lengths
    ) -> tuple[Floats32, npt.NDArray[np.bool_] | None]:
        """Encode the ids (P,) of sources of ``lengths`` (B,). Return rows (P, D), and flags (P,),
        True for rows that may be attended to; None: all may be."""
        mask = None if self.settings.attend_unknown else tokens != UNKNOWN
        table, positions, _ = self.source_positions.reach(int(lengths.max(initial=0)))
        out = np.empty((len(tokens), self.settings.model_dim), np.float32)
        as_bytes = None if mask is None else mask.view(np.uint8)
        done = self.native.encode(tokens, lengths, as_bytes, positions, out)
        del table  # alive until here
        if not done:
            raise IndexError("encode: a token is not in the source vocabulary")
        return out, mask

    # ---- writing

    def step(self, tokens: Integers, state: NativeState) -> Floats32:
        """Read ``tokens`` (N, t). Return logits (N, V) of the token after the last of them."""
        out = np.empty((len(tokens), self.vocabulary), np.float32)
        self._take(lambda x, at, known: state.step(x, at, known, out), tokens, state)
        return out

    def best(
        self, tokens: Integers, state: NativeState, k: int, constrain: Constrain | None = None
    ) -> tuple[Floats32, Integers]:
        """Take a step. Return the k best continuations: log-probabilities (N, k) and ids (N, k)."""
        k = min(k, self.vocabulary)
        if constrain is not None or k > MOST_CANDIDATES:
            return self._best_of_all(tokens, state, k, constrain)
        scores = np.empty((len(tokens), k), np.float32)
        ids = np.empty((len(tokens), k), np.int64)
        self._take(lambda x, at, known: state.best(x, at, known, scores, ids), tokens, state)
        return scores, ids

    def _best_of_all(
        self, tokens: Integers, state: NativeState, k: int, constrain: Constrain | None
    ) -> tuple[Floats32, Integers]:
        """Compute ``best`` from all logits, with the same probabilities as the fused kernel."""
        logits = self.step(tokens, state)
        with np.errstate(invalid="ignore"):  # what is no number is never chosen
            if not self.has_shortlist:
                scores = logits - _log_sum(logits)
                return _greatest(scores if constrain is None else constrain(scores), k)
            allowed = self.flag_allowed(state)
            total = _log_sum(np.where(allowed, logits, np.float32(-np.inf)))  # (N, 1)
            # What is not on the list costs what it would if it were.
            scores = logits - np.where(allowed, total, np.logaddexp(total, logits))
            if constrain is not None:
                scores = constrain(scores)
            forced = np.isfinite(scores).sum(axis=1, keepdims=True) == 1
            return _greatest(np.where(allowed | forced, scores, np.float32(-np.inf)), k)

    def flag_allowed(self, state: NativeState) -> npt.NDArray[np.bool_]:
        """Return flags (N, V), True for the tokens that the shortlist allows for the source of each
        row."""
        out = np.empty((state.rows, self.vocabulary), np.bool_)
        state.flag_allowed(out)
        return out

    def _take(
        self, kernel: Callable[[Integers, int, int], int], tokens: Integers, state: NativeState
    ) -> None:
        """Call a kernel with ``tokens`` (N, t) and a table of positions that is long enough."""
        given = np.ascontiguousarray(tokens, np.int64)
        table = self.target_positions.kept
        while wanted := kernel(given, table[1], table[2]):
            if wanted == -1:
                raise IndexError("step: a token is not in the target vocabulary")
            assert wanted > 0, f"{len(given)} rows of tokens for a state of {state.rows}"
            table = self.target_positions.reach(wanted)


class Int8Searching(SearchSession):
    """A search under way in native memory. Only one thread at a time may use it; several may be
    used at once."""

    def __init__(self, search: Int8Search) -> None:
        """Make a search that has no rows yet."""
        self._search = search
        self.state, native = NativeState(search.native), search.native
        # The step that native code takes itself; it lacks only a table of positions.
        self._step = Step(native.best_address, native.select_address, self.state.handle)
        self._table: Floats32 | None = None

    def select(self, rows: Integers) -> None:
        if not self.state.select(np.ascontiguousarray(rows, np.int64)):
            raise IndexError(f"select: rows {rows.tolist()}, but there are only {self.state.rows}")

    def admit(self, sources: Sequence[Source]) -> None:
        every = [np.asarray(source) for source in sources]
        if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in every):
            raise TypeError("the kernels read only tokens; torch reads rows (Int8Transformer)")
        tokens = np.concatenate(every).astype(np.int64)
        lengths = np.array([len(source) for source in sources], np.int32)
        rows, mask = self._search.encode(tokens, lengths)
        as_bytes = None if mask is None else mask.view(np.uint8)
        self.state.admit(rows, lengths, as_bytes, tokens)

    def best(
        self, tokens: Integers, k: int, constrain: Constrain | None = None
    ) -> tuple[Floats32, Integers]:
        return self._search.best(tokens, self.state, k, constrain)

    def native(self, k: int, length: int) -> Step | None:
        step = self._step
        if k > min(MOST_CANDIDATES, self._search.vocabulary):
            return None
        if length > step.known:
            # Held here, since another thread may have the model make a longer one.
            reached = self._search.target_positions.reach(length)
            self._table, step.positions, step.known = reached
        return step


def why_never(settings: TransformerSettings) -> str | None:
    """Return the reason why no machine's kernels can run such a model; None if those of some
    machine can."""
    positions = settings.positions
    if positions.combine == "concatenate" or positions.kind == "normalised":
        return f"its kernels do not know {positions.kind} positions ({positions.combine})"
    if settings.norm == "none" or not settings.residual:
        return "its kernels do not know layers without norms or without residual connections"
    if settings.next_word:
        return "its kernels do not tell a decoder the next word"
    return None


def _log_sum(logits: Floats32) -> Floats32:
    """Return the logarithm (N, 1) of the sum of the exponentials of (N, V), summed in fp64."""
    most = logits.max(axis=1, keepdims=True)
    total = np.exp(logits - most, dtype=np.float64).sum(axis=1, keepdims=True)
    sums: Floats32 = (most + np.log(total)).astype(np.float32)
    return sums


def _greatest(scores: Floats32, k: int) -> tuple[Floats32, Integers]:
    """Return the k greatest scores of each row of (N, V), best first, and their columns. NaN comes
    last."""
    keys = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    chosen = np.argpartition(-keys, min(k, keys.shape[1] - 1), axis=1)[:, :k]
    order = np.take_along_axis(-keys, chosen, axis=1).argsort(axis=1, kind="stable")
    ids = np.take_along_axis(chosen, order, axis=1)
    return np.take_along_axis(scores, ids, axis=1), ids
