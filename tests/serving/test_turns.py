"""The event loop only hands on, and clients take turns at all that is slow."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fastapi.routing
import httpx
import pytest
import uvicorn
from pydantic import BaseModel
from serving_echo import at, client_of, echo_run, open_run, served_by, tiny_model, until
from slow_work import SlowWork
from tiny_recipe import TINY
from untrained_run import untrained_run

from dragoman.documents import placing
from dragoman.engine.alignment_head import AligningHead
from dragoman.engine.engine import Engine
from dragoman.engine.session import Inspection
from dragoman.formats.html.document import HtmlDocument
from dragoman.forms.subwords.text import Text
from dragoman.models.transformer.model import Transformer
from dragoman.search.settings import SearchSettings
from dragoman.server import info, inside, server
from dragoman.serving.http import connection
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look import answer, inspector, schema
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue import fair_executor
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service import served_run
from dragoman.serving.service.catalogue import LanguageDetector
from dragoman.serving.service.served_run import ServedRun
from dragoman.tasks.catalogue import Run
from dragoman.tasks.translation import endpoint, libretranslate

PAGE = "<p title='Das Brot'>A <b>small</b> man eats. <i>Where</i> is it?</p>"


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the embedded corpus whose weights are random."""
    return untrained_run(tmp_path_factory.mktemp("untrained"), *TINY)


def seen_inside(model: Transformer) -> ServedRun:
    return served_by(model, search=SearchSettings(beam=2, max_extra=3))


def test_nothing_is_cut_decoded_or_written_on_the_event_loop(
    untrained: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is asked: the thread in which each slow function ran is never the loop's."""
    slow = [
        (Text, "encode_lists"), (Text, "decode_batch"), (Text, "pieces"), (HtmlDocument, "reading"),
        (HtmlDocument, "join"), (LanguageDetector, "rank"), (BaseModel, "model_dump_json"),
        (Engine, "cut"), (schema, "words_of"), (inside, "look_answer"),
        (placing, "project"), (AligningHead, "weights"), (inspector, "weights_message"),
        (endpoint, "_start"), (endpoint, "_event"), (libretranslate, "_answer"),
        (connection, "_parse"), (info, "view_of"),
    ]  # fmt: skip
    of_folder = open_run(Run.open(untrained), ServeSettings(precision="fp32"), "read")
    monkeypatch.setattr(connection, "SMALL", 0)
    work = SlowWork(slow, monkeypatch)

    async def check() -> None:
        async with client_of(seen_inside(tiny_model()), of_folder) as client:
            text, to_german = "A small man eats. Where is it?", {"source": "auto", "target": "de"}
            asked: list[tuple[str, dict[str, Any]]] = [
                ("/translate", {"q": text, "alternatives": 2, **to_german}),
                ("/translate", {"q": [PAGE, PAGE], "format": "html", **to_german}),
                ("/detect", {"q": text}),
                ("/v1/translate", {"text": [text], "n_best": 2, "prefix": "Das", "target": "de"}),
                ("/v1/translate", {"text": text, "stream": True}),
                ("/v1/look", {"text": text, "maps": 4, "choices": 2}),
                ("/v1/look/attention", {"text": text, "part": "cross", "layer": 0}),
                ("/v1/look/word", {"text": text, "side": "target", "first": 0}),
            ]
            await work.ask(client, asked)
            # A model that an endpoint leaves to the framework is written on the loop.
            monkeypatch.setattr(fastapi.routing, "serialize_response", None)
            for _ in range(2):  # read from the folder, and known
                told = await client.get("/v1/runs/read")
                assert told.status_code == 200 and told.json()["recipe"], told.text
        work.require_elsewhere()

    asyncio.run(check())


def test_clients_take_turns_and_what_nobody_waits_for_is_not_begun() -> None:
    done: list[str] = []
    gate = threading.Event()

    def work(name: str) -> Callable[[], None]:
        return lambda: (gate.wait(10), done.append(name))[1]

    async def check() -> None:
        own = FairExecutor("own", of_client=4, of_all=6)
        of_ada = [asyncio.ensure_future(own.do("Ada", work(f"Ada {n}"))) for n in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="4 requests"):
            await own.do("Ada", work("one too many"))
        of_bob = asyncio.ensure_future(own.do("Bob", work("Bob")))
        await asyncio.sleep(0)
        of_ada[2].cancel()
        of_ada[0].cancel()  # it runs already: its place is free for the next when it has ended
        await until(lambda: own.places.taken == 3)
        others = [asyncio.ensure_future(own.do(f"client {n}", work("other"))) for n in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="Other clients"):
            await own.do("Cid", work("one too many"))
        gate.set()
        await asyncio.gather(of_ada[1], of_ada[3], of_bob, *others)
        assert done == ["Ada 0", "Bob", "other", "other", "other", "Ada 1", "Ada 3"]
        assert own.places.taken == 0
        own.close()

    asyncio.run(check())


def test_long_work_lets_others_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_executor, "TURN_SECONDS", 0.0)
    order: list[str] = []

    async def check() -> None:
        own = FairExecutor("own")
        book = own.all("Ada", (order.append(f"page {n}") for n in range(9)))
        line = own.do("Bob", lambda: order.append("line"))
        assert len((await asyncio.gather(book, line))[0]) == 9
        assert order.index("line") <= 1, order
        with pytest.raises(ZeroDivisionError):
            await own.do("Ada", lambda: 1 / 0)
        own.close()

    asyncio.run(check())


def test_what_was_loaded_is_not_searched_for_circles_while_serving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a search would stop every thread, the event loop's too, for a tenth of a second."""

    async def nothing(*_: object) -> None: ...

    monkeypatch.setattr(uvicorn.Server, "startup", nothing)
    started = server._Server.__new__(server._Server)
    started._renewal = SimpleNamespace(ask=print)  # type: ignore[assignment]
    loaded: list[list[object]] = [[] for _ in range(9)]
    before = gc.get_freeze_count()
    try:
        asyncio.run(started.startup())
        assert gc.get_freeze_count() > before + len(loaded)
        assert not any(one is loaded for one in gc.get_objects())
    finally:
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # as the tests began (conftest.py)


def test_a_long_answer_is_written_in_turns_and_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = {"text": ["A small man eats. Where is it?  Das Brot.", "", "x"], "n_best": 2}

    async def asked() -> httpx.Response:
        async with client_of() as client:
            answer = await client.post("/v1/translate", json=values)
            assert answer.status_code == 200 and "json" in answer.headers["content-type"]
            return answer

    monkeypatch.setattr(fair_executor, "TURN_SECONDS", 60.0)
    at_once = asyncio.run(asked())
    monkeypatch.setattr(fair_executor, "TURN_SECONDS", 0.0)
    assert at_once.content == asyncio.run(asked()).content
    assert len(at_once.json()["translations"][0]["sentences"]) == 3


def test_more_translations_than_one_answer_holds_are_refused_before_any_search() -> None:
    settings = ServeSettings(limits=LimitSettings(translations=5))

    async def check() -> None:
        run = echo_run(settings=settings)
        async with client_of(run, settings=settings) as client:
            three = "A man eats. Where is it? Das Brot."
            fits = await client.post("/v1/translate", json={"text": three})
            assert fits.status_code == 200
            before = run.queue.counters["steps"]
            for path, values in [
                ("/v1/translate", {"text": three, "n_best": 2}),
                ("/translate", {"q": three, "target": "de", "alternatives": 1}),
                ("/translate", {"q": f"<p>{three}", "target": "de", "alternatives": 1,
                                "format": "html"}),
            ]:  # fmt: skip
                refused = await client.post(path, json=values)
                assert refused.status_code == 400 and "gives 5" in refused.json()["error"]
            stream = await client.post(
                "/v1/translate", json={"text": three, "n_best": 2, "stream": True}
            )
            assert "gives 5" in stream.text and "event: start" not in stream.text
            assert run.queue.counters["steps"] == before

    asyncio.run(check())


def test_one_client_does_not_lock_others_out_of_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many looks one client asks for, another is next; what was abandoned is not done."""
    looked: list[str] = []
    gate, began = threading.Event(), threading.Event()
    original = inspector.Inspector._look

    def held(self: inspector.Inspector, request: Any, *rest: Any) -> Inspection:
        began.set()
        gate.wait(10)
        looked.append(request.text)
        return original(self, request, *rest)

    monkeypatch.setattr(inspector.Inspector, "_look", held)

    async def check() -> None:
        run = seen_inside(tiny_model())
        turns_of = run.inspector.turns
        async with (
            client_of(run) as client,
            at(client, "192.0.2.7") as theirs,
        ):
            asked = [
                asyncio.ensure_future(client.post("/v1/look", json={"text": f"Das Tier {n}"}))
                for n in range(served_run.OF_CLIENT)
            ]
            await until(lambda: turns_of.places.taken == served_run.OF_CLIENT and began.is_set())
            refused = await client.post("/v1/look", json={"text": "one more"})
            assert refused.status_code == 429 and "look" in refused.json()["error"]
            other = asyncio.ensure_future(theirs.post("/v1/look", json={"text": "Wo?"}))
            await until(lambda: turns_of.places.taken == served_run.OF_CLIENT + 1)
            for one in asked[4:]:
                one.cancel()
            await until(lambda: turns_of.places.taken == 5)
            gate.set()
            assert (await other).status_code == 200
            assert {(await one).status_code for one in asked[:4]} == {200}
            assert len(looked) == 5 and looked.index("Wo?") <= 1, looked

    asyncio.run(check())


def test_a_look_that_nobody_waits_for_ends_at_its_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny_model()
    steps = 0
    step = model.best

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        threading.Event().wait(0.01)
        return step(*arguments)

    monkeypatch.setattr(model, "best", counted)

    async def check() -> None:
        async with client_of(seen_inside(model)) as client:
            body = {"text": "Das Tier", "max_length": 1000, "beam": 4}
            asked = asyncio.ensure_future(client.post("/v1/look", json=body))
            await until(lambda: steps > 2)
            asked.cancel()
            other = await client.post("/v1/look", json={"text": "Wo?", "max_length": 2})
            assert other.status_code == 200 and steps < 100

    asyncio.run(check())


@pytest.mark.parametrize(
    ("name", "owner", "part"),
    [
        ("head-importance", Engine, "score"),
        ("length-penalty", Engine, "search"),
        ("order", Engine, "search"),
    ],
)
def test_a_figure_that_nobody_waits_for_ends_at_its_next_part(
    untrained: Path, monkeypatch: pytest.MonkeyPatch, name: str, owner: Any, part: str
) -> None:
    parts = 0
    gate = threading.Event()
    original = getattr(owner, part)

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal parts
        parts += 1
        gate.wait(10)
        return original(*arguments, **named)

    monkeypatch.setattr(owner, part, counted)

    async def check() -> None:
        run = open_run(Run.open(untrained), ServeSettings(precision="fp32"), "tiny")
        async with client_of(run) as client, at(client, "192.0.2.7") as theirs:
            asked = asyncio.ensure_future(client.post("/v1/figures", json={"name": name}))
            await until(lambda: parts == 1)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            gate.set()
            # The thread is free for the next, who can have the same figure and whole.
            other = await theirs.post("/v1/figures", json={"name": "schedule"})
            assert other.status_code == 200 and parts == 1
            if name == "order":
                whole = await theirs.post("/v1/figures", json={"name": name})
                assert whole.status_code == 200 and parts == 3

    asyncio.run(check())


def test_limits_of_looking_are_checked_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many weights, a token that is not there: refused without a step of the model."""
    model = tiny_model()
    monkeypatch.setattr(answer, "MAX_WEIGHTS", 1000)
    monkeypatch.setattr(model, "encode", None)
    text = "A small man eats a dinosaur. " * 4

    async def check() -> None:
        async with client_of(seen_inside(model)) as client:
            for path, values in [
                ("/v1/look", {}),
                ("/v1/look/attention", {"part": "encoder", "layer": 0, "head": 0}),
                ("/v1/look/word", {"side": "source", "first": 0, "count": 30}),
                ("/v1/look/word", {"side": "source", "first": 9999}),
            ]:
                refused = await client.post(path, json={"text": text, **values})
                assert refused.status_code == 400, (path, refused.text)
                assert json.loads(refused.text)["error"]

    asyncio.run(check())
