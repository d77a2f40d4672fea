"""What is under way in a batch: rows (hypotheses) and the groups (searches) that they stand in.

All of it is a few arrays, so a step costs a few operations however many rows there are. The rows
of one group stand together, best first. A request has one group, or one per sample or alternative.

Shapes: N rows, G groups, L places for tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dragoman.search.hypothesis import (
    Booleans,
    Floats,
    Floats32,
    Hypothesis,
    Integers,
    hypothesis_of,
)
from dragoman.search.request import Request, SearchSettings
from dragoman.search.sampling import SamplingSettings, sampling_key

NEVER = 2**62
"""A quota that is not reached."""

SPARE_PLACES = 32
"""By how many places the history grows when it is full."""

GROUP = np.dtype(
    [
        ("rows", np.int64),  # live hypotheses
        ("width", np.int64),  # how many may be live
        ("length", np.int64),  # tokens chosen, the same for all its rows
        ("limit", np.int64),  # most tokens
        ("least", np.int64),  # fewest tokens
        ("prefix", np.int64),  # how many tokens are given
        ("ngram", np.int64),  # no run of so many tokens twice; 0: no limit
        ("ended", np.int64),  # hypotheses that have ended
        ("quota", np.int64),  # ended hypotheses at which it stops
        ("splits", np.bool_),  # becomes one group per hypothesis at its first free token
        ("draws", np.bool_),  # samples
        ("recorded", np.bool_),  # someone wants to see its steps
        ("alpha", np.float64),  # of the length penalty
        ("ceiling", np.float64),  # the greatest length penalty that it can reach
        ("worst", np.float64),  # score of the worst of its n best ended; -inf while fewer
        ("key", np.uint64),  # of its random numbers
    ]
)
Groups = npt.NDArray[np.void]


@dataclass
class Task:
    """One request under way."""

    ticket: int
    request: Request
    open: int
    """How many of its groups are not done."""
    answers: list[Hypothesis] = field(default_factory=list)
    """Those of the groups that are done."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A hypothesis that left the batch; made into a ``Hypothesis`` only if it stays wanted."""

    score: float
    tokens: npt.NDArray[np.int32]
    log_probabilities: Floats32
    end: float | None
    """Log-probability of the end symbol; None if it was cut."""


@dataclass
class Pool:
    """The best ended hypotheses of one group."""

    task: Task
    branch: int
    """Which of its request's groups it is."""
    keep: int
    ended: list[Ended] = field(default_factory=list)

    def offer(self, ended: Ended) -> float:
        """Keep it if it is among the best -> the worst score kept, -inf while there is room."""
        self.ended.append(ended)
        self.ended.sort(key=lambda e: (e.end is None, -e.score))
        del self.ended[self.keep :]
        return self.ended[-1].score if len(self.ended) == self.keep else -np.inf

    def hypotheses(self) -> list[Hypothesis]:
        """What it keeps, best first."""
        alpha = self.task.request.settings.length_penalty
        hypotheses = []
        for ended in self.ended:
            log_probabilities = ended.log_probabilities.tolist()
            if ended.end is not None:
                log_probabilities.append(ended.end)
            hypotheses.append(
                hypothesis_of(
                    ended.tokens.tolist(), log_probabilities, alpha, ended.end is not None
                )
            )
        return hypotheses


def _quota(width: int, settings: SearchSettings) -> int:
    """Greedy search ends with its first end symbol, whatever a wider one would do."""
    return width if width == 1 or settings.stop == "full" else NEVER


def _group(request: Request, branch: int) -> tuple[object, ...]:
    """A record of GROUP for a search that begins."""
    settings = request.settings
    width = settings.n_best if settings.alternatives else settings.beam
    key = 0
    if settings.sampling is not None:
        width = 1
        key = sampling_key(settings.sampling.seed, request.source, branch)
    return (
        1,
        width,
        0,
        request.limit,
        settings.min_length,
        len(request.prefix),
        settings.no_repeat_ngram,
        0,
        _quota(width, settings),
        settings.alternatives,
        settings.sampling is not None,
        request.record is not None,
        settings.length_penalty,
        ((5.0 + request.limit + 1) / 6.0) ** settings.length_penalty,
        -np.inf,
        key,
    )


class Live:
    """Rows and groups of one batch, in the order in which the model's state has them."""

    def __init__(self, bos: int) -> None:
        self._bos = bos
        self.groups: Groups = np.zeros(0, GROUP)
        self.pools: list[Pool] = []
        """One per group."""
        self.last: Integers = np.zeros(0, np.int64)
        """(N,) the token that each row takes in next."""
        self.totals: Floats = np.zeros(0)
        """(N,) log-probability of each row."""
        self.tokens: npt.NDArray[np.int32] = np.zeros((0, SPARE_PLACES), np.int32)
        """(N, L) filled up to the length of the row's group."""
        self.log_probabilities: Floats32 = np.zeros((0, SPARE_PLACES), np.float32)
        """(N, L) of each token alone."""
        self._note()

    @property
    def rows(self) -> int:
        """N."""
        return len(self.last)

    def add(self, tasks: Sequence[Task]) -> None:
        """Begin the searches of new requests behind those under way, one row each."""
        groups = []
        for task in tasks:
            request = task.request
            single = request.searches == 1 and not request.settings.alternatives
            for branch in range(request.searches):
                groups.append(_group(request, branch))
                self.pools.append(Pool(task, branch, request.settings.n_best if single else 1))
        new, places = len(groups), self.tokens.shape[1]
        self.groups = np.concatenate([self.groups, np.array(groups, GROUP)])
        self.last = np.concatenate([self.last, np.full(new, self._bos, np.int64)])
        self.totals = np.concatenate([self.totals, np.zeros(new)])
        self.tokens = np.concatenate([self.tokens, np.zeros((new, places), np.int32)])
        self.log_probabilities = np.concatenate(
            [self.log_probabilities, np.zeros((new, places), np.float32)]
        )
        self._note()

    def grow(
        self,
        rows: Integers,
        counts: Integers,
        tokens: Integers,
        totals: Floats,
        log_probabilities: Floats32,
    ) -> bool:
        """Each group goes on with ``counts`` (G,) rows: ``rows`` (M,), each with one more token.

        -> whether any row moved; in greedy search, between two ends, none does.
        """
        places = self.groups["length"].repeat(counts)
        if len(places) and int(places.max()) == self.tokens.shape[1]:
            self._make_room()
        moved = len(rows) != len(self.last) or bool((rows != np.arange(len(rows))).any())
        if moved:
            self.tokens = self.tokens.take(rows, axis=0)
            self.log_probabilities = self.log_probabilities.take(rows, axis=0)
        every = np.arange(len(rows))
        self.tokens[every, places] = tokens
        self.log_probabilities[every, places] = log_probabilities
        self.last = tokens
        self.totals = totals
        self.groups["rows"] = counts
        self.groups["length"] += 1
        return moved

    def drop_done(self) -> None:
        """Forget the groups that have no rows."""
        stays = self.groups["rows"] > 0
        self.groups = self.groups[stays]
        self.pools = [self.pools[group] for group in np.flatnonzero(stays).tolist()]
        if not self.rows:
            self.tokens = self.tokens[:, :SPARE_PLACES].copy()
            self.log_probabilities = self.log_probabilities[:, :SPARE_PLACES].copy()
        self._note()

    def discard(self, groups: Booleans) -> Integers:
        """Take some groups (G,) out between two steps -> the rows (M,) that are left."""
        rows = np.flatnonzero(~groups.repeat(self.groups["rows"]))
        self.tokens = self.tokens[rows]
        self.log_probabilities = self.log_probabilities[rows]
        self.last = self.last[rows]
        self.totals = self.totals[rows]
        self.groups["rows"][groups] = 0
        self.drop_done()
        return rows

    def split(self, groups: Booleans) -> None:
        """Make one group of each row of some groups (G,): they are searched from here alone."""
        pools = []
        for pool, splits, rows in zip(
            self.pools, groups.tolist(), self.groups["rows"].tolist(), strict=True
        ):
            if splits:
                pool.task.answers += pool.hypotheses()
                pool.task.open += rows - 1
                pools += [Pool(pool.task, row, 1) for row in range(rows)]
            else:
                pools.append(pool)
        self.pools = pools
        times = np.where(groups, self.groups["rows"], 1)
        self.groups = self.groups.repeat(times)
        for group in np.flatnonzero(groups.repeat(times)).tolist():
            settings = self.pools[group].task.request.settings
            record = self.groups[group]
            record["rows"], record["width"], record["splits"] = 1, settings.beam, False
            record["ended"], record["worst"] = 0, -np.inf
            record["quota"] = _quota(settings.beam, settings)
        self._note()

    def end(self, group: int, row: int, score: float, end: float | None) -> None:
        """One of ``group``'s rows has ended, or is cut (``end`` None): keep it if it is good."""
        length = int(self.groups["length"][group])
        tokens = self.tokens[row, :length].copy()
        log_probabilities = self.log_probabilities[row, :length].copy()
        ended = Ended(score, tokens, log_probabilities, end)
        self.groups["worst"][group] = self.pools[group].offer(ended)

    def hypothesis(self, group: int) -> Hypothesis:
        """The best live hypothesis of a group, as it stands."""
        row = int(self.groups["rows"][:group].sum())
        length = int(self.groups["length"][group])
        return hypothesis_of(
            self.tokens[row, :length].tolist(),
            self.log_probabilities[row, :length].tolist(),
            float(self.groups["alpha"][group]),
            finished=False,
        )

    def drawing(self) -> list[tuple[SamplingSettings, Booleans]]:
        """The groups (G,) that sample, by how they do; the seed does not matter here."""
        ways: dict[SamplingSettings, Booleans] = {}
        for group in np.flatnonzero(self.groups["draws"]).tolist():
            settings = self.pools[group].task.request.settings.sampling
            assert settings is not None
            way = settings.model_copy(update={"seed": 0})
            ways.setdefault(way, np.zeros(len(self.pools), np.bool_))[group] = True
        return list(ways.items())

    def _make_room(self) -> None:
        spare = ((0, 0), (0, SPARE_PLACES))
        self.tokens = np.pad(self.tokens, spare)
        self.log_probabilities = np.pad(self.log_probabilities, spare)

    def _note(self) -> None:
        """What no group asks for costs nothing in a step: find out when groups come and go."""
        groups = self.groups
        self.widest = int(groups["width"].max(initial=1))
        self.longest_prefix = int(groups["prefix"].max(initial=0))
        self.greatest_least = int(groups["least"].max(initial=0))
        self.ngrams = [n for n in np.unique(groups["ngram"]).tolist() if n > 0]
        self.draws = bool(groups["draws"].any())
        self.splits = bool(groups["splits"].any())
        self.recorded = bool(groups["recorded"].any())
