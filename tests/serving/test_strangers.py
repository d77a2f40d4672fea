"""What strangers and careless clients send: who they are taken for, and what it costs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pydantic import BaseModel
from serving_echo import ADDRESS, at, client_of, create_app, detector, echo_run, open_run, until
from starlette.requests import ClientDisconnect
from untrained_run import untrained_run

from dragoman.serving.http import connection
from dragoman.serving.http.clients import Networks, holder, plain
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.service import Service
from dragoman.tasks.catalogue import Run

pytestmark = pytest.mark.system

WISH = {"q": "Das Brot", "source": "en", "target": "de"}
FORM = "application/x-www-form-urlencoded"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "name",
    ["%00", "a%00.js", "a" * 5000, "%ff%fe", "%2e%2e", "%2e%2e%2fapp.py", ".env", "%ED%A0%80"],
)
def test_names_that_are_none(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        async with client_of() as client:
            answer = await client.get(f"/assets/{name}")
            assert answer.status_code == 404 and list(answer.json()) == ["error", "code", "values"]
            assert len(answer.content) < 300

    asyncio.run(check())
    assert not caplog.records


def test_bodies_of_who_is_not_known_are_few_while_they_are_received(tmp_path: Path) -> None:
    """One address may begin many at once; a short request is answered all the same."""
    (tmp_path / "keys").write_text("0123456789abcdef  Ada\n")
    limits = LimitSettings(uploads_held=20_000_000)  # 5 MB of all strangers, 1.25 MB of one
    settings = ServeSettings(api_keys=tmp_path / "keys", limits=limits)

    async def check() -> None:
        begun = 0
        async with client_of(settings=settings) as client:

            async def slowly() -> AsyncIterator[bytes]:
                nonlocal begun
                begun += 1
                yield b'{"q": "'
                await asyncio.sleep(60)

            async def send(content: AsyncIterator[bytes]) -> httpx.Response:
                # A length beside chunks is not the length of the body (RFC 9112, section 6.3).
                lying = {"content-length": "7", "transfer-encoding": "chunked"}
                answer: httpx.Response = await client.post(
                    "/translate", content=content, headers=lying
                )
                return answer

            waiting = [asyncio.create_task(send(slowly())) for _ in range(50)]
            await until(lambda: sum(one.done() for one in waiting) == 49)
            answers = [one.result() for one in waiting if one.done()]
            assert {one.status_code for one in answers} == {429} and begun == 1
            assert {one.json()["values"]["kind"] for one in answers} == {"uploads"}
            short = WISH | {"api_key": "0123456789abcdef"}
            assert (await client.post("/translate", json=short)).status_code == 200
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(check())


def test_json_that_is_called_a_form() -> None:
    async def check() -> None:
        async with client_of() as client:
            kind = {"content-type": FORM}
            body = " " + json.dumps(WISH)
            answer = await client.post("/translate", content=body, headers=kind)
            assert answer.json() == {"translatedText": "Das Brot"}
            form = "q=%7B%22Das%22&source=en&target=de"
            answer = await client.post("/translate", content=form, headers=kind)
            assert answer.json() == {"translatedText": '{"Das"'}

    asyncio.run(check())


def test_forms() -> None:
    """As browsers write them, and as careless programs do; too many fields are not gone through."""

    async def check() -> None:
        async with client_of() as client:
            kind = {"content-type": FORM}
            langs = b"&source=en&target=de"
            for q, text in (
                (b"Das+Brot%21", "Das Brot!"),
                (b"Stra%C3%9Fe", "Straße"),
                ("Straße".encode(), "Straße"),
                (b"Brot;Tier", "Brot;Tier"),
                (b"Brot=", "Brot="),
                (b"Das&q=Brot", "Brot"),
                (b"Brot&api_key=&alternatives=", "Brot"),
                (b"Brot+" * 1000, "Brot " * 1000),  # beside the event loop
            ):
                form = b"q=" + q + langs
                answer = await client.post("/translate", content=form, headers=kind)
                assert answer.json()["translatedText"] == text, answer.text
            for body in (b"&" * 900_000, b"q=a&" * 200_000):
                answer = await client.post("/translate", content=body, headers=kind)
                assert answer.json()["code"] == "bad_form", answer.text

    asyncio.run(check())


def test_a_form_may_name_encodings_of_characters_alone() -> None:
    """Its fields are decoded in the event loop, and punycode takes a time that grows with the
    square of their length."""

    async def check() -> None:
        settings = ServeSettings(limits=LimitSettings(burst=1000))
        async with client_of(settings=settings) as client:
            part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
            form = "".join(part.format(*one) for one in WISH.items()) + "--x--\r\n"
            for path in ("/translate", "/translate_file", "/v1/classify"):
                for charset in ("punycode", "undefined", "idna", "unicode_escape", "utf 7", "x"):
                    for said in (
                        f'charset="{charset}"',
                        f'charset{" " * 20}="{charset}"',
                        f'a="charset=utf-8"; charset="{charset}"',
                        f'charset=utf-8; charset="{charset}"',
                    ):
                        kind = {"content-type": f"multipart/form-data; boundary=x; {said}"}
                        answer = await client.post(path, content=form, headers=kind)
                        assert answer.status_code == 400, answer.text
                        assert answer.json()["code"] == "bad_form" and charset in answer.text
            for said in ("", "; charset=UTF-8", "; charset=latin-1", "; charset*=utf-8''punycode"):
                kind = {"content-type": f"multipart/form-data; boundary=x{said}"}
                answer = await client.post("/translate", content=form, headers=kind)
                assert answer.json() == {"translatedText": "Das Brot"}

    asyncio.run(check())


def test_headers_of_forms_have_few_parameters() -> None:
    """A megabyte of them would be read in the event loop, one by one."""

    async def check() -> None:
        async with client_of() as client:
            for many in (";" * 4000, '; a="' + ";" * 4000):
                for whole, parts in ((many, ""), ("", many)):
                    kind = {"content-type": f"multipart/form-data; boundary=x{whole}"}
                    said = f'Content-Disposition: form-data; name="q"{parts}'
                    form = f"--x\r\n{said}\r\n\r\nDas Brot\r\n--x--\r\n"
                    for path in ("/translate", "/translate_file", "/v1/classify"):
                        answer = await client.post(path, content=form, headers=kind)
                        assert answer.status_code == 400, answer.text
                        assert answer.json()["code"] == "bad_form" and "semicolons" in answer.text

    asyncio.run(check())


def test_json_of_too_many_values_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser holds the interpreter until it is through, and everybody waits. Signs in strings
    are text."""

    async def check() -> None:
        parsed = []

        def loads(text: str, **how: Any) -> Any:
            parsed.append(text)
            return json.loads(text, **how)

        monkeypatch.setattr(connection, "json", SimpleNamespace(loads=loads))
        async with client_of() as client:
            for body in (
                b'{"q": [' + b"[0,0,0,0]," * 90_000 + b"0]}",
                b'{"q": ' + b"[" * 900_000,
                b'{"q": ["' + b'","' * 300_000 + b'"]}',
                b'{"q": [' + b'{"a":1},' * 100_000 + b"1]}",
            ):
                answer = await client.post("/translate", content=body)
                found = answer.json()
                assert answer.status_code == 400 and found["code"] == "too_many_values", found
                assert found["values"]["values"] > found["values"]["most"] == 20_000
            assert not parsed
            for text in ("," * 20_000, "[{" * 10_000, '\\"' * 9_000 + "," * 1_000, "\\" * 10_000):
                body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
                answer = await client.post("/translate", content=body)
                assert answer.json().get("translatedText") is not None, answer.text
            assert len(parsed) == 4

    asyncio.run(check())


def test_slashes_that_were_escaped_are_plain_before_any_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thirteen megabytes of base64 may be nothing but them, and counting values took each by
    itself: everybody waited for seconds."""
    looked_at: list[str] = []

    def values(text: str) -> int:
        looked_at.append(text)
        return 0

    monkeypatch.setattr(connection, "_values", values)
    texts = ("a/b", "\\/", "\\\\/", "/" * 9, "\\", '\\"/', "/\\/\\\\//", "\n/\t")
    for text in texts:
        body = json.dumps({"file": text}).replace("/", "\\/")
        assert connection._parse(body.encode(), 100) == {"file": text}
    assert all("\\/" not in one.replace("\\\\", "") for one in looked_at)
    assert len(looked_at) == len(texts)


def test_of_a_list_that_is_wrong_the_first_mistake_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In every body: a megabyte of mistakes, all listed, would hold up everybody for seconds."""
    bodies: list[type[BaseModel]] = []
    monkeypatch.setattr("dragoman.server.app.describe", lambda _, every: bodies.extend(every))
    create_app((echo_run(),), ServeSettings(), detector())
    lists = {
        body.__name__: [
            one for one in schemas(body.__pydantic_core_schema__) if one["type"] in MANY
        ]
        for body in bodies
    }
    assert len(lists) > 10 and len(lists["LookRequest"]) == 6 and len(lists["WriteRequest"]) == 1
    slow = [name for name, found in lists.items() if not all(one.get("fail_fast") for one in found)]
    assert not slow


MANY = ("list", "tuple", "set", "frozenset", "generator")


def schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """All parts of a schema of pydantic's core that have a type."""
    if isinstance(schema, dict):
        if isinstance(schema.get("type"), str):
            yield schema
        for one in schema.values():
            yield from schemas(one)
    elif isinstance(schema, list | tuple):
        for one in schema:
            yield from schemas(one)


def test_json_that_is_no_object() -> None:
    """What is asked for goes by other names at other addresses: none is given as an example."""

    async def check() -> None:
        async with client_of() as client:
            for path in ("/translate", "/v1/translate"):
                for body in ("[]", "null", '"Das Brot"', "1"):
                    answer = await client.post(path, content=body, headers=JSON)
                    assert answer.status_code == 400
                    told = "The body must be a JSON object: the names of the parameters and"
                    assert answer.json()["error"].startswith(told), answer.text

    asyncio.run(check())


def test_a_strangers_host_leads_nowhere() -> None:
    headers = {"host": "evil.example", "x-forwarded-proto": "https", "x-forwarded-host": "evil"}

    async def check() -> None:
        async with client_of() as client:
            for method, path in (("POST", "/translate/"), ("GET", "/docs/"), ("GET", "/health/")):
                answer = await client.request(method, path, json=WISH, headers=headers)
                assert answer.status_code == 404
                assert "evil" not in answer.text + str(answer.headers)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("written", "one"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::ffff:c000:207", "192.0.2.7"),
        ("64:ff9b::192.0.2.7", "192.0.2.7"),
        ("2001:DB8::7", "2001:db8::/64"),
        ("2001:db8::1%eth0", "2001:db8::/64"),
        ("unknown", "unknown"),
    ],
)
def test_who_holds_an_address(written: str, one: str) -> None:
    assert holder(written) == one
    assert holder(plain(written)) == one


def test_networks() -> None:
    some = Networks(("192.0.2.0/24", "::1"))
    assert "192.0.2.9" in some and "::ffff:192.0.2.9" in some and "::1" in some
    assert "192.0.3.9" not in some and "unknown" not in some and "::2" not in some
    assert "unknown" in Networks(("*",)) and "::1" not in Networks(())
    with pytest.raises(ValueError, match="proxy"):
        ServeSettings(proxies=("proxy",))


@pytest.mark.parametrize(
    ("peer", "said", "who"),
    [
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),  # no proxy of ours
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["::ffff:198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["6.6.6.6, 198.51.100.7"], "198.51.100.7"),  # the client made up the first
        ("10.0.0.1", ["6.6.6.6", "198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["6.6.6.6, 198.51.100.7, 10.0.0.2"], "198.51.100.7"),  # two of ours
        ("10.0.0.1", ["198.51.100.7:5050"], "198.51.100.7"),
        ("10.0.0.1", ["[2001:db8::7]:5050"], "2001:db8::/64"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.2"], "10.0.0.2"),
    ],
)
def test_only_a_trusted_proxy_says_who_asks(peer: str, said: Sequence[str], who: str) -> None:
    settings = ServeSettings(proxies=("10.0.0.0/8",))

    async def check() -> None:
        async with client_of(settings=settings) as client, at(client, peer) as behind:
            headers = [("x-forwarded-for", one) for one in said]
            answer = await behind.post("/translate", json=WISH, headers=headers)
            assert answer.status_code == 200
            transport: Any = client._transport
            limiter = transport.app.state.service.limiter
            assert list(limiter._buckets) == [who]

    asyncio.run(check())


def test_who_has_no_key_is_limited_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("0123456789abcdef Ada\n")
    limits = LimitSettings(burst=3, requests_per_minute=1)
    settings = ServeSettings(api_keys=path, limits=limits)
    ada = {"authorization": "Bearer 0123456789abcdef"}

    async def check() -> None:
        async with client_of(settings=settings) as client:
            guess = {"authorization": "Bearer 0123456789abcdee"}
            codes = [
                (await client.post("/translate", json=WISH)).status_code,
                (await client.post("/translate", json=WISH, headers=guess)).status_code,
                (await client.get("/v1/figures")).status_code,
            ]
            assert codes == [403] * 3
            # The next is refused before its body: this one is not JSON.
            assert (await client.post("/translate", content=b"{")).status_code == 429
            assert (await client.get("/v1/figures", headers=guess)).status_code == 429
            # Neither another address nor who has a key is held back.
            async with at(client, "192.0.2.9") as other:
                with_key = {**WISH, "api_key": "0123456789abcdef"}
                assert (await other.post("/translate", json=with_key)).status_code == 200
            answer = await client.post("/translate", json=WISH, headers=ada)
            assert answer.status_code == 200

    asyncio.run(check())


BROKEN = {
    "form": ({"content-type": "multipart/form-data; boundary=x"}, b"--y"),
    "json": ({"content-type": "application/json"}, b"{"),
    "large": ({"content-type": "application/json", "content-length": "2000000"}, b"{"),
    "gone": ({"content-type": "application/json"}, None),
}


@pytest.mark.parametrize(("headers", "body"), BROKEN.values(), ids=BROKEN)
def test_what_strangers_send_counts_also_where_it_is_not_read_to_its_end(
    tmp_path: Path, headers: dict[str, str], body: bytes | None
) -> None:
    """Forms that were broken off, each from a connection of its own, held up everybody."""
    keys = tmp_path / "keys"
    keys.write_text("0123456789abcdef Ada\n")
    limits = LimitSettings(burst=3, requests_per_minute=1)
    settings = ServeSettings(api_keys=keys, limits=limits)

    async def broken_off() -> AsyncIterator[bytes]:
        yield b"{"
        raise ClientDisconnect

    async def check() -> None:
        async with client_of(settings=settings) as client:
            for _ in range(3):
                sent = broken_off() if body is None else body
                answer = await client.post("/translate", content=sent, headers=headers)
                assert answer.status_code in (400, 403, 413, 499), answer.text
            assert (await client.get("/v1/info")).status_code == 429

    asyncio.run(check())


@pytest.mark.parametrize("with_keys", [False, True])
@pytest.mark.parametrize("path", ["/nothing", "/assets/none.js", "/translate"])
def test_who_looks_for_what_is_not_there_is_limited(
    tmp_path: Path, path: str, with_keys: bool
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("0123456789abcdef Ada\n")
    limits = LimitSettings(burst=3, requests_per_minute=1)
    settings = ServeSettings(api_keys=keys if with_keys else None, limits=limits)
    ada = {"authorization": "Bearer 0123456789abcdef"} if with_keys else {}

    async def check() -> None:
        async with client_of(settings=settings) as client:
            answers = [await client.get(path) for _ in range(5)]
            there_is_not = 405 if path == "/translate" else 404
            assert [one.status_code for one in answers] == [there_is_not] * 3 + [429] * 2
            assert int(answers[-1].headers["retry-after"]) > 1
            assert "requests a minute" in answers[-1].json()["error"]
            # The page and whoever runs the server are not held up by it, nor is another address.
            assert (await client.get("/health")).status_code == 200
            async with at(client, "192.0.2.9") as other:
                assert (await other.get(path)).status_code == there_is_not
            # An address is one client whatever it asks for; the holder of a key is another.
            wanted = await client.post("/translate", json=WISH, headers=ada)
            assert wanted.status_code == (200 if with_keys else 429)

    asyncio.run(check())


def test_files_of_the_page_are_answered_to_a_class_behind_one_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "How-iWOvqv2u.js").write_text("")
    monkeypatch.setattr("dragoman.server.app.WEB", tmp_path)
    slow: list[object] = []

    async def slowed(service: Service) -> None:
        slow.append(service)

    monkeypatch.setattr(Service, "slow_down", slowed)

    async def check() -> None:
        limits = LimitSettings(burst=3, requests_per_minute=1)
        async with client_of(settings=ServeSettings(limits=limits)) as client:
            answers = [await client.get("/assets/How-iWOvqv2u.js") for _ in range(8)]
            assert [answer.status_code for answer in answers] == [200] * 8
            assert len(slow) == 5
            # They take nothing from what the address may ask for, nor from its probes.
            assert (await client.get("/health")).status_code == 200 and len(slow) == 5
            assert (await client.post("/translate", json=WISH)).status_code == 200

    asyncio.run(check())


def test_a_damaged_run_does_not_tell_where_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / "secret-place"
    folder.mkdir()
    untrained_run(folder, "model.model_dim=16", "model.ffn_dim=16")
    settings = ServeSettings()
    served = open_run(Run.open(folder), settings, "tiny")

    async def check() -> None:
        async with client_of(served, settings=settings) as client:
            wrong = await client.post("/v1/figures", json={"name": "scale", "values": {"x": 1}})
            assert wrong.status_code == 400 and "slider" in wrong.json()["error"]
            (folder / "recipe.toml").write_text("broken = ")
            (folder / "metrics.jsonl").write_text("broken\n")
            for answer in (
                await client.post("/v1/figures", json={"name": "timeline"}),
                await client.get("/v1/runs/tiny"),
            ):
                assert answer.status_code == 500 and "log" in answer.json()["error"]
                assert "secret" not in answer.text

    asyncio.run(check())


def test_half_characters_in_files_of_a_run_are_told_as_unreadable(tmp_path: Path) -> None:
    """JSON may name them ("\\ud800"), and no answer can be written with one."""
    half = '"Fo\\ud83do"'
    folder = untrained_run(
        tmp_path, "model.model_dim=16", "model.ffn_dim=16", recipe_name="demo-labels"
    )
    written = (folder / "labels.json").read_text()
    (folder / "labels.json").write_text(written.replace('"food"', half))
    sample = f'{{"source": {half}, "translation": {half}, "reference": {half}}}'
    (folder / "scores.json").write_text(f'{{"samples": [{sample}]}}')
    settings = ServeSettings()
    served = open_run(Run.open(folder), settings, "tiny")

    async def check() -> None:
        async with client_of(served, settings=settings) as client:
            labelled = await client.post("/v1/classify", json={"text": "The dog.", "why": True})
            for answer in (
                await client.get("/v1/info"),
                await client.get("/v1/runs/tiny"),
                labelled,
            ):
                assert answer.status_code == 200, answer.text
            assert "Fo\ufffdo" in labelled.text

    asyncio.run(check())


def test_long_work_is_done_in_turn_and_not_for_those_who_left() -> None:
    begun: list[str] = []
    gate = threading.Event()

    def work(name: str) -> Any:
        def do() -> str:
            begun.append(name)
            gate.wait(30)
            return name

        return do

    async def check() -> None:
        turns = FairExecutor("test", of_client=4)
        first = asyncio.ensure_future(turns.do("ada", work("ada 1")))
        await until(lambda: begun == ["ada 1"])
        more = [asyncio.ensure_future(turns.do("ada", work(f"ada {n}"))) for n in (2, 3, 4)]
        other = asyncio.ensure_future(turns.do("bob", work("bob 1")))
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refused:
            await turns.do("ada", work("ada 5"))
        assert refused.value.status == 429
        # One whose work has begun, and one whose has not, go away.
        first.cancel()
        more[1].cancel()
        await asyncio.gather(first, more[1], return_exceptions=True)
        assert begun == ["ada 1"], "nothing runs beside what was begun"
        gate.set()
        assert await asyncio.gather(more[0], more[2], other) == ["ada 2", "ada 4", "bob 1"]
        assert sorted(begun[:3]) == ["ada 1", "ada 2", "bob 1"] and begun[3:] == ["ada 4"]
        turns.close()

    asyncio.run(check())


def test_a_failure_of_long_work_is_its_clients_own() -> None:
    async def check() -> None:
        turns = FairExecutor("test")

        def fail() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await turns.do("ada", fail)
        assert await turns.do("ada", lambda: 3) == 3
        turns.close()

    asyncio.run(check())


def test_figures_wait_in_no_pool_that_texts_are_cut_in(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def slow(*_: Any) -> Any:
        gate.wait(30)
        raise ZeroDivisionError

    monkeypatch.setattr("dragoman.insight.figures.catalogue.make_figure", slow)

    async def check() -> None:
        app = create_app((echo_run(),), ServeSettings(), detector())
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
                abandoned = [
                    asyncio.ensure_future(
                        client.post("/v1/figures", json={"name": "scale", "sentence": str(n)})
                    )
                    for n in range(4)
                ]
                await asyncio.sleep(0.05)
                for one in abandoned:
                    one.cancel()
                names = [thread.name for thread in threading.enumerate()]
                assert sum(name.startswith("figures") for name in names) == 1
                long = {**WISH, "q": "Das Brot. " * 300}
                async with asyncio.timeout(20):
                    assert (await client.post("/translate", json=long)).status_code == 200
                gate.set()
                await asyncio.gather(*abandoned, return_exceptions=True)

    asyncio.run(check())
