"""The native step does what the plain one does, to the last bit."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch
from searching import search
from table_model import BOS, EOS, TableModel, TableState, same
from torch import Tensor

from dragoman.models.interface import Memory
from dragoman.models.on_torch import OnTorch
from dragoman.native import library
from dragoman.native.abi import Step
from dragoman.search import scheduler
from dragoman.search.beam import NativeBeam, PlainBeam, fastest_beam
from dragoman.search.beam_state import BeamState
from dragoman.search.constraints import NOTHING
from dragoman.search.hypothesis import Floats32, Hypothesis, Integers
from dragoman.search.request import Request, SearchJob, rows_of
from dragoman.search.settings import SamplingSettings, SearchSettings

pytestmark = pytest.mark.skipif(not library.available(), reason="no native library here")


def test_the_native_beam_is_taken_where_it_can_be() -> None:
    assert isinstance(fastest_beam(BeamState(BOS)), NativeBeam)


def random_batch(generator: np.random.Generator) -> BeamState:
    """Groups of any width, in the middle of their way, some of them about to split or to stop."""
    live = BeamState(BOS)
    tasks = []
    for ticket in range(int(generator.integers(1, 8))):
        beam = int(generator.integers(1, 6))
        settings = SearchSettings(
            beam=beam,
            n_best=int(generator.integers(1, beam + 1)),
            alternatives=bool(generator.random() < 0.2),
            max_length=int(generator.integers(3, 40)),
            stop=generator.choice(["certain", "full", "empty"]),
        )
        tasks.append(SearchJob(ticket, Request(torch.tensor([3]), settings), 1, 0, 1))
    live.add(tasks, sum(rows_of(task.request.settings) for task in tasks))
    groups = live.groups
    groups["rows"] = generator.integers(1, groups["width"] + 1)
    groups["length"] = generator.integers(0, np.minimum(groups["limit"], 31) + 1)
    groups["prefix"] = np.where(generator.random(len(groups)) < 0.5, groups["length"], 0)
    left = groups["width"] - groups["rows"]
    groups["ended"] = np.where(groups["shrinks"], left, generator.integers(0, 3, len(groups)))
    groups["worst"] = np.where(generator.random(len(groups)) < 0.5, -1.0, -np.inf)
    live.rows = int(groups["rows"].sum())
    live.totals[:] = -5 * generator.random(live.rows)
    live.all_tokens[:] = generator.integers(0, 9, live.all_tokens.shape)
    live.all_log_probabilities[:] = -generator.random(live.all_log_probabilities.shape)
    return live


def candidates(live: BeamState, generator: np.random.Generator) -> tuple[Floats32, Integers]:
    k = live.candidates + int(generator.integers(0, 3))
    scores = -np.sort(5 * generator.random((live.rows, k)), axis=1).astype(np.float32)
    if generator.random() < 0.3:
        scores = np.floor(scores)  # ties
    scores[generator.random(scores.shape) < 0.1] = -np.inf
    scores[generator.random(scores.shape) < 0.05] = np.nan
    ids = np.stack([generator.permutation(12)[:k] for _ in range(live.rows)])
    return scores, ids


def chosen(live: BeamState) -> list[list[tuple[object, ...]]]:
    return [[one for one in group if one[3] or one[4]] for group in live.looked.tolist()]


@pytest.mark.parametrize("seed", range(60))
def test_each_part_of_a_step(seed: int) -> None:
    generator = np.random.default_rng(seed)
    one = random_batch(generator)
    other = random_batch(np.random.default_rng(seed))
    plain, native = PlainBeam(one), fastest_beam(other)
    scores, ids = candidates(one, generator)
    forbidden: Integers | None = None
    if seed % 2:
        forbidden = generator.integers(NOTHING, 12, (one.rows, 2))
    if seed % 6 == 1:
        forbidden = np.broadcast_to(np.array([4, 5]), (one.rows, 2))
    ended = plain.expand(scores, ids, EOS, forbidden)
    assert native.expand(scores, ids, EOS, forbidden) == ended
    assert other.all_ended[:ended].tolist() == one.all_ended[:ended].tolist()
    assert chosen(other) == chosen(one)
    assert native.judge() == plain.judge()
    assert chosen(other) == chosen(one)
    assert other.groups.tolist() == one.groups.tolist()
    assert native.move() == plain.move()
    for live in (one, other):
        live.grew()
    assert other.rows == one.rows
    rows = slice(one.rows)
    for name in ("all_parents", "all_last"):
        assert np.array_equal(getattr(other, name)[rows], getattr(one, name)[rows])
    assert np.array_equal(other.totals, one.totals)
    lengths = one.groups["length"].repeat(one.groups["rows"])
    used = np.arange(one.all_tokens.shape[1]) < lengths[:, None]
    for name in ("all_tokens", "all_log_probabilities"):
        assert np.array_equal(getattr(other, name)[rows][used], getattr(one, name)[rows][used])


def test_whole_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    asked = []
    for number in range(100):
        beam = int(generator.integers(1, 6))
        sampling = SamplingSettings(seed=number, top_k=number % 3) if number % 7 == 0 else None
        settings = SearchSettings(
            beam=beam,
            n_best=int(generator.integers(1, beam + 1)),
            max_length=int(generator.integers(3, 80)),
            min_length=number % 4,
            no_repeat_ngram=(0, 0, 0, 3)[number % 4],
            alternatives=sampling is None and number % 5 == 0,
            stop=("certain", "full", "empty")[number % 3],
            sampling=sampling,
        )
        source = torch.from_numpy(generator.integers(0, 9, 1 + number % 6))
        asked.append(Request(source, settings, (4, 5)[: number % 3]))

    def answers() -> list[list[Hypothesis]]:
        model = TableModel(9, 4, ending=-1.0)
        return list(search(model, asked, bos=BOS, eos=EOS, capacity_rows=40, forbidden=(1,)))

    native = answers()
    monkeypatch.setattr(scheduler, "fastest_beam", PlainBeam)
    assert answers() == native


Pointer, Number = ctypes.c_void_p, ctypes.c_int
BEST = ctypes.CFUNCTYPE(
    Number, Pointer, Pointer, Number, Number, Pointer, Number, Number, Pointer, Pointer
)
SELECT = ctypes.CFUNCTYPE(Number, Pointer, Pointer, Number)


def array(address: int, kind: Any, count: int) -> Any:
    return np.ctypeslib.as_array((kind * count).from_address(address))


class NativeTableState(TableState):
    """The toy model, as native code calls it. It has to be asked again at every fifth position."""

    def __init__(self, model: NativeTable, memory: Memory) -> None:
        super().__init__(memory)
        self.model = model
        self.known = 0
        self.calls = BEST(self._best), SELECT(self._select)

    def native(self, k: int, length: int) -> Step | None:
        if k > self.model.vocabulary:
            return None
        self.known = max(self.known, -(-length // 5) * 5)
        best, select = (ctypes.cast(call, Pointer).value for call in self.calls)
        return Step(best, select, None, None, self.known)

    def _best(self, _: int, tokens: int, rows: int, count: int, __: int, known: int, k: int,
              log_probabilities: int, ids: int) -> int:  # fmt: skip
        assert count == 1 and rows == self.rows
        if int(self.taken.max()) + 1 > known:
            return int(self.taken.max()) + 1
        given = torch.from_numpy(array(tokens, ctypes.c_int64, rows).copy())
        best, names = self.model.best(given[:, None], self, k)
        array(log_probabilities, ctypes.c_float, rows * k)[:] = best.numpy().ravel()
        array(ids, ctypes.c_int64, rows * k)[:] = names.numpy().ravel()
        self.model.native_steps += 1
        return 0

    def _select(self, _: int, rows: int, count: int) -> int:
        if count:
            self.select(torch.from_numpy(array(rows, ctypes.c_int64, count).copy()))
        return 1


class NativeTable(TableModel):
    native_steps = 0

    def start(self, memory: Memory) -> NativeTableState:
        return NativeTableState(self, memory)


def plain_requests(generator: np.random.Generator, count: int) -> list[Request]:
    """Of all lengths and widths; some are cut by their limit."""
    asked = []
    for _ in range(count):
        settings = SearchSettings(
            beam=int(generator.integers(1, 6)),
            max_length=int(generator.integers(0, 80)),
            length_penalty=float(generator.choice([0.0, 0.6])),
            penalty="marian" if generator.random() < 0.3 else "wu",
            stop=generator.choice(["certain", "full", "empty"]),
        )
        source = torch.from_numpy(generator.integers(0, 9, int(generator.integers(0, 6))))
        asked.append(Request(source, settings))
    return asked


@pytest.mark.parametrize("ending", [-4.0, -1.0, 1.0])
def test_whole_searches_in_one_call(ending: float, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = plain_requests(np.random.default_rng(1), 60)
    model = NativeTable(9, 4, ending=ending)
    found = list(search(model, asked, bos=BOS, eos=EOS, capacity_rows=20, forbidden=(1, 4)))
    assert model.native_steps == len(model.stepped) > 0  # Python took none of them
    monkeypatch.setattr(scheduler, "fastest_beam", PlainBeam)
    plain = TableModel(9, 4, ending=ending)
    assert found == list(search(plain, asked, bos=BOS, eos=EOS, capacity_rows=20, forbidden=(1, 4)))
    assert not {1, 4} & {token for (best,) in found for token in best.tokens}


@pytest.mark.parametrize("seed", range(8))
def test_native_steps_among_others(seed: int) -> None:
    """Requests that need Python come and go; any number of steps at once gives the same."""
    generator = np.random.default_rng(seed)
    asked = plain_requests(generator, 12)
    asked += [
        Request(
            torch.tensor([3, n]), SearchSettings(beam=3, n_best=2, max_length=9), (4,) * (n % 2)
        )
        for n in range(4)
    ]
    order = [asked[i] for i in generator.permutation(len(asked)).tolist()]
    answers: list[dict[int, list[Hypothesis]]] = []
    for steps in (1, 3, 100):
        model = NativeTable(9, 4, ending=-1.0)
        batch = scheduler.Scheduler(
            OnTorch(model), bos=BOS, eos=EOS, capacity_rows=12, refill_rows=1 + seed % 5
        )
        tickets = [batch.submit(request) for request in order]
        found = dict(batch.advance(steps))
        batch.cancel(tickets[seed])
        while not batch.idle:
            found.update(batch.advance(steps))
            for ticket in tickets:
                draft = batch.so_far(ticket)
                assert draft is None or not draft.finished
        assert batch.free_rows == 12 and batch.rows == 0 and model.native_steps > 0
        found.pop(tickets[seed], None)  # done in the first step, or cancelled
        answers.append(found)
    for ticket, hypotheses in answers[0].items():
        assert all(same(hypotheses, other[ticket], within=0) for other in answers)


def test_what_the_model_refuses_is_raised() -> None:
    class Refusing(NativeTable):
        def best(self, tokens: Tensor, *rest: Any) -> Any:  # type: ignore[override]
            raise AssertionError("not reached: native code gives up first")

    class RefusingState(NativeTableState):
        def native(self, k: int, length: int) -> Step | None:
            step = super().native(k, length)
            assert step is not None
            step.known = 0
            return step

    model = Refusing(9)
    model.start = lambda memory: RefusingState(model, memory)  # type: ignore[method-assign]
    request = Request(torch.tensor([3]), SearchSettings(beam=2))
    with pytest.raises(AssertionError, match="gives up first"):
        list(search(model, [request], bos=BOS, eos=EOS))
