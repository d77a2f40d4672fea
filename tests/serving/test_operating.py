"""For those who run the server: its log, its figures, keys and runs taken up anew, gzip."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
from serving_echo import (
    EchoModel,
    at,
    client_of,
    create_app,
    detector,
    echo_run,
    server_process,
    until,
)

from dragoman.base.errors import DataError, RunError
from dragoman.server.server import Renewal
from dragoman.serving.http.clients import ApiKeys
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.log import OFTEN, Bounded, JsonLines, LogLines, error_summary
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks import program

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
SECRET = "Das Tier ist müde"
WISH = {"q": SECRET, "source": "en", "target": "de"}
ADA, BOB = "0123456789abcdef", "fedcba9876543210"


def service_of(client: httpx.AsyncClient) -> Any:
    transport: Any = client._transport
    return transport.app.state.service


# ---- the log


def test_every_request_is_a_line_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    settings = ServeSettings(access_log=True, proxies=("10.0.0.1",))

    async def check() -> None:
        async with client_of(settings=settings) as client, at(client, "10.0.0.1") as proxy:
            own = (await client.post("/translate", json=WISH)).headers["x-request-id"]
            stranger = await client.get("/v1/runs/x?q=Tier", headers={"x-request-id": "made-up"})
            assert stranger.headers["x-request-id"] not in ("made-up", own)
            said = {"x-request-id": "from-the-proxy", "x-forwarded-for": "192.0.2.7"}
            passed = await proxy.get("/health", headers=said)
            assert passed.headers["x-request-id"] == "from-the-proxy"
            forged = await proxy.get("/health", headers={"x-request-id": "two\tlines {}"})
            assert forged.headers["x-request-id"].isalnum()

    with caplog.at_level(logging.INFO, "dragoman.access"):
        asyncio.run(check())
    records = [record for record in caplog.records if record.name == "dragoman.access"]
    fields = [json.loads(JsonLines().format(record)) for record in records]
    assert [(f["method"], f["path"], f["status"]) for f in fields[:3]] == [
        ("POST", "/translate", 200),
        ("GET", "/v1/runs/x", 404),
        ("GET", "/health", 200),
    ]
    assert fields[0]["client"] == "127.0.0.1" and fields[0]["bytes"] > 0
    assert (fields[2]["address"], fields[2]["request"]) == ("192.0.2.7", "from-the-proxy")
    assert "path=/translate status=200" in LogLines().format(records[0])
    assert "Tier" not in str([LogLines().format(record) for record in records])


def test_a_failure_is_logged_with_its_place_and_without_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Any, runs: Any, text: str, *more: Any) -> None:
        raise ValueError(f"cannot choose for {text}")

    monkeypatch.setattr("dragoman.serving.service.catalogue.Catalogue.choose", fail)
    written: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(self.format(record))

    async def check() -> None:
        async with client_of() as client:
            answer = await client.post("/translate", json=WISH)
            assert answer.status_code == 500
            written.append(answer.headers["x-request-id"])

    for formatter in (LogLines(), JsonLines()):
        written.clear()
        handler = Kept()
        handler.setFormatter(formatter)
        logging.getLogger("dragoman").addHandler(handler)
        try:
            asyncio.run(check())
        finally:
            logging.getLogger("dragoman").removeHandler(handler)
        line, request = written
        assert "ValueError" in line and "in fail" in line and request in line
        assert SECRET not in line and "Tier" not in line


def test_the_words_of_an_exception_are_told_where_they_hold_no_text() -> None:
    assert error_summary(RunError("no such run")) == "RunError: no such run"
    for error in (ValueError("text"), KeyError("text"), UnicodeError("text")):
        assert error_summary(error) == type(error).__name__


def test_strangers_cannot_fill_the_log() -> None:
    now = 0.0
    bounded = Bounded(clock=lambda: now)

    def says(line: int, level: int = logging.WARNING) -> str | None:
        record = logging.LogRecord("uvicorn.error", level, "x.py", line, "Invalid %s", ("x",), None)
        return record.getMessage() if bounded.filter(record) else None

    assert [says(1) for _ in range(1000)].count("Invalid x") == OFTEN
    assert says(2) == "Invalid x", "another kind"
    assert all(says(1, logging.INFO) for _ in range(100)), "notes and requests are all told"
    now = 61
    assert says(1) == f"({1000 - OFTEN:,} more like the next were left out) Invalid x"
    assert says(1) == "Invalid x"


# ---- keys and figures


def test_what_libraries_say_is_bounded_too() -> None:
    """A form that is none makes python_multipart complain: by the same handlers as all others."""
    body = b"--x\r\nno header\r\n\r\n"
    kind = {"content-type": "multipart/form-data; boundary=x"}
    said: list[str] = []
    with server_process(said=said) as (process, address):
        for _ in range(3 * OFTEN):
            assert httpx.post(f"{address}/translate", content=body, headers=kind).is_client_error
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert len(said) <= OFTEN + 2, said


def test_warnings_go_to_the_log_of_the_program(capfd: pytest.CaptureFixture[str]) -> None:
    program = (
        "import logging, warnings; from dragoman.serving.operate.log import set_up;"
        "set_up('json'); logging.getLogger('library').info('unimportant');"
        "[logging.getLogger('library').warning('x') for _ in range(99)]; warnings.warn('old')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["logger"] for line in lines] == ["library"] * OFTEN + ["py.warnings"]


def test_what_libraries_in_c_write_goes_to_the_log_too(capfd: pytest.CaptureFixture[str]) -> None:
    """As libmpg123 does, a line for each frame of an MP3 file that is damaged."""
    program = (
        "import logging, os; from dragoman.serving.operate.log import catch_native, set_up;"
        "reader = catch_native(); set_up('json');"
        "[os.write(2, b'Note: \\x1b[31mIllegal header %d\\n' % n) for n in range(1000)];"
        "logging.getLogger('dragoman').warning('own'); os.close(2); reader.join()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    lines = [json.loads(line)["message"] for line in capfd.readouterr().err.splitlines()]
    lines.remove("own")
    assert len(lines) == OFTEN and lines[0] == r"A library says: 'Note: \x1b[31mIllegal header 0'"


def test_metrics_are_for_operators() -> None:
    settings = ServeSettings(operators=("192.0.2.0/24",), proxies=("127.0.0.1",))

    async def check() -> None:
        async with client_of(settings=settings) as client, at(client, "192.0.2.9") as operator:
            assert (await operator.get("/metrics")).status_code == 200
            stranger = await client.get("/metrics")
            assert stranger.status_code == 403 and "operators" in stranger.json()["error"]
            forwarded = await client.get("/metrics", headers={"x-forwarded-for": "192.0.2.8"})
            assert forwarded.status_code == 200
            made_up = await operator.get("/metrics", headers={"x-forwarded-for": "198.51.100.7"})
            assert made_up.status_code == 200, "no proxy: its word is not taken"
            assert (await client.get("/health")).status_code == 200

    asyncio.run(check())


def test_a_key_brings_its_own_limits_and_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{ADA} Ada\n{BOB} the wiki characters=60 burst=5 requests_per_minute=1 # x\n")
    settings = ServeSettings(
        api_keys=path, limits=LimitSettings(burst=2, requests_per_minute=1, characters=20)
    )

    async def check() -> None:
        async with client_of(settings=settings) as client:
            long = {**WISH, "q": "Das Brot. " * 4}

            async def ask(key: str, body: Any = WISH) -> int:
                headers = {"authorization": f"Bearer {key}"}
                return (await client.post("/translate", json=body, headers=headers)).status_code

            assert [await ask(ADA) for _ in range(3)] == [200, 200, 429]
            assert [await ask(BOB) for _ in range(4)] == [200] * 4
            assert await ask(BOB, long) == 200
            assert await ask(BOB) == 429
            text = (await client.get("/metrics")).text
            assert 'dragoman_key_requests_total{holder="Ada"} 2.0' in text
            assert 'dragoman_key_requests_total{holder="the wiki"} 5.0' in text
            wanted = float(4 * len(SECRET) + 40)
            assert f'dragoman_key_characters_total{{holder="the wiki"}} {wanted}' in text
            assert ADA not in text and BOB not in text

    asyncio.run(check())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{BOB} Bob beam=3", "beam is not a limit of an account"),
        (f"{BOB} Bob burst=many", "line 2: burst"),
        (f"{BOB} Bob burst=0", "line 2: burst"),
        (f"{BOB} Ada burst=3", "share one account"),
    ],
)
def test_limits_of_keys_that_are_none(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{ADA} Ada\n{line}\n")
    with pytest.raises(DataError, match=words):
        ApiKeys.load(path, LimitSettings())


# ---- taken up anew


def touched(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "recipe.toml").write_text(f"# {time.monotonic_ns()}")
    return folder


def test_a_run_is_taken_up_anew_and_the_old_one_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    old, new = echo_run(model=EchoModel(gate=gate)), echo_run()
    monkeypatch.setattr(Renewal, "_open", lambda _, names: dict.fromkeys(names, new))

    async def check() -> None:
        async with client_of(old) as client:
            renewal = Renewal(
                service_of(client), {"echo": touched(tmp_path / "run")}, program.serving_tasks()
            )
            await renewal.renew()
            assert service_of(client).catalogue.runs == [old], "it has not changed"
            before = asyncio.ensure_future(client.post("/translate", json=WISH))
            stream = {"text": SECRET, "stream": True}
            streamed = asyncio.ensure_future(client.post("/v1/translate", json=stream))
            (worker,) = old.queue._workers
            await until(lambda: sum(worker._held.values()) // 2 + old.queue.waiting == 2)  # beam 2
            touched(tmp_path / "run")
            renewed = asyncio.ensure_future(renewal.renew())
            await until(lambda: service_of(client).catalogue.runs == [new])
            # The new one serves while the old one still has work.
            assert (await client.post("/translate", json=WISH)).status_code == 200
            assert not before.done() and old.queue.alive and not renewed.done()
            gate.set()
            assert (await before).json()["translatedText"] == SECRET
            assert "event: done" in (await streamed).text
            await renewed
            assert not old.queue.alive and new.queue.alive
            assert (await client.get("/ready")).json() == {"ready": True, "runs": ["echo"]}
            assert 'dragoman_sentences_total{run="echo"} 1.0' in (await client.get("/metrics")).text
        assert not new.queue.alive

    asyncio.run(check())


def test_a_request_keeps_the_run_that_it_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its text reaches the run only after the new one has taken its place."""
    old, new = echo_run(), echo_run()
    monkeypatch.setattr(Renewal, "_open", lambda _, names: dict.fromkeys(names, new))

    async def check() -> None:
        chosen, renewed = asyncio.Event(), asyncio.Event()
        search = old.queue.search

        async def late(*given: Any) -> Any:
            chosen.set()
            await renewed.wait()
            await asyncio.sleep(0.1)  # time to close the old one, wrongly
            return await search(*given)

        monkeypatch.setattr(old.queue, "search", late)
        async with client_of(old) as client:
            renewal = Renewal(
                service_of(client), {"echo": touched(tmp_path / "run")}, program.serving_tasks()
            )
            before = asyncio.ensure_future(client.post("/translate", json=WISH))
            await chosen.wait()
            touched(tmp_path / "run")
            renewing = asyncio.ensure_future(renewal.renew())
            await until(lambda: service_of(client).catalogue.runs == [new])
            renewed.set()
            assert (await before).json() == {"translatedText": SECRET}
            await renewing

    asyncio.run(check())


def test_nothing_is_kept_of_an_old_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Renewal, "_open", lambda _, names: {name: echo_run() for name in names})

    async def check() -> None:
        app = create_app([echo_run()], ServeSettings(), detector())
        old = weakref.ref(app.state.service.catalogue.runs[0])
        vars(old())["circle"] = old()  # as models have them
        async with app.router.lifespan_context(app):
            renewal = Renewal(
                app.state.service, {"echo": touched(tmp_path / "run")}, program.serving_tasks()
            )
            touched(tmp_path / "run")
            await renewal.renew()
            assert old() is None

    asyncio.run(check())


def test_what_cannot_be_taken_up_leaves_all_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys"
    path.write_text(ADA)
    settings = ServeSettings(api_keys=path)
    served = echo_run()

    async def check() -> None:
        async with client_of(served, settings=settings) as client:
            service = service_of(client)
            renewal = Renewal(service, {"echo": touched(tmp_path / "run")}, program.serving_tasks())
            headers = {"authorization": f"Bearer {ADA}"}
            for key, broken in (("short", False), (ADA, True)):
                path.write_text(key)
                if broken:
                    (tmp_path / "run" / "recipe.toml").write_text("broken = ")
                await renewal.renew()
                assert service.catalogue.runs == [served]
                answer = await client.post("/translate", json=WISH, headers=headers)
                assert answer.status_code == 200

    asyncio.run(check())
    error_summary = [record.getMessage() for record in caplog.records]
    assert "can be guessed" in error_summary[0] and "recipe.toml" in error_summary[-1]


def test_keys_are_read_again_at_sighup(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(ADA)
    with server_process(f"api_keys={path}") as (process, address):

        def ask(key: str) -> int:
            headers = {"authorization": f"Bearer {key}"}
            return httpx.post(f"{address}/translate", json=WISH, headers=headers).status_code

        assert (ask(ADA), ask(BOB)) == (200, 403)
        path.write_text(BOB)
        process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 30
        while ask(BOB) != 200:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert ask(ADA) == 403


def test_a_key_that_is_taken_back_is_not_known_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an earlier renewal waits for: the body of a stranger, or a request under way."""
    path, gate = tmp_path / "keys", threading.Event()
    path.write_text(f"{ADA}\n{BOB}\n")
    settings = ServeSettings(api_keys=path)
    old, new = echo_run(model=EchoModel(gate=gate), settings=settings), echo_run(settings=settings)
    monkeypatch.setattr(Renewal, "_open", lambda _, names: dict.fromkeys(names, new))

    async def half_sent() -> Any:
        yield b'{"q": '
        await asyncio.Event().wait()

    async def check() -> None:
        async with client_of(old, settings=settings) as client:
            service = service_of(client)
            renewal = Renewal(service, {"echo": touched(tmp_path / "run")}, program.serving_tasks())
            ada = {"authorization": f"Bearer {ADA}"}
            stranger = asyncio.ensure_future(client.post("/translate", content=half_sent()))
            under_way = asyncio.ensure_future(client.post("/translate", json=WISH, headers=ada))
            await until(lambda: len(service.under_way) == 1)  # the stranger has chosen no run
            touched(tmp_path / "run")
            renewing = asyncio.ensure_future(renewal.renew())
            await until(lambda: service.catalogue.runs == [new])
            path.write_text(f"{BOB}\n")
            again = asyncio.ensure_future(renewal.renew())
            await until(lambda: not again.done() and len(service.keys._holders) == 1)
            assert (await client.post("/translate", json=WISH, headers=ada)).status_code == 403
            assert not renewing.done()
            gate.set()
            assert (await under_way).status_code == 200
            await asyncio.gather(renewing, again)  # the stranger is not waited for
            stranger.cancel()
            await asyncio.gather(stranger, return_exceptions=True)

    asyncio.run(check())


@pytest.mark.parametrize("is_link", [False, True])
def test_a_pipe_is_no_file_of_keys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_link: bool
) -> None:
    pipe, path = tmp_path / "pipe", tmp_path / "keys"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="not a regular file"):
        ApiKeys.load(pipe, LimitSettings())
    path.write_text(ADA)
    settings = ServeSettings(api_keys=path)

    async def check() -> None:
        async with client_of(settings=settings) as client:
            renewal = Renewal(service_of(client), {}, program.serving_tasks())
            path.unlink()
            if is_link:
                path.symlink_to(pipe)
            else:
                pipe.rename(path)
            async with asyncio.timeout(20):
                await renewal.renew()
            headers = {"authorization": f"Bearer {ADA}"}
            assert (await client.post("/translate", json=WISH, headers=headers)).is_success

    asyncio.run(check())
    assert "Nothing else was reloaded: API keys: cannot read" in caplog.text


# ---- stopping


def test_answers_say_that_the_connection_ends_while_the_server_stops() -> None:
    gate = threading.Event()

    async def check() -> None:
        async with client_of(echo_run(model=EchoModel(gate=gate))) as client:
            assert "connection" not in (await client.get("/health")).headers
            under_way = asyncio.ensure_future(client.post("/translate", json=WISH))
            stream = {"text": SECRET, "stream": True}
            streamed = asyncio.ensure_future(client.post("/v1/translate", json=stream))
            await until(lambda: len(service_of(client).under_way) == 2)
            service_of(client).closing = True
            answers = [await client.get("/health"), await client.get("/nothing")]
            gate.set()
            answers.append(await under_way)
            assert [one.headers.get("connection") for one in answers] == ["close"] * 3
            assert "event: done" in (await streamed).text

    asyncio.run(check())


def test_a_connection_that_is_kept_alive_is_told_that_the_server_stops() -> None:
    with server_process(step_seconds=0.2) as (process, address):
        with httpx.Client(base_url=address, timeout=60) as client:
            assert "connection" not in client.get("/health").headers
            stop = threading.Timer(0.5, process.send_signal, [signal.SIGTERM])
            stop.start()
            answer = client.post("/translate", json=WISH)  # two seconds
            assert answer.is_success and answer.headers["connection"] == "close"
        assert process.wait(60) == 0


# ---- gzip


def test_what_a_client_takes_is_sent_as_gzip() -> None:
    async def check() -> None:
        async with client_of() as client:
            for path, is_packed in (("/openapi.json", True), ("/docs", True), ("/health", False)):
                plain = await client.get(path, headers={"accept-encoding": "identity"})
                packed = await client.get(path, headers={"accept-encoding": "gzip"})
                assert packed.content == plain.content
                assert ("content-encoding" in packed.headers) == is_packed
                assert "content-encoding" not in plain.headers

    asyncio.run(check())


def test_head_tells_of_what_get_sends() -> None:
    async def check() -> None:
        async with client_of() as client:
            for coding in ("gzip", "identity"):
                said = {"accept-encoding": coding}
                head = await client.head("/openapi.json", headers=said)
                got = await client.get("/openapi.json", headers=said)
                assert not head.content
                assert head.headers["content-length"] == got.headers["content-length"]
                assert head.headers.get("content-encoding") == got.headers.get("content-encoding")

    asyncio.run(check())


# ---- what is deployed


def test_the_proxies_recipes_agree_with_the_server() -> None:
    """What they must say for streams and limits, as far as it can be read off."""
    settings = ServeSettings()
    nginx = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    caddy = (ROOT / "deploy" / "Caddyfile").read_text(encoding="utf-8")
    unit = (ROOT / "deploy" / "dragoman.service").read_text(encoding="utf-8")
    assert "proxy_buffering off" in nginx and "flush_interval -1" in caddy
    reads = int(nginx.split("proxy_read_timeout ")[1].split("s;")[0])
    assert reads > 2 * settings.limits.seconds
    for text in (nginx, caddy):
        assert f"127.0.0.1:{settings.port}" in text and "X-Request-ID" in text
        assert text.count("{") == text.count("}")
    # They pass on what is too large, so that dragoman says what the limit is; of what they refuse
    # themselves the answer is JSON too.
    (of_nginx,) = re.findall(r"client_max_body_size (\d+)m;", nginx)
    (of_caddy,) = re.findall(r"max_size (\d+)MB", caddy)
    held = settings.limits
    largest = max(held.body_bytes, held.file_bytes, held.upload_bytes, held.recording_bytes)
    assert min(int(of_nginx), int(of_caddy)) * 1_000_000 > largest
    assert "error_page 413" in nginx and "handle_errors" in caddy
    assert all("application/json" in text and '"error"' in text for text in (nginx, caddy))
    stops = int(unit.split("TimeoutStopSec=")[1].split("\n")[0])
    assert stops > settings.grace_seconds
    assert int(unit.split("LimitNOFILE=")[1].split("\n")[0]) > 2 * settings.limits.connections
    docs = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    assert f"--stop-timeout {stops}" in docs


def test_an_image_is_whole_or_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The build hook without a compiler and without Node: a warning, or no wheel."""
    # hatchling is there while a wheel is built, and not here.
    interface = ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    specified = importlib.util.spec_from_file_location("hook", ROOT / "hatch_build.py")
    assert specified is not None and specified.loader is not None
    module = importlib.util.module_from_spec(specified)
    specified.loader.exec_module(module)

    class Lacking(SimpleNamespace):
        class CompileError(Exception):
            pass

        PageError = CompileError
        LIBRARY = Path("no-library.so")

        def compile_library(self, _: Path, *, wanted: str | None) -> None:
            raise self.CompileError("no compiler")

        def build_page(self, _: Path) -> None:
            raise self.PageError("no Node")

    hook = module.BuildHook()
    hook.target_name, hook.root = "wheel", str(ROOT)
    monkeypatch.setattr(module, "_load", lambda _: Lacking())
    hook.initialize("standard", {"artifacts": []})
    said = capsys.readouterr().err
    assert "no compiler" in said and "no Node" in said
    assert "ENV DRAGOMAN_WHOLE=1" in (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    monkeypatch.setenv("DRAGOMAN_WHOLE", "1")
    with pytest.raises(SystemExit, match="no Node"):
        hook.initialize("standard", {"artifacts": []})
    with pytest.raises(SystemExit, match="no compiler"):
        hook.initialize("editable", {"artifacts": []})
