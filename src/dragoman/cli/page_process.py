"""The page of a training (``--page``), from the side of the process that trains: it starts the
process that serves the page (``server/training_page.py``), and does what the visitor wishes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.base.errors import needing
from dragoman.console.output import command, say

if TYPE_CHECKING:
    from dragoman.training.trainer import Outcome

_PROGRAM = "dragoman.server.training_page"
_SECONDS_TO_END = 5.0


class PageProcess:
    """The process that serves the page of one training."""

    def __init__(self, folder: Path) -> None:
        """``folder``: that of the run, which may not be there yet. Errors: ``DragomanError`` if a
        package is missing that serving needs."""
        import secrets

        with needing("serve", "--page needs packages that are not installed"):
            from dragoman.serving.operate.settings import ServeSettings, bind, listen
        settings, key = ServeSettings(port=0), secrets.token_urlsafe(24)
        self._folder = folder
        self._is_training = self._is_stopping = False
        self._wants_more = threading.Event()
        package = str(Path(__file__).parents[2])
        program = f"import sys; sys.path.insert(0, {package!r}); import {_PROGRAM} as it; it.main()"
        with bind(settings) as listener:
            # A browser that comes at once waits until the process is up.
            listen(listener, settings)
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                start_new_session=True,  # Ctrl-C reaches only the process that trains
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                text=True,
            )
            about = {"folder": str(folder), "socket": listener.fileno(), "key": key}
            self._tell(json.dumps(about))
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/#run?key={key}"
        threading.Thread(target=self._take_wishes, daemon=True).start()
        say(f"Watch the training: {address}")

    def watch(self, train: Callable[[], Outcome]) -> Outcome:
        """Train while the page is open. If the visitor stops the training, wait until it is to be
        resumed, or until Ctrl-C."""
        from dragoman.tasks.training import resume

        again = command("resume", self._folder)
        while True:
            self._is_stopping, self._is_training = False, True
            self._tell("training")
            try:
                outcome = train()
            finally:
                self._is_training = False
            if outcome.reason != "interrupted":
                self._tell("finished")
                return outcome
            self._tell("stopped")
            if not self._is_stopping:  # but by Ctrl-C
                return outcome
            say("The page can resume the training. Ctrl-C ends the program.")
            try:
                self._wants_more.wait()
            except KeyboardInterrupt:
                return outcome
            self._wants_more.clear()
            train = partial(resume, self._folder, say=say, resume_command=again)

    def _take_wishes(self) -> None:
        assert self._process.stdout is not None
        for wish in self._process.stdout:
            if wish.strip() == "resume":
                self._wants_more.set()
            elif self._is_training and not self._is_stopping:
                self._is_stopping = True
                os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does

    def _tell(self, line: str) -> None:
        """Tell the process something; nothing happens if it has ended."""
        assert self._process.stdin is not None
        with suppress(OSError):
            print(line, file=self._process.stdin, flush=True)

    def stay(self) -> None:
        """Keep the page open until Ctrl-C."""
        say("The page stays open until you press Ctrl-C.")
        with suppress(KeyboardInterrupt):
            self._process.wait()

    def close(self) -> None:
        """End the process that serves the page."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


Watch = Callable[[Callable[[], "Outcome"]], "Outcome"]
"""A function that trains by the function that it is given, with or without a page."""


@contextmanager
def page_of(folder: Path | None) -> Iterator[Watch]:
    """Open the page of the run in ``folder``, and yield a function that trains while it is open.
    The page stays until Ctrl-C. None: open no page."""
    if folder is None:
        yield lambda train: train()
        return
    page = PageProcess(folder)
    try:
        yield page.watch
        page.stay()
    finally:
        page.close()


def refuse_page(is_several: bool) -> None:
    """Raise ``BadParameter`` if there is not one run, trained by one process, for a page."""
    if is_several:
        raise typer.BadParameter("--page shows one run. Leave it out to train several")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise typer.BadParameter("--page works with one process. Leave it out under torchrun")
