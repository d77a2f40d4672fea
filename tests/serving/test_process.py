"""A server in a process of its own: clients that leave, stopping, being killed, other people's
clients, and whatever a machine can think of sending it."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI
from serving_echo import create_app, detector, echo_run, server_process
from warm_server import serving

from dragoman.base.errors import DragomanError, RecipeError
from dragoman.server.server import run_names, serve_app, torch_threads
from dragoman.serving.http.messages import IMAGES, MODELS, TRANSCRIPTIONS
from dragoman.serving.operate.settings import ServeSettings, bind, parse_settings

pytestmark = pytest.mark.system

SENTENCE = "The animal didn't cross the street because it was too tired."
LONG = " ".join([SENTENCE] * 6)
"""Takes the slow server half a minute if it is translated as a whole."""


@pytest.fixture(scope="module")
def slow() -> Iterator[str]:
    """A server that takes a tenth of a second for each token, and closes idle connections soon."""
    with server_process("limits.idle_seconds=0.5", step_seconds=0.1) as (_, address):
        yield address


def meter(address: str, name: str) -> float:
    """A figure; with labels, the first of that name that begins with them."""
    text = httpx.get(f"{address}/metrics", timeout=60).text
    found = re.search(rf"^{name}.* (\S+)$", text, re.M)
    return float(found[1]) if found else 0.0


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def connected(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_leaves_frees_its_place(slow: str, is_stream: bool) -> None:
    wait_for(lambda: meter(slow, "dragoman_batch_rows") == 0)
    before = meter(slow, "dragoman_given_up_sentences_total")
    body = json.dumps({"text": LONG, "whole": True, "stream": is_stream}).encode()
    with connected(slow) as connection:
        head = (
            "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        wait_for(lambda: meter(slow, "dragoman_batch_rows") > 0)
    wait_for(lambda: meter(slow, "dragoman_given_up_sentences_total") == before + 1)
    wait_for(lambda: meter(slow, "dragoman_batch_rows") == 0)


def test_tokens_are_streamed_as_they_are_chosen(slow: str) -> None:
    before = meter(slow, "dragoman_sentences_total")
    wanted = {"text": LONG, "whole": True, "stream": True}
    drafts = 0
    with httpx.stream("POST", f"{slow}/v1/translate", json=wanted, timeout=60) as answer:
        for line in answer.iter_lines():
            drafts += line == "event: draft"
            if drafts == 3:
                break
        assert drafts == 3
        # What was shown was shown before the sentence was done.
        assert meter(slow, "dragoman_sentences_total") == before


def test_stopping_finishes_what_was_taken() -> None:
    with server_process(step_seconds=0.05) as (process, address):
        with ThreadPoolExecutor(4) as pool:
            body = {"q": [SENTENCE] * 3, "source": "en", "target": "de"}
            jobs = [
                pool.submit(httpx.post, f"{address}/translate", json=body, timeout=60)
                for _ in range(4)
            ]

            def has_all() -> bool:
                answered = meter(address, 'dragoman_requests_total{path="/translate"')
                # This very question is one of those under way.
                return meter(address, "dragoman_requests_under_way") - 1 + answered >= 4

            wait_for(has_all)
            process.send_signal(signal.SIGTERM)
            for job in jobs:
                assert job.result().json() == {"translatedText": [SENTENCE] * 3}
        assert process.wait(60) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{address}/health")


@pytest.mark.slow
def test_killed_and_restarted_under_load() -> None:
    """Every request ends: with its whole translation, or with an error that its client sees."""
    outcomes: list[str] = []
    stop = threading.Event()

    def work(address: str) -> None:
        while not stop.is_set():
            try:
                answer = httpx.post(
                    f"{address}/translate",
                    json={"q": [SENTENCE] * 4, "target": "de"},
                    timeout=60,
                )
                assert answer.json()["translatedText"] == [SENTENCE] * 4
                outcomes.append("translated")
            except httpx.TransportError as error:
                outcomes.append(type(error).__name__)
                time.sleep(0.02)

    with ThreadPoolExecutor(6) as pool, server_process() as (process, address):
        port = address.rpartition(":")[2]
        jobs = [pool.submit(work, address) for _ in range(6)]
        wait_for(lambda: outcomes.count("translated") > 20)
        process.kill()
        wait_for(lambda: len(outcomes) - outcomes.count("translated") > 6)
        killed_at = len(outcomes)
        with server_process(f"port={port}") as _:
            wait_for(lambda: outcomes[killed_at:].count("translated") > 20)
            stop.set()
            for job in jobs:
                job.result(timeout=90)
    assert "ReadTimeout" not in outcomes, "nothing hung"


def test_idle_connections_are_closed(slow: str) -> None:
    with connected(slow) as connection:
        assert connection.recv(1) == b""


def test_the_port_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(DragomanError, match=f"cannot listen on 127.0.0.1, port {port}"):
            bind(ServeSettings(port=port))


def test_libretranslates_own_client_works(slow: str) -> None:
    client = LibreTranslateAPI(slow)
    assert client.translate("Das Tier", "en", "de") == "Das Tier"
    assert client.translate("Das Brot.\n\nWo?", "auto", "de") == "Das Brot.\n\nWo?"
    assert client.detect("그 동물은 너무 피곤해서")[0]["language"] == "ko"
    assert {"code": "en", "name": "English", "targets": ["de"]} in client.languages()
    with pytest.raises(urllib.error.HTTPError) as refused:
        client.translate(SENTENCE, "en", "xx")
    assert "xx is not supported" in json.loads(refused.value.read())["error"]
    refused.value.close()


@pytest.fixture(scope="module")
def tiny(tiny_run: Path) -> Iterator[str]:
    """A trained run, served by the program itself without limits to the rate."""
    free = ("limits.requests_per_minute=1000000", "limits.burst=100000")
    with serving(tiny_run, settings=free) as address:
        yield address


def _of(path: str) -> set[str]:
    """What the error of an endpoint has."""
    theirs = path in (TRANSCRIPTIONS, IMAGES, MODELS)
    return {"error"} if theirs else {"error", "code", "values"}


@pytest.mark.slow
def test_nothing_that_can_be_sent_breaks_it(tiny: str) -> None:
    """Every operation of the description, filled by Schemathesis; streams asked for as well."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings

    fifteen = settings(
        max_examples=15,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    answered: Counter[str] = Counter()
    for result in schemathesis.openapi.from_url(f"{tiny}/openapi.json").get_all_operations():
        operation = result.ok()

        @fifteen
        @given(case=operation.as_strategy())
        def send(case: Any) -> None:
            answer = case.call(timeout=120)
            assert answer.status_code < 500, (case.body, answer.text)
            assert answer.status_code == 200 or set(answer.json()) == _of(case.path), answer.text
            answered[f"{case.method} {case.path}"] += 1

        @fifteen
        @given(case=operation.as_strategy())
        def stream(case: Any) -> None:
            if isinstance(case.body, dict):
                case.body |= {"stream": True, "text": case.body.get("text", "x")}
            answer = case.call(timeout=120)
            assert answer.status_code < 500, (case.body, answer.text)
            if answer.headers["content-type"][0].startswith("text/event-stream"):
                answered["events"] += 1
                last = answer.text.strip().split("\n\n")[-1]
                assert last.startswith(("event: done", "event: error"))
                assert "the server failed" not in last.lower()

        send()
        if operation.path == "/v1/translate":
            stream()
    described = httpx.get(f"{tiny}/openapi.json", timeout=60).json()["paths"]
    for path, methods in described.items():
        for method in methods:
            assert answered[f"{method.upper()} {path}"], f"{method} {path} was never tried"
    assert answered["events"]
    assert httpx.get(f"{tiny}/ready", timeout=60).json()["ready"]
    assert meter(tiny, "dragoman_model_failures_total") == 0


@pytest.mark.slow
def test_a_run_is_told_of_and_its_tags_are_placed_by_its_attention(tiny: str) -> None:
    assert httpx.get(f"{tiny}/v1/runs/tiny", timeout=60).json()["recipe"]
    body = {"q": "<p>The <b>old</b> bear <i>sleeps</i>.</p>", "target": "de", "format": "html"}
    got = httpx.post(f"{tiny}/translate", json=body, timeout=60).json()["translatedText"]
    assert re.findall("<.*?>", got) == ["<p>", "<b>", "</b>", "<i>", "</i>", "</p>"]


def test_a_wrong_setting_is_told_in_one_line() -> None:
    with pytest.raises(RecipeError, match=r"'limits.charactrs'; did you mean 'characters'"):
        parse_settings({}, ["limits.charactrs=5"])
    with pytest.raises(RecipeError, match="port"):
        parse_settings({"port": 99999}, [])
    for depth in (100, 2_000):  # tables within each other, which nothing could show
        with pytest.raises(RecipeError, match=r"^settings of the server: port: ") as found:
            parse_settings({}, ["port={" + "a." * depth + "b=1}"])
        assert len(str(found.value)) < 400
    assert parse_settings({}, ["limits.characters=5"]).limits.characters == 5


@pytest.mark.parametrize(
    ("workers", "threads", "of_torch"),
    [([2], 0, 1), ([2, 1], 8, 1), ([1], 0, 1), ([1, 0], 3, 3), ([0], 2, 2)],
)
def test_threads_of_torch(
    workers: list[int], threads: int, of_torch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One beside kernels, and where only torch runs models as many as were asked for, or one."""
    settings = parse_settings({}, [f"threads={threads}"])
    assert torch_threads(workers, settings) == of_torch

    said: list[int] = []

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    runs = [echo_run(f"echo {n}", settings=settings) for n in range(len(workers))]
    for run, count in zip(runs, workers, strict=True):
        monkeypatch.setattr(type(run.engine), "workers", count)
    monkeypatch.setattr("torch.set_num_threads", said.append)
    monkeypatch.setattr("dragoman.server.server.listen", stop)
    if len(workers) == 1:
        application = create_app(runs, settings, detector())
        with bind(ServeSettings(port=0)) as listener, pytest.raises(KeyboardInterrupt):
            serve_app(application, settings, listener, {})
        assert said == [of_torch]


def test_runs_are_named_apart(tmp_path: Any) -> None:
    assert run_names([tmp_path / "a" / "best", tmp_path / "b" / "best"]) == ["a-best", "b-best"]
    assert run_names([tmp_path / "demo"]) == ["demo"]
