"""Examples of a store that is not on this machine: fetched unit by unit into a folder of this one.

A unit is a run of about a thousand examples of one corpus, some whole chunks of the plan, so that a
process reads nothing twice. A plan names the examples of a block before the first of its updates:
``need`` waits for them, and ``ahead`` fetches those of the next block meanwhile. The folder holds
what is in use, and beyond it no more than it may; what was used longest ago is removed first.

    00000017.tokens, 00000017.text    a unit: checksum, then offsets and values of each side
"""

from __future__ import annotations

import fcntl
import os
import queue
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dragoman.atomic import replacing_file
from dragoman.data.chunks import Indices, chunk_size, chunks_of_unit
from dragoman.data.corpus_range import CorpusRange
from dragoman.errors import DataError, DragomanError
from dragoman.stores.store import Store

Kind = Literal["tokens", "text"]
_AT_ONCE = 16
_AHEAD_AT_ONCE = 8
_LOCKS = 64
_HEAD = 16
_OPEN = 4096
_BLOCK = 8 << 20


@dataclass(frozen=True)
class Remote:
    """Where the examples are, and where they may be kept."""

    store: Store
    """Asked until it answers, or for some minutes."""
    hasty: Store
    """The same, asked for some seconds only: for what may be fetched again later."""
    below: str
    """What the names of the store's files begin with."""
    folder: Path
    """Where units are kept. Processes of one machine may share it."""
    most: int
    """Bytes in it, beyond what is in use."""
    check: Callable[[], None]
    """Whether the store still holds what it held. Errors: ``DragomanError``."""


@dataclass(frozen=True)
class StoreShape:
    """What ``store.json`` says of the files."""

    corpora: Sequence[CorpusRange]
    shard_examples: int
    types: Mapping[str, np.dtype[Any]]
    row_widths: Mapping[str, int]
    vocabularies: Mapping[str, int]
    """How many different tokens each side may have."""


_Side = tuple[Indices, npt.NDArray[Any]]
"""Offsets, and the values or the text between them."""


class Units:
    """The examples of a remote store."""

    def __init__(self, remote: Remote, shape: StoreShape) -> None:
        self._remote, self._shape = remote, shape
        corpora = [corpus for corpus in shape.corpora if len(corpus)]
        self._firsts = np.array([corpus.first for corpus in corpora], np.int64)
        self._lasts = np.array([corpus.last for corpus in corpora], np.int64)
        self._sizes = np.array(
            [chunk_size(corpus) * chunks_of_unit(corpus) for corpus in corpora], np.int64
        )
        counts = -(-(self._lasts - self._firsts) // self._sizes)
        self._before = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
        self._opened = lru_cache(maxsize=_OPEN)(self._open)
        self._in_use: dict[str, set[int]] = {"now": set(), "next": set()}
        self._coming: queue.SimpleQueue[tuple[int, Kind]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._room = threading.Lock()
        remote.folder.mkdir(parents=True, exist_ok=True)
        self._held = sum(path.stat().st_size for path in self._files())

    # ---- what is in them

    def values(self, side: str, example: int) -> npt.NDArray[Any]:
        """Tokens or rows of one example, of the type in which they are stored."""
        return self._part("tokens", side, example)

    def text(self, side: str, example: int) -> bytes:
        """As it was read."""
        return self._part("text", side, example).tobytes()

    def lengths(self, side: str, examples: Indices) -> npt.NDArray[np.int32]:
        """Of some examples."""
        found = np.empty(len(examples), np.int32)
        units = self._units_of(examples)
        order = np.argsort(units, kind="stable")
        cuts = np.flatnonzero(np.diff(units[order])) + 1
        for places in np.split(order, cuts) if len(order) else ():
            unit = int(units[places[0]])
            offsets, _ = self._opened(unit, "tokens")[side]
            inside = examples[places] - self._range(unit)[0]
            found[places] = offsets[inside + 1] - offsets[inside]
        return found

    def all_lengths(self, side: str) -> npt.NDArray[np.int32]:
        """Of all examples, as a whole."""
        size, name = 4 * int(self._lasts[-1]), f"{self._remote.below}{side}.lengths"
        read = self._remote.store.read
        parts = [read(name, at, min(_BLOCK, size - at)) for at in range(0, size, _BLOCK)]
        return np.frombuffer(b"".join(parts), np.int32)

    def spread(self, step: int, most: int = 64) -> Indices:
        """Every ``step``-th example; of a large store, of that many units spread over it, as many
        examples in all as it would be of the whole."""
        units = int(self._before[-1])
        if units <= most:
            return np.arange(0, int(self._lasts[-1]), step)
        ranges = [self._range(place * units // most) for place in range(most)]
        some = np.concatenate([np.arange(*one) for one in ranges])
        return some[:: max(1, step * len(some) // int(self._lasts[-1]))]

    # ---- fetching

    def need(self, examples: Indices, kinds: Iterable[Kind] = ("tokens",)) -> None:
        """Wait until all of them are here. Errors: those of the store, after some minutes."""
        units = np.unique(self._units_of(examples)).tolist()
        self._in_use["now"] = set(units)
        missing = [(u, kind) for u in units for kind in kinds if not self._has(u, kind)]
        if missing:
            self._remote.check()

        def fetch(one: tuple[int, Kind]) -> None:
            self._fetch(one[0], one[1], self._remote.store)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            try:
                for _ in pool.map(fetch, missing):
                    pass
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def ahead(self, examples: Indices, kinds: Iterable[Kind] = ("tokens",)) -> None:
        """Begin to fetch them. What fails is fetched again when it is needed."""
        units = np.unique(self._units_of(examples)).tolist()
        self._in_use["next"] = set(units)
        self._coming = queue.SimpleQueue()
        for unit in units:
            for kind in kinds:
                if not self._has(unit, kind):
                    self._coming.put((unit, kind))
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        wanted = min(_AHEAD_AT_ONCE, self._coming.qsize()) - len(self._threads)
        for _ in range(wanted):
            # Daemons: a process does not wait for what it will not need.
            thread = threading.Thread(target=self._come, daemon=True, name="units ahead")
            self._threads.append(thread)
            thread.start()

    def _come(self) -> None:
        while True:
            try:
                unit, kind = self._coming.get_nowait()
            except queue.Empty:
                return
            with suppress(DragomanError):
                self._fetch(unit, kind, self._remote.hasty)

    def _fetch(self, unit: int, kind: Kind, store: Store) -> None:
        """Into the folder, by one process of this machine and one thread of it."""
        with self._alone(unit):
            if self._has(unit, kind):
                os.utime(self._path(unit, kind))
                return
            content = self._content(unit, kind, store)
            with replacing_file(self._path(unit, kind), forced=False) as path:
                path.write_bytes(content)
        with self._room:
            self._held += len(content)
            if self._held > self._remote.most:
                self._make_room(unit)

    def _content(self, unit: int, kind: Kind, store: Store) -> bytes:
        first, last = self._range(unit)
        parts: list[bytes] = []
        for side, dtype in self._shape.types.items():
            width = 1 if kind == "text" else dtype.itemsize * self._shape.row_widths.get(side, 1)
            found = [*self._read(store, side, kind, width, first, last)]
            ends = np.cumsum(np.concatenate([np.diff(offsets) for offsets, _ in found]))
            values = b"".join(data for _, data in found)
            if kind == "tokens" and side not in self._shape.row_widths:
                tokens = np.frombuffer(values, dtype)
                if len(tokens) and not 0 <= tokens.min() <= tokens.max() < self._most(side):
                    raise self._damaged(first, side)
            parts += [np.append(np.int64(0), ends).tobytes(), values, bytes(-len(values) % 8)]
        content = b"".join(parts)
        head = np.array([zlib.crc32(content), last - first], np.int64)
        return head.tobytes() + content

    def _read(
        self, store: Store, side: str, kind: Kind, width: int, first: int, last: int
    ) -> Iterator[tuple[Indices, bytes]]:
        """Of each shard that the examples are in: offsets, and what stands between them."""
        size = self._shape.shard_examples
        for shard in range(first // size, (last - 1) // size + 1):
            begin, end = (min(max(one - shard * size, 0), size) for one in (first, last))
            name = f"{self._remote.below}{shard:05}.{side}"
            names = {"tokens": "offsets", "text": "text-offsets"}
            data = store.read(f"{name}.{names[kind]}", 8 * begin, 8 * (end - begin + 1))
            offsets = np.frombuffer(data, np.int64)
            if offsets[0] < 0 or (offsets[1:] < offsets[:-1]).any():
                raise self._damaged(first, side)
            start, stop = int(offsets[0]) * width, int(offsets[-1]) * width
            yield offsets, store.read(f"{name}.{kind}", start, stop - start)

    # ---- the folder

    def _part(self, kind: Kind, side: str, example: int) -> npt.NDArray[Any]:
        unit = int(self._units_of(np.array([example], np.int64))[0])
        offsets, values = self._opened(unit, kind)[side]
        place = example - self._range(unit)[0]
        return values[offsets[place] : offsets[place + 1]]

    def _open(self, unit: int, kind: Kind) -> dict[str, _Side]:
        found = self._mapped(unit, kind)
        if found is None:
            self._path(unit, kind).unlink(missing_ok=True)
            self._fetch(unit, kind, self._remote.store)
            found = self._mapped(unit, kind)
        if found is None:
            raise self._damaged(self._range(unit)[0], kind)
        return found

    def _mapped(self, unit: int, kind: Kind) -> dict[str, _Side] | None:
        """None where it is not there, or not as it was written."""
        first, last = self._range(unit)
        try:
            data = np.asarray(np.memmap(self._path(unit, kind), np.uint8, mode="r"))
        except (OSError, ValueError):
            return None
        head = np.array([zlib.crc32(data[_HEAD:].data), last - first], np.int64)
        if data[:_HEAD].tobytes() != head.tobytes():
            return None
        sides: dict[str, _Side] = {}
        at = _HEAD
        for side, dtype in self._shape.types.items():
            rows = self._shape.row_widths.get(side) if kind == "tokens" else None
            stored = dtype if kind == "tokens" else np.dtype(np.uint8)
            offsets = data[at : at + 8 * (last - first + 1)].view(np.int64)
            at += offsets.nbytes
            size = int(offsets[-1]) * stored.itemsize * (rows or 1)
            values = data[at : at + size].view(stored)
            sides[side] = offsets, values if rows is None else values.reshape(-1, rows)
            at += size + -size % 8
        return sides

    def _make_room(self, new: int) -> None:
        """Remove what was fetched longest ago; ``new``: what has just come. What a process has
        mapped stays readable for it."""
        kept = self._in_use["now"] | self._in_use["next"] | {new}
        by_age = []
        self._held = 0
        for path in self._files():
            with suppress(OSError):
                stat = path.stat()
                self._held += stat.st_size
                if int(path.stem) not in kept:
                    by_age.append((stat.st_mtime_ns, stat.st_size, path))
        for _, size, path in sorted(by_age):
            if self._held <= self._remote.most * 9 // 10:
                return
            path.unlink(missing_ok=True)
            self._held -= size

    def _files(self) -> Iterator[Path]:
        for kind in ("tokens", "text"):
            yield from self._remote.folder.glob(f"[0-9]*.{kind}")

    @contextmanager
    def _alone(self, unit: int) -> Iterator[None]:
        with (self._remote.folder / f".lock-{unit % _LOCKS}").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _has(self, unit: int, kind: Kind) -> bool:
        return self._path(unit, kind).exists()

    def _path(self, unit: int, kind: Kind) -> Path:
        return self._remote.folder / f"{unit:08}.{kind}"

    def _most(self, side: str) -> int:
        return self._shape.vocabularies.get(side, 1 << 31)

    def _units_of(self, examples: Indices) -> Indices:
        corpus = np.searchsorted(self._firsts, examples, side="right") - 1
        inside = (examples - self._firsts[corpus]) // self._sizes[corpus]
        return np.asarray(self._before[corpus] + inside)

    def _range(self, unit: int) -> tuple[int, int]:
        """The first and the last example of a unit, the last one excluded."""
        corpus = int(np.searchsorted(self._before, unit, side="right")) - 1
        size = int(self._sizes[corpus])
        first = int(self._firsts[corpus]) + (unit - int(self._before[corpus])) * size
        return first, min(first + size, int(self._lasts[corpus]))

    def _damaged(self, example: int, what: str) -> DataError:
        place = self._remote.store.place(self._remote.below.rstrip("/"))
        return DataError(
            f"{place}: the {what} of the examples from {example + 1:,} on are damaged. Prepare the "
            "text again, into another folder"
        )
