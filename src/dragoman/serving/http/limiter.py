"""How much each client asks for, counted: requests, places, texts and characters."""

from __future__ import annotations

import math
import time
import unicodedata
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from dragoman.plural import plural
from dragoman.serving.http.api_keys import Client
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.refusals import Refusal

REMEMBERED_CLIENTS = 10_000
"""Clients whose recent rate is kept; the one unseen for longest is forgotten first."""

MAX_MARKS = 100
"""Combining marks in a row. Unicode's normalisation sorts them in quadratic time, and 30 are enough
for any writing (Unicode Standard Annex 15, section 13)."""


class Limiter:
    """Counts what each client asks for. Lives in the event loop's thread."""

    def __init__(
        self, settings: LimitSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._under_way = Counter[str]()

    @contextmanager
    def admit(self, client: Client) -> Iterator[None]:
        """One request of a client, for as long as it lasts. Raises Refusal 429."""
        under_way = self._under_way[client.name]
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
        self._under_way[client.name] += 1
        try:
            yield
        finally:
            self._under_way[client.name] -= 1
            if not self._under_way[client.name]:
                del self._under_way[client.name]

    def take_one(self, client: Client) -> None:
        """Count one request of a client: it comes out of a bucket of ``burst`` requests, which is
        filled at the allowed rate. Raises Refusal 429."""
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
                f"This server takes {limits.requests_per_minute:,} requests a minute "
                "from one client. Wait a moment, or send several texts in one request.",
                retry_after=math.ceil((1 - left) / per_second),
                most=limits.requests_per_minute,
            )

    def give_back(self, client: Client) -> None:
        """Take back the count of one request, which counts for another client."""
        if client.name in self._buckets:
            left, seen = self._buckets[client.name]
            self._buckets[client.name] = left + 1, seen

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


class Places:
    """Places for one kind of work, or bytes of it, of one client and of all. Lives in the event
    loop."""

    def __init__(self, kind: str, of_client: float = math.inf, of_all: float = math.inf) -> None:
        """``of_client`` and ``of_all``: how many one client, and all, may have."""
        self._kind = kind
        self._of_client, self._of_all = of_client, of_all
        self._held: defaultdict[str, list[int]] = defaultdict(list)
        """Of each client that has some, those of each request."""

    @property
    def taken(self) -> int:
        return sum(map(sum, self._held.values()))

    @contextmanager
    def held(self, client: str, places: int) -> Iterator[None]:
        """So many for a request, as long as it lasts. Raises Refusal 429; a request that is alone
        gets as many as it takes."""
        own = self._held.get(client, [])
        if own and sum(own) + places > self._of_client:
            raise Refusal(
                "too_many_of_kind",
                f"You have {plural(len(own), 'request')} of this kind under way ({self._kind}), "
                "as much as one client may have. Wait for one to finish.",
                retry_after=1,
                requests=len(own),
                kind=self._kind,
            )
        if self._held and self.taken + places > self._of_all:
            raise Refusal(
                "others_wait",
                f"Others wait for the same already ({self._kind}). Try again in a moment.",
                retry_after=2,
                kind=self._kind,
            )
        self._held[client].append(places)
        try:
            yield
        finally:
            self._held[client].remove(places)
            if not self._held[client]:
                del self._held[client]


def _marks(text: str) -> int:
    """The most combining marks that stand in a row."""
    if text.isascii():
        return 0
    rows = groupby(text, lambda character: unicodedata.combining(character) > 0)
    return max((sum(1 for _ in row) for is_mark, row in rows if is_mark), default=0)
