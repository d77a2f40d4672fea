"""Constraints of a search: tokens that may not follow, and tokens that must, because they are given
or sampled: temperature, top-k (Fan et al. 2018), top-p (Holtzman et al. 2020).

*Forbidden* tokens never need the whole vocabulary: a search that needs k candidates, of which at
most m are forbidden, requests k + m and drops the forbidden ones. So n-gram blocking, minimum
length and forbidden symbols run on the fastest path of any model. ``best`` gets a ``Constrain``
(``models/searched.py``) only where a single token may follow (a prefix, or a sampled token) or
where an output has rules (``forms/form.py``).

A draw depends only on the seed and the source of the request, the number of the sample
(``beam_state.sampling_key``), and the place in the output. Other requests in the batch, and the
time when they came, change nothing.

Shapes: N rows (live hypotheses), G groups (searches), k candidates per row, F forbidden tokens per
row at most, L longest output, V vocabulary; M rows that sample, K candidates that top-k leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dragoman.data.hashing import STEP, mix
from dragoman.search.beam_state import BeamState
from dragoman.search.hypothesis import Booleans, Floats, Floats32, Integers
from dragoman.search.settings import SamplingSettings

if TYPE_CHECKING:
    from torch import Tensor

NOTHING = -1
"""The filler of rows of forbidden tokens. It is not the id of any token."""


def repeating_tokens(tokens: npt.NDArray[np.int32], length: Integers, ngram: int) -> Integers:
    """Return the tokens (N, F) that would complete an n-gram which their row already contains,
    filled up with ``NOTHING``. ``tokens`` (N, L), of which the first ``length`` (N,) of each row
    count."""
    width = tokens.shape[1] - ngram + 1
    if width <= 0:
        return np.full((len(tokens), 0), NOTHING, dtype=np.int64)
    # Every place at which an n-gram begins and, with it, ends inside the row: (N, width).
    repeats: Booleans = np.arange(width) <= (length - ngram)[:, None]
    for offset in range(ngram - 1):
        current = np.take_along_axis(
            tokens, np.maximum(length - ngram + 1 + offset, 0)[:, None], axis=1
        )
        repeats &= tokens[:, offset : offset + width] == current
    completing = np.where(repeats, tokens[:, ngram - 1 :], NOTHING).astype(np.int64)
    most = int(repeats.sum(axis=1).max())
    completing.sort(axis=1)
    return completing[:, width - most :]


@dataclass
class OnlyTokens:
    """A ``Constrain`` that leaves a single token to some rows, and to others the tokens that their
    rules allow. Tokens keep the log-probability that the model gives them."""

    forced_rows: Integers
    """(M,) the rows whose next token is given."""
    forced_tokens: Integers
    """(M,) the given token of each of ``forced_rows``."""
    drawn: list[tuple[SamplingSettings, Integers, Floats]]
    """Sampling settings, the rows (M,) that sample by them, and one uniform number (M,) for each
    row."""
    forbidden: Integers
    """(N, F) the tokens that are not sampled, filled up with ``NOTHING``."""
    allowed: list[tuple[slice, Booleans]]
    """Rows (M,) whose output has rules, and flags (M, V), True for the tokens that may follow
    them."""

    def __call__(self, log_probabilities: Floats32) -> Floats32:
        """Set the log-probabilities (N, V) of tokens that may not follow to -inf, in place, and
        return them."""
        for ruled, may in self.allowed:
            log_probabilities[ruled][~may] = -np.inf
        for settings, rows, numbers in self.drawn:
            allowed = log_probabilities[rows]  # (M, V), a copy
            allowed[self._mask(rows, allowed.shape[1])] = -np.inf
            tokens = _draw_tokens(allowed, settings, numbers)
            values = allowed[np.arange(len(rows)), tokens]
            log_probabilities[rows] = -np.inf
            log_probabilities[rows, tokens] = values
        values = log_probabilities[self.forced_rows, self.forced_tokens]
        log_probabilities[self.forced_rows] = -np.inf
        log_probabilities[self.forced_rows, self.forced_tokens] = values
        return log_probabilities

    def _mask(self, rows: Integers, vocabulary: int) -> Booleans:
        """Return flags (M, V), True for the forbidden tokens of ``rows``."""
        ids = self.forbidden[rows]
        ids = np.where(ids == NOTHING, vocabulary, ids)  # NOTHING gets a column that goes
        mask = np.zeros((len(rows), vocabulary + 1), np.bool_)
        mask[np.arange(len(rows))[:, None], ids] = True
        return mask[:, :vocabulary]


def forbidden_tokens(live: BeamState, is_forced: Booleans, always: Integers, eos: int) -> Integers:
    """Return the tokens (N, F) that may not follow each row, filled up with ``NOTHING``.

    ``is_forced`` (G,): the groups whose next token is given; nothing is forbidden to them.
    ``always`` (F,): the tokens that no output may hold.
    """
    groups, rows = live.groups, live.groups["rows"]
    parts = [np.broadcast_to(always, (live.rows, len(always)))]
    if not live.special:
        return parts[0]
    if live.greatest_least:
        too_short = groups["length"] < groups["least"]
        parts.append(np.where(too_short, eos, NOTHING).repeat(rows)[:, None])
    for ngram in live.ngrams:
        length = np.where(groups["ngram"] == ngram, groups["length"], 0).repeat(rows)
        tokens = live.all_tokens[: live.rows, : int(length.max())]
        parts.append(repeating_tokens(tokens, length, ngram))
    ids = np.ascontiguousarray(np.concatenate(parts, axis=1))
    ids[is_forced.repeat(rows)] = NOTHING
    ids.sort(axis=1)  # ``NOTHING`` comes first
    most = int((ids != NOTHING).sum(axis=1).max())
    return ids[:, ids.shape[1] - most :]


def only_tokens(live: BeamState, is_forced: Booleans, forbidden: Integers) -> OnlyTokens:
    """Return the constraint that leaves a single token to each row whose next token is given
    (``is_forced`` (G,)) or sampled, and the allowed tokens to each row with rules."""
    groups, rows = live.groups, live.groups["rows"]
    forced_tokens = [
        live.pools[group].job.request.prefix[int(groups["length"][group])]
        for group in np.flatnonzero(is_forced).tolist()
    ]
    drawn = []
    for settings, draws in live.drawing() if live.draws else []:
        group = np.flatnonzero(draws & ~is_forced)
        if len(group):
            # A group that samples has one row, and so has one that is forced.
            of_rows = np.flatnonzero((draws & ~is_forced).repeat(rows))
            numbers = uniform(groups["key"][group], groups["length"][group])
            drawn.append((settings, of_rows, numbers))
    return OnlyTokens(
        np.flatnonzero(is_forced.repeat(rows)),
        np.array(forced_tokens, np.int64),
        drawn,
        forbidden,
        _flags_by_group(live) if live.ruled else [],
    )


def _flags_by_group(live: BeamState) -> list[tuple[slice, Booleans]]:
    """Return the rows of each group that has rules, with flags for the tokens that may follow
    them."""
    flags = []
    ends = live.groups["rows"].cumsum().tolist()
    for pool, begin, end, length in zip(
        live.pools, [0, *ends], ends, live.groups["length"].tolist(), strict=False
    ):
        rules = pool.job.request.rules
        if rules is not None:
            rows = slice(begin, end)
            flags.append((rows, rules.allows(live.all_tokens[rows, :length])))
    return flags


# ---- sampling


def _draw_tokens(allowed: Floats32, settings: SamplingSettings, numbers: Floats) -> Integers:
    if not settings.top_k and settings.top_p == 1.0:
        return draw_from_all(allowed, settings.temperature, numbers)
    import torch

    tokens: Integers = draw(torch.from_numpy(allowed), settings, torch.from_numpy(numbers)).numpy()
    return tokens


def uniform(keys: npt.NDArray[np.uint64], places: Integers) -> Floats:
    """Return numbers (M,) in [0, 1): the numbers at ``places`` of the random streams ``keys``
    (``data.hashing.mix``)."""
    state = mix(keys + places.astype(np.uint64) * STEP) >> np.uint64(11)
    return state.astype(np.float64) * 2.0**-53


def draw_from_all(log_probabilities: Floats32, temperature: float, numbers: Floats) -> Integers:
    """Sample one token per row as ``draw`` does without top-k and top-p, without torch and several
    times as fast. Return ids (M,). ``log_probabilities`` (M, V), ``numbers`` (M,) in [0, 1)."""
    with np.errstate(invalid="ignore"):  # a row in which everything is forbidden
        scaled = log_probabilities - log_probabilities.max(axis=1, keepdims=True)
        mass = np.exp(scaled if temperature == 1.0 else scaled / np.float32(temperature))
        heap = mass.cumsum(axis=1, dtype=np.float64)
        # The first place at which the heap exceeds the number; a place without mass is never that.
        places = (heap <= numbers[:, None] * heap[:, -1:]).sum(axis=1)
        # A number that rounds up to the whole heap belongs to the last place with mass.
        last = mass.shape[1] - 1 - (mass > 0)[:, ::-1].argmax(axis=1)
    chosen: Integers = np.minimum(places, last)
    return chosen


def draw(log_probabilities: Tensor, settings: SamplingSettings, numbers: Tensor) -> Tensor:
    """Sample one token per row by inverting the cumulative distribution. Return ids (M,) int64.

    ``log_probabilities`` (M, V), -inf for forbidden tokens; ``numbers`` (M,) fp64 in [0, 1). A row
    in which everything is forbidden gets any id.
    """
    import torch  # which searches that draw nothing do without

    scaled = log_probabilities / settings.temperature
    vocabulary = scaled.shape[-1]
    kept = min(settings.top_k or vocabulary, vocabulary)
    ids = None
    if kept < vocabulary or settings.top_p < 1.0:
        # Best first, so that what top-p keeps is the beginning of a row.
        scaled, ids = torch.topk(scaled, kept, dim=-1)  # (M, K)
    # fp64: summing over a big vocabulary must not round small probabilities away.
    mass = torch.softmax(scaled.double(), dim=-1).nan_to_num(0.0)
    if settings.top_p < 1.0:
        before = mass.cumsum(dim=-1) - mass
        mass = mass * (before < settings.top_p)
    heap = mass.cumsum(dim=-1)
    # The first place at which the heap exceeds the number; a place without mass is never that.
    places = torch.searchsorted(heap, numbers[:, None] * heap[:, -1:], right=True)  # (M, 1)
    # A number that rounds up to the whole heap belongs to the last place with mass.
    last = ((mass > 0) * torch.arange(kept, device=mass.device)).amax(dim=-1, keepdim=True)
    places = torch.minimum(places, last)
    return (places if ids is None else ids.gather(-1, places)).squeeze(-1)
