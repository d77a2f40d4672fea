"""What a request may cost: refused before it is worked on, with what would be allowed."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from serving_echo import EchoModel, client_of, echo_run, open_run, until
from untrained_run import untrained_run

from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.limits import COSTLY, ON_TORCH, LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.worker import FairQueue, QueuedRequest
from dragoman.serving.service.served_run import ServedRun
from dragoman.tasks.catalogue import Run

SMALL = ("model.model_dim=16", "model.ffn_dim=16")
WORDS = "the animal eats a soup because it sleeps"


def request(length: int, **settings: Any) -> Request:
    return Request(np.ones(length, np.int64), SearchSettings(**settings))


def search_cost(wanted: list[Request], *, by_kernels: bool = True) -> int:
    """The cost of searches that a run checks."""
    asked: list[int] = []
    path = SimpleNamespace(whole_steps=by_kernels)
    run: Any = SimpleNamespace(
        engine=SimpleNamespace(path=path), check_cost=lambda cost, *_: asked.append(cost)
    )
    ServedRun.check_searches(run, wanted)
    (cost,) = asked
    return cost


def test_a_search_costs_its_rows_times_its_greatest_length() -> None:
    greedy = request(10, beam=1, max_extra=50)
    assert search_cost([greedy]) == (1 + 1) * 59
    assert ON_TORCH == 8 and search_cost([greedy] * 3, by_kernels=False) == 3 * (8 + 1) * 59
    wide = request(2, beam=16, n_best=4, min_length=1000)
    assert search_cost([wide]) == (16 + 4) * 1000
    assert search_cost([request(2, beam=16, max_length=10)]) == 170
    drawn = SearchSettings.model_validate({"n_best": 5, "max_length": 10, "sampling": {}})
    assert search_cost([Request(np.ones(3, np.int64), drawn)]) == 100
    assert search_cost([request(0, beam=4)]) == 0, "nothing is searched for"


def test_a_search_of_many_rows_and_steps_is_costly() -> None:
    async def check() -> None:
        wide, greedy = request(2, beam=16, min_length=1000), request(10, beam=1)
        assert QueuedRequest("ada", [wide, greedy], watched=False).costly == [True, False]

    asyncio.run(check())


@pytest.fixture(scope="module")
def runs(run_of: Callable[..., Run], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    recipes = {"translate": "demo", "parse": "demo-trees", "fill": "demo-masked",
               "classify": "demo-labels", "write": "demo-letters"}  # fmt: skip
    return {"tag": run_of("tagging", "text", "encoder")} | {
        name: Run.open(untrained_run(tmp_path_factory.mktemp(name), *SMALL, recipe_name=recipe))
        for name, recipe in recipes.items()
    }


EVERY: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("translate", "/v1/translate", {"text": ["a"] * 9, "beam": 16, "min_length": 1000},
     {"text": "a", "beam": 1}),
    ("translate", "/translate", {"q": ["a"] * 90, "alternatives": 15, "target": "de"},
     {"q": "a", "alternatives": 0}),
    ("translate", "/v1/translate", {"text": f"{WORDS} " * 30, "warnings": True, "whole": True},
     {"warnings": False}),
    ("translate", "/v1/look", {"text": WORDS, "beam": 16, "max_length": 1000},
     {"beam": 1, "max_length": 100}),
    ("parse", "/v1/parse", {"text": [f"{WORDS} " * 8] * 4, "beam": 16}, {"text": WORDS, "beam": 1}),
    ("fill", "/v1/fill", {"text": "___ the " * 9, "pieces": 8}, {"pieces": 1}),
    ("classify", "/v1/classify", {"text": [WORDS] * 99, "why": True}, {"why": False}),
    ("tag", "/v1/tag", {"text": [WORDS] * 250}, {"text": WORDS}),
    ("write", "/v1/write", {"text": "Der", "longest": 1000}, {"longest": 9}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path", "values", "less"), EVERY)
def test_what_costs_too_much_is_refused_with_what_is_allowed(
    runs: dict[str, Run], name: str, path: str, values: dict[str, Any], less: dict[str, Any]
) -> None:
    """Of every kind of work; the same served by a server that allows more, or asked for less."""

    async def check() -> None:
        settings = ServeSettings(limits=LimitSettings(token_steps=7_500))
        served = open_run(runs[name], settings, "tiny")
        async with client_of(served, settings=settings) as client:
            answer = await client.post(path, json=values)
            assert answer.status_code == 400, answer.text
            said = answer.json()["error"]
            (asked,) = re.findall(r"^This request may take ([\d,]+) token steps \(.+\);", said)
            assert int(asked.replace(",", "")) > 7_500
            assert "this server allows 7,500 in one request. " in said and said.endswith(".")
            assert served.queue.counters["steps"] == 0, "nothing was searched for"
            assert (await client.post(path, json=values | less)).status_code == 200

    asyncio.run(check())


def test_a_search_costs_more_where_torch_takes_the_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where products of such a step are the int8 kernels', as an LSTM's are."""
    run = Run.open(untrained_run(tmp_path, "model.model_dim=16", recipe_name="demo-recurrent"))
    served = open_run(run, ServeSettings(), "lstm")
    assert not served.engine.path.whole_steps
    asked: list[int] = []
    monkeypatch.setattr(served, "check_cost", lambda cost, *_: asked.append(cost))
    served.check_searches([request(3, beam=1, max_length=10)])
    assert asked == [(ON_TORCH + 1) * 10]


def test_a_stream_is_refused_too(runs: dict[str, Run]) -> None:
    async def check() -> None:
        served = open_run(runs["translate"], ServeSettings(), "tiny")
        wish = {"text": "The animal sleeps. " * 200, "beam": 16, "min_length": 1000, "stream": True}
        async with client_of(served) as client:
            answer = await client.post("/v1/translate", json=wish)
            assert "event: error" in answer.text and "token steps" in answer.text

    asyncio.run(check())


def test_whoever_may_not_enter_keeps_the_turn() -> None:
    def party(client: str, *sentences: str) -> QueuedRequest:
        asked: Any = [
            SimpleNamespace(settings=SearchSettings(beam=1), limit=1, kind=kind)
            for kind in sentences
        ]
        return QueuedRequest(client, asked, watched=False)

    def short(queued: Any) -> bool:
        return bool(queued.requests[queued.taken].kind == "short")

    async def check() -> None:
        queue = FairQueue()
        for one in (party("ada", "long", "short"), party("bob", "short", "short")):
            queue.add(one.client, one)
        taken = [queue.take_sentence(short) for _ in range(3)]
        assert [one[0].client if one else None for one in taken] == ["bob", "bob", None]
        every = [queue.take_sentence() for _ in range(3)]
        assert [one[0].client if one else None for one in every] == ["ada", "ada", None]

    asyncio.run(check())


def test_rows_are_kept_free_for_other_clients() -> None:
    """One client fills its batch; another's sentence enters at once, before any of the first's."""
    gate = threading.Event()
    settings = ServeSettings(rows=8, limits=LimitSettings(concurrent=100))

    async def check() -> None:
        served = echo_run(model=EchoModel(gate=gate), settings=settings)
        async with client_of(served, settings=settings) as client:
            (worker,) = served.queue._workers
            hold, entered = worker._hold, list[str]()

            def noted(party: Any, number: int, sign: int) -> None:
                entered.extend([party.client] if sign > 0 else [])
                hold(party, number, sign)

            worker._hold = noted  # type: ignore[method-assign]
            book = {"q": ["Das Brot."] * 40, "source": "en", "target": "de"}
            first = asyncio.ensure_future(client.post("/translate", json=book))
            await until(lambda: sum(worker._held.values()) == 8)  # beam 2: four sentences of forty
            requests = [served.engine.request([5, 6, 2])]
            other = asyncio.ensure_future(served.queue.search(requests, "another"))
            await until(lambda: served.queue.waiting == 37)
            assert dict(worker._held) == {"127.0.0.1": 8}
            gate.set()
            await other
            assert (await first).status_code == 200
            assert entered == ["127.0.0.1"] * 4 + ["another"] + ["127.0.0.1"] * 36
            assert not worker._held and worker._costly == 0

    asyncio.run(check())


def test_costly_searches_hold_a_quarter_of_the_rows() -> None:
    settings = ServeSettings(rows=64)
    most: list[int] = []

    async def check() -> None:
        model = EchoModel()
        served = echo_run(model=model, settings=settings)
        async with client_of(served, settings=settings) as client:
            (worker,) = served.queue._workers
            may = worker._may

            def noted(*given: Any) -> bool:
                most.append(worker._costly)
                return may(*given)

            worker._may = noted  # type: ignore[method-assign]
            wish = {"text": ["Das Brot."] * 6, "beam": 8, "min_length": 512, "max_length": 600}
            assert COSTLY < 8 * 600
            assert (await client.post("/v1/translate", json=wish)).status_code == 200
            assert max(most) == 16 and max(model.seen_rows) == 16
            assert not worker._held and worker._costly == 0

    asyncio.run(check())


def test_an_answer_comes_hypothesis_by_hypothesis() -> None:
    """Sixteen translations of a thousand tokens are not written in one turn of the thread."""
    from dragoman.tasks.translation.endpoint import translation_message
    from dragoman.tasks.translation.served import TranslateAnswer, Translation

    async def check() -> None:
        served = echo_run()
        async with client_of(served) as client:
            wish = {"text": "Das Brot. Das Tier.", "beam": 3, "n_best": 3}
            told = await client.post("/v1/translate", json={**wish, "text": [wish["text"], ""]})
            as_pydantic = TranslateAnswer.model_validate_json(told.content)
            assert as_pydantic.model_dump_json(exclude_none=True).encode() == told.content
            answer = told.json()["translations"][0]
            assert [len(one["hypotheses"]) for one in answer["sentences"]] == [3, 3]
        (passage,) = served.engine.cut(["Das Brot. Das Tier."], whole=False)
        found = served.engine.search(
            [served.engine.request(piece.values, SearchSettings(beam=3, n_best=3))
             for piece in passage.pieces]
        )  # fmt: skip
        parts = list(
            translation_message(served.head(passage, None), served.engine.target, passage, found)
        )
        assert sum(part.count(b'"log_probability":') > 0 for part in parts) == 6
        whole = Translation.model_validate_json(b"".join(parts))
        assert whole.model_dump_json(exclude_none=True).encode() == b"".join(parts)

    asyncio.run(check())
