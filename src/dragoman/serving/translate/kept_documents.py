"""Translated documents that wait to be downloaded.

They are held in memory alone, each under a name that nobody can guess, and are gone after the
download, after ten minutes, and when the server stops.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.serving.http.refusals import Refusal

SECONDS = 600.0
"""As long as a document waits."""


@dataclass(frozen=True)
class KeptDocument:
    """A translated document."""

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

    def keep(self, name: str, media: str, data: bytes) -> str:
        """The key under which it is kept. Raises Refusal 429 where too many wait already."""
        self.forget_old()
        if len(data) + sum(len(one.data) for one in self._kept.values()) > self._most_bytes:
            raise Refusal(
                "others_wait",
                "Translated documents of others wait to be downloaded, and there is no room for "
                "more (documents). Try again in some minutes.",
                retry_after=60,
                kind="documents",
            )
        key = secrets.token_urlsafe(24)
        self._kept[key] = KeptDocument(name, media, data, self._clock() + SECONDS)
        return key

    def get(self, key: str) -> KeptDocument:
        """Raises Refusal 404."""
        self.forget_old()
        if key not in self._kept:
            raise Refusal(
                "no_such_document",
                "There is no such document: it has been downloaded, or waited for ten minutes. "
                "Translate it again.",
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
