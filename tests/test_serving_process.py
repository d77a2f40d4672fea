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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from serving_echo import server_process

SENTENCE = "The animal didn't cross the street because it was too tired."


@pytest.fixture(scope="module")
def slow() -> Iterator[str]:
    """A server that takes a tenth of a second for each token."""
    with server_process(step_seconds=0.1) as (_, address):
        yield address


def meter(address: str, name: str) -> float:
    found = re.search(rf"^{name}{{[^}}]*}} (\S+)$", httpx.get(f"{address}/metrics").text, re.M)
    return float(found[1]) if found else 0.0


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_leaves_frees_its_place(slow: str, is_stream: bool) -> None:
    wait_for(lambda: meter(slow, "dragoman_batch_rows") == 0)
    before = meter(slow, "dragoman_given_up_sentences_total")
    host, port = slow.removeprefix("http://").split(":")
    body = json.dumps({"text": SENTENCE, "stream": is_stream}).encode()
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        wait_for(lambda: meter(slow, "dragoman_batch_rows") > 0)
    wait_for(lambda: meter(slow, "dragoman_batch_rows") == 0, seconds=2)
    assert meter(slow, "dragoman_given_up_sentences_total") == before + 1


def test_tokens_are_streamed_as_they_are_chosen(slow: str) -> None:
    times = []
    with httpx.stream(
        "POST", f"{slow}/v1/translate", json={"text": "Das Tier", "stream": True}, timeout=30
    ) as answer:
        for line in answer.iter_lines():
            if line.startswith("event: "):
                times.append((line.removeprefix("event: "), time.monotonic()))
    drafts = [moment for name, moment in times if name == "draft"]
    assert len(drafts) >= 3
    done = dict(times)["done"]
    assert done - drafts[0] > 0.15, "the first token came long before the last"


def test_stopping_finishes_what_was_taken() -> None:
    with server_process(step_seconds=0.05) as (process, address):
        with ThreadPoolExecutor(4) as pool:
            body = {"q": [SENTENCE] * 3, "source": "en", "target": "de"}
            jobs = [
                pool.submit(httpx.post, f"{address}/translate", json=body, timeout=30)
                for _ in range(4)
            ]
            wait_for(lambda: meter(address, "dragoman_batch_rows") > 0)
            process.send_signal(signal.SIGTERM)
            for job in jobs:
                assert job.result().json() == {"translatedText": [SENTENCE] * 3}
        assert process.wait(20) == 0
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
                    timeout=10,
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
                job.result(timeout=15)
    assert "ReadTimeout" not in outcomes, "nothing hung"


def test_the_port_is_taken(slow: str) -> None:
    port = slow.rpartition(":")[2]
    refused = pytest.raises(AssertionError, match=f"cannot listen on 127.0.0.1, port {port}")
    with refused, server_process(f"port={port}"):
        pass


def test_libretranslates_own_client_works() -> None:
    from libretranslatepy import LibreTranslateAPI

    with server_process() as (_, address):
        client = LibreTranslateAPI(address)
        assert client.translate(SENTENCE, "en", "de") == SENTENCE
        assert client.translate("Das Brot.\n\nWo?", "auto", "de") == "Das Brot.\n\nWo?"
        assert client.detect("그 동물은 너무 피곤해서")[0]["language"] == "ko"
        assert {"code": "en", "name": "English", "targets": ["de"]} in client.languages()
        with pytest.raises(urllib.error.HTTPError) as refused:
            client.translate(SENTENCE, "en", "xx")
        assert "xx is not supported" in json.loads(refused.value.read())["error"]
        refused.value.close()


@pytest.mark.slow
def test_nothing_that_can_be_sent_breaks_it() -> None:
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings

    with server_process("limits.requests_per_minute=1000000", "limits.burst=100000") as (
        _,
        address,
    ):
        schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
        tried = 0
        for result in schema.get_all_operations():
            operation = result.ok()

            @settings(
                max_examples=15,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy())
            def send(case: Any) -> None:
                nonlocal tried
                tried += 1
                answer = case.call(timeout=20)
                assert answer.status_code < 500, (case.body, answer.text)
                assert answer.status_code == 200 or "error" in answer.json()

            send()
        assert tried > 100
        assert httpx.get(f"{address}/ready").json()["ready"]


def test_a_wrong_setting_is_told_in_one_line() -> None:
    from dragoman.errors import RecipeError
    from dragoman.serving.settings import parse_settings

    with pytest.raises(RecipeError, match=r"did you mean 'limits.characters'"):
        parse_settings({}, ["limits.charactrs=5"])
    with pytest.raises(RecipeError, match="port"):
        parse_settings({"port": 99999}, [])
    assert parse_settings({}, ["limits.characters=5"]).limits.characters == 5


def test_runs_are_named_apart(tmp_path: Any) -> None:
    from dragoman.serving.server import run_names

    assert run_names([tmp_path / "a" / "best", tmp_path / "b" / "best"]) == ["a-best", "b-best"]
    assert run_names([tmp_path / "demo"]) == ["demo"]
