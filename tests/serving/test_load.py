"""Fifty clients at once, for as long as a leak or a rare error needs to show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "serve.py"


@pytest.mark.slow  # six minutes: memory that grows by a byte a request shows after thousands
def test_fifty_clients_for_five_minutes(demo: tuple[Path, str], tmp_path: Path) -> None:
    """No error, and memory is flat. What it does a second is the benchmark's to tell."""
    results = tmp_path / "serve.json"
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--run", demo[0], "--minutes", "5", "--attack-seconds", "0",
         "--results", results],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(results.read_text(encoding="utf-8"))
    print(done.stdout)
    assert found["arrays"]["clients"] == 50
    assert found["arrays"]["errors"] == found["single"]["errors"] == 0
    assert found["arrays"]["requests"] > 1000
    assert found["memory_mib"]["last_quarter_over_third"] < 1.02
