"""The workers of a server: a few processes, begun when the first document comes.

A client has one worker at a time, so that somebody with many documents leaves the others one. A
worker that dies, takes too much memory or too long is told of in one answer, and another takes its
place; where nobody waits for the answer any more, its work ends.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from multiprocessing import Pipe
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from dragoman.formats.units.document import BadDocument, Target, Unit
from dragoman.serving.document_workers.frames import targets_written, texts_read, units_read

WORKERS = 2
"""At most."""
SECONDS = 60.0
"""In which a document is read, or written. What the limits of the formats let through takes half a
minute at most (docs/experiments.md)."""
MEMORY = 2 << 30
"""Bytes that a worker may take."""
KEPT = 200_000_000
"""Bytes. A worker that has taken more ends after its work, so that they are given back."""
_PROGRAM = "dragoman.serving.document_workers.worker"
_CUT = "cut it into parts"


@dataclass(frozen=True)
class ReadDocument:
    """A document that has been read."""

    data: bytes
    name: str
    wanted: dict[str, str | None]
    """The columns that are translated of a table, as ``--columns`` says them, and the languages
    between which it is translated; the source may be left open."""
    media: str
    """Its media type."""
    count: int
    """Of its units."""
    characters: int
    """Of its text."""
    source: str | None
    """The language that it says it is in, if it does."""
    doubts: Sequence[str]
    """What is doubtful about its languages."""
    frames: Sequence[bytes]
    """Its units; none if it has more characters than it may."""

    def units(self) -> Iterator[Unit]:
        """Its units, made one after the other."""
        return chain.from_iterable(map(units_read, self.frames))

    def texts(self) -> Iterator[str]:
        """Those of its units."""
        return chain.from_iterable(map(texts_read, self.frames))


class DocumentWorkers:
    """Lives in the event loop; ``close`` it after."""

    def __init__(
        self,
        workers: int = WORKERS,
        *,
        seconds: float = SECONDS,
        memory: int = MEMORY,
        kept: int = KEPT,
    ) -> None:
        self._seconds, self._memory, self._kept = seconds, memory, kept
        self._free = asyncio.Semaphore(workers)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="document worker")
        self._idle: list[_Worker] = []
        self._at_work: set[_Worker] = set()
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        """The turn of each client that has some work here."""

    async def read(
        self,
        client: str,
        data: bytes,
        name: str,
        most: int,
        columns: str | None = None,
        source: str | None = None,
        target: str = "und",
    ) -> ReadDocument:
        """A document, whose units are sent if it has at most ``most`` characters. ``source``: its
        language, None: whichever it says; ``target``: into which it is translated. Errors:
        ``BadDocument``, also where it says that it is of other languages, and where the worker has
        died."""
        wanted = {"columns": columns, "source": source, "target": target}
        told, frames = await self._done(
            client, [data], name=name, language=None, most=most, **wanted
        )
        return ReadDocument(data, name, wanted, frames=frames, **told)

    async def written(
        self, client: str, read: ReadDocument, targets: Sequence[Target], language: str, most: int
    ) -> bytes:
        """The document in another language, of ``most`` bytes at most: a font may stand at every
        word of a translation. Errors: as those of ``read``."""
        frames = await asyncio.to_thread(lambda: [read.data, *targets_written(targets)])
        _, (made,) = await self._done(
            client, frames, name=read.name, language=language, most=most, **read.wanted
        )
        return made

    def close(self) -> None:
        """End all workers."""
        for one in self._at_work:
            one.kill()
        for one in self._idle:
            one.kill()
            one.close()
        self._idle.clear()
        self._threads.shutdown(wait=True)

    async def _done(
        self, client: str, frames: Sequence[bytes], **wanted: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        async with self._turns.setdefault(client, asyncio.Lock()), self._free:
            told, found = await self._asked(frames, wanted)
        if "memory" in told:
            raise BadDocument(
                f"{wanted['name']} needs more than {self._memory >> 20:,} MiB of memory: {_CUT}"
            )
        if "problem" in told:
            raise BadDocument(told["problem"])
        return told, found

    async def _asked(
        self, frames: Sequence[bytes], wanted: dict[str, Any]
    ) -> tuple[dict[str, Any], list[bytes]]:
        loop, name = asyncio.get_running_loop(), wanted["name"]
        worker = self._idle.pop() if self._idle else None
        if worker is not None and not worker.lives:
            worker.close()
            worker = None
        if worker is None:
            worker = await loop.run_in_executor(self._threads, _Worker, self._memory, self._kept)
        self._at_work.add(worker)
        work = loop.run_in_executor(self._threads, worker.ask, frames, wanted)
        goes_on = False
        try:
            async with asyncio.timeout(self._seconds):
                told, found = await work
            goes_on = told.pop("goes_on")
        except TimeoutError:
            raise BadDocument(
                f"{name} takes more than {self._seconds:,.0f} seconds to be read: {_CUT}"
            ) from None
        except (EOFError, OSError):
            ended = await loop.run_in_executor(self._threads, worker.ended)
            raise BadDocument(
                f"{name} could not be read: the process that read it has ended ({ended}). Try "
                f"again, or {_CUT}"
            ) from None
        finally:
            self._at_work.discard(worker)
            if goes_on:
                self._idle.append(worker)
            else:
                worker.kill()
                # In a thread: it takes a while to give much memory back.
                self._threads.submit(worker.close)
        return told, found


class _Worker:
    """A process."""

    def __init__(self, memory: int, kept: int) -> None:
        package = str(Path(__file__).parents[3])
        program = f"import sys; sys.path.insert(0, {package!r}); import {_PROGRAM} as it; it.main()"
        self._pipe, there = Pipe()
        numbers = map(str, (there.fileno(), memory, kept))
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *numbers],
            stdin=subprocess.DEVNULL,
            pass_fds=[there.fileno()],
        )
        there.close()

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ask(
        self, frames: Sequence[bytes], wanted: dict[str, Any]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Errors: ``EOFError`` or ``OSError`` where it has died."""
        self._pipe.send_bytes(json.dumps({**wanted, "frames": len(frames) - 1}).encode())
        for frame in frames:
            self._pipe.send_bytes(frame)
        told = json.loads(self._pipe.recv_bytes())
        return told, [self._pipe.recv_bytes() for _ in range(told.pop("frames"))]

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()

    def close(self) -> None:
        """After its end."""
        self._process.wait()
        self._pipe.close()

    def ended(self) -> str:
        """How it has died."""
        code = self._process.wait()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
