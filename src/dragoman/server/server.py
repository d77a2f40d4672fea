"""Running the server: it loads the runs, listens, reloads keys and runs while it serves (SIGHUP),
and stops without dropping accepted requests.

New runs are loaded while the old ones serve. Then they replace the old ones at once for all later
requests, and the old ones finish the requests that came before. If anything cannot be loaded,
everything stays as it was, and the log says why.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

import torch
import uvicorn
from fastapi import FastAPI

from dragoman.base.errors import DragomanError
from dragoman.server.app import NOT_BUILT, create_app, page_is_built
from dragoman.serving.http.clients import ApiKeys, Networks
from dragoman.serving.http.connection_limits import HEAD_BYTES, Guard, open_files
from dragoman.serving.operate.log import set_up as set_up_log
from dragoman.serving.operate.settings import ServeSettings, listen
from dragoman.serving.service.catalogue import Catalogue, LanguageDetector
from dragoman.serving.service.endpoints import ServedTasks
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service
from dragoman.tasks import catalogue

logger = logging.getLogger("dragoman")

_FILES = ("recipe.toml", "*.safetensors", "*.model")
"""The files that a run needs to translate."""

Stamp = tuple[tuple[str, int, int, int], ...]


class Renewal:
    """Reloads the keys and runs of a service on request. It belongs to the event loop."""

    def __init__(self, service: Service, folders: Mapping[str, Path], tasks: ServedTasks) -> None:
        """``folders``: the folder of each run, by its name. The runs were loaded a moment ago."""
        self._service = service
        self._tasks = tasks
        self._folders = dict(folders)
        self._stamps = {name: stamp(folder) for name, folder in folders.items()}
        self._reading = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._renewals: set[asyncio.Task[None]] = set()

    def ask(self) -> None:
        """Start a renewal, which waits for an earlier one."""
        task = asyncio.get_running_loop().create_task(self.renew())
        self._renewals.add(task)
        task.add_done_callback(self._renewals.discard)

    async def renew(self) -> None:
        """Reload the keys at once, and then the runs whose files have changed. Only runs wait for
        an earlier renewal, which may wait for requests under way: a revoked key is refused from now
        on, whatever these do."""
        try:
            await self._renew_keys()
        except DragomanError as error:
            logger.error("Nothing else was reloaded: %s", error)
            return
        async with self._turn:
            try:
                if await self._renew_runs():
                    # Models are reference cycles, which the collector would not look for soon.
                    gc.collect()
            except DragomanError as error:
                logger.error("No run was reloaded: %s", error)
            except Exception:  # a damaged run may fail with any exception: the old one stays
                logger.exception("reloading the runs failed; the old ones are still served")

    async def _renew_keys(self) -> None:
        settings = self._service.settings
        if settings.api_keys is not None:
            async with self._reading:
                load = partial(ApiKeys.load, settings.api_keys, settings.limits)
                self._service.keys = await asyncio.to_thread(load)
            logger.info("The API keys were read again.")

    async def _renew_runs(self) -> bool:
        """Reload the runs that changed; returns False if there are none."""
        service = self._service
        stamps = {name: stamp(folder) for name, folder in self._folders.items()}
        changed = [name for name in stamps if stamps[name] != self._stamps[name]]
        if not changed:
            logger.info("No run has changed.")
            return False
        new = await asyncio.to_thread(self._open, changed)
        old = service.catalogue
        for run in new.values():
            run.start()
        service.catalogue = Catalogue([new.get(run.name, run) for run in old.runs], old.detector)
        self._stamps = stamps
        before = set(service.under_way)  # a request that chooses its run later uses the new one
        logger.info("Reloaded: %s.", ", ".join(changed))
        while before & service.under_way:
            await asyncio.sleep(0.05)
        await asyncio.gather(*(run.close() for run in old.runs if run.name in new))
        return True

    def _open(self, names: list[str]) -> dict[str, ServedRun]:
        settings = self._service.settings
        return {
            name: self._tasks.open(catalogue.Run.open(self._folders[name]), settings, name)
            for name in names
        }


def stamp(folder: Path) -> Stamp:
    """The state of the files that a run needs to translate; it changes when a file changes."""
    files = []
    for pattern in _FILES:
        for path in sorted(folder.glob(pattern)):
            about = path.stat()
            files.append((path.name, about.st_mtime_ns, about.st_size, about.st_ino))
    return tuple(files)


KEEP_ALIVE_SECONDS = 75
"""For proxies, longer than they keep connections themselves (nginx: 60 s); the guard closes idle
connections of other clients earlier."""


def serve(
    folders: Sequence[Path], settings: ServeSettings, listener: socket.socket, tasks: ServedTasks
) -> None:
    """Load runs and serve them until told to stop (SIGTERM, Ctrl-C).

    ``listener``: a socket of ``bind``. Errors: ``RunError`` for a run that cannot be opened,
    ``DataError`` for API keys that cannot be read, ``DragomanError`` if another program took the
    address first.
    """
    set_up_log(settings.log)
    # A name such as "." would stand elsewhere in messages too, out of which folders are taken.
    named = dict(zip(run_names(folders), map(Path.absolute, folders), strict=True))
    serve_app(_load(named, settings, tasks), settings, listener, named)


def _load(folders: Mapping[str, Path], settings: ServeSettings, tasks: ServedTasks) -> FastAPI:
    # Only the application holds the runs, so that it can release those that it replaces.
    opened = {name: catalogue.Run.open(folder) for name, folder in folders.items()}
    runs = [tasks.open(run, settings, name) for name, run in opened.items()]
    return create_app(runs, settings, LanguageDetector(), tasks)


def serve_app(
    app: FastAPI, settings: ServeSettings, listener: socket.socket, folders: Mapping[str, Path]
) -> None:
    """Serve an application of ``create_app``. ``folders``: the folders of the runs that SIGHUP
    reloads, by name. Errors: as ``serve``."""
    service: Service = app.state.service
    workers = [run.engine.workers for run in service.catalogue.runs]
    torch.set_num_threads(torch_threads(workers, settings))
    guard = Guard(settings.limits, Networks(settings.proxies), open_files())
    service.meters.watch(guard)
    listen(listener, settings)
    _tell(service, listener)
    config = uvicorn.Config(
        app,
        http=guard.protocol,  # type: ignore[arg-type]  # uvicorn expects a class, but any function that makes a connection works
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # ``create_app`` adds that middleware itself
        backlog=guard.most_accepted,
        timeout_graceful_shutdown=round(settings.grace_seconds),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
    # Uvicorn raises the signal again after the shutdown, which must end the process normally.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _Server(config, service, guard, Renewal(service, folders, app.state.tasks)).run(
        sockets=[listener]
    )


def torch_threads(workers: Sequence[int], settings: ServeSettings) -> int:
    """The number of threads that torch computes with. ``workers``: the number of search threads of
    each run.

    Where kernels search, each worker has a core to itself, and threads of torch would only slow it
    down. Where torch runs every model there is one thread too unless ``threads`` says otherwise:
    OpenMP's threads wait for each other by spinning, and with any other work on the same cores that
    took 24 times as long as one thread does (docs/experiments.md).
    """
    return 1 if max(workers, default=1) > 1 else settings.threads or 1


def _tell(service: Service, listener: socket.socket) -> None:
    for run in service.catalogue.runs:
        does = run.does
        if run.translates:
            does += f" {run.source} to {run.target}"
        logger.info("%s: %s", run.name, does)
    if service.settings.page and not page_is_built():
        logger.info(NOT_BUILT)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    logger.info("Serving on http://%s:%d (API: /docs). Stop with Ctrl-C.", shown, port)


def run_names(folders: Sequence[Path]) -> list[str]:
    """The name of each run: its folder's, with as many parent folders as make it unique."""
    paths = [folder.resolve() for folder in folders]
    if len(set(paths)) < len(paths):
        raise DragomanError("A run is given twice. Give each run once.")
    names = []
    for path in paths:
        depth = 1
        while any(other != path and other.parts[-depth:] == path.parts[-depth:] for other in paths):
            depth += 1
        names.append("-".join(path.parts[-depth:]).strip("/-"))
    return names


class _Server(uvicorn.Server):
    """Uvicorn that sets ``/ready`` to 503 as soon as it is told to stop, limits connections, and
    reloads keys and runs at SIGHUP."""

    def __init__(
        self, config: uvicorn.Config, service: Service, guard: Guard, renewal: Renewal
    ) -> None:
        super().__init__(config)
        self._service = service
        self._guard = guard
        self._renewal = renewal

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Uvicorn calls this at the start."""
        await super().startup(sockets)
        if (
            not sys.stdin or not sys.stdin.isatty()
        ):  # at a terminal, SIGHUP means that the terminal was closed
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._renewal.ask)
        # A search for cycles among all loaded objects would stop every thread for a tenth of a
        # second or more: from now on only objects that come with requests are searched.
        gc.collect()
        gc.freeze()

    async def on_tick(self, counter: int) -> bool:
        """Uvicorn calls this ten times a second."""
        if counter % 10 == 0:
            self._guard.sweep()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Uvicorn calls this at SIGTERM and SIGINT; at the second SIGINT it stops at once."""
        self._service.closing = True
        if not self.should_exit:
            logger.info("Stopping after the requests in progress.")
        super().handle_exit(sig, frame)
