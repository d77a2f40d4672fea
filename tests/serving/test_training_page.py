"""The page of a training, in processes as a person starts them: what is seen, stopped and resumed
through it, who is kept out, and that the run is the same as without it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from command_line import Dragoman
from watched_training import SECONDS, UPDATES, Training, watched

from dragoman.tasks.catalogue import Run


def events(client: httpx.Client, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    headers = {"Authorization": f"Bearer {key}"}
    with client.stream("GET", "/v1/training", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))


def until(client: httpx.Client, key: str, **wanted: Any) -> dict[str, Any]:
    """The first course of the training that says ``wanted``."""
    for name, told in events(client, key):
        if name == "training" and all(told.get(k) == value for k, value in wanted.items()):
            return told
    raise AssertionError(f"the stream ended without {wanted}")


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def direct(client: httpx.Client, key: str, **wish: Any) -> httpx.Response:
    return client.post("/v1/training", json=wish, headers={"Authorization": f"Bearer {key}"})


@pytest.mark.system
def test_a_training_is_watched_stopped_and_resumed_and_ends_as_it_would_without(
    tmp_path: Path,
) -> None:
    with watched(tmp_path / "seen") as (training, client, key):
        assert direct(client, key, do="resume").status_code == 400, "nothing has been stopped"
        assert direct(client, key, text="The dog sleeps.").status_code == 200
        until(client, key, can_stop=True)
        assert direct(client, key, do="stop").json() == {"state": "stopping"}
        stopped = until(client, key, state="stopped")
        assert 0 < stopped["update"] < UPDATES and not stopped["can_stop"]
        training.wait_for(r"stopped at update .* everything\s+is\s+saved")
        assert direct(client, key, do="stop").status_code == 400
        assert direct(client, key, do="resume").status_code == 200
        finished = until(client, key, state="finished")
        assert finished["update"] == UPDATES and finished["samples"]
        training.wait_for("The page stays open")
        film = [number for number, _ in Run.open(tmp_path / "seen").film()]
        for name, told in events(client, key):
            said = {one["update"] for one in told["said"]} if name == "sentence" else set()
            if said >= set(film):
                break
        training.process.send_signal(signal.SIGINT)
        assert training.process.wait(SECONDS) == 0
        assert not answers(client)
    plain = Training(tmp_path / "plain")
    assert plain.process.wait(SECONDS) == 0, "".join(plain.lines)
    plain.end()
    for name in ("model.safetensors", *(f"film/{number:08d}.safetensors" for number in film)):
        both = [(tmp_path / one / name).read_bytes() for one in ("seen", "plain")]
        assert both[0] == both[1], name


@pytest.mark.system
def test_only_who_has_the_key_sees_and_stops_a_training(tmp_path: Path) -> None:
    with watched(tmp_path / "run") as (training, client, key):
        info = client.get("/v1/info").json()
        assert (info["training"], info["runs"], info["key_required"]) == ("run", [], True)
        for answer in (
            client.get("/v1/training"),
            client.post("/v1/training", json={"do": "stop"}),
            direct(client, "another-key-of-24-letters"),
        ):
            assert answer.status_code == 403
        until(client, key, can_stop=True)
        own = {"Authorization": f"Bearer {key}"}
        other = own | {"Host": "example.org"}
        assert client.get("/v1/training", headers=other).status_code == 421
        form = own | {"Origin": "http://example.org", "Content-Type": "text/plain"}
        refused = client.post("/v1/training", content='{"do": "stop"}', headers=form)
        assert refused.status_code == 403
        # Whoever trains is killed: the process of the page goes too.
        training.process.kill()
        end = time.monotonic() + 60
        while answers(client):
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (("train", "demo", "--page", "--seeds", "1,2"), {}, "--page shows one run"),
        (("train", "demo", "--page"), {"WORLD_SIZE": "2"}, "--page works with one process"),
    ],
)
def test_what_has_no_page_is_refused(
    dragoman: Dragoman,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    told: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    said = dragoman(*arguments, "--to", str(tmp_path / "run"))
    assert said.code == 2 and told in said.err
    assert not (tmp_path / "run").exists()


def test_a_group_of_runs_has_no_page(dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("resume", str(tmp_path), "--page")
    assert said.code == 2 and "--page shows one run" in said.err
