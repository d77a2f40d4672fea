"""Names of the server, and what pages of other sites make a browser send."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving_echo import at, client_of, server_process

from dragoman.base.errors import RecipeError
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings, parse_settings

WISH = {"q": "Das Brot", "source": "en", "target": "de"}
FORM = "application/x-www-form-urlencoded"
DEPLOY = Path(__file__).parents[2] / "deploy"


def status_of(host: str, settings: ServeSettings, path: str = "/v1/info") -> tuple[int, Any]:
    """What a server says to a request for a host: the status and the body."""

    async def asked() -> tuple[int, Any]:
        async with client_of(settings=settings) as client:
            answer = await client.get(path, headers={"host": host})
            return answer.status_code, answer.json()

    return asyncio.run(asked())


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.0.0.1:5050", "192.168.1.20:5050", "[::1]:5050", "[fe80::1]", "localhost",
        "LocalHost:5050", "dragoman.localhost:5050", "localhost.", "mybox.local:5050",
        "translate.example.org", "a.names.example.org:443", "",
    ],
)  # fmt: skip
def test_the_servers_own_names(host: str) -> None:
    """Addresses, localhost, the name in ``host``, and those that are listed."""
    listed = ("Translate.example.org", "*.names.example.org")
    settings = ServeSettings(host="mybox.local", allowed_host=listed)
    assert status_of(host, settings)[0] == 200


@pytest.mark.parametrize("path", ["/", "/docs", "/v1/runs/echo", "/metrics", "/health"])
@pytest.mark.parametrize(
    "host",
    ["evil.example", "myhost.local:5050", "localhost.evil.example", "127.0.0.1.evil.example"],
)
def test_a_name_of_somebody_else_is_refused_and_the_option_named(host: str, path: str) -> None:
    """A site whose name leads to this machine is a part of it to a browser (DNS rebinding)."""
    status, body = status_of(host, ServeSettings(), path)
    name = host.partition(":")[0]
    assert status == 421 and body["code"] == "host_not_allowed" and body["values"] == {"host": name}
    assert f"--allowed-host {name}" in body["error"]
    assert status_of(host, ServeSettings(allowed_host=(name,)))[0] == 200
    assert status_of(host, ServeSettings(allowed_host=("*",)))[0] == 200


def test_a_forwarded_name_changes_nothing() -> None:
    """Of a stranger, nor of a proxy that is trusted: proxies pass on what strangers send."""
    settings = ServeSettings(proxies=("10.0.0.1",))

    async def check() -> None:
        async with client_of(settings=settings) as client, at(client, "10.0.0.1") as proxy:
            for one in (client, proxy):
                said = {"x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
                docs = await one.get("/docs", headers=said)
                assert docs.status_code == 200 and "evil" not in docs.text
                said = {"x-forwarded-host": "127.0.0.1", "host": "evil.example"}
                assert (await one.get("/docs", headers=said)).status_code == 421

    asyncio.run(check())


def test_who_tries_names_is_counted() -> None:
    settings = ServeSettings(limits=LimitSettings(burst=2, requests_per_minute=1))

    async def check() -> None:
        async with client_of(settings=settings) as client:
            evil = {"host": "evil.example"}
            codes = [(await client.get("/health", headers=evil)).status_code for _ in range(3)]
            assert codes == [421, 421, 429]

    asyncio.run(check())


@pytest.mark.parametrize("name", ["https://example.org", "example.org:443", "a b", "", "a.*.org"])
def test_what_is_no_name_is_said_at_the_start(name: str) -> None:
    with pytest.raises(RecipeError, match="without http:// and without a port"):
        parse_settings({"allowed_host": [name]}, [])


OWN, OTHER = "http://127.0.0.1", "https://evil.example"


@pytest.mark.parametrize("kind", [FORM, "text/plain", "text/plain;charset=UTF-8", None])
@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({}, False),
        ({"origin": OWN}, False),
        ({"origin": f"{OWN}:5050"}, False),  # behind a proxy the port is another
        ({"origin": OWN, "sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"origin": "https://friend.example", "sec-fetch-site": "cross-site"}, False),
        ({"origin": OTHER}, True),
        ({"origin": "null"}, True),
        ({"origin": OTHER, "sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"origin": "http://127.0.0.1:3000", "sec-fetch-site": "same-site"}, True),
    ],
)
def test_a_form_of_another_site_is_not_computed(
    kind: str | None, headers: dict[str, str], is_foreign: bool
) -> None:
    """Programs, LibreTranslate's clients among them, send no origin; a friend may send one."""

    async def check() -> None:
        async with client_of(settings=ServeSettings(origins=("https://friend.example",))) as client:
            given = headers if kind is None else {**headers, "content-type": kind}
            body = b"q=Das+Brot&source=en&target=de"
            answer = await client.post("/translate", content=body, headers=given)
            if is_foreign:
                assert answer.status_code == 403 and answer.json()["code"] == "cross_site"
            elif kind == FORM:
                assert answer.json() == {"translatedText": "Das Brot"}
            asked = await client.post("/translate", json=WISH, headers=headers)
            assert asked.status_code == 200, "JSON is what browsers ask for first"

    asyncio.run(check())


def test_a_file_of_another_site_is_not_read() -> None:
    async def check() -> None:
        async with client_of() as client:
            for path in ("/translate_file", "/v1/classify", "/v1/audio/transcriptions"):
                form = {"file": ("a.txt", b"Das Brot")}
                answer = await client.post(path, files=form, headers={"origin": OTHER})
                assert answer.status_code == 403 and "cross_site" in answer.text, path

    asyncio.run(check())


@pytest.mark.parametrize("kind", ["text/plain", FORM, "multipart/form-data; boundary=x", None])
def test_what_takes_json_takes_nothing_else(kind: str | None) -> None:
    body = b'{"text": "Das Brot", "q": "Das Brot", "source": "en", "target": "de"}'

    async def check() -> None:
        async with client_of() as client:
            headers = {} if kind is None else {"content-type": kind}
            for path in ("/v1/translate", "/v1/look", "/v1/figures", "/v1/classify"):
                if path == "/v1/classify" and kind and kind.startswith("multipart"):
                    continue
                answer = await client.post(path, content=body, headers=headers)
                assert answer.status_code == 415, path
                assert "Content-Type: application/json" in answer.json()["error"]
            if kind == "text/plain":
                answer = await client.post("/translate", content=body, headers=headers)
                assert answer.status_code == 415
            for json in ("application/json; charset=utf-8", "application/problem+json"):
                headers = {"content-type": json}
                answer = await client.post("/v1/translate", content=b"{}", headers=headers)
                assert answer.json()["code"] == "missing_field"

    asyncio.run(check())


# ---- what is deployed

PUBLIC = "translate.example.org"


def test_proxies_pass_on_the_name_that_their_server_is_started_with() -> None:
    nginx, caddy, unit = (
        (DEPLOY / name).read_text() for name in ("nginx.conf", "Caddyfile", "dragoman.service")
    )
    passed = re.findall(r"(?:proxy_set_header|header_up) Host (\S+?);?$", nginx + caddy, re.M)
    assert passed == [PUBLIC] * 3 and nginx.count("proxy_pass") == 2
    assert all(f"--allowed-host {PUBLIC}" in text for text in (nginx, caddy, unit))
    assert "--allowed-host" in (DEPLOY / "Dockerfile").read_text()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_behind_nginx(tmp_path: Path) -> None:
    """The configuration in ``deploy``, without TLS and on another port."""
    with (
        server_process('proxies=["127.0.0.1"]', f'allowed_host=["{PUBLIC}"]') as (_, address),
        server_process('proxies=["127.0.0.1"]') as (_, unnamed),
    ):
        with behind_nginx(tmp_path, address) as proxy:
            for host in (PUBLIC, "evil.example", "10.0.0.1"):  # it passes on its own name
                said = {"host": host, "x-forwarded-host": "evil.example"}
                docs = httpx.get(f"{proxy}/docs", headers=said)
                assert docs.status_code == 200 and f"{PUBLIC}/translate" in docs.text
                assert "evil" not in docs.text
            own = {"host": PUBLIC, "origin": f"https://{PUBLIC}"}
            form = {"q": "Das Brot", "source": "en", "target": "de"}
            answer = httpx.post(f"{proxy}/translate", data=form, headers=own)
            assert answer.json() == {"translatedText": "Das Brot"}
            foreign = {**own, "origin": OTHER}
            assert httpx.post(f"{proxy}/translate", data=form, headers=foreign).status_code == 403
            assert httpx.get(f"{proxy}/metrics").status_code == 404
            direct = httpx.get(f"{address}/docs", headers={"host": "evil.example"})
            assert direct.status_code == 421
        with behind_nginx(tmp_path, unnamed) as proxy:
            refused = httpx.get(f"{proxy}/v1/info")
            assert refused.status_code == 421 and f"--allowed-host {PUBLIC}" in refused.text


@contextmanager
def behind_nginx(folder: Path, address: str) -> Iterator[str]:
    """The address of an nginx in front of a server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    written = (DEPLOY / "nginx.conf").read_text()
    upstream, _, tls = re.split(r"^(?=server \{)", written, flags=re.MULTILINE)
    tls = re.sub(r"\n    (listen|ssl)[^\n]*", "", tls)
    tls = tls.replace("server {", f"server {{ listen 127.0.0.1:{port};", 1)
    upstream = upstream.replace("127.0.0.1:5050", address.removeprefix("http://"))
    places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    temporary = "".join(f"{one}_temp_path {folder}/{one};" for one in places)
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; daemon off; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{upstream}\n{tls} }}"
    )
    nginx = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        for _ in range(100):
            with suppress(httpx.ConnectError):
                httpx.get(f"http://127.0.0.1:{port}/metrics")
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        nginx.terminate()
        nginx.wait(20)
