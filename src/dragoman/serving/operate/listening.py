"""The socket that the server listens on. Quick to import: a port that is taken is told at once."""

from __future__ import annotations

import socket

from dragoman.errors import DragomanError
from dragoman.serving.http.limits import BACKLOG
from dragoman.serving.operate.settings import ServeSettings


def bind(settings: ServeSettings) -> socket.socket:
    """A socket that has its address, and does not listen yet: whoever calls while the runs are
    loaded is told at once that nobody is there. Errors: ``DragomanError`` that says what to do."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named; without it
    # every answer waits some 40 ms for the client's acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.set_inheritable(False)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise _cannot_listen(settings, error) from None
    return listener


def listen(listener: socket.socket, settings: ServeSettings) -> None:
    """Take connections from now on. Errors: ``DragomanError``: another was faster."""
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _cannot_listen(settings, error) from None


def _cannot_listen(settings: ServeSettings, error: OSError) -> DragomanError:
    return DragomanError(
        f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}. "
        "Take another with --port (0: any that is free) or --host."
    )
