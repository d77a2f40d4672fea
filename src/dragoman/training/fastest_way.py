"""The search for the way of computing that trains a model fastest on this machine, timed on the
model's own updates. ``measure_throughput`` measures the speed of training, by which minutes are
turned into updates.

The processor's flags only say what can be tried. On one server with bf16 instructions for vectors
and for tiles, the kernels on vectors are the slowest of all ways; on another processor the same
kernels are the fastest (docs/experiments.md).

The ways are timed alternately. The shortest time of each way counts, minus the time that its
threads waited for a core (``native/measured.py``), so that other programs on the machine do not
influence the choice. Ways that are near the best are timed again. The sample is a part of the first
micro-batch, which is run twice: the extra time of the first run is the cost that each update pays
once, for packing or casting the weights.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

from dragoman.native import library, measured
from dragoman.native.allocator import peak_bytes
from dragoman.native.measured import Stopwatch
from dragoman.nn.linear import refresh
from dragoman.training.arithmetic import computing, ways_here
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import MakeBatch, Splits
from dragoman.training.losses.objectives import MicroBatch, Objective
from dragoman.training.settings import TrainingSettings, TrainingWay
from dragoman.training.update import Batches, Updater

GAIN_OF_BF16 = 1.1
"""bf16 is chosen only if it is more than this many times as fast as fp32, because it also changes
the results."""

_NEAR = 1.2
"""Ways that take at most this many times the shortest time are near the best."""
_AGAIN = (2.0, 1.5, *[_NEAR] * 8)
"""For each further round, a factor: the ways that take at most this many times the shortest time
are timed again."""
_HOPELESS = 3.0
"""A way whose first pass takes this many times the shortest time is not timed further. While caches
are cold, the limit is four times as high."""


@dataclass(frozen=True)
class Timing:
    """Limits, in seconds, on how long measuring the ways may take."""

    least: float = 1.0
    most: float = 6.0
    """After the first turns, the whole measurement takes between ``least`` and ``most`` seconds.
    Where between them depends on how long a pass takes, because a small model may be trained in
    seconds."""
    passes: int = 60
    """Within these limits, the whole measurement takes as long as this many of the shortest
    passes."""
    longest: float = 0.25
    """The longest time of a pass. Passes are not made much shorter: with few tokens, the fixed cost
    of each operator would weigh too much, and plain torch has the most operators."""


@dataclass(frozen=True)
class MeasuredWays:
    """The speed of each way, and the way that was chosen."""

    way: TrainingWay
    """The way that training uses from now on."""
    rates: Mapping[TrainingWay, float]
    """The tokens per second of each way that was timed, without the optimizer's step."""

    def summary(self, counted: str) -> str:
        """Return a line for people about the chosen way. ``counted``: the noun for tokens in this
        line."""
        if self.way not in self.rates:
            return f"{self.way.summary()}, the only way"
        line = f"{self.way.summary()}: {self.rates[self.way]:,.0f} {counted}/s"
        others = [way for way in self.rates if (way.kernels, way.precision) != _kind(self.way)]
        if not others:
            return line
        next_best = max(others, key=lambda way: self.rates[way])
        gain = self.rates[self.way] / self.rates[next_best]
        return f"{line}, {gain:.1f} times {next_best.summary()}"

    def to_dict(self) -> dict[str, object]:
        """Return the measurement in the form in which it is stored in the run's folder."""
        return {
            "chosen": self.way.model_dump(),
            "measured": [
                {**way.model_dump(exclude={"machine"}), "tokens_per_second": round(rate, 1)}
                for way, rate in sorted(self.rates.items(), key=lambda item: -item[1])
            ],
        }


def _kind(way: TrainingWay) -> tuple[str, str]:
    return way.kernels, way.precision


def choose(seconds: Mapping[TrainingWay, float]) -> TrainingWay:
    """Return the fastest way. bf16 is chosen only if it is faster than fp32 by more than
    ``GAIN_OF_BF16``.

    ``seconds``: the time that the same work takes in each way.
    """

    def fastest(precision: str) -> TrainingWay | None:
        some = [way for way in seconds if way.precision == precision]
        return min(some, key=lambda way: seconds[way], default=None)

    precise, low = fastest("fp32"), fastest("bf16")
    if precise is None or low is None:
        only = precise or low
        assert only is not None, "there is always a way"
        return only
    return low if seconds[low] * GAIN_OF_BF16 < seconds[precise] else precise


def time_ways(
    ways: Sequence[TrainingWay],
    seconds_of: Callable[[TrainingWay], float],
    in_time: Callable[[], bool],
) -> dict[TrainingWay, float]:
    """Return the shortest time of each way in seconds. The ``ways`` are timed alternately. Ways
    near the best are then tried with fewer threads, for as long as they remain near the best.
    Finally, the ways near the best are timed in further rounds.

    ``seconds_of`` times one way. ``in_time`` returns True if there is time for a further round.
    """
    best: dict[TrainingWay, float] = {}

    def take_turns(some: Sequence[TrainingWay]) -> None:
        for way in some:
            best[way] = min(best.get(way, float("inf")), seconds_of(way))

    def near(times: float = _NEAR) -> list[TrainingWay]:
        least = min(best.values())
        return [way for way, seconds in best.items() if seconds <= times * least]

    take_turns(ways)
    take_turns(near(_AGAIN[0]))
    while in_time():
        many = [way for way in near() if way.threads > 1 and not way.on_gpu]
        halves = [way.on(way.threads // 2) for way in many]
        fewer = [way for way in dict.fromkeys(halves) if way not in best]
        if not fewer:
            break
        take_turns(fewer)
    for times in _AGAIN:
        rivals = near(times)
        if len(rivals) < 2 or not in_time():
            break
        take_turns(rivals)
    return best


def fastest_way(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    batches: Batches,
    *,
    ranks: Ranks | None = None,
    remembered: Path | None = None,
    work: str = "",
    timing: Timing | None = None,
) -> MeasuredWays:
    """Return the fastest way to make updates of ``batches`` on this machine, among the ways that
    ``settings`` allow.

    ``remembered``: a folder in which the times are looked up, or else stored, under ``work``, which
    names everything that decides how long an update takes. All ``ranks`` measure together, as they
    will train.
    ``timing``: if this is given, a way is timed even if there is no other way.
    Errors: as ``ways_here``.
    """
    ranks = ranks or Ranks()
    updater = Updater(model, objective, settings, lambda _: 0.0, ranks)
    every = ways_here(model, settings, ranks.device)
    ways = _common([way for way in every if way.level is None or library.agrees(way.level)], ranks)
    if len(ways) == 1 and (ways[0].threads == 1 or ways[0].on_gpu) and timing is None:
        return MeasuredWays(ways[0], {})
    known = _recall(remembered, work, ways, ranks)
    if known is not None:
        return MeasuredWays(choose(known), {way: 1 / seconds for way, seconds in known.items()})
    with TemporaryDirectory() as folder:
        splits = Splits(Path(folder))
        trials = _Trials(updater, batches, splits, ways[0], timing or Timing())
        # torch's threads spin while they wait for each other: fewer are faster next to others.
        torches = [way for way in ways if not (way.by_kernels or way.on_gpu)]
        alone = [way.on(way.threads // 2) for way in torches if way.threads > 1]
        seconds = time_ways([*ways, *alone], trials.seconds, trials.in_time)
    if ranks.first and remembered is not None:
        nanoseconds = {_name(way): max(1, round(1e9 * cost)) for way, cost in seconds.items()}
        measured.remember(remembered, nanoseconds, work)
    return MeasuredWays(choose(seconds), {way: 1 / cost for way, cost in seconds.items()})


class _Trials:
    """Timed passes over a part of the first micro-batch."""

    def __init__(
        self, updater: Updater, batches: Batches, splits: Splits, first: TrainingWay, timing: Timing
    ) -> None:
        """Prepare the part of the first micro-batch that is timed. ``first``: the way whose speed
        decides how large this part is."""
        self._timing = timing
        self._updater = updater
        self._splits = splits
        self._number = count()
        self._began = time.perf_counter()
        self._shortest = float("inf")
        self._passes: dict[TrainingWay, tuple[float, float]] = {}
        ranks = updater.ranks
        share = batches(0, ranks.rank, ranks.size)
        self._tokens = 0.0
        self._cold = float("inf")
        """The time of the shortest pass over a few examples with cold caches."""
        self._part: list[MakeBatch] = []
        self._few: list[MakeBatch] = []
        self._times, self._times_few = 0.0, 1.0
        """The work of an update as a multiple of the work of ``_part``, and that of ``_part`` as a
        multiple of the work of ``_few``."""
        if share:
            whole = share[0]()
            part = self._part_of(whole, first)
            self._part = [lambda: part]
            self._times = len(share) * len(whole) / len(part)
        # All processes count together, and wait for each other.
        self._tokens = self._sum(self._tokens * self._times)

    def seconds(self, way: TrainingWay) -> float:
        """Return the seconds that a token takes in an update, without the optimizer's step."""
        if way not in self._passes and (cold := self._warm_up(way)) is not None:
            first = second = cold
        else:
            first, second = self._run(way, passes=2)
        known = self._passes.get(way, (first, second))
        first, second = self._passes[way] = min(first, known[0]), min(second, known[1])
        self._shortest = min(self._shortest, second)
        whole = max(0.0, first - second) + self._times * second
        return self._sum(whole) / self._updater.ranks.size / max(1.0, self._tokens)

    def in_time(self) -> bool:
        timing = self._timing
        limit = min(timing.most, max(timing.least, timing.passes * self._shortest))
        return not self._updater.ranks.any(time.perf_counter() - self._began > limit)

    def _warm_up(self, way: TrainingWay) -> float | None:
        """On a CPU, compute a few examples; if they show that the whole part would take too long to
        be worth timing, return its estimated time, else None. On a GPU, compute the whole part
        once, and return None: the first pass loads code for each shape, so its time says nothing
        about that of the second pass."""
        if way.on_gpu:
            self._run(way, passes=1)
            return None
        whole, self._part = self._part, self._few
        cold = self._run(way, passes=1)[0]
        self._part = whole
        self._cold = min(self._cold, cold)
        if cold > 4 * _HOPELESS * self._cold + 0.05:
            return cold * self._times_few
        return None

    def _run(self, way: TrainingWay, passes: int) -> tuple[float, float]:
        """Return the seconds of the first pass, which packs or casts the weights, and of the second
        pass. If there is no second pass, both times are that of the first pass."""
        updater = self._updater
        if updater.way != way:
            updater.compute_by(way)
        gradients = updater.gradients(0, self._splits, lambda _: None)
        update, times = next(self._number), []
        if way.on_gpu:  # which may still cast the weights
            torch.cuda.synchronize()
        for number in range(passes):
            watch = Stopwatch()
            with computing(way):
                if number == 0:
                    refresh(updater.model)
                sums = gradients.accumulate(update, self._part)
                tokens = float(sums[2])  # waits for a GPU, which works on after the call
            self._tokens = self._tokens or tokens
            times.append(watch.seconds(way.threads))
            if times[0] > _HOPELESS * self._shortest + 0.1:
                break
        return times[0], times[-1]

    def _part_of(self, whole: MicroBatch, way: TrainingWay) -> MicroBatch:
        """Return the largest part of ``whole`` (all, half, quarter, …) for which one pass, computed
        as ``way`` says, takes less than ``Timing.longest`` seconds."""
        parts = [whole]
        while len(parts[-1]) > 1:
            parts.append(parts[-1].split()[0])

        def seconds(part: MicroBatch) -> float:
            self._part = self._few = [lambda: part]
            self._run(way, passes=1)
            return self._run(way, passes=2)[1]

        part = small = next((part for part in reversed(parts) if len(part) >= 4), whole)
        if way.on_gpu:  # few examples take it about as long as many, and say nothing of these
            part = next((part for part in parts if seconds(part) < self._timing.longest), small)
        else:
            each = seconds(small) / len(small)
            part = next((part for part in parts if each * len(part) < self._timing.longest), small)
        self._part = [lambda: part]
        self._tokens = 0.0
        self._run(way, passes=1)  # which counts its tokens
        self._times_few = len(part) / len(small)
        return part

    def _sum(self, value: float) -> float:
        """Return the sum of a value over all processes."""
        ranks = self._updater.ranks
        total = torch.tensor([value], dtype=torch.float64, device=ranks.device)
        ranks.all_reduce(total)
        return float(total)


def _common(ways: Sequence[TrainingWay], ranks: Ranks) -> list[TrainingWay]:
    """Return the ways of the first process that all other processes have, too."""
    text = ranks.broadcast_text(json.dumps([way.model_dump() for way in ways]))
    mine = {_kind(way) for way in ways}
    return [
        way
        for way in map(TrainingWay.model_validate, json.loads(text))
        if not ranks.any(_kind(way) not in mine)
    ]


# ---- what is remembered: nanoseconds of a token


def _recall(
    folder: Path | None, work: str, ways: Sequence[TrainingWay], ranks: Ranks
) -> dict[TrainingWay, float] | None:
    """Return the seconds per token of the ways that the first process has stored, or None if it has
    not stored all ``ways``."""
    remembered = measured.recall(folder, work) if ranks.first and folder is not None else {}
    remembered = json.loads(ranks.broadcast_text(json.dumps(dict(remembered))))
    seconds = {}
    for way in ways:
        if _name(way) not in remembered:
            return None
        threads = way.threads
        while threads >= 1:
            if (nanoseconds := remembered.get(_name(way.on(threads)))) is not None:
                seconds[way.on(threads)] = nanoseconds / 1e9
            threads //= 2
    return seconds


def _name(way: TrainingWay) -> str:
    name = f"{way.kernels} {way.precision} {way.threads}"
    return f"{way.machine.partition(';')[0]}: {name}" if way.on_gpu else name


@dataclass(frozen=True)
class Throughput:
    """The measured speed and memory of updates."""

    tokens_per_second: float
    """Target tokens per second, end symbols included."""
    seconds_per_update: float
    updates: int
    """The number of updates that were timed. One more update, before them, is not timed."""
    peak_bytes: int
    """The most memory that this process has used so far. On a GPU, this is the GPU's memory."""


def measure_throughput(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    batches: Batches,
    *,
    seconds: float = 5.0,
    most: int = 30,
    ranks: Ranks | None = None,
) -> Throughput:
    """Make updates 0, 1, 2, … at learning rate 0, so that the weights do not change, and return
    their speed and memory.

    The measurement stops after ``seconds`` or after ``most`` updates, whichever comes first, so
    that a training run of a few seconds is not held up. At least one update is timed, however long
    it takes. All ``ranks`` measure together, as they will train; without ``ranks``, this process
    is alone.
    """
    ranks = ranks or Ranks()
    updater = Updater(model, objective, settings, lambda _: 0.0, ranks)
    state = TrainingState()
    updater.repeat_choices(state)
    tokens, spent, on_cpu = 0, 0.0, ranks.device.type == "cpu"
    if not on_cpu:  # whatever was trained before
        torch.cuda.reset_peak_memory_stats(ranks.device)
    with TemporaryDirectory() as folder:
        gradients = updater.gradients(0, Splits(Path(folder)), lambda _: None)
        while ranks.any(state.update < 2 or (spent < seconds and state.update <= most)):
            began = time.perf_counter()
            record = updater.update(state, batches, gradients)
            if state.update > 1:  # the first one warms up
                spent += time.perf_counter() - began
                tokens += record.tokens
    peak = peak_bytes() if on_cpu else torch.cuda.max_memory_allocated(ranks.device)
    updates = state.update - 1
    return Throughput(tokens / spent, spent / updates, updates, peak)
