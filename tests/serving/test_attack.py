"""The attacks that take long, on a server of its own; the quick ones are tests of their modules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ATTACK = Path(__file__).parents[2] / "benchmarks" / "attack.py"


@pytest.mark.slow  # two minutes: it is time that the attackers take
def test_the_server_bears_attacks(tiny_run: Path) -> None:
    done = subprocess.run(
        [sys.executable, ATTACK, "--run", tiny_run, "--only",
         "headers", "idle", "body", "garbage"],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    rows = re.findall(r"^\| `(\w+)`.*\| (.*) \|$", done.stdout, re.MULTILINE)
    seen = dict(rows)
    for name in ("headers", "idle", "garbage"):
        answered, asked = re.findall(r"(\d+) of (\d+) other requests answered", seen[name])[0]
        assert answered == asked, (name, seen[name])
    for name in ("headers", "garbage"):
        (written,) = re.findall(r"log of ([\d,]+) bytes", seen[name])
        assert int(written.replace(",", "")) < 10_000, (name, seen[name])
    assert ", 0 after 45 s" in seen["idle"]
    assert seen["body"].startswith("0 of 50")
