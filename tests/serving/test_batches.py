"""Costly searches beside others: batches of their own, and a part of the time."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from serving_echo import TEXT, EchoModel, client_of, echo_run, until

from dragoman.search.settings import SearchSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.worker import Batches, QueueBatch


def test_costly_searches_have_a_batch_of_their_own() -> None:
    """No step of another client's sentence has the rows of a costly search beside it."""
    gate = threading.Event()
    model = EchoModel(gate=gate)
    settings = ServeSettings(rows=64)

    async def check() -> None:
        served = echo_run(model=model, settings=settings)
        async with client_of(served, settings=settings) as client:
            (worker,) = served.queue._workers
            wish = {"text": "Das Brot.", "beam": 16, "min_length": 300, "max_length": 300}
            costly = asyncio.ensure_future(client.post("/v1/translate", json=wish))
            await until(lambda: worker._costly == 16)
            own = [served.engine.request([5, 6, 2]) for _ in range(3)]
            other = asyncio.ensure_future(served.queue.search(own, "another"))
            await until(lambda: served.queue.waiting == 3)
            gate.set()
            await other
            assert not costly.done() and worker._costly == 16
            assert 6 in model.seen_rows and 16 in model.seen_rows  # three of beam 2
            assert max(model.seen_rows) == 16
            assert (await costly).status_code == 200
            assert not worker._held and served.queue.rows == 0

    asyncio.run(check())


def test_sentences_that_wait_give_their_places_back_when_their_client_leaves() -> None:
    gate = threading.Event()

    async def check() -> None:
        served = echo_run(model=EchoModel(gate=gate), settings=ServeSettings())
        async with client_of(served):
            (worker,) = served.queue._workers
            wishes = [served.engine.request([5, 6, 2]) for _ in range(3)]
            first = asyncio.ensure_future(served.queue.search(wishes, "first"))
            await until(lambda: worker._held["first"] == 6)  # beam 2: all are under way
            second = asyncio.ensure_future(served.queue.search(wishes, "second"))
            await until(lambda: served.queue.waiting == 3)
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            assert served.queue.waiting == 0
            gate.set()
            await first

    asyncio.run(check())


def test_the_last_free_row_is_searched() -> None:
    gate = threading.Event()
    model = EchoModel(gate=gate)

    async def check() -> int:
        served = echo_run(model=model, settings=ServeSettings())
        async with client_of(served):
            (worker,) = served.queue._workers
            rows = worker._batches.little.scheduler.free_rows
            greedy = [served.engine.request([5, 6, 2], SearchSettings(beam=1)) for _ in range(rows)]
            asked = [asyncio.ensure_future(served.queue.search(greedy, who)) for who in "ab"]
            await until(lambda: served.queue.waiting == rows)
            gate.set()
            await asyncio.gather(*asked)
            return rows

    rows = asyncio.run(check())
    assert max(model.seen_rows) == rows


@pytest.mark.parametrize(("little", "costly"), [(1.0, 1.0), (2.0, 9.0), (7.0, 0.5)])
def test_costly_searches_get_a_quarter_of_the_time(little: float, costly: float) -> None:
    """Whatever a step of either takes; and all of it, while nothing else is under way."""
    now = 0.0

    class Steps:
        """A scheduler without a model: its steps take some seconds."""

        def __init__(self) -> None:
            self.seconds, self.taken = 0.0, 0

        def submit(self, _: object, **__: object) -> int:
            return 1

        def advance(self, *_: int) -> list[object]:
            nonlocal now
            now += self.seconds
            self.taken += 1
            return []

    class One:
        requests, watched = (None,), False

        def __init__(self, is_costly: bool) -> None:
            self.costly = [is_costly]

    def steps(of: QueueBatch) -> Any:
        return of.scheduler

    batches: Any = Batches(Steps, lambda: now)  # type: ignore[arg-type]
    steps(batches.little).seconds, steps(batches.costly).seconds = little, costly
    batches.submit(One(is_costly=True), 0)
    for _ in range(100):
        batches.next().advance(1, 1)
    assert steps(batches.costly).taken == 100
    # What comes then has its share from then on: neither all of the time until it has had as much,
    # nor none of it.
    batches.submit(One(is_costly=False), 0)
    began, before = now, steps(batches.costly).taken
    assert batches.next() is batches.little
    while now < began + 4000:
        batches.next().advance(1, 1)
    share = (steps(batches.costly).taken - before) * costly / (now - began)
    assert share == pytest.approx(0.25, abs=0.01)


def test_a_failure_of_a_costly_search_leaves_others_their_own() -> None:
    async def check() -> None:
        model = EchoModel(fails_at=int(TEXT.encode(["Brot"])[0][0]))
        gate = model.gate = threading.Event()
        served = echo_run(model=model)
        async with client_of(served) as client:
            (worker,) = served.queue._workers
            first = asyncio.ensure_future(served.queue.search([served.engine.request([5])], "a"))
            await until(lambda: bool(worker._held))
            wish = {"text": "Brot", "beam": 16, "max_length": 1000}
            costly = asyncio.ensure_future(client.post("/v1/translate", json=wish))
            await until(lambda: served.queue.waiting == 1)
            gate.set()
            assert (await costly).status_code == 500
            assert len((await first)[0]) == 1
            assert served.queue.counters["model_failures"] == 1
            assert not worker._held and worker._costly == 0

    asyncio.run(check())
