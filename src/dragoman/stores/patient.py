"""A store that is asked again where it did not answer, or answered short."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from dragoman.stores.store import Stat, Store, StoreError, Unanswered

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
PATIENCE = 180.0
"""Seconds for which one request is made again before the store is given up."""

Found = TypeVar("Found")


class PatientStore(Store):
    """What another store does, each request made again until it is answered."""

    def __init__(self, store: Store, patience: float = PATIENCE) -> None:
        self._store = store
        self._patience = patience
        self.address = store.address
        self.asked_again = 0
        """How many requests were made more than once, each time counted."""

    def stat(self, name: str) -> Stat | None:
        return self._until_answered(lambda: self._store.stat(name))

    def read(self, name: str, start: int, length: int, tag: str = "") -> bytes:
        def whole() -> bytes:
            data = self._store.read(name, start, length, tag)
            if len(data) != length:
                raise Unanswered(
                    f"{self.place(name)}: {len(data):,} bytes came, and {length:,} were asked for"
                )
            return data

        return self._until_answered(whole)

    def names(self, below: str, after: str = "") -> Iterator[tuple[str, Stat]]:
        # A list of many names takes many requests, so it goes on behind the last one that came: if
        # it began again, a store that fails one request in fifty would never list a million.
        found: list[tuple[str, Stat]] = []

        def list_rest() -> None:
            for name, stat in self._store.names(below, found[-1][0] if found else after):
                found.append((name, stat))

        self._until_answered(list_rest)
        yield from found

    def create(self, name: str, data: bytes) -> bool:
        # An answer may be lost behind a write that was made: the next try then says False, which
        # is right, since the object stands.
        return self._until_answered(lambda: self._store.create(name, data))

    def remove(self, name: str) -> None:
        self._until_answered(lambda: self._store.remove(name))

    def _until_answered(self, request: Callable[[], Found]) -> Found:
        began, pause = time.monotonic(), FIRST_PAUSE
        while True:
            try:
                return request()
            except Unanswered as error:
                if time.monotonic() - began + pause > self._patience:
                    raise StoreError(
                        f"{error} (asked for {self._patience:,.0f} seconds). What is written "
                        "already stays; give the same command again when the store answers"
                    ) from error
                self.asked_again += 1
                # Not all workers at once.
                time.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, LONGEST_PAUSE)
