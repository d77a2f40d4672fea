"""The page of a run that is being trained (``dragoman train --page``): a server in a process of its
own, which only reads the files of the run and has the lowest priority.

The process that trains starts it with ``main``. They talk through pipes: the first line that this
process reads is a JSON object with the run's folder, the number of the listening socket and the
key; each further line is the state of the training. When the lines end, so does the process. The
lines that it writes are wishes of the visitor: ``stop`` or ``resume``.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

from fastapi import Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from dragoman.base.errors import DragomanError
from dragoman.server.app import create_app
from dragoman.server.server import serve_app
from dragoman.server.watched_run import WatchedRun
from dragoman.serving.http.clients import ApiKeys
from dragoman.serving.http.limits import Client
from dragoman.serving.http.messages import Message
from dragoman.serving.http.refusals import wrong_field
from dragoman.serving.http.stream import EventStream, event_of
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.catalogue import LanguageDetector
from dragoman.serving.service.endpoints import Endpoints, ServedTasks
from dragoman.serving.service.service import Service

SECONDS = 1.0
"""The time between two looks at the files of the run."""
_DAY = 86_400.0
_NICE = 19

State = Literal["preparing", "training", "stopping", "stopped", "finished"]


class TrainingRequest(Message):
    """A wish of the visitor of a training: `POST /v1/training`. Each field may be left out."""

    do: Literal["stop", "resume"] | None = None
    """stop: save the training and stop it, as Ctrl-C does; resume: continue it."""
    text: Annotated[str | None, Field(max_length=300)] = None
    """A sentence to translate with the weights of each moment. Empty: none."""
    head: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | None = None
    """The layer and the head of cross-attention to show, both counted from 0."""


class TrainingPage:
    """One training, its visitors, and the process that trains."""

    def __init__(self, folder: Path, wishes: TextIO) -> None:
        """``wishes``: where the wishes of visitors are written, one a line."""
        self.run = WatchedRun(folder)
        self.state: State = "preparing"
        self._wishes = wishes
        self._visitors = 0
        self._translating: asyncio.Task[None] | None = None

    def follow(self, states: TextIO) -> None:
        """Take over each state that is read, until the lines end; then end this process."""
        for line in states:
            state = line.strip()
            if state == "training":
                self.run.begin()
            self.state = state  # type: ignore[assignment]  # written by ``cli/page_process.py``
        os.kill(os.getpid(), signal.SIGTERM)

    def endpoints(self, service: Service) -> Endpoints:
        """Make the endpoints of the training."""
        routes = Endpoints(service)

        @routes.get("/training", summary="Watch a training")
        async def watch(http: Request) -> Response:
            """Returns server-sent events: `training` (the course so far), `sentence` (its
            translations and the attention of one head), and `done` when the program ends. An event
            is sent when it differs from the last one of its name."""
            with service.admit(http):
                self._visitors += 1
                return EventStream(self._events(service), self._leave, _DAY)

        @routes.post("/training", summary="Direct a training")
        async def direct(http: Request) -> Response:
            """Stops or resumes the training, and chooses what is shown of it."""
            async with service.receive(http, TrainingRequest) as (request, _):
                if request.text is not None:
                    self.run.ask(request.text.strip())
                if request.head is not None:
                    self.run.head = request.head
                if request.do is not None:
                    self._wish(request.do)
            return JSONResponse({"state": self.state})

        return routes

    def _wish(self, wish: Literal["stop", "resume"]) -> None:
        """Pass a wish on to the process that trains. Raises Refusal 400 if it cannot be done
        now."""
        if not self._can(wish):
            raise wrong_field("do", f"the training is {self.state}, so it cannot {wish} now")
        self.state = "stopping" if wish == "stop" else "preparing"
        print(wish, file=self._wishes, flush=True)

    def _can(self, wish: Literal["stop", "resume"]) -> bool:
        if wish == "resume":
            return self.state == "stopped"
        # Before its first update, Ctrl-C would end the program.
        return self.state == "training" and self.run.moves

    async def _events(self, service: Service) -> AsyncGenerator[bytes, None]:
        if self._translating is None:
            self._translating = asyncio.create_task(self._translate())
        sent: dict[str, bytes] = {}
        while True:
            is_last = service.closing
            events = {"training": await self._course(), "sentence": self.run.sentence()}
            for name, values in events.items():
                if (made := event_of(name, values)) != sent.get(name):
                    sent[name] = made
                    yield made
            if is_last:
                yield event_of("done", {})
                return
            await asyncio.sleep(SECONDS)

    async def _leave(self) -> None:
        self._visitors -= 1

    async def _course(self) -> dict[str, Any]:
        try:
            course = await asyncio.to_thread(self.run.course)
        except DragomanError as error:
            course = {"name": self.run.name, "problem": str(error)}
        return course | {"state": self.state, "can_stop": self._can("stop")}

    async def _translate(self) -> None:
        """Translate the sentence with one set of weights after the other, while somebody is
        there."""
        while True:
            worked = self._visitors > 0 and await asyncio.to_thread(self.run.translate_next)
            await asyncio.sleep(0.0 if worked else SECONDS)


def main() -> None:
    """Serve the page of one training until its process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that trains
    with suppress(OSError):
        os.nice(_NICE)
    about = json.loads(sys.stdin.readline())
    folder, wishes = Path(about["folder"]), sys.stdout
    sys.stdout = sys.stderr  # a library that prints wishes for nothing
    settings = ServeSettings(port=0, threads=1, grace_seconds=2)
    page = TrainingPage(folder, wishes)
    tasks = ServedTasks((), (page.endpoints,), page.run.name)
    app = create_app([], settings, LanguageDetector(), tasks)
    service: Service = app.state.service
    service.keys = ApiKeys({about["key"]: Client("key:visitor")})
    threading.Thread(target=page.follow, args=(sys.stdin,), daemon=True).start()
    with socket.socket(fileno=about["socket"]) as listener:
        serve_app(app, settings, listener, {})
