"""The server's log: lines for people or JSON for programs, at a bounded rate.

Text that a client sent is never written: if the message of an exception may contain such text, only
the place in the code is logged. Warnings of the same kind are written a few times per minute, and
then only counted.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Literal

LogKind = Literal["lines", "json"]

ACCESS = logging.getLogger("dragoman.access")
"""The access log. It writes one line for each request, from the ``fields`` of a log record."""

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The ID of the current request. The client gets it in the header X-Request-ID."""

OFTEN = 10
"""The largest number of records of one kind that are written per minute."""
_LONGEST = 1_000
"""The largest number of bytes that are logged of a line that a library writes on standard error."""


def catch_native() -> threading.Thread:
    """Send what C libraries write on standard error through this log, which limits its rate: some
    libraries write a line for each frame of a damaged MP3 file. Call this before any object stores
    a reference to ``sys.stderr``. Returns the thread that reads those lines. It ends when the last
    writer closes the pipe.

    If the process crashes, ``faulthandler`` still writes the traceback to the original standard
    error.
    """
    kept = os.dup(2)
    reading, writing = os.pipe()
    os.set_blocking(
        writing, False
    )  # A line is dropped if the pipe is full, so that no writer waits.
    os.dup2(writing, 2)
    os.close(writing)
    encoding = sys.stderr.encoding
    sys.stderr = open(kept, "w", buffering=1, encoding=encoding, errors="backslashreplace")  # noqa: SIM115
    faulthandler.enable(kept)
    thread = threading.Thread(target=_log_native, args=(reading,), daemon=True)
    thread.start()
    return thread


def _log_native(reading: int) -> None:
    with open(reading, "rb") as lines:
        while line := lines.readline(_LONGEST):
            if text := line.decode("utf-8", "replace").strip():
                shown = text if text.isprintable() else ascii(text)
                logging.getLogger("dragoman").warning("A library says: %s", shown)


def set_up(kind: LogKind) -> None:
    """Set the format of the log, and send the messages of all libraries to the handlers of
    dragoman's own logger."""
    root, own = logging.getLogger(), logging.getLogger("dragoman")
    handlers = own.handlers or root.handlers or [logging.StreamHandler()]
    for handler in handlers:
        handler.addFilter(Bounded())
        handler.setFormatter(JsonLines() if kind == "json" else LogLines())
    # Warnings of libraries take the same bounded way; none is written to the terminal directly.
    logging.captureWarnings(True)
    level = own.getEffectiveLevel()
    for logger, least in ((own, level), (root, max(logging.WARNING, level))):
        logger.handlers = list(handlers)
        logger.setLevel(least)
    own.propagate = False


class Bounded(logging.Filter):
    """A filter that lets ``OFTEN`` warnings and errors of each kind pass per minute. The next one
    after that minute reports how many were left out. Two records are of the same kind if they come
    from the same line of code and have the same type of exception."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[object, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        now = self._clock()
        failure = record.exc_info[0] if record.exc_info else None
        kind = (record.name, record.pathname, record.lineno, failure)
        since, count = self._kinds.get(kind, (now, 0))
        if now - since >= 60:
            if count > OFTEN:
                left_out = f"({count - OFTEN:,} more like the next were left out) "
                record.msg = left_out + str(record.msg)
            since, count = now, 0
        self._kinds[kind] = (since, count + 1)
        return count < OFTEN


class LogLines(logging.Formatter):
    """Formats records as lines for people; lines of a request end with its ID."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        if fields:
            return " ".join(f"{name}={value}" for name, value in fields.items())
        said = record.getMessage()
        if request_id.get():
            said += f" [{request_id.get()}]"
        if record.exc_info:
            said += "\n" + error_summary(record.exc_info[1])
        return said


class JsonLines(logging.Formatter):
    """Formats each record as one line with a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        fields: dict[str, Any] = getattr(record, "fields", {})
        if fields:
            line |= fields
        else:
            line["message"] = record.getMessage()
            if request_id.get():
                line["request"] = request_id.get()
        if record.exc_info:
            line["traceback"] = error_summary(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False, default=str)


def error_summary(error: BaseException | None) -> str:
    """Return the traceback of an exception. It includes the message of the exception only if that
    message cannot contain what a client sent."""
    if error is None:
        return ""
    places = "".join(traceback.format_tb(error.__traceback__))
    said = "" if isinstance(error, ValueError | LookupError) else f": {error}"
    below = (
        f"{error_summary(error.__cause__)}\nwhich led to\n" if error.__cause__ is not None else ""
    )
    return f"{below}{places}{type(error).__name__}{said}"
