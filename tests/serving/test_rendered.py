"""What the server tells everybody alike: written once, beside the event loop, and counted."""

from __future__ import annotations

import asyncio
import pkgutil
import threading
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from serving_echo import at, client_of, create_app, detector, echo_run, open_run
from untrained_run import untrained_run

from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks.catalogue import Run

ALIKE = {
    "/docs": "server.app.docs_html",
    "/openapi.json": "serving.http.messages.get_openapi",
    "/v1/info": "server.info.version",
    "/v1/figures": "server.inside.FigureList",
    "/v1/runs/tiny": "server.info.view_of",
    "/languages": "tasks.translation.libretranslate._languages",
    "/frontend/settings": "tasks.translation.libretranslate.FrontendSettings",
}
"""A path, and what writes its answer."""


def gets() -> list[str]:
    """The path of every GET, each with a name filled in where it takes one."""
    app = create_app((echo_run(),), ServeSettings(), detector())
    told = [path for path, methods in app.openapi()["paths"].items() if "get" in methods]
    own = [route.path for route in app.routes if isinstance(route, APIRoute)]
    paths = list(dict.fromkeys([*told, *own]))
    assert len(paths) > 12
    return [path.replace("{name}", "echo").replace("{key}", "k") for path in paths]


@pytest.mark.parametrize("with_keys", [False, True])
def test_every_get_but_health_and_ready_is_counted(tmp_path: Path, with_keys: bool) -> None:
    """Of clients without a key too."""
    keys = tmp_path / "keys"
    keys.write_text("0123456789abcdef Ada\n")
    limits = LimitSettings(burst=2, requests_per_minute=1)
    settings = ServeSettings(
        api_keys=keys if with_keys else None, limits=limits, operators=("192.0.2.1",)
    )

    async def check() -> None:
        async with client_of(settings=settings) as client:
            for number, path in enumerate(gets()):
                async with at(client, f"192.0.2.{number + 1}") as one:
                    codes = [(await one.get(path)).status_code for _ in range(3)]
                    assert 429 not in codes[:2], path
                    assert (codes[2] == 429) == (path not in ("/health", "/ready")), path

    asyncio.run(check())


def test_a_holder_of_a_key_has_limits_of_its_own_for_what_needs_none(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("0123456789abcdef Ada burst=4\n")
    limits = LimitSettings(burst=1, requests_per_minute=1)
    settings = ServeSettings(api_keys=tmp_path / "keys", limits=limits)
    ada = {"authorization": "Bearer 0123456789abcdef"}

    async def check() -> None:
        async with client_of(settings=settings) as client:
            assert (await client.get("/languages")).status_code == 200
            assert (await client.get("/languages")).status_code == 429
            codes = [(await client.get("/v1/info", headers=ada)).status_code for _ in range(5)]
            assert codes == [200] * 4 + [429]

    asyncio.run(check())


@pytest.mark.parametrize("path", ["/v1/info", "/v1/figures", "/nothing", "/health", "/ready"])
def test_who_asks_too_often_waits_for_the_answer(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Answered at once, many connections that ask again would leave no time for anybody else."""
    monkeypatch.setattr("dragoman.serving.service.service.TOO_MANY_SECONDS", 60)
    settings = ServeSettings(limits=LimitSettings(burst=1, requests_per_minute=1))

    async def check() -> None:
        async with client_of(settings=settings) as client:
            assert (await client.get(path)).status_code != 429
            waiting = [asyncio.ensure_future(client.get(path)) for _ in range(3)]
            async with at(client, "192.0.2.9") as other:
                for one in ("/health", "/v1/info"):
                    assert (await other.get(one)).status_code == 200
            assert not any(one.done() for one in waiting)
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(check())


def test_probes_are_always_answered_and_cost_their_address_nothing_else() -> None:
    settings = ServeSettings(limits=LimitSettings(burst=1, requests_per_minute=1))

    async def check() -> None:
        async with client_of(settings=settings) as client:
            for path in ("/health", "/ready", "/health", "/v1/info", "/health"):
                assert (await client.get(path)).status_code == 200

    asyncio.run(check())


@pytest.mark.parametrize(("path", "writer"), ALIKE.items())
def test_what_is_the_same_for_all_is_written_once_and_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, writer: str
) -> None:
    where = f"dragoman.{writer}"
    untrained_run(tmp_path, "model.model_dim=16", "model.ffn_dim=16")
    tiny = open_run(Run.open(tmp_path), ServeSettings(precision="fp32"), "tiny")
    threads: list[str] = []
    writes = pkgutil.resolve_name(where)

    def noted(*given: Any, **named: Any) -> Any:
        threads.append(threading.current_thread().name)
        return writes(*given, **named)

    monkeypatch.setattr(where, noted)

    async def check() -> None:
        async with client_of(tiny, echo_run()) as client:
            answers = await asyncio.gather(*(client.get(path) for _ in range(5)))
            plain = await client.get(path, headers={"accept-encoding": "identity"})
            head = await client.head(path)
            assert {one.status_code for one in (*answers, plain, head)} == {200}
            assert {one.text for one in (*answers, plain)} == {plain.text}
            assert not head.content
            assert head.headers["content-length"] == answers[0].headers["content-length"]
            if len(plain.content) >= 1000:
                assert answers[0].headers["content-encoding"] == "gzip"
                assert "accept-encoding" in plain.headers["vary"].lower()

    asyncio.run(check())
    assert len(threads) == 1 and threads[0] != threading.main_thread().name
