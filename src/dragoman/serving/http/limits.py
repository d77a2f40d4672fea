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
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pydantic import Field, ValidationError

from dragoman.errors import DataError, RunError
from dragoman.reading import read_bytes
from dragoman.serving.http.refusals import Refusal
from dragoman.settings import Settings

KEY = "key:"
"""What the names of clients with a key begin with; those of others are addresses."""

MAX_KEY_BYTES = 10_000_000
"""Of a file of API keys."""

BACKLOG = 2048
"""Connections that may wait in the system until they are taken."""

REMEMBERED_CLIENTS = 10_000
"""Clients whose recent rate is kept; the one unseen for longest is forgotten first."""


class LimitSettings(Settings):
    """Limits of the server. The defaults suit a machine that is open to the public."""

    characters: int = Field(default=20_000, ge=1, le=1_000_000_000)
    """The total number of characters of text in one request."""
    items: int = Field(default=256, ge=1, le=1_000_000)
    """The number of texts, pictures or recordings in one request."""
    body_bytes: int = Field(default=1_000_000, ge=1, le=1_000_000_000)
    """The size of one request body, in bytes."""
    values: int = Field(default=20_000, ge=64, le=1_000_000_000)
    """The number of values in the lists and objects of one JSON request."""
    requests_per_minute: int = Field(default=600, ge=1, le=1_000_000_000)
    """The number of requests per minute from one client. Typing into the page sends at most three
    or four per second."""
    burst: int = Field(default=60, ge=1, le=1_000_000_000)
    """The number of requests that one client may send at once before the rate limit applies."""
    concurrent: int = Field(default=16, ge=1, le=1_000_000)
    """The number of requests from one client that are processed at the same time."""
    waiting: int = Field(default=4096, ge=1, le=1_000_000_000)
    """The number of sentences, from all clients, that may be queued for one run."""
    seconds: float = Field(default=60.0, gt=0, le=86_400)
    """The time limit, in seconds, for receiving one request, and again for answering it, including
    the time in the queue."""
    beam: int = Field(default=16, ge=1, le=1024)
    """The largest beam, and the largest number of translations of one text, that a request may
    set."""
    translations: int = Field(default=4096, ge=1, le=10_000_000)
    """The number of translations in one response: sentences times translations per sentence."""
    token_steps: int = Field(default=2_000_000, ge=1, le=10**15)
    """The maximum cost of one request, estimated before it is processed (docs/serve.md)."""
    written: int = Field(default=1000, ge=1, le=1_000_000)
    """The number of tokens that a language model generates in one response."""
    file_bytes: int = Field(default=10_000_000, ge=1, le=1_000_000_000)
    """The size of one document, in bytes."""
    file_characters: int = Field(default=1_000_000, ge=1, le=1_000_000_000)
    """The number of characters of text in one document."""
    file_seconds: float = Field(default=3600.0, gt=0, le=86_400)
    """The time limit, in seconds, for translating one document or transcribing one recording,
    including the time in the queue."""
    files: int = Field(default=2, ge=1, le=1_000)
    """The number of documents from one client that are translated at the same time."""
    files_kept: int = Field(default=200_000_000, ge=1, le=1_000_000_000_000)
    """The total size, in bytes, of translated documents that are kept in memory until they are
    downloaded, for ten minutes at most."""
    upload_bytes: int = Field(default=10_000_000, ge=1, le=1_000_000_000)
    """The total size, in bytes, of the pictures or recordings in one request."""
    recording_bytes: int = Field(default=26_214_400, ge=1, le=1_000_000_000)
    """The size, in bytes, of one recording to transcribe."""
    uploads_held: int = Field(default=200_000_000, ge=1, le=1_000_000_000_000)
    """The total size, in bytes, of requests larger than body_bytes that are in memory at the same
    time; a quarter of it for one client."""
    pixels: int = Field(default=25_000_000, ge=1, le=1_000_000_000)
    """The total number of pixels of the pictures in one request, checked before they are decoded,
    and of those that one request has painted."""
    sound_seconds: float = Field(default=600.0, gt=0, le=86_400)
    """The total length, in seconds, of the recordings in one request, checked before they are
    decoded."""
    connections: int = Field(default=2048, ge=1, le=1_000_000)
    """The total number of connections; fewer if the system allows few open files."""
    connections_each: int = Field(default=512, ge=1, le=1_000_000)
    """The number of connections from one address; at most half of the total."""
    head_seconds: float = Field(default=10.0, gt=0, le=86_400)
    """The time limit, in seconds, for receiving the headers of a request."""
    idle_seconds: float = Field(default=30.0, gt=0, le=86_400)
    """The number of seconds that a connection may stay open without a request."""
    reading_rate: int = Field(default=2_000, ge=0, le=1_000_000_000)
    """The number of bytes per second that a client must read of a response."""
    unread_bytes: int = Field(default=64_000_000, ge=1, le=1_000_000_000_000)
    """The number of bytes of responses that one address may leave unread; a quarter of the limit
    for all addresses together."""


MAX_MARKS = 100
"""Combining marks in a row. Unicode's normalisation sorts them in quadratic time, and 30 are enough
for any writing (Unicode Standard Annex 15, section 13)."""

OF_ONE_HOLDER = ("characters", "items", "requests_per_minute", "burst", "concurrent")
"""Limits that the file of keys may set for the holder of one."""


@dataclass(frozen=True)
class Client:
    """Who asks: ``name`` keys the limits and the fair queue."""

    name: str
    limits: LimitSettings | None = None
    """The client's own; the server's if there are none."""


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
        digest = _digest(given)
        for known, client in self._holders.items():
            if hmac.compare_digest(known, digest):
                return client
        raise Refusal(
            "key_unknown", "This API key is not known here. Ask the server's operator for one."
        )

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
        most = (client.limits or self._settings).concurrent
        if under_way >= most:
            raise Refusal(
                "too_many_at_once",
                f"You have {under_way} requests under way; this server takes "
                f"{most} at a time from one client. Wait for one to finish, "
                "or send several texts in one request.",
                retry_after=1,
                requests=under_way,
                most=most,
            )
        self.take_one(client)
        self._under_way[client.name] = under_way + 1
        try:
            yield
        finally:
            left = self._under_way[client.name] - 1
            if left:
                self._under_way[client.name] = left
            else:
                del self._under_way[client.name]

    def take_one(self, client: Client) -> None:
        """Count one request of a client. Raises Refusal 429."""
        self._take(client, 1)

    def check_rate(self, client: Client) -> None:
        """Whether a request would be too many, without counting one. Raises Refusal 429."""
        self._take(client, 0)

    def check_texts(self, texts: list[str], own: LimitSettings | None = None) -> None:
        """Raises Refusal 400 for too many texts or characters. ``own``: the client's limits."""
        limits = own or self._settings
        if len(texts) > limits.items:
            raise Refusal(
                "too_many_texts",
                f"The request has {len(texts):,} texts; this server takes {limits.items:,} at "
                "once. Send them in several requests.",
                texts=len(texts),
                most=limits.items,
            )
        characters = sum(map(len, texts))
        if characters > limits.characters:
            raise Refusal(
                "text_too_long",
                f"The request has {characters:,} characters of text; this server takes "
                f"{limits.characters:,} at once. Send it in parts.",
                characters=characters,
                most=limits.characters,
            )
        self.check_marks(texts)

    def check_marks(self, texts: Sequence[str]) -> None:
        """Raises Refusal 400 for too many combining marks in a row."""
        marks = max(map(_marks, texts), default=0)
        if marks > MAX_MARKS:
            raise Refusal(
                "too_many_marks",
                f"The request has {marks:,} combining marks in a row; this server takes "
                f"{MAX_MARKS}. No writing needs so many: leave them out.",
                marks=marks,
                most=MAX_MARKS,
            )

    def _take(self, client: Client, count: int) -> None:
        """From a bucket of ``burst`` requests, filled at the allowed rate."""
        limits = client.limits or self._settings
        now, per_second = self._clock(), limits.requests_per_minute / 60
        full = float(limits.burst)
        left, seen = self._buckets.pop(client.name, (full, now))
        left = min(full, left + (now - seen) * per_second)
        allowed = left >= 1
        self._buckets[client.name] = (left - count if allowed else left, now)
        if len(self._buckets) > REMEMBERED_CLIENTS:
            self._buckets.popitem(last=False)
        if not allowed:
            raise Refusal(
                "too_many_requests",
                f"This server takes {limits.requests_per_minute:,} requests a minute "
                "from one client. Wait a moment, or send several texts in one request.",
                retry_after=math.ceil((1 - left) / per_second),
                most=limits.requests_per_minute,
            )


_BEARER = re.compile(r"bearer\s+(\S+)\s*$", re.IGNORECASE)


def key_in_header(authorization: str | None) -> str | None:
    """The key of a header ``Authorization: Bearer KEY``."""
    found = _BEARER.match(authorization or "")
    return found[1] if found else None


def _marks(text: str) -> int:
    """The most combining marks that stand in a row."""
    if text.isascii():
        return 0
    rows = groupby(text, lambda character: unicodedata.combining(character) > 0)
    return max((sum(1 for _ in row) for is_mark, row in rows if is_mark), default=0)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
