"""Running the server: loading its runs, listening, and stopping without losing what it took."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import torch
import uvicorn

from dragoman.errors import DragomanError
from dragoman.serving import page
from dragoman.serving.app import create_app
from dragoman.serving.languages import Detector
from dragoman.serving.served import ServedRun
from dragoman.serving.service import Service
from dragoman.serving.settings import ServeSettings
from dragoman.tasks.run import Run

logger = logging.getLogger("dragoman")


def serve(folders: Sequence[Path], settings: ServeSettings) -> None:
    """Load runs and serve them until told to stop (SIGTERM, Ctrl-C).

    Errors: ``RunError`` for a run that cannot be opened, ``DataError`` for API keys that cannot be
    read, ``DragomanError`` for an address that cannot be listened on.
    """
    names = run_names(folders)
    runs = [
        ServedRun.open(Run.open(folder), settings, name)
        for folder, name in zip(folders, names, strict=True)
    ]
    serve_runs(runs, settings)


def serve_runs(runs: Sequence[ServedRun], settings: ServeSettings) -> None:
    """Serve runs that are loaded. Errors: as ``serve``."""
    if any(run.engine.workers > 1 for run in runs):
        # Each worker has a core to itself; torch's own threads would only be in its way.
        torch.set_num_threads(1)
    app = create_app(runs, settings, Detector())
    listener = listen(settings)
    host, port = listener.getsockname()[:2]
    for run in runs:
        logger.info("%s: %s to %s, %s", run.name, run.source, run.target, run.engine.precision)
    if settings.page and not page.is_built():
        logger.info(page.NOT_BUILT)
    shown = f"[{host}]" if ":" in host else host
    logger.info("Serving on http://%s:%d (API: /docs). Stop with Ctrl-C.", shown, port)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=round(settings.grace_seconds),
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 * 1024,
    )
    # Uvicorn raises the signal again once all is finished; that is then a normal end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _Server(config, app.state.service).run(sockets=[listener])


def listen(settings: ServeSettings) -> socket.socket:
    """A listening socket. Errors: ``DragomanError`` that says what to do."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named; without it
    # every answer waits some 40 ms for the client's acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise DragomanError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}. "
            "Take another with --port (0: any that is free) or --host."
        ) from None
    listener.listen(2048)
    listener.set_inheritable(False)
    return listener


def run_names(folders: Sequence[Path]) -> list[str]:
    """The name of each run: its folder's, with as many of those above as tell them apart."""
    paths = [folder.resolve() for folder in folders]
    if len(set(paths)) < len(paths):
        raise DragomanError("A run was named twice.")
    names = []
    for path in paths:
        depth = 1
        while any(other != path and other.parts[-depth:] == path.parts[-depth:] for other in paths):
            depth += 1
        names.append("-".join(path.parts[-depth:]).strip("/-"))
    return names


class _Server(uvicorn.Server):
    """Uvicorn, which lets ``/ready`` know as soon as it is told to stop."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called at SIGTERM and SIGINT; at the second SIGINT it does not wait."""
        self._service.closing = True
        if not self.should_exit:
            logger.info("Stopping: finishing what is under way.")
        super().handle_exit(sig, frame)
