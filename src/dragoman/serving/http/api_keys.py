"""The keys that may use the server, and whose limits they bring."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from pydantic import ValidationError

from dragoman.base.errors import DataError, RunError
from dragoman.base.reading import read_bytes
from dragoman.serving.http.limits import Client, LimitSettings
from dragoman.serving.http.refusals import Refusal

KEY = "key:"
"""What the names of clients with a key begin with; those of others are addresses."""

MAX_KEY_BYTES = 10_000_000
"""Of a file of API keys."""

OF_ONE_HOLDER = ("characters", "items", "requests_per_minute", "burst", "concurrent")
"""Limits that the file of keys may set for the holder of one."""


class ApiKeys:
    """The keys that may use the server; only their hashes are kept."""

    def __init__(self, keys: dict[str, Client]) -> None:
        """``keys``: key -> its holder. Empty: no key is needed."""
        self._holders = {_digest(key): client for key, client in keys.items()}
        self._limits = {client.name: client.limits for client in keys.values()}

    @classmethod
    def load(cls, path: Path | None, limits: LimitSettings) -> ApiKeys:
        """Read a file with a key on each line and, if wanted, its holder's name and the limits
        that are the holder's own (``requests_per_minute=1200``); # comments. No file: no keys.

        Errors: ``DataError`` for a file that cannot be read (a pipe, which would be waited for, is
        none), holds no key, one too short, or a limit that is none.
        """
        if path is None:
            return cls({})
        try:
            lines = read_bytes(path, MAX_KEY_BYTES).decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError(f"cannot read the API keys in {path}: {error}") from error
        except RunError as error:
            raise DataError(f"API keys: {error}") from error
        keys: dict[str, Client] = {}
        named: dict[str, LimitSettings | None] = {}
        for number, line in enumerate(lines, 1):
            key, *words = line.split("#")[0].split() or [""]
            if not key:
                continue
            where = f"{path}, line {number}"
            if len(key) < 16:
                raise DataError(
                    f"{where}: a key of {len(key)} characters can be guessed; "
                    "take 16 or more, for example from: openssl rand -hex 16"
                )
            own = _own_limits([word for word in words if "=" in word], limits, where)
            name = " ".join(word for word in words if "=" not in word) or f"key on line {number}"
            if named.setdefault(name, own) != own:
                raise DataError(
                    f"{where}: the keys of {name} share one account, so give each the same limits"
                )
            keys[key] = Client(f"{KEY}{name}", own)
        if not keys:
            raise DataError(f"{path} holds no API key: write one on each line")
        return cls(keys)

    @property
    def required(self) -> bool:
        return bool(self._holders)

    def client(self, given: str | None, address: str) -> Client:
        """Who asks. Raises Refusal 403 without a valid key where one is needed."""
        if not self._holders:
            return Client(address)
        if not given:
            raise Refusal(
                "key_needed",
                'This server needs an API key: send it as "api_key" in the request or in the '
                "header Authorization: Bearer KEY. Its operator gives out keys.",
            )
        client = self._holders.get(_digest(given))
        if client is None:
            raise Refusal(
                "key_unknown", "This API key is not known here. Ask the server's operator for one."
            )
        return client

    def limits_of(self, name: str) -> LimitSettings | None:
        """The limits that a client's key brings."""
        return self._limits.get(name)


def _own_limits(words: list[str], limits: LimitSettings, where: str) -> LimitSettings | None:
    if not words:
        return None
    values = dict(word.split("=", 1) for word in words)
    for name in values.keys() - set(OF_ONE_HOLDER):
        raise DataError(
            f"{where}: {name} is no limit of one holder; there are: {', '.join(OF_ONE_HOLDER)}"
        )
    try:
        return LimitSettings.model_validate({**limits.model_dump(), **values})
    except ValidationError as error:
        problem = error.errors()[0]
        raise DataError(
            f"{where}: {problem['loc'][0]}: {problem['msg']} (given: {problem['input']!r})"
        ) from None


_BEARER = re.compile(r"bearer\s+(\S+)\s*$", re.IGNORECASE)


def key_in_header(authorization: str | None) -> str | None:
    """The key of a header ``Authorization: Bearer KEY``."""
    found = _BEARER.match(authorization or "")
    return found[1] if found else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
