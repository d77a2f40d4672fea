"""The pool of worker processes for documents, which start when the first document comes.

A client uses one worker at a time, so that a client with many documents leaves a worker for the
others. If a worker dies, or needs too much memory or time, the answer to its client says so, and a
new worker replaces it. If the client disconnects, its worker is killed.
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
from dragoman.serving.service.document_worker import targets_written, texts_read, units_read

WORKERS = 2
"""The largest number of workers that run at the same time."""
SECONDS = 60.0
"""The time limit for reading or writing a document. The largest documents that the limits of the
formats allow take half a minute (docs/experiments.md)."""
MEMORY = 2 << 30
"""The most memory that a worker may take, in bytes."""
KEPT = 200_000_000
"""A size in bytes. A worker that uses more memory than this ends after its document, which frees
the memory."""
_PROGRAM = "dragoman.serving.service.document_worker"
_CUT = "split it into parts"


@dataclass(frozen=True)
class ReadDocument:
    """A document that a worker has read."""

    data: bytes
    name: str
    wanted: dict[str, str | None]
    """The options of the request: the columns of a table to translate, in the notation of
    ``--columns``, and the source language (None: any) and target language."""
    media: str
    """The media type of the document."""
    count: int
    """The number of units of the document."""
    characters: int
    """The number of characters in its units."""
    source: str | None
    """The language that the document declares, if any."""
    doubts: Sequence[str]
    """Warnings about the languages of the document, as text."""
    frames: Sequence[bytes]
    """The encoded units; empty if the document has more characters than allowed."""

    def units(self) -> Iterator[Unit]:
        """The units of the document, decoded one after the other."""
        return chain.from_iterable(map(units_read, self.frames))

    def texts(self) -> Iterator[str]:
        """Decode the texts of all units."""
        return chain.from_iterable(map(texts_read, self.frames))


class DocumentWorkers:
    """The pool of workers. Use it only in the event loop, and call ``close`` at the end."""

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
        """A lock for each client whose documents are being processed, so that it uses one worker at
        a time."""

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
        """Read a document. Its units are sent only if it has at most ``most`` characters.
        ``source``: its language, or None for the one that it declares; ``target``: the language of
        the translation. Errors: ``BadDocument`` for a document that cannot be read or declares
        other languages, and if the worker died."""
        wanted = {"columns": columns, "source": source, "target": target}
        values, frames = await self._work(
            client, [data], name=name, language=None, most=most, **wanted
        )
        return ReadDocument(data, name, wanted, frames=frames, **values)

    async def write(
        self, client: str, read: ReadDocument, targets: Sequence[Target], language: str, most: int
    ) -> bytes:
        """Write the translated document. It may have at most ``most`` bytes: a translation may
        repeat a font at every word, and so become much larger than the original. Errors: as
        ``read``."""
        frames = await asyncio.to_thread(lambda: [read.data, *targets_written(targets)])
        _, (made,) = await self._work(
            client, frames, name=read.name, language=language, most=most, **read.wanted
        )
        return made

    def close(self) -> None:
        """Kill all workers, busy and idle."""
        for worker in self._at_work:
            worker.kill()
        for worker in self._idle:
            worker.kill()
            worker.close()
        self._idle.clear()
        self._threads.shutdown(wait=True)

    async def _work(
        self, client: str, frames: Sequence[bytes], **wanted: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        async with self._turns.setdefault(client, asyncio.Lock()), self._free:
            values, parts = await self._ask_worker(frames, wanted)
        if "memory" in values:
            raise BadDocument(
                f"{wanted['name']} needs more than {self._memory >> 20:,} MiB of memory: {_CUT}"
            )
        if "problem" in values:
            raise BadDocument(values["problem"])
        return values, parts

    async def _ask_worker(
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
                values, parts = await work
            goes_on = values.pop("goes_on")
        except TimeoutError:
            raise BadDocument(
                f"{name} takes more than {self._seconds:,.0f} seconds to be read: {_CUT}"
            ) from None
        except (EOFError, OSError):
            ended = await loop.run_in_executor(self._threads, worker.wait_for_end)
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
                # A thread closes it, because freeing much memory takes a while.
                self._threads.submit(worker.close)
        return values, parts


class _Worker:
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
        """Send ``frames`` and ``wanted`` to the process, and return its answer. Errors:
        ``EOFError`` or ``OSError`` if the process has died."""
        self._pipe.send_bytes(json.dumps({**wanted, "frames": len(frames) - 1}).encode())
        for frame in frames:
            self._pipe.send_bytes(frame)
        values = json.loads(self._pipe.recv_bytes())
        return values, [self._pipe.recv_bytes() for _ in range(values.pop("frames"))]

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Close the pipe of a process that was killed or has ended."""
        self._process.wait()
        self._pipe.close()

    def wait_for_end(self) -> str:
        """Return a description of how the process ended."""
        code = self._process.wait()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
