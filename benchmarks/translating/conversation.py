"""How the benchmark and its translators talk: one JSON object a line, over standard streams.

Runs in every peer's environment, so it imports the standard library alone. A translator is a class
with ``prepare(job)``, whose time is not counted, and ``translate(job, sources)``, whose time is.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, Protocol

Job = dict[str, Any]
"""beam, alpha (of the length penalty, in the system's own formula), length (tokens to write, or
null for natural ends), and the system's own settings."""


class Translator(Protocol):
    version: str

    def prepare(self, job: Job) -> None:
        """Load what the job's settings ask for."""

    def translate(self, job: Job, sources: list[Any]) -> list[Any]:
        """Texts to texts, or token ids to token ids, in order."""


def memory_mb() -> float:
    """Proportional set size of this process."""
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found.group(1)) / 1024 if found else 0.0


def converse(translator: Translator) -> None:
    """Answer jobs until the other side goes away."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not stand among the answers
    print(json.dumps({"version": translator.version}), file=answers, flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        translator.prepare(job)
        sources = json.loads(Path(job["sources"]).read_text(encoding="utf-8"))
        if job.get("one_by_one"):
            seconds, outputs = [], []
            for source in sources:
                start = time.perf_counter()
                outputs += translator.translate(job, [source])
                seconds.append(time.perf_counter() - start)
        else:
            start, busy = time.perf_counter(), time.process_time()
            outputs = translator.translate(job, sources)
            seconds = [time.perf_counter() - start, time.process_time() - busy]
        answer = {"seconds": seconds, "memory_mb": memory_mb(), "outputs": outputs}
        print(json.dumps(answer), file=answers, flush=True)
