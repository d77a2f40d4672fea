"""What a server is set up with: where it listens, who may use it, how it runs its models."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError, field_validator

from dragoman.engine.settings import EngineSettings
from dragoman.errors import RecipeError
from dragoman.serving.http.addresses import Networks
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.log import LogKind
from dragoman.shortened import shortened

_NAME = re.compile(r"\*|(\*\.)?[\w-]+(\.[\w-]+)*", re.ASCII)
"""A name of a host, or what stands for several."""
_SHOWN = 200
"""Characters of a wrong value."""


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
    """Limits for each client."""
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
                f"{wrong[0]!r} is no name: give one such as translate.example.org, without http:// "
                "and without a port"
            )
        return names

    @field_validator("proxies", "operators")
    @classmethod
    def _are_networks(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        Networks(words)
        return words


def parse_settings(values: dict[str, object], changes: Sequence[str]) -> ServeSettings:
    """Settings with ``key=value`` merged in; values are TOML, or else plain strings.

    Errors: ``RecipeError`` naming the key and what is allowed.
    """
    merged = {key: value for key, value in values.items() if value is not None}
    for change in changes:
        key, equals, raw = change.partition("=")
        if not equals:
            raise RecipeError(f"--set {change!r} is not of the form key=value")
        try:
            value = tomllib.loads(f"value = {raw}")["value"]
        except (ValueError, RecursionError):
            value = raw
        section, dot, last = key.strip().rpartition(".")
        if not dot:
            merged[last] = value
            continue
        inner = merged.setdefault(section, {})
        if not isinstance(inner, dict):
            raise RecipeError(f"--set {change}: {section!r} is a value, not a section")
        inner[last] = value
    try:
        return ServeSettings.model_validate(merged)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        known = [*ServeSettings.model_fields]
        known += [f"limits.{name}" for name in LimitSettings.model_fields]
        if problem["type"] == "extra_forbidden":
            near = difflib.get_close_matches(where, known, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else "known are " + ", ".join(known)
            raise RecipeError(f"unknown setting {where!r}; {hint}") from None
        raise RecipeError(
            f"{where}: {problem['msg']} (given: {_given(problem['input'])})"
        ) from None


def _given(value: object) -> str:
    try:
        return shortened(repr(value), _SHOWN)
    except RecursionError:
        return "more tables or lists within each other than can be shown"
