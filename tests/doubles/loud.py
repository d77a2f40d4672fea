"""A mapper that writes its lines in capitals, in place of a model. Not a test: tests import it, and
so do the processes that they start."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence

from dragoman.base.errors import DragomanError
from dragoman.cluster.lines import LineMapper, Texts

DEADLY = "this line kills"
REFUSED = "this line is refused"


def loud(precision: str, pause: float = 0.0) -> LineMapper:
    """``pause``: seconds that each line takes."""

    def outputs(rows: Sequence[Texts]) -> Iterable[str]:
        if any(REFUSED in text for texts in rows for text in texts):
            raise DragomanError("line 1: it is refused")
        return _each(rows, pause)

    return LineMapper(outputs, precision or "fp32", "", "capitals")


def described_process(precision: str) -> LineMapper:
    """One whose description says what its process may use, and by which key it looks up what was
    measured."""
    from dragoman.native.measured import machine_key
    from dragoman.native.processor import cores

    told = f"{cores()} cores, {os.environ.get('OMP_NUM_THREADS')} threads, {machine_key()}"
    return LineMapper(lambda rows: [], precision or "fp32", "", told)


def _each(rows: Sequence[Texts], pause: float) -> Iterator[str]:
    for texts in rows:
        if DEADLY in texts[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        if pause:
            time.sleep(pause)
        yield " | ".join(texts).upper()
