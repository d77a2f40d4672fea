"""What one client may ask of the server, and who the client is.

A client is the holder of an API key, or else an address. Every limit answers with a sentence that
names the limit, what was asked, and what to do; the server lives on.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from dragoman.errors import DataError
from dragoman.serving.refusals import Refusal, bad_request, slow_down
from dragoman.settings import Settings

REMEMBERED_CLIENTS = 10_000
"""Clients whose recent rate is kept; the one unseen for longest is forgotten first."""


class LimitSettings(Settings):
    """Limits of the server. The defaults are for a machine that strangers can reach."""

    characters: int = Field(default=20_000, ge=1, le=1_000_000_000)
    """Characters of text in one request, all its items together."""
    items: int = Field(default=256, ge=1, le=1_000_000)
    """Texts in one request."""
    body_bytes: int = Field(default=1_000_000, ge=1, le=1_000_000_000)
    """Bytes of one request, as sent."""
    requests_per_minute: int = Field(default=600, ge=1, le=1_000_000_000)
    """Requests of one client; typing into the page makes three or four a second at most."""
    burst: int = Field(default=60, ge=1, le=1_000_000_000)
    """Requests of one client at once before the rate counts."""
    concurrent: int = Field(default=16, ge=1, le=1_000_000)
    """Requests of one client under way at the same time."""
    waiting: int = Field(default=4096, ge=1, le=1_000_000_000)
    """Sentences of all clients that may wait for one run."""
    seconds: float = Field(default=60.0, gt=0, le=86_400)
    """Seconds that one request may take to arrive, and again to be answered, waiting included."""
    beam: int = Field(default=16, ge=1, le=1024)
    """The widest beam, and the most translations of one text, that a request may ask for."""


@dataclass(frozen=True)
class Client:
    """Who asks: ``name`` keys the limits and the fair queue."""

    name: str


class ApiKeys:
    """The keys that may use the server; only their hashes are kept."""

    def __init__(self, keys: dict[str, str]) -> None:
        """``keys``: key -> name of its holder. Empty: no key is needed."""
        self._holders = {_digest(key): name for key, name in keys.items()}

    @classmethod
    def load(cls, path: Path) -> ApiKeys:
        """Read a file with a key and, if wanted, its holder's name on each line; # comments.

        Errors: ``DataError`` for a file that cannot be read, holds no key, or one too short.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read the API keys in {path}: {error}") from error
        keys: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            key, _, name = line.split("#")[0].strip().partition(" ")
            if not key:
                continue
            if len(key) < 16:
                raise DataError(
                    f"{path}, line {number}: a key of {len(key)} characters can be guessed; "
                    "take 16 or more, for example from: openssl rand -hex 16"
                )
            keys[key] = name.strip() or f"key on line {number}"
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
                403,
                'This server needs an API key: send it as "api_key" in the request or in the '
                "header Authorization: Bearer KEY. Its operator gives out keys.",
            )
        digest = _digest(given)
        for known, name in self._holders.items():
            if hmac.compare_digest(known, digest):
                return Client(f"key:{name}")
        raise Refusal(403, "This API key is not known here. Ask the server's operator for one.")


class Limiter:
    """Counts what each client asks for. Lives in the event loop's thread."""

    def __init__(
        self, settings: LimitSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._under_way: dict[str, int] = {}

    @contextmanager
    def admit(self, client: Client) -> Iterator[None]:
        """One request of a client, for as long as it lasts. Raises Refusal 429."""
        under_way = self._under_way.get(client.name, 0)
        if under_way >= self._settings.concurrent:
            raise slow_down(
                f"You have {under_way} requests under way; this server takes "
                f"{self._settings.concurrent} at a time from one client. Wait for one to finish, "
                "or send several texts in one request.",
                1,
            )
        self._take_one(client)
        self._under_way[client.name] = under_way + 1
        try:
            yield
        finally:
            left = self._under_way[client.name] - 1
            if left:
                self._under_way[client.name] = left
            else:
                del self._under_way[client.name]

    def check_texts(self, texts: list[str]) -> None:
        """Raises Refusal 400 for too many texts or characters."""
        limits = self._settings
        if len(texts) > limits.items:
            raise bad_request(
                f"The request has {len(texts):,} texts; this server takes {limits.items:,} at "
                "once. Send them in several requests."
            )
        characters = sum(map(len, texts))
        if characters > limits.characters:
            raise bad_request(
                f"The request has {characters:,} characters of text; this server takes "
                f"{limits.characters:,} at once. Send it in parts."
            )

    def _take_one(self, client: Client) -> None:
        """A bucket of ``burst`` requests, filled at the allowed rate."""
        now, per_second = self._clock(), self._settings.requests_per_minute / 60
        full = float(self._settings.burst)
        left, seen = self._buckets.pop(client.name, (full, now))
        left = min(full, left + (now - seen) * per_second)
        allowed = left >= 1
        self._buckets[client.name] = (left - 1 if allowed else left, now)
        if len(self._buckets) > REMEMBERED_CLIENTS:
            self._buckets.popitem(last=False)
        if not allowed:
            raise slow_down(
                f"This server takes {self._settings.requests_per_minute:,} requests a minute "
                "from one client. Wait a moment, or send several texts in one request.",
                math.ceil((1 - left) / per_second),
            )


_BEARER = re.compile(r"bearer\s+(\S+)\s*$", re.IGNORECASE)


def key_in_header(authorization: str | None) -> str | None:
    """The key of a header ``Authorization: Bearer KEY``."""
    found = _BEARER.match(authorization or "")
    return found[1] if found else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
