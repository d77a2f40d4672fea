"""The page of a run that is being trained (``dragoman train --page``): a server in a process of its
own, which only reads the files of the run and has the lowest priority.

The process that trains starts it with ``main``. They talk through pipes: the first line that this
process reads is a JSON object with the run's folder, the number of the listening socket and the
key; each further line is the state of the training. When the lines end, so does the process. The
lines that it writes are wishes of the visitor: ``stop`` or ``resume``.

The training does not know that it is watched: ``metrics.jsonl`` has the curves and the samples, and
the film and the snapshots have the weights with which a visitor's sentence is translated.
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, TextIO

import numpy as np
import numpy.typing as npt
from fastapi import Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from dragoman.base.errors import DragomanError
from dragoman.base.reading import parse_json
from dragoman.pictures.curves import charts_of
from dragoman.runs.run import METRICS, RECIPE
from dragoman.server.app import create_app
from dragoman.server.info import chart_views
from dragoman.server.server import serve_app
from dragoman.serving.http.clients import ApiKeys
from dragoman.serving.http.limits import Client
from dragoman.serving.http.messages import Message
from dragoman.serving.http.refusals import wrong_field
from dragoman.serving.http.stream import EventStream, event_of
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.catalogue import LanguageDetector
from dragoman.serving.service.endpoints import Endpoints, ServedTasks
from dragoman.serving.service.service import Service
from dragoman.tasks.catalogue import Run

SECONDS = 1.0
"""The time between two looks at the files of the run."""
_DAY = 86_400.0
_NICE = 19

State = Literal["preparing", "training", "stopping", "stopped", "finished"]
MOST_POINTS = 300
"""The most points of a curve: about what a screen can show."""
MOST_TRANSLATIONS = 60
"""The most translations of one sentence that are kept."""
MOST_WEIGHTS = 2_500
"""The most attention weights of one head that are shown: 50 tokens by 50."""
_MEANT = ("nll", "learning_rate", "gradient_norm", "tokens_per_second")

Record = dict[str, Any]


class Records:
    """The records of a ``metrics.jsonl`` that grows: all validations, and the means over stretches
    of updates, at most ``MOST_POINTS`` of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._stretch = 1
        self._pending: list[Record] = []
        self.updates: list[Record] = []
        """The last record of each stretch of updates, with the means of the stretch."""
        self.validations: list[Record] = []
        self.latest: Record | None = None
        """The record of the last update; None before the first."""
        self.samples: list[dict[str, str]] = []
        """The samples of the last validation that had some."""

    def read(self) -> None:
        """Read what was written since the last call. Errors: ``RunError`` for a damaged line."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # the training is writing it
                self._position += len(line)
                self._add(parse_json(line, str(self._path)))

    def _add(self, record: Record) -> None:
        if record["kind"] == "validation":
            self.samples = record.pop("samples") or self.samples
            self.validations.append(record)
            return
        self.latest = record
        self._pending.append(record)
        if len(self._pending) == self._stretch:
            self.updates.append(_mean(self._pending))
            self._pending.clear()
        if len(self.updates) == MOST_POINTS:
            self.updates = [_mean(self.updates[n : n + 2]) for n in range(0, MOST_POINTS, 2)]
            self._stretch *= 2

    def seconds_left(self, updates: int) -> float | None:
        """Return how long a run of so many ``updates`` will still take, at the pace of the second
        half of the updates so far; None if that is not known yet."""
        if self.latest is None or len(self.updates) < 2:
            return None
        before = self.updates[len(self.updates) // 2 - 1]
        done = self.latest["update"] - before["update"]
        pace = (self.latest["elapsed"] - before["elapsed"]) / max(1, done)
        return float(pace * max(0, updates - self.latest["update"]))


def _mean(records: list[Record]) -> Record:
    """Return the last record with the mean of the numbers that are drawn."""
    given = {key: [record[key] for record in records if record[key] is not None] for key in _MEANT}
    return records[-1] | {key: fmean(values) for key, values in given.items() if values}


@dataclass(eq=False)
class _Sentence:
    """A visitor's sentence, and what is known of it."""

    text: str
    translations: dict[int, str] = field(default_factory=dict)
    """The translation with the weights after each update."""
    newest: int = -1
    tokens: tuple[int, ...] = ()
    """The newest translation, for which attention is computed at every moment of the film."""
    names: tuple[list[str], list[str]] = ([], [])
    """The tokens of the sentence and of the newest translation, for people."""
    cross: dict[int, tuple[tuple[int, ...], npt.NDArray[np.float32]]] = field(default_factory=dict)
    """The tokens for which cross-attention was computed, and its weights (L, H, T, S)."""
    problem: str = ""


class WatchedRun:
    """A run that is being trained. ``course`` and ``translate_next`` may run in two threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        self.head = (0, 0)
        """The layer and head of cross-attention to show, counted from 0."""
        self._sentence = _Sentence("")
        self._reading = threading.Lock()
        """Held while records are read. A visitor who leaves does not end the thread that reads."""
        self.begin()

    def begin(self) -> None:
        """Read the records from their beginning: a training that is resumed may have cut them."""
        self._records = Records(self.folder / METRICS)
        self._begun: int | None = None

    @property
    def moves(self) -> bool:
        """True if an update was made since ``begin``."""
        latest = self._records.latest
        return latest is not None and self._begun is not None and latest["update"] > self._begun

    def _run(self) -> Run | None:
        """Open the run anew, because its plan may be corrected; None if it is not written yet."""
        return Run.open(self.folder) if (self.folder / RECIPE).is_file() else None

    def course(self) -> dict[str, Any]:
        """Return the course of the training so far, as JSON has it."""
        run, records = self._run(), self._records
        if run is None:
            return {"name": self.name}
        with self._reading:
            records.read()
        latest, updates = records.latest or {}, run.recipe.training.updates
        if self._begun is None:
            self._begun = latest.get("update", 0)
        charts = chart_views(charts_of([*records.updates, *records.validations], run.task))
        scores = records.validations[-1]["scores"] if records.validations else {}
        measures = [(run.task.measure(name), value) for name, value in scores.items()]
        return {
            "name": self.name,
            "update": latest.get("update", 0),
            "updates": updates,
            "left": records.seconds_left(updates),
            "rate": latest.get("learning_rate"),
            "speed": latest.get("tokens_per_second"),
            "counted": run.task.counted,
            "languages": run.languages,
            "translates": _can_translate(run),
            "charts": [chart.model_dump() for chart in charts],
            "scores": [asdict(m) | {"unit": m.unit, "value": value} for m, value in measures],
            "samples": records.samples,
        }

    # ---- a visitor's sentence

    def ask(self, text: str) -> None:
        """Translate ``text`` with all weights that are there, and with those to come."""
        self._sentence = _Sentence(text)

    def sentence(self) -> dict[str, Any]:
        """Return the translations so far, and the attention of one head at each moment of the film,
        as JSON has it."""
        asked = self._sentence
        said = [{"update": u, "text": text} for u, text in sorted(asked.translations.items())]
        seen = {u: cross for u, (of, cross) in sorted(asked.cross.items()) if of == asked.tokens}
        answer = {"text": asked.text, "said": said, "problem": asked.problem, "heads": None}
        if not seen or not (cross := next(iter(seen.values()))).size:
            return answer
        layers, heads, rows, columns = cross.shape
        if rows * columns > MOST_WEIGHTS:
            return answer
        place = min(self.head[0], layers - 1), min(self.head[1], heads - 1)
        maps = {u: cross[place].astype(float).round(2).tolist() for u, cross in seen.items()}
        shown = {"source": asked.names[0], "target": asked.names[1], "layers": layers}
        shown |= {"heads": heads, "layer": place[0], "head": place[1]}
        return answer | {"heads": shown | {"maps": [*maps.items()]}}

    def translate_next(self) -> bool:
        """Translate the sentence with the next weights for which that is still to be done, the
        newest first; return False if there are none."""
        asked, run = self._sentence, None
        with suppress(DragomanError):  # a plan that is being edited: ``course`` tells of it
            if asked.text and not asked.problem and (opened := self._run()):
                run = opened if _can_translate(opened) else None
        if run is None:
            return False
        film = dict(run.film())
        files = film | dict(run.snapshots()[-1:])
        for update in sorted(files, key=lambda u: (u != max(files), u)):
            is_stale = update in film and asked.cross.get(update, [None])[0] != asked.tokens
            if is_stale or update not in asked.translations:
                try:
                    self._translate(run, asked, update, files[update], is_filmed=update in film)
                except DragomanError as error:
                    if files[update].is_file():  # else it made room for a newer one
                        asked.problem = str(error)
                return True
        return False

    def _translate(
        self, run: Run, asked: _Sentence, update: int, path: Path, *, is_filmed: bool
    ) -> None:
        from dragoman.engine.engine import Engine
        from dragoman.models.interface import writing

        search = run.recipe.search.model_copy(update={"n_best": 1, "sampling": None})
        engine = Engine(writing(run.model(path)), *run.forms, search)
        values = engine.source.read([asked.text])[0][: engine.longest]
        if update not in asked.translations:
            ((best, *_),) = engine.search([engine.request(values)])
            (asked.translations[update],) = engine.target.raw([best.tokens])
            if update > asked.newest:
                asked.newest, asked.tokens = update, tuple(best.tokens)
            if len(asked.translations) > MOST_TRANSLATIONS:
                others = asked.translations.keys() - dict(run.film()).keys()
                asked.translations.pop(min(others or asked.translations))
        if is_filmed:
            look = engine.attention.record(values, asked.tokens)
            asked.names = [*look.source], [*look.target]
            asked.cross[update] = asked.tokens, look.cross


def _can_translate(run: Run) -> bool:
    return run.task.translates and not run.lacks_tag


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
