"""The client's side of a request: its body, its connection, and the web site whose page sent it.

A page of any web site can make the browser of its reader send requests to this server, from the
reader's own address. Two checks in ``Sites`` refuse such requests:

- A web site can point its own name at this machine (DNS rebinding), so that the browser treats this
  server as a part of that site. Therefore, the header Host must contain a name of this server.
- Before a page sends JSON to another site, the browser asks that site for permission (CORS); for
  plain text and forms it does not ask. Therefore, plain text and forms from a page of another site
  are refused.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from python_multipart.multipart import parse_options_header
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from dragoman.base.reading import whole_characters
from dragoman.formats.units.encoding import encoding_named
from dragoman.serving.http.clients import is_address
from dragoman.serving.http.refusals import Refusal

FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data"

SMALL = 4096
"""A body of at most this many bytes is parsed in the event loop, and a larger one in a thread."""

NAMES = 64
"""The largest number of names in one object of a body, and of fields in a form. Real requests have
fewer. Without this limit, a request with a hundred thousand unknown names would block the event
loop while they are listed in an error."""

PARAMETERS = 16
"""The largest number of parameters in one header of a form; real headers have up to three.
Parameters are parsed one by one in the event loop, and a form of a megabyte could contain a million
of them."""

_JSON_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""A pattern for a string in JSON, including a string that is cut off by the end of the body."""

T = TypeVar("T")


async def read_fields(http: Request, max_values: int, *, forms: bool = False) -> dict[str, Any]:
    """Return the fields of a JSON body. With ``forms``, the body may also be a form, or JSON whose
    content type is missing or is that of a form. Raises Refusal for other bodies, or for more than
    ``max_values`` values."""
    kind = media_type(http)
    if not (forms and kind in (FORM, PARTS, "")):
        check_json(kind)
    try:
        if kind == PARTS:
            parser = InMemoryParser(http.headers, http.stream(), max_files=0, max_fields=NAMES)
            form = await parser.parse()
            return {name: value for name, value in form.items() if isinstance(value, str)}
        body = await http.body()
        # A body that begins with a brace is JSON: curl sends everything as a form.
        is_form = kind == FORM and body.lstrip()[:1] != b"{"
        parse = _form if is_form else partial(_parse, max_values=max_values)
        in_loop = len(body) <= SMALL
        fields = parse(body) if in_loop else await asyncio.to_thread(parse, body)
    except MultiPartException as error:
        raise Refusal("bad_form", error.message, problem=error.message) from None
    except (ValueError, RecursionError):
        raise Refusal("bad_body") from None
    if not isinstance(fields, dict):
        raise Refusal("not_an_object")
    return fields


def _form(body: bytes) -> Any:
    """Return the fields of a form. If a name occurs several times, the last value is used."""
    if (fields := body.count(b"&") + 1) > NAMES:
        message = f"The form has {fields:,} fields; no request has more than {NAMES}."
        raise Refusal("bad_form", message, problem=message)
    text = body.decode("utf-8", "replace")
    return dict(parse_qsl(text, keep_blank_values=True))


def _parse(body: bytes, max_values: int) -> Any:
    # The parser holds the interpreter until the last value, and all other threads wait for it.
    if b"\\/" in body:
        # PHP writes slashes with a backslash, and megabytes of base64 may contain millions of them,
        # which the regular expression would process one by one. A body of 13 MB of such slashes,
        # with 20,100 commas, blocked all other threads for 9.7 seconds; now it is 0.14 seconds.
        pair = b"\\\\"  # a backslash itself, which does not begin another escape
        body = pair.join(part.replace(b"\\/", b"/") for part in body.split(pair))
    text = body.decode("utf-8")
    if _values(text) > max_values and (values := _values(_JSON_STRING.sub("", text))) > max_values:
        raise Refusal("too_many_values", values=values, most=max_values)
    value = json.loads(text, object_pairs_hook=_object)
    return whole_characters(value) if b"\\u" in body else value


def _values(text: str) -> int:
    """Return an estimate of the number of values in a JSON text. It counts commas and brackets,
    which strings may contain too, so it may be too high."""
    return text.count(",") + text.count("[") + text.count("{")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > NAMES:
        raise Refusal("too_many_names", names=len(pairs), most=NAMES)
    return dict(pairs)


def check_json(kind: str) -> None:
    """Raises Refusal 415 for a body whose media type is not JSON."""
    if kind != "application/json" and not kind.endswith("+json"):
        raise Refusal("not_json")


def media_type(http: Request) -> str:
    """Return the media type in the header of a request. Raises Refusal 400 for a form whose charset
    is not a character encoding: Python would decode its fields with whatever codec has that name,
    which could take very long."""
    header = http.headers.get("content-type", "")
    kind = header.partition(";")[0].strip().lower()
    if kind == PARTS and (problem := _unreadable(header)):
        raise Refusal("bad_form", problem=problem)
    return kind


def _unreadable(header: str) -> str:
    """Return the reason why a form with this content type is refused, or an empty string if it is
    accepted."""
    if problem := _too_many_parameters(header):
        return problem
    # The parser of forms finds the charset in the same way; any other could be deceived.
    charset = parse_options_header(header)[1].get(b"charset", b"utf-8").decode("latin-1")
    if encoding_named(charset) is None:
        return f"The charset {charset[:40]!r} of the form is unknown; send it in UTF-8"
    return ""


def _too_many_parameters(header: str) -> str:
    count = header.count(";")
    most = f"this server reads {PARAMETERS} parameters of one"
    return f"A header of the form has {count:,} semicolons; {most}" if count > PARAMETERS else ""


class InMemoryParser(MultiPartParser):
    """A parser for forms with files (multipart/form-data) that keeps everything in memory and
    writes nothing to a disk."""

    spool_max_size = 0

    def on_header_end(self) -> None:
        """The framework calls this in the event loop."""
        if problem := _too_many_parameters(self._current_partial_header_value.decode("latin-1")):
            raise MultiPartException(f"{problem}.")
        super().on_header_end()


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client has closed the connection. The body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do ``work``, but cancel it when the client closes the connection: raises
    ClientDisconnect."""
    task = asyncio.ensure_future(work)
    absence = asyncio.ensure_future(wait_for_disconnect(receive))
    try:
        await asyncio.wait({task, absence}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        for pending in (task, absence):
            if not pending.done():
                pending.cancel()
        await asyncio.gather(task, absence, return_exceptions=True)


UNASKED = ("", "text/plain", FORM, PARTS)
"""The content types that browsers send to another site without asking it for permission
(https://fetch.spec.whatwg.org, section 2.2.2). The empty string stands for a missing header."""


class Sites:
    """The server's own names, and the web sites whose pages may use it."""

    def __init__(self, host: str, allowed: Sequence[str], origins: Sequence[str]) -> None:
        """``host``: the name or address on which the server listens. ``allowed``: further names,
        where ``*.example.org`` stands for all names below example.org, and ``*`` for every name.
        ``origins``: the web sites whose pages may send requests to this server."""
        self._names = {host.lower(), "localhost", "*.localhost", *allowed}
        self._origins = set(origins)

    def check(self, http: Request) -> None:
        """Check the name of the server in a request, and the site of the page that sent it. Raises
        Refusal 421 for a name that is not one of the server's, and Refusal 403 for plain text or a
        form that a page of another web site sent."""
        name = _name_of(http.headers.get("host", ""))
        below = [pattern[1:] for pattern in self._names if pattern.startswith("*.")]
        # No web site can redirect an address; HTTP/1.0 has no name.
        is_own = not name or is_address(name) or not self._names.isdisjoint((name, "*"))
        if not is_own and not any(map(name.endswith, below)):
            raise Refusal("host_not_allowed", host=name)
        if http.method == "POST" and media_type(http) in UNASKED and self._is_foreign(http, name):
            raise Refusal("cross_site")

    def _is_foreign(self, http: Request, name: str) -> bool:
        """Return True if a page of another site sent the request. Browsers send the headers
        Sec-Fetch-Site and Origin, and old browsers only Origin; other programs send neither."""
        origin, site = http.headers.get("origin"), http.headers.get("sec-fetch-site")
        if origin in self._origins or "*" in self._origins:
            return False
        if site is not None:
            return site not in ("same-origin", "none")
        return origin is not None and _name_of(origin.partition("://")[2]) != name


def _name_of(host: str) -> str:
    """Return the name or address in a header Host, in lower case and without the port:
    ``Example.org:443`` -> ``example.org``, ``[2001:db8::1]:443`` -> ``2001:db8::1``."""
    host = host.strip().lower()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    return host[:200].rstrip(".")
