"""The program's server in a process that has its libraries already. Not a test."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from told_address import address_told

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["dragoman.cli.serve", "dragoman.serving.server"])


def _serve(arguments: list[str], environment: dict[str, str], errors: Connection) -> None:
    """``dragoman serve``, as ``python -m dragoman`` calls it."""
    from dragoman.cli import main

    os.dup2(errors.fileno(), 2)
    # Anew: that of the process it is a fork of may write to a file, not to a pipe.
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115, the process ends it
    os.environ.update(environment)
    sys.argv = ["dragoman", "serve", *arguments]
    main()


@contextmanager
def serving(*runs: Path) -> Iterator[str]:
    """Runs, served by the program itself -> their address.

    torch and what else the server imports takes seconds to import, and in a test run some twenty
    servers start: each is a fork of one process that has imported all of it and done nothing else.
    """
    reading, writing = _CONTEXT.Pipe(duplex=False)
    arguments = [*map(str, runs), "--port", "0"]
    process: ForkServerProcess = _CONTEXT.Process(
        target=_serve, args=(arguments, dict(os.environ), writing)
    )
    process.start()
    writing.close()
    with open(os.dup(reading.fileno()), encoding="utf-8") as errors:
        reading.close()
        try:
            yield address_told(errors)
        finally:
            process.terminate()
            process.join(40)
            process.close()
