"""Translated documents that wait to be downloaded.

They are held in memory alone, each under a name that nobody can guess, and are gone after the
download, after ten minutes, and when the server stops. Where there is no room for one more, the
client that holds the most bytes loses its oldest: whoever fills the store takes nobody else's room.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.serving.http.refusals import Refusal

SECONDS = 600.0
"""As long as a document waits."""


@dataclass(frozen=True)
class KeptDocument:
    """A translated document."""

    client: str
    name: str
    media: str
    data: bytes
    until: float


class KeptDocuments:
    """Lives in the event loop."""

    def __init__(self, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._kept: OrderedDict[str, KeptDocument] = OrderedDict()

    def keep(self, client: str, name: str, media: str, data: bytes) -> str:
        """The key under which it is kept. ``data``: no more than may be kept in all."""
        self.forget_old()
        key = secrets.token_urlsafe(24)
        self._kept[key] = KeptDocument(client, name, media, data, self._clock() + SECONDS)
        held = Counter[str]()
        for one in self._kept.values():
            held[one.client] += len(one.data)
        while held.total() > self._most_bytes:
            others = (one for one in self._kept if one != key)
            oldest = max(
                others, key=lambda one: held[self._kept[one].client]
            )  # the first of equals
            gone = self._kept.pop(oldest)
            held[gone.client] -= len(gone.data)
        return key

    def get(self, key: str) -> KeptDocument:
        """Raises Refusal 404."""
        self.forget_old()
        if key not in self._kept:
            raise Refusal(
                "no_such_document",
                "There is no such document: it has been downloaded, has waited for ten minutes, or "
                "made room for others. Translate it again.",
            )
        return self._kept[key]

    def forget(self, key: str) -> None:
        """It has been downloaded."""
        self._kept.pop(key, None)

    def forget_old(self) -> None:
        """Those that nobody has downloaded in time."""
        now = self._clock()
        while self._kept and next(iter(self._kept.values())).until <= now:
            self._kept.popitem(last=False)
