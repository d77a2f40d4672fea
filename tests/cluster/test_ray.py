"""Actors of Ray as workers: Ray is really started, and one of its processes killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from asked_parts import joined

COMMAND = """
import sys
from asked_parts import asked, run, wanted

if __name__ == "__main__":
    source, to = sys.argv[1:]
    print(run(wanted(asked([source]), to, on="ray:2", pause=0.05)), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_actors_do_what_one_process_does_and_killed_ones_are_replaced(tmp_path: Path) -> None:
    source, to, script = tmp_path / "in.txt", tmp_path / "out", tmp_path / "driver.py"
    source.write_text("".join(f"line {number}\n" for number in range(160)))
    script.write_text(COMMAND)
    doubles = Path(__file__).parents[1] / "doubles"
    paths = {"PYTHONPATH": os.pathsep.join([str(doubles), *filter(None, sys.path)])}
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    driver = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script), str(source), str(to)],
        env={**os.environ, **paths, **quiet}, text=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while len(list(to.glob("part-*"))) < 3:
            assert driver.poll() is None and time.monotonic() < until, "no part came"
            time.sleep(0.05)
        actors = [
            process
            for process in descendants(driver.pid)
            if Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::_Actor")
        ]
        os.kill(actors[0], signal.SIGKILL)
        told, _ = driver.communicate(timeout=120)
    finally:
        driver.kill()
    assert driver.returncode == 0, told
    assert joined(to).decode() == source.read_text().upper()
    assert "1 worker was replaced" in told and "a worker was lost: The actor died" in told
    assert len(list((to / "_dragoman" / "parts").iterdir())) == 40


def descendants(process: int) -> list[int]:
    """Processes that it has started, and theirs: Ray's are among them."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(path.parent.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found[1:]
