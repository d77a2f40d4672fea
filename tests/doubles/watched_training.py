"""A training with its page, in processes as a person starts them. Not a test: tests import it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx

UPDATES = 1500
"""So many that a page is open before the training ends."""
SHORT = (
    "model.model_dim=32", "model.ffn_dim=64", "plan.tokens_per_update=256",
    "plan.tokens_per_micro_batch=256", f"training.updates={UPDATES}", "training.validate_every=500",
    "evaluation.dev_sentences=10", "training.kernels=plain", "training.precision=fp32",
    "training.checkpoint_minutes=0", "text.vocabulary=400",
)  # fmt: skip
SECONDS = 300


class Training:
    """``dragoman train --page`` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        sets = [part for change in SHORT for part in ("--set", change)]
        program = [sys.executable, "-m", "dragoman", "train", "demo", "--to", str(folder)]
        self.process = subprocess.Popen(
            [*program, *sets, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.lines: list[str] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    def wait_for(self, pattern: str) -> re.Match[str]:
        end = time.monotonic() + SECONDS
        while (found := re.search(pattern, "".join(self.lines))) is None:
            assert time.monotonic() < end and self.process.poll() is None, "".join(self.lines)
            time.sleep(0.05)
        return found


@contextmanager
def watched(folder: Path) -> Iterator[tuple[Training, httpx.Client, str]]:
    """A training, a client without a key, and the key."""
    training = Training(folder, "--page")
    try:
        address, key = training.wait_for(r"(http://127\.0\.0\.1:\d+)/#run\?key=\s*(\S+)").groups()
        with httpx.Client(base_url=address, timeout=SECONDS) as client:
            yield training, client, key
    finally:
        training.end()
