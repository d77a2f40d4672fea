"""How the benchmark and its trainers talk: one JSON object a line, over standard streams.

Runs in every peer's environment, so it imports the standard library alone. A trainer is a class
whose ``update(sources, targets)`` makes one update and whose ``nll(sources, targets)`` only looks;
both take lists of token ids without specials. Losses are in nats, summed over target tokens. Some
can ``save(path)`` their weights as an npz under our names.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, Protocol

BOS, EOS = 1, 2
Sentences = list[list[int]]


class Trainer(Protocol):
    version: str

    def update(self, sources: Sentences, targets: Sentences, rate: float) -> float:
        """Forward, backward, Adam's step at a learning rate -> smoothed loss, summed."""

    def nll(self, sources: Sentences, targets: Sentences) -> float:
        """The plain loss, summed, without dropout."""

    def memory_mb(self) -> float:
        """The most memory held so far: this process's, or on a GPU what its tensors took."""


def peak_memory_mb() -> float:
    """The most memory that this process has held so far."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found.group(1)) / 1024 if found else 0.0


def tokens(targets: Sentences) -> int:
    """Target tokens, end symbols counted, padding not."""
    return sum(len(target) + 1 for target in targets)


def learning_rate(step: int, peak: float, warmup: int) -> float:
    """Up in a straight line, then down with the inverse square root of the step."""
    return float(peak * min(step / warmup, (warmup / step) ** 0.5))


def converse(trainer: Trainer, folder: Path) -> None:
    """Answer jobs until the other side goes away."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not stand among the answers
    print(json.dumps({"version": trainer.version}), file=answers, flush=True)
    updates = json.loads((folder / "updates.json").read_text(encoding="utf-8"))
    held_out = json.loads((folder / "held_out.json").read_text(encoding="utf-8"))
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    done = 0
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        answer: dict[str, Any] = {"seconds": [], "tokens": [], "loss": []}
        for _ in range(job.get("updates", 0)):
            sources, targets = updates[done % len(updates)]
            done += 1
            rate = learning_rate(done, plan["peak"], plan["warmup"])
            start = time.perf_counter()
            loss = trainer.update(sources, targets, rate)
            answer["seconds"].append(time.perf_counter() - start)
            answer["tokens"].append(tokens(targets))
            answer["loss"].append(loss / tokens(targets))
        if job.get("look"):
            sums = [(trainer.nll(*batch), tokens(batch[1])) for batch in held_out]
            answer["held_out_nll"] = sum(s for s, _ in sums) / sum(n for _, n in sums)
        if job.get("save"):
            trainer.save(Path(job["save"]))  # type: ignore[attr-defined]
        answer["memory_mb"] = trainer.memory_mb()
        print(json.dumps(answer), file=answers, flush=True)
