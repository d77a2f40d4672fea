"""The programs that are compared, as processes: one JSON object a line, over standard streams."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dragoman.native.processor import wait_briefly

Process = subprocess.Popen[str]

KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


def tuned() -> dict[str, str]:
    """The environment of tuned programs: what ``dragoman train`` asks for, they get too.

    glibc keeps memory in place of asking the kernel for it again and again; where ours lets torch's
    threads spin briefly, theirs do.
    """
    environment = dict(KEEP_MEMORY)
    wait_briefly(environment)
    return environment


class Stopped(Exception):
    """A program that did not start, or that stopped before it answered."""


def begin(
    who: str,
    python: Callable[[], Path],
    arguments: list[str | Path],
    *,
    is_tuned: bool,
    native: str | None = None,
) -> tuple[Process, str]:
    """Start a program and wait until it has loaded.

    ``python``: that of its environment, which is made when first asked for. ``native``: the
    instruction set whose kernels of ours are used, or "off"; None: the best. -> the process and the
    version that it tells.
    """
    more = tuned() if is_tuned else {}
    if native is not None:
        more = {"DRAGOMAN_NATIVE": native}
    try:
        command = [python(), *arguments]
    except subprocess.CalledProcessError as error:
        raise Stopped(f"{who}: its environment could not be made") from error
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"} | more,
    )  # fmt: skip
    return process, _answer(process, f"{who} did not start")["version"]


def ask(process: Process, who: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a job."""
    assert process.stdin is not None
    otherwise = f"{who} stopped while it did {job}"
    try:
        print(json.dumps(job), file=process.stdin, flush=True)
    except BrokenPipeError as error:
        raise Stopped(otherwise) from error
    return _answer(process, otherwise)


def end(process: Process) -> None:
    process.kill()
    process.wait()


def _answer(process: Process, otherwise: str) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        end(process)
        raise Stopped(otherwise)
    answer: dict[str, Any] = json.loads(line)
    return answer
