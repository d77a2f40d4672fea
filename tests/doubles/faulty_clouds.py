"""Google's and Azure's stores as far as this program uses them, written by hand, on this machine,
and failing as ``faulty_s3.py`` does. Not a test: tests import it.

Google: the XML interface (https://cloud.google.com/storage/docs/xml-api/overview). Azure: the Blob
service (https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api). Keys are not
checked; a request to Azure without a signature is refused.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import md5
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

from faulty_s3 import BUCKET, FaultySwitch
from werkzeug.serving import make_server

ACCOUNT = "account"
OF_PAGE = 60
"""Names in one answer to a list; both services give up to thousands."""


class Answer(NamedTuple):
    """What a store says."""

    status: str
    headers: dict[str, str]
    body: bytes = b""


class Kept(NamedTuple):
    """One object."""

    data: bytes
    written: datetime

    @property
    def headers(self) -> dict[str, str]:
        return {"ETag": self.tag, "Last-Modified": format_datetime(self.written, usegmt=True)}

    @property
    def tag(self) -> str:
        return f'"{md5(self.data).hexdigest()}"'


class FakeCloud(ABC):
    """A WSGI program with one bucket, in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, Kept] = {}
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        name = environ["PATH_INFO"].encode("latin-1").decode().removeprefix(self.root)[1:]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        query = {key: found[0] for key, found in parse_qs(environ["QUERY_STRING"]).items()}
        with self._lock:
            answer = self.answer(environ, name, query, body)
        length = {"Content-Length": str(len(answer.body))}
        start(answer.status, [*(length | answer.headers).items()])
        return [answer.body]

    root: str
    """The path before the name of an object."""
    exists: str
    """What a store says to a second conditional write."""

    def answer(
        self, environ: dict[str, Any], name: str, query: dict[str, str], body: bytes
    ) -> Answer:
        method = environ["REQUEST_METHOD"]
        if not name:
            return self.of_bucket(method, query, body)
        if method == "PUT":
            if name in self.objects and self.is_create(environ):
                return Answer(self.exists, {})
            self.objects[name] = Kept(body, datetime.now(UTC).replace(microsecond=0))
            return Answer("201 Created", self.objects[name].headers)
        kept = self.objects.get(name)
        if kept is None:
            return Answer("404 Not Found", {})
        if method == "DELETE":
            del self.objects[name]
            return Answer("204 No Content", {})
        if method == "HEAD":
            return Answer("200 OK", {**kept.headers, "Content-Length": str(len(kept.data))})
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", environ.get("HTTP_RANGE", ""))
        if wanted is None:
            return Answer("200 OK", kept.headers, kept.data)
        first, last = int(wanted[1]), min(int(wanted[2]), len(kept.data) - 1)
        told = {"Content-Range": f"bytes {first}-{last}/{len(kept.data)}"}
        return Answer("206 Partial Content", kept.headers | told, kept.data[first : last + 1])

    def page(self, prefix: str, after: str, first: str = "") -> tuple[list[tuple[str, Kept]], str]:
        """Some of the objects below a prefix, behind ``after`` and from ``first`` on, and the last
        of their names if there are more."""
        found = sorted(one for one in self.objects.items() if one[0].startswith(prefix))
        found = [one for one in found if one[0] > after and one[0] >= first]
        return found[:OF_PAGE], found[OF_PAGE - 1][0] if len(found) > OF_PAGE else ""

    @abstractmethod
    def is_create(self, environ: dict[str, Any]) -> bool:
        """Whether a write wants to be the first of its name."""

    @abstractmethod
    def of_bucket(self, method: str, query: dict[str, str], body: bytes) -> Answer:
        """A request to the bucket, not to an object in it."""


class FakeGoogle(FakeCloud):
    root = f"/{BUCKET}"
    exists = "412 Precondition Failed"

    def is_create(self, environ: dict[str, Any]) -> bool:
        return environ.get("HTTP_X_GOOG_IF_GENERATION_MATCH") == "0"

    def of_bucket(self, method: str, query: dict[str, str], body: bytes) -> Answer:
        before = query.get("continuation-token", query.get("start-after", ""))
        found, after = self.page(query.get("prefix", ""), before)
        rows = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(kept.data)}</Size>"
            f"<LastModified>{kept.written.isoformat()}</LastModified>"
            f"<ETag>{escape(kept.tag)}</ETag></Contents>"
            for name, kept in found
        )
        more = after and f"<NextContinuationToken>{escape(after)}</NextContinuationToken>"
        return _xml(f"<ListBucketResult>{rows}{more}</ListBucketResult>")


class FakeAzure(FakeCloud):
    root = f"/{ACCOUNT}/{BUCKET}"
    exists = "409 The specified blob already exists"

    def answer(
        self, environ: dict[str, Any], name: str, query: dict[str, str], body: bytes
    ) -> Answer:
        if not environ.get("HTTP_AUTHORIZATION", "").startswith(f"SharedKey {ACCOUNT}:"):
            return Answer("403 Server failed to authenticate the request", {})
        return super().answer(environ, name, query, body)

    def is_create(self, environ: dict[str, Any]) -> bool:
        return environ.get("HTTP_IF_NONE_MATCH") == "*"

    def of_bucket(self, method: str, query: dict[str, str], body: bytes) -> Answer:
        if query["comp"] == "batch":
            return self._removed(body.decode())
        wanted = [query.get(key, "") for key in ("prefix", "marker", "startFrom")]
        found, after = self.page(*wanted)
        rows = "".join(
            f"<Blob><Name>{escape(name)}</Name><Properties>"
            f"<Last-Modified>{kept.headers['Last-Modified']}</Last-Modified>"
            f"<Etag>{escape(kept.tag)}</Etag><Content-Length>{len(kept.data)}</Content-Length>"
            "<Content-Type>application/octet-stream</Content-Type></Properties></Blob>"
            for name, kept in found
        )
        more = f"<NextMarker>{escape(after)}</NextMarker>"
        return _xml(f"<EnumerationResults><Blobs>{rows}</Blobs>{more}</EnumerationResults>")

    def _removed(self, body: str) -> Answer:
        """What a batch of removals says of each."""
        told = ""
        for number, path in enumerate(re.findall(r"^DELETE (\S+) HTTP", body, re.MULTILINE)):
            gone = self.objects.pop(unquote(path).partition(f"/{BUCKET}/")[2], None)
            status = "404 The specified blob does not exist" if gone is None else "202 Accepted"
            told += (
                f"--answers\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
                f"HTTP/1.1 {status}\r\nx-ms-request-id: {number}\r\n\r\n\r\n"
            )
        kind = {"Content-Type": "multipart/mixed; boundary=answers"}
        return Answer("202 Accepted", kind, f"{told}--answers--\r\n".encode())


def _xml(text: str) -> Answer:
    return Answer("200 OK", {"Content-Type": "application/xml"}, text.encode())


@contextmanager
def cloud(scheme: str, monkeypatch: Any, folder: Path) -> Iterator[FaultySwitch]:
    """A store that is empty, for addresses ``gs://bucket`` or ``az://bucket``; obstore finds it by
    the environment, in other processes too. ``folder``: where a key may be written."""
    switch = FaultySwitch(FakeGoogle() if scheme == "gs" else FakeAzure())
    server = make_server("127.0.0.1", 0, switch, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    if scheme == "gs":
        key = {"gcs_base_url": address, "disable_oauth": True}
        empty = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        (folder / "key.json").write_text(json.dumps(key | empty))
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(folder / "key.json"))
    else:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"key").decode())
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{address}/{ACCOUNT}")
    try:
        yield switch
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
