"""Ctrl-C and SIGTERM are requests to finish the update, save, and print how to continue."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(BaseException):
    """Raised only inside work that can simply be repeated (a validation), never in an update.

    This class does not inherit from ``Exception``, so that no error handler catches it by mistake.
    """


class StopRequest:
    """A request to stop, made by a signal. Use ``listening`` around the training loop."""

    _PATIENCE = 3
    """The number of signals that stop the process at once, without saving. The first two may come
    from one Ctrl-C, because the terminal and torchrun may each send a signal."""

    def __init__(self) -> None:
        self.requested = False
        self._count = 0
        self._may_raise = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle signals inside the ``with`` block. Outside the main thread, this does nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it; so do we
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Raise Interrupted as soon as a request arrives inside the ``with`` block, or at its
        beginning if a request arrived before it."""
        self._may_raise = True
        try:
            if self.requested:
                raise Interrupted
            yield
        finally:
            self._may_raise = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._count += 1
        if self._count >= self._PATIENCE:
            raise KeyboardInterrupt
        if self._may_raise:
            self._may_raise = False
            raise Interrupted
