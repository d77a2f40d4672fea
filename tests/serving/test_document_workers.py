"""Documents in processes of their own: what goes through the pipe, and workers that die."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from dragoman.documents.translation import bare
from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import BadDocument, Target, Unit
from dragoman.serving.service import document_worker
from dragoman.serving.service.document_pool import DocumentWorkers
from dragoman.serving.service.document_worker import (
    targets_read,
    targets_written,
    texts_read,
    units_read,
    units_written,
)

pytestmark = pytest.mark.system

PAGE = "<html><body>" + "<p>Ein <b>Hund</b> bellt<br>laut.</p>\n" * 90 + "</body></html>"
MOST = 10_000_000


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 300))


async def identity(workers: DocumentWorkers, data: bytes, name: str, client: str = "a") -> bytes:
    read = await workers.read(client, data, name, MOST)
    assert read.count == len(read_document(data, name).units)
    return await workers.write(client, read, [one.as_it_is for one in read.units()], "und", MOST)


def processes_of(workers: DocumentWorkers) -> list[int]:
    return [one._process.pid for one in (*workers._idle, *workers._at_work)]


async def at_work(workers: DocumentWorkers) -> int:
    """The process that works."""
    while not workers._at_work:
        await asyncio.sleep(0.001)
    (one,) = workers._at_work
    return one._process.pid


async def is_gone(pid: int) -> None:
    while Path(f"/proc/{pid}").exists():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("together", [1, 3, 1000])
def test_units_and_translations_come_out_of_the_pipe_as_they_went_in(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_worker, "UNITS", together)
    monkeypatch.setattr(document_worker, "CODES", together)
    monkeypatch.setattr(document_worker, "PIECES", together)
    text = 'msgid ""\nmsgstr ""\n\nmsgid "%s of <b>{n}</b>, 한국 \U0001f600"\nmsgstr ""\n'
    units: list[Unit] = [
        *read_document(PAGE.encode(), "a.html").units,
        *read_document(text.encode(), "a.po").units,
        Unit(""),
    ]
    sent = list(units_written(units))
    assert (len(sent) == 1) == (together == 1000)
    assert [one for frame in sent for one in units_read(frame)] == [bare(one) for one in units]
    assert [one for frame in sent for one in texts_read(frame)] == [one.text for one in units]
    targets: list[Target] = [[], *(one.as_it_is for one in units), ["a", 0, "b"], []]
    assert targets_read(targets_written(targets)) == targets
    assert targets_read(targets_written([])) == []


def test_a_document_is_read_and_written_in_another_process() -> None:
    async def check() -> None:
        workers = DocumentWorkers()
        try:
            data = PAGE.encode()
            assert await identity(workers, data, "a.html") == data
            (pid,) = processes_of(workers)
            assert pid != os.getpid()
            # Bad ones end nothing: the same process reads the next.
            with pytest.raises(BadDocument, match=r"b\.pdf is a PDF"):
                await workers.read("a", b"%PDF-1.7", "b.pdf", MOST)
            long = await workers.read("a", data, "a.html", 5)
            assert long.characters > 5 and not list(long.units())
            assert await identity(workers, data, "a.html") == data
            assert processes_of(workers) == [pid]
        finally:
            workers.close()
        await is_gone(pid)

    run(check())


def test_a_worker_that_dies_has_one_answer_and_the_next_document_another_worker() -> None:
    async def check() -> None:
        workers = DocumentWorkers()
        try:
            data = PAGE.encode()
            assert await identity(workers, data, "a.html") == data
            (idle,) = processes_of(workers)
            os.kill(idle, signal.SIGSTOP)
            waits = asyncio.create_task(workers.read("a", data, "a.html", MOST))
            assert await at_work(workers) == idle
            os.kill(idle, signal.SIGKILL)
            with pytest.raises(BadDocument, match=r"a\.html.*SIGKILL.*Try again"):
                await waits
            assert await identity(workers, data, "a.html") == data
            # One that died while nobody needed it is not told of.
            (idle,) = processes_of(workers)
            os.kill(idle, signal.SIGKILL)
            while workers._idle[0].lives:
                await asyncio.sleep(0.001)
            assert await identity(workers, data, "a.html") == data
        finally:
            workers.close()

    run(check())


def test_a_document_takes_no_more_memory_or_time_than_it_may() -> None:
    async def check() -> None:
        small, large = PAGE.encode(), b"<p><b>a</b> <i>b</i>\n" * 60_000
        workers = DocumentWorkers(memory=64 << 20)
        try:
            with pytest.raises(BadDocument, match=r"a\.html needs more than 64 MiB of memory"):
                await workers.read("a", large, "a.html", MOST)
            assert not processes_of(workers)
            assert await identity(workers, small, "a.html") == small
            workers._seconds = 0.0
            with pytest.raises(BadDocument, match=r"a\.html takes more than 0 seconds"):
                await workers.read("a", small, "a.html", MOST)
            assert not processes_of(workers)
        finally:
            workers.close()

    run(check())


def test_a_worker_that_took_much_memory_gives_it_back() -> None:
    async def check() -> None:
        workers = DocumentWorkers(kept=1 << 20)
        try:
            assert (await workers.read("a", PAGE.encode(), "a.html", MOST)).count
            assert not processes_of(workers)
        finally:
            workers.close()

    run(check())


def test_nobody_waits_and_the_work_ends() -> None:
    async def check() -> None:
        workers = DocumentWorkers()
        try:
            waits = asyncio.create_task(workers.read("a", PAGE.encode(), "a.html", MOST))
            pid = await at_work(workers)
            os.kill(pid, signal.SIGSTOP)  # it would never end by itself
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
            await is_gone(pid)
            assert await identity(workers, PAGE.encode(), "a.html") == PAGE.encode()
        finally:
            workers.close()

    run(check())


def test_a_client_with_many_documents_leaves_the_others_a_worker() -> None:
    async def check() -> None:
        workers = DocumentWorkers()
        try:
            large = PAGE.encode() * 20
            many = [
                asyncio.create_task(workers.read("many", large, "a.html", MOST)) for _ in range(4)
            ]
            pid = await at_work(workers)
            os.kill(pid, signal.SIGSTOP)
            assert await identity(workers, PAGE.encode(), "a.html", "other") == PAGE.encode()
            os.kill(pid, signal.SIGCONT)
            assert len(await asyncio.gather(*many)) == 4
            assert not workers._turns
        finally:
            workers.close()

    run(check())
