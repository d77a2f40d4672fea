"""The settings of a server, and its listening socket. Importing this module is quick, so the server
can report at once that a port is in use."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field, ValidationError, field_validator

from dragoman.base.errors import DragomanError, RecipeError
from dragoman.engine.settings import EngineSettings
from dragoman.runs.recipe.recipe_text import explain, merge
from dragoman.serving.http.clients import Networks
from dragoman.serving.http.limits import BACKLOG, LimitSettings
from dragoman.serving.operate.log import LogKind

_NAME = re.compile(r"\*|(\*\.)?[\w-]+(\.[\w-]+)*", re.ASCII)
"""A host name, or a pattern for several."""


class ServeSettings(EngineSettings):
    """Settings of ``dragoman serve``. By default, only this machine can connect."""

    host: str = "127.0.0.1"
    """The address to listen on. 0.0.0.0 accepts connections from other machines."""
    port: int = Field(default=5050, ge=0, le=65535)
    """The port to listen on. 0: any free port."""
    allowed_host: tuple[str, ...] = ()
    """A name by which clients may call the server, such as "translate.example.org", besides
    localhost, IP addresses and the name in host. "*.example.org" allows all names below
    example.org, and "*" allows every name. May be repeated."""
    limits: LimitSettings = LimitSettings()
    """The limits of requests for each client."""
    api_keys: Path | None = None
    """A file of API keys, one per line. Without it, no key is needed."""
    origins: tuple[str, ...] = ()
    """Origins whose pages may call the API (CORS), such as "https://example.org"."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies that are trusted to report the client's address."""
    operators: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses or networks that may read /metrics. "*" allows everyone."""
    access_log: bool = False
    """Log the client, endpoint and duration of every request; its text is never logged."""
    log: LogKind = "lines"
    """The log format. lines: readable lines; json: one JSON object per line."""
    look_longest: int = Field(default=800, ge=2, le=100_000)
    """The maximum number of source tokens in a text for the view Look. Memory use grows with its
    square."""
    grace_seconds: float = Field(default=30.0, ge=0, le=86_400)
    """The number of seconds that a shutdown waits for accepted requests."""
    page: bool = True
    """Serve the web page. Off: only the API."""

    @field_validator("allowed_host")
    @classmethod
    def _are_names(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(word.lower().rstrip(".") for word in words)
        if wrong := [word for word in names if not _NAME.fullmatch(word)]:
            raise ValueError(
                f"{wrong[0]!r} is not a host name. Use a name such as translate.example.org, "
                "without http:// and without a port"
            )
        return names

    @field_validator("proxies", "operators")
    @classmethod
    def _are_networks(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        Networks(words)
        return words


def parse_settings(values: Mapping[str, object], changes: Sequence[str]) -> ServeSettings:
    """Make the settings from ``values``, with each of the ``changes`` (``section.key=value``)
    merged in. The value of a change is TOML or, if it is not valid TOML, a plain string.

    Errors: ``RecipeError``, which names the key and the allowed values.
    """
    merged = {key: value for key, value in values.items() if value is not None}
    for change in changes:
        merged = merge(merged, change)
    try:
        return ServeSettings.model_validate(merged)
    except ValidationError as error:
        raise RecipeError(explain(error, ServeSettings, "settings of the server")) from None


def bind(settings: ServeSettings) -> socket.socket:
    """Bind a socket to the address, but do not listen yet: until the runs are loaded, the system
    refuses connections at once. Errors: ``DragomanError``, which says what to change."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only if the protocol is given; otherwise
    # every answer waits some 40 ms for the client's acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.set_inheritable(False)
    with _explain_errors(listener, settings):
        listener.bind((settings.host, settings.port))
    return listener


def listen(listener: socket.socket, settings: ServeSettings) -> None:
    """Accept connections from now on. Errors: ``DragomanError`` if the port was taken."""
    with _explain_errors(listener, settings):
        listener.listen(BACKLOG)


@contextmanager
def _explain_errors(listener: socket.socket, settings: ServeSettings) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        listener.close()
        raise DragomanError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}. Set "
            "another with --port (0: any free port) or --host."
        ) from None
