"""The programs that are compared, as processes: one JSON object a line, over standard streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Process = subprocess.Popen[str]


def begin(who: str, command: list[str | Path], more: Mapping[str, str]) -> tuple[Process, str]:
    """Start a program, with ``more`` in its environment, and wait until it has loaded.

    -> the process and the version that it tells. Ends the benchmark if it does not start.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"} | more,
    )  # fmt: skip
    return process, _answer(process, f"{who} did not start")["version"]


def ask(process: Process, who: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a job. Ends the benchmark if the program stops before it."""
    assert process.stdin is not None
    print(json.dumps(job), file=process.stdin, flush=True)
    return _answer(process, f"{who} stopped while it did {job}")


def _answer(process: Process, otherwise: str) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        sys.exit(otherwise)
    answer: dict[str, Any] = json.loads(line)
    return answer
