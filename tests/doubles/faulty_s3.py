"""An S3 server of this machine (moto's) that fails as object stores do. Not a test: tests import
it."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import pytest
from werkzeug.serving import make_server

# A module of tests that imports this one is skipped where they are missing.
pytest.importorskip("obstore", reason="obstore is not installed")
moto = pytest.importorskip("moto.server", reason="moto is not installed")

BUCKET = "bucket"


class FaultySwitch:
    """A WSGI program before another. ``every``: fault -> each how many requests it strikes.

    refuse: 503 before anything is done; lose: the request is done, and its answer is lost; short:
    half of the bytes that were asked for; slow: half a second.
    """

    def __init__(self, program: Any) -> None:
        self._program = program
        self._numbers = itertools.count(1)
        self.every: dict[str, int] = {}
        self.denies = False
        self.injected: Counter[str] = Counter()
        self.put: Counter[str] = Counter()
        """Parts -> how many writes of each were accepted."""
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            number = next(self._numbers)
            fault = next((name for name, n in self.every.items() if not number % n), "")
            if fault:
                self.injected[fault] += 1
        if self.denies:
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>ExpiredToken</Code><Message>expired</Message></Error>"]
        if fault == "slow":
            time.sleep(0.5)
        if fault == "refuse":
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code></Error>"]
        told: list[Any] = []

        def keep(status: str, headers: list[tuple[str, str]], *more: Any) -> None:
            told[:] = [status, headers]

        answer = b"".join(self._program(environ, keep))
        status, headers = told
        if environ["REQUEST_METHOD"] == "PUT" and status.startswith("20"):
            with self._lock:
                self.put[environ["PATH_INFO"]] += 1
        if fault == "lose":
            start("500 Internal Server Error", [])
            return [b""]
        if fault == "short" and environ["REQUEST_METHOD"] == "GET" and len(answer) > 1:
            # The length stays as it was announced, and the connection ends before.
            start(status, headers)
            return [answer[: len(answer) // 2]]
        start(status, headers)
        return [answer]


@contextmanager
def s3(monkeypatch: Any) -> Iterator[FaultySwitch]:
    """A server with a bucket that is empty; obstore finds it by the environment, in other
    processes too."""
    switch = FaultySwitch(moto.DomainDispatcherApplication(moto.create_backend_app))
    server = make_server("127.0.0.1", 0, switch, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    try:
        address = os.environ["AWS_ENDPOINT_URL"]
        for method, path in (("POST", "moto-api/reset"), ("PUT", BUCKET)):
            with urlopen(Request(f"{address}/{path}", method=method, data=b"")):
                pass
        yield switch
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
