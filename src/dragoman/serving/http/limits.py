"""The limits for each client, the counters of what each client uses, and the units of cost.

A client is the holder of an API key, or an address (``clients.py``). Every refusal states the
limit, the amount that was requested, and what the client can do.

The cost of a request is estimated before the work begins. Its unit is a token step: one token of
one hypothesis, processed once by the int8 kernels. The numbers of texts and characters do not
determine the cost: a request of 1.4 kB with 256 words, each searched with beam 16 and an output of
up to 1,000 tokens, costs four million token steps. Therefore, the maximum cost of each kind of work
is estimated:

    a search     (rows x weight + n best) x the greatest length of the output
    reading      tokens x READING

Here, "rows" is the number of hypotheses that are searched at once, and "weight" is the cost of one
step of one row.

A request whose estimate is above ``limits.token_steps`` is refused, and the message gives the
estimate, the amount of work and the limit. The weights were measured (docs/experiments.md). A wider
model takes longer for each step, but its limit is the same number of steps.
"""

from __future__ import annotations

import math
import time
import unicodedata
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Literal

from pydantic import Field

from dragoman.base.settings import Settings
from dragoman.base.wording import plural
from dragoman.serving.http.refusals import Refusal

BACKLOG = 2048
"""The largest number of connections that wait in the operating system until the server accepts
them."""
Work = Literal["search", "warnings", "look", "blanks", "reasons", "tags", "writing", "files"]
"""The kinds of work that may cost too much. These names are the value ``work`` of a refusal."""

ON_TORCH = 8
"""The cost of a search step of one row on plain torch, in token steps. For the demos, plain torch
takes 50 to 300 microseconds, and the kernels take 4 to 20; with few rows, the ratio is larger."""
LOOKING = 16
"""The cost of a search step of one row on plain torch, with everything that is recorded for the
view Look."""
READING = 4
"""The cost of a token that plain torch reads in a batch, which takes 15 to 200 microseconds."""
SEEING = 4
"""If the answer shows where the model looked, this many times the cost of reading the file is
added. Each layer then keeps the weights of every pair of rows: 1,024 patches take 0.5 seconds
instead of 0.1."""
EXPLAINING = 12
"""The cost of a token that is read and for which the gradient is also computed."""

PIXELS_OF_A_PLACE, SECONDS_OF_A_PLACE = 1_000_000, 60
"""While files are decoded, they occupy one place of their client, and one more for each time that
they contain this many pixels or seconds of sound, which take about a tenth of a second. Work of
more than one place is done in a separate thread."""

COSTLY = 4096
"""A search of at least this many token steps is costly: it occupies its rows for hundreds of steps,
and makes each step of its batch slower (``serving/queue/worker.py``)."""


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
    downloaded, for ten minutes at most. If there is no room left, the oldest document of the client
    with the most bytes is deleted."""
    upload_bytes: int = Field(default=10_000_000, ge=1, le=1_000_000_000)
    """The total size, in bytes, of the pictures or recordings in one request."""
    recording_bytes: int = Field(default=26_214_400, ge=1, le=1_000_000_000)
    """The size, in bytes, of one recording to transcribe."""
    uploads_held: int = Field(default=200_000_000, ge=1, le=1_000_000_000_000)
    """The total size, in bytes, of all requests larger than 65,536 bytes that are in memory at the
    same time; one client may use a quarter of it. If the server needs keys, requests whose header
    has no key share a separate allowance, a quarter as large."""
    pixels: int = Field(default=25_000_000, ge=1, le=1_000_000_000)
    """The total number of pixels of the pictures in one request, checked before they are decoded,
    and of the pictures that one request paints."""
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
    """The number of bytes of responses that one address may leave unread. All addresses together
    may leave four times as many unread."""


REMEMBERED_CLIENTS = 10_000
"""The largest number of clients whose recent rate is remembered. The client that has sent nothing
for the longest time is forgotten first."""

MAX_MARKS = 100
"""The largest number of combining marks in a row. Unicode normalisation sorts them in quadratic
time, and 30 are enough for any writing (Unicode Standard Annex 15, section 13)."""


@dataclass(frozen=True)
class Client:
    """A client. Limits and queues identify it by its ``name``."""

    name: str
    limits: LimitSettings | None = None
    """The limits that the file of keys sets for this client; None if the limits of the server
    apply."""


class Limiter:
    """Counts the requests of each client. Use it only in the event loop."""

    def __init__(
        self, settings: LimitSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._under_way = Counter[str]()

    @contextmanager
    def admit(self, client: Client) -> Iterator[None]:
        """Count a request of a client as being processed while the context lasts. Raises Refusal
        429 if the client has too many such requests, or sends them too often."""
        under_way = self._under_way[client.name]
        most = (client.limits or self._settings).concurrent
        if under_way >= most:
            raise Refusal("too_many_at_once", retry_after=1, requests=under_way, most=most)
        self.take_one(client)
        self._under_way[client.name] += 1
        try:
            yield
        finally:
            self._under_way[client.name] -= 1
            if not self._under_way[client.name]:
                del self._under_way[client.name]

    def take_one(self, client: Client) -> None:
        """Count one request against the rate of a client. Each client has a bucket of ``burst``
        requests, which is refilled at the allowed rate. Raises Refusal 429 if the bucket is
        empty."""
        limits = client.limits or self._settings
        now, per_second = self._clock(), limits.requests_per_minute / 60
        full = float(limits.burst)
        left, seen = self._buckets.pop(client.name, (full, now))
        left = min(full, left + (now - seen) * per_second)
        allowed = left >= 1
        self._buckets[client.name] = (left - 1 if allowed else left, now)
        if len(self._buckets) > REMEMBERED_CLIENTS:
            self._buckets.popitem(last=False)
        if not allowed:
            raise Refusal(
                "too_many_requests",
                retry_after=math.ceil((1 - left) / per_second),
                most=limits.requests_per_minute,
            )

    def give_back(self, client: Client) -> None:
        """Undo ``take_one``, because the request counts for another client instead."""
        if client.name in self._buckets:
            left, seen = self._buckets[client.name]
            self._buckets[client.name] = left + 1, seen


class Places:
    """Counts the places (for uploads, the bytes) that requests for one kind of work occupy, with
    one limit for each client and one for all clients together. Use it only in the event loop."""

    def __init__(self, kind: str, of_client: float = math.inf, of_all: float = math.inf) -> None:
        """``of_client`` and ``of_all``: the largest number of places of one client, and of all
        clients together."""
        self._kind = kind
        self._of_client, self._of_all = of_client, of_all
        self._held: defaultdict[str, list[int]] = defaultdict(list)
        """The places of each request, by client."""

    @property
    def taken(self) -> int:
        return sum(map(sum, self._held.values()))

    @contextmanager
    def occupy(self, client: str, places: int) -> Iterator[None]:
        """Occupy ``places`` for a request while the context lasts. Raises Refusal 429 if too few
        places are left, for the client or for all clients. A request is never refused while no
        other request occupies a place, however many places it needs."""
        own = self._held.get(client, [])
        if own and sum(own) + places > self._of_client:
            raise Refusal(
                "too_many_of_kind",
                f"You have {plural(len(own), 'request')} of this kind under way ({self._kind}), "
                "the most that one client may have. Wait for one to finish.",
                retry_after=1,
                requests=len(own),
                kind=self._kind,
            )
        if self._held and self.taken + places > self._of_all:
            raise Refusal("others_wait", retry_after=2, kind=self._kind)
        self._held[client].append(places)
        try:
            yield
        finally:
            self._held[client].remove(places)
            if not self._held[client]:
                del self._held[client]


def check_marks(texts: Sequence[str]) -> None:
    """Check texts before they are normalised. Raises Refusal 400 for too many combining marks in a
    row."""
    runs = chain.from_iterable(
        groupby(text, lambda character: unicodedata.combining(character) > 0)
        for text in texts
        if not text.isascii()
    )
    marks = max((sum(1 for _ in run) for are_marks, run in runs if are_marks), default=0)
    if marks > MAX_MARKS:
        raise Refusal("too_many_marks", marks=marks, most=MAX_MARKS)
