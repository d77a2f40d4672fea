"""The state of a batch of searches: rows (live hypotheses, which have not ended) in groups
(searches).

The state is a few arrays, so a step costs a few operations however many rows there are, in numpy
or in one pass of native code (``beam.py``). The arrays have spare room and stay where they are;
only their beginnings are in use. The rows of one group are adjacent, best first. A request has one
group, or one per sample or alternative.

Shapes: N rows, G groups, C continuations that a group ranks, L places for tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dragoman.models.searched import Source
from dragoman.native.abi import Ended, Found, Group, Looked
from dragoman.search.hypothesis import (
    SHIFTS,
    Booleans,
    Floats,
    Floats32,
    Hypothesis,
    Integers,
    hypothesis_of,
    length_penalty,
)
from dragoman.search.request import Pool, Request, SearchJob
from dragoman.search.settings import SamplingSettings

NEVER = 2**62
"""A quota of ended hypotheses that is never reached."""

SPARE_PLACES = 32
"""The number of places that are added to the history when it is full."""

# The records of a search, fields explained in native/abi.py.
GROUP, LOOKED, ENDED, FOUND = (np.dtype(record) for record in (Group, Looked, Ended, Found))

Records = npt.NDArray[np.void]


def sampling_key(seed: int, source: Source, sample: int) -> int:
    """Return 64 bits from which all draws of one sample of one source follow.

    They also depend on the source, so that one seed does not give all sentences the same draws.
    """
    digest = hashlib.blake2b(np.array([seed, sample], dtype=np.int64).tobytes(), digest_size=8)
    digest.update(np.asarray(source).tobytes())
    return int.from_bytes(digest.digest(), "little")


def _group(request: Request, branch: int, keep: int) -> Group:
    """Return the record of a search that begins."""
    settings, limit = request.settings, request.limit
    beam, key = settings.beam, 0
    if settings.sampling is not None:
        beam = 1
        key = sampling_key(settings.sampling.seed, request.source, branch)
    draws, recorded = settings.sampling is not None, request.record is not None
    special = (
        draws
        or recorded
        or settings.alternatives
        or bool(request.prefix)
        or request.rules is not None
        or settings.min_length > 0
        or settings.no_repeat_ngram > 0
    )
    return Group(
        rows=1,
        width=settings.n_best if settings.alternatives else beam,
        limit=limit,
        least=settings.min_length,
        prefix=len(request.prefix),
        ngram=settings.no_repeat_ngram,
        # Of one that splits, those of its parts: it is not done before.
        quota=beam if beam == 1 or settings.stop == "full" else NEVER,
        alpha=settings.length_penalty,
        shift=SHIFTS[settings.penalty],
        ceiling=length_penalty(limit + 1, settings.length_penalty, settings.penalty),
        worst=-np.inf,
        key=key,
        keep=keep,
        splits=settings.alternatives,
        draws=draws,
        recorded=recorded,
        special=special,
        shrinks=settings.stop == "empty",
    )


class BeamState:
    """The rows and groups of one batch, in the order in which the model's state has them."""

    def __init__(self, bos: int) -> None:
        self._bos = bos
        self.rows = 0
        """N, the number of rows (live hypotheses)."""
        self.pools: list[Pool] = []
        """The pool of each group, in the order of the groups: the ended hypotheses that it
        keeps."""
        self.all_groups: Records = np.zeros(0, GROUP)
        self.all_looked: Records = np.zeros((0, 0), LOOKED)
        self.all_ended: Records = np.zeros(0, ENDED)
        self.all_found: Records = np.zeros(0, FOUND)
        self.found_tokens: npt.NDArray[np.int32] = np.zeros((0, SPARE_PLACES), np.int32)
        self.found_log_probabilities: Floats32 = np.zeros((0, SPARE_PLACES), np.float32)
        self.all_tokens: npt.NDArray[np.int32] = np.zeros((0, SPARE_PLACES), np.int32)
        """The tokens of each row, up to the length of its group."""
        self.all_log_probabilities: Floats32 = np.zeros((0, SPARE_PLACES), np.float32)
        """The log-probability of each single token of each row."""
        self.all_totals: Floats = np.zeros(0)
        self.all_last: Integers = np.zeros(0, np.int64)
        """The token that the model reads next for each row."""
        self.all_parents: Integers = np.zeros(0, np.int64)
        """For each row, the number of the row before the last step that it continues."""
        self.groups: Records = self.all_groups
        """(G,) GROUP: the records of the groups under way."""
        self.looked: Records = self.all_looked
        """(G, C) LOOKED: the continuations that each group ranked in the last step, best first."""
        self.moves = 0
        """The number of times that bigger arrays replaced the old ones."""
        self.longest = 0
        """An upper bound of the number of tokens of any row."""
        self._note()

    @property
    def totals(self) -> Floats:
        """(N,) the log-probability of each row, in nats."""
        return self.all_totals[: self.rows]

    def add(self, jobs: Sequence[SearchJob], rows: int) -> None:
        """Begin the searches of new requests after those under way, with one row each.

        ``rows``: the most rows that the batch can have with the new requests.
        """
        records = []
        for job in jobs:
            request = job.request
            single = job.open == 1 and not request.settings.alternatives
            keep = request.settings.n_best if single else 1
            for branch in range(job.open):
                records.append(np.frombuffer(bytes(_group(request, branch, keep)), GROUP))
                self.pools.append(Pool(job, branch, keep))
        new = len(records)
        if rows > len(self.all_totals):
            self._make_room(rows)
        self.all_groups[len(self.pools) - new : len(self.pools)] = np.concatenate(records)
        self.all_last[self.rows : self.rows + new] = self._bos
        self.all_totals[self.rows : self.rows + new] = 0.0
        self.rows += new
        self._note()

    def grew(self, steps: int = 1) -> None:
        """Make room for one more token per row. Call this after ``steps`` steps."""
        self.longest += steps
        if self.longest < self.all_tokens.shape[1]:
            return
        self.longest = int(self.groups["length"].max(initial=0))
        if self.longest == self.all_tokens.shape[1]:
            spare = ((0, 0), (0, SPARE_PLACES))
            self.all_tokens = np.pad(self.all_tokens, spare)
            self.all_log_probabilities = np.pad(self.all_log_probabilities, spare)
            self.found_tokens = np.pad(self.found_tokens, spare)
            self.found_log_probabilities = np.pad(self.found_log_probabilities, spare)
            self.moves += 1

    def drop_done(self) -> None:
        """Remove the groups that have no rows."""
        stay = self.groups["rows"].nonzero()[0]
        # Without their fields: numpy copies records with fields one field at a time.
        groups = self.all_groups.view(f"V{GROUP.itemsize}")
        groups[: len(stay)] = groups.take(stay)
        self.pools = [self.pools[group] for group in stay.tolist()]
        if not self.pools:
            self.longest = 0
        self._note()

    def discard(self, groups: Booleans) -> None:
        """Remove some groups (G,) between two steps; ``all_parents`` then names the rows that are
        left."""
        left = np.flatnonzero(~groups.repeat(self.groups["rows"]))
        self.groups["rows"][groups] = 0
        self.all_tokens[: len(left)] = self.all_tokens[left]
        self.all_log_probabilities[: len(left)] = self.all_log_probabilities[left]
        self.all_last[: len(left)] = self.all_last[left]
        self.all_totals[: len(left)] = self.all_totals[left]
        self.all_parents[: len(left)] = left
        self.rows = len(left)
        self.drop_done()

    def split(self, groups: Booleans) -> None:
        """Turn each row of some groups (G,) into a group of its own, which is searched alone from
        here on."""
        pools = []
        for pool, splits, rows in zip(
            self.pools, groups.tolist(), self.groups["rows"].tolist(), strict=True
        ):
            if splits:
                pool.job.answers += pool.hypotheses
                pool.job.open += rows - 1
                pools += [Pool(pool.job, row, 1) for row in range(rows)]
            else:
                pools.append(pool)
        times = np.where(groups, self.groups["rows"], 1)
        records = self.groups.repeat(times)
        self.pools = pools
        for group in np.flatnonzero(groups.repeat(times)).tolist():
            records["rows"][group] = 1
            records["width"][group] = pools[group].job.request.settings.beam
            records["splits"][group] = False
            records["keep"][group] = 1
            records["ended"][group] = 0
            records["worst"][group] = -np.inf
        self.all_groups[: len(records)] = records
        self._note()

    def end(self, group: int, row: int, length: int, end: float | None) -> None:
        """Offer a row of ``group`` to its pool, which keeps it if it is among the best. ``end``:
        the log-probability of the end symbol if the row has ended; None if it was cut."""
        tokens, costs = self.all_tokens[row, :length], self.all_log_probabilities[row, :length]
        self.pools[group].offer(tokens.tolist(), costs.tolist(), end)
        self.all_groups["worst"][group] = self.pools[group].worst

    def take_found(self) -> None:
        """Add the hypotheses that a native run of steps found to the pools of their groups."""
        records = self.all_found[: len(self.pools)]
        for group in (records["length"] >= 0).nonzero()[0].tolist():
            length, end = records[group].tolist()
            tokens = self.found_tokens[group, :length].tolist()
            costs = self.found_log_probabilities[group, :length].tolist()
            self.pools[group].offer(tokens, costs, None if end != end else end)

    def hypothesis(self, group: int) -> Hypothesis:
        """Return the best live hypothesis of a group, unfinished as it is."""
        row = int(self.groups["rows"][:group].sum())
        length = int(self.groups["length"][group])
        return hypothesis_of(
            self.all_tokens[row, :length].tolist(),
            self.all_log_probabilities[row, :length].tolist(),
            self.pools[group].job.request.settings,
            finished=False,
        )

    def drawing(self) -> list[tuple[SamplingSettings, Booleans]]:
        """Return the sampling settings in use, each with flags (G,), True for the groups that
        sample by them. Seeds are ignored (set to 0)."""
        ways: dict[SamplingSettings, Booleans] = {}
        for group in np.flatnonzero(self.groups["draws"]).tolist():
            settings = self.pools[group].job.request.settings.sampling
            assert settings is not None
            way = settings.model_copy(update={"seed": 0})
            ways.setdefault(way, np.zeros(len(self.pools), np.bool_))[group] = True
        return list(ways.items())

    def _note(self) -> None:
        """Update the views and flags that depend on which groups there are, so that features which
        no group uses cost nothing in a step."""
        self.groups = groups = self.all_groups[: len(self.pools)]
        self.widest = int(groups["width"].max(initial=1))
        # k of a step: at most ``widest`` candidates of a row go on, and one may be the end. For
        # greedy search the best alone decides: it goes on or it is the end.
        self.candidates = self.widest + 1 if self.widest > 1 else 1
        if 2 * self.widest > self.all_looked.shape[1]:
            self.all_looked = np.zeros((len(self.all_groups), 2 * self.widest), LOOKED)
            self.moves += 1
        self.looked = self.all_looked[: len(self.pools), : 2 * self.widest]
        self.special = special = bool(groups["special"].any())
        self.plain = not special and int(groups["keep"].max(initial=1)) == 1
        self.greatest_least = int(groups["least"].max()) if special else 0
        self.ngrams = sorted({n for n in groups["ngram"].tolist() if n}) if special else []
        self.draws = special and bool(groups["draws"].any())
        self.ruled = special and any(pool.job.request.rules is not None for pool in self.pools)
        self.splits = special and bool(groups["splits"].any())
        self.recorded = special and bool(groups["recorded"].any())

    def _make_room(self, rows: int) -> None:
        """Enlarge the arrays to ``rows`` rows, each of which may be a group."""
        more = rows - len(self.all_totals)
        spare = (0, more)
        self.all_groups = np.concatenate([self.all_groups, np.zeros(more, GROUP)])
        self.all_looked = np.zeros((rows, self.all_looked.shape[1]), LOOKED)
        self.all_ended = np.zeros(rows, ENDED)
        self.all_found = np.zeros(rows, FOUND)
        self.found_tokens = np.zeros((rows, self.all_tokens.shape[1]), np.int32)
        self.found_log_probabilities = np.zeros((rows, self.all_tokens.shape[1]), np.float32)
        self.all_tokens = np.pad(self.all_tokens, (spare, (0, 0)))
        self.all_log_probabilities = np.pad(self.all_log_probabilities, (spare, (0, 0)))
        self.all_totals = np.pad(self.all_totals, spare)
        self.all_last = np.pad(self.all_last, spare)
        self.all_parents = np.pad(self.all_parents, spare)
        self.moves += 1
