"""Servers in processes that have their libraries already. Not a test."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from told_address import address_told

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["dragoman.cli.serve", "dragoman.server.server", "warm_tasks"])

Main = Callable[[list[str]], None]
"""What a process does with its arguments; a function of a module."""


class WarmProcess:
    """A process as ``subprocess.Popen`` has it, as far as tests ask."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process

    def send_signal(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, seconds: float) -> int | None:
        """How it ended; None while it runs."""
        self._process.join(seconds)
        return self._process.exitcode


def _begin(
    main: Main, arguments: list[str], environment: Mapping[str, str], errors: Connection
) -> None:
    os.dup2(errors.fileno(), 2)
    # Anew: that of the process it is a fork of may write to a file, not to a pipe.
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115, the process ends it
    # The process of which it is a fork has that of the test that needed one first.
    os.environ.clear()
    os.environ.update(environment)
    main(arguments)


@contextmanager
def warm_process(
    main: Main, arguments: Sequence[str], said: list[str] | None = None, **environment: str
) -> Iterator[tuple[WarmProcess, str]]:
    """A process that serves -> it and its address. ``said``: takes the lines of its log, once it is
    up.

    torch and what else the server imports takes seconds to import, and in a test run some thirty
    servers start: each is a fork of one process that has imported all of it and done nothing else.
    """
    reading, writing = _CONTEXT.Pipe(duplex=False)
    process: ForkServerProcess = _CONTEXT.Process(
        target=_begin, args=(main, list(arguments), {**os.environ, **environment}, writing)
    )
    process.start()
    writing.close()
    lines = [] if said is None else said
    with open(os.dup(reading.fileno()), encoding="utf-8") as errors:
        reading.close()
        # A full pipe would hold up the server when it has something to say.
        reader = threading.Thread(target=lambda: lines.extend(errors))
        silent = threading.Timer(120, process.kill)  # then its lines end
        silent.start()
        try:
            address = address_told(errors)
            silent.cancel()
            reader.start()
            yield WarmProcess(process), address
        finally:
            silent.cancel()
            process.terminate()
            process.join(40)
            if process.exitcode is None:
                process.kill()
                process.join()
            if reader.ident is not None:
                reader.join()
            process.close()


def _serve(arguments: list[str]) -> None:
    """``dragoman serve``, as ``python -m dragoman`` calls it."""
    from dragoman.cli.app import main

    sys.argv = ["dragoman", "serve", *arguments]
    main()


@contextmanager
def serving(*runs: Path, settings: Sequence[str] = ()) -> Iterator[str]:
    """Runs, served by the program itself -> their address. Tests open the page far more often than
    one client may."""
    free = ("limits.requests_per_minute=1000000", "limits.burst=100000")
    sets = [part for change in (*free, *settings) for part in ("--set", change)]
    with warm_process(_serve, [*map(str, runs), "--port", "0", *sets]) as (_, address):
        yield address
