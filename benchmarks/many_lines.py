"""Many lines translated in parts while workers are killed, beside the plain verb:

    python benchmarks/many_lines.py --lines 10000000
    python benchmarks/many_lines.py --lines 1000000 --run runs/demo

A worker that is killed loses its part, so a part must take less time than passes between two kills
of one worker: choose ``--of-part`` and ``--kill-every`` so.

The lines are sentences of the demo, drawn over and over, in files of a million. Without ``--run``,
the model has random weights and is as small as that of the tests. The output of the parts is
compared with that of the plain verb, byte for byte; ``--no-plain`` leaves that out. Prints minutes
on the clock, processor minutes of all processes, and lines a second of processor time.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "doubles"), str(ROOT / "tests" / "cluster")]
os.environ |= {"OMP_NUM_THREADS": "1", "DRAGOMAN_MEASURE": "off", "PYTHONPATH": str(ROOT / "src")}
_OF_FILE = 1_000_000
_SENTENCES = 40_000


def write_lines(folder: Path, lines: int) -> list[Path]:
    """Files of drawn sentences."""
    from dragoman.demo.corpus import demo_corpus

    pairs = demo_corpus(train_pairs=_SENTENCES, dev_pairs=1, test_pairs=1).train
    sources = [f"{pair.source}\n" for pair in pairs]
    draw, paths = random.Random(1), []
    for number in range(-(-lines // _OF_FILE)):
        path = folder / f"{number:03}.txt"
        count = min(_OF_FILE, lines - number * _OF_FILE)
        path.write_text("".join(draw.choices(sources, k=count)), encoding="utf-8")
        paths.append(path)
    return paths


def timed(name: str, lines: int, begun: tuple[float, float]) -> None:
    """Print what a translation took."""
    clock, processor = time.monotonic() - begun[0], used() - begun[1]
    print(
        f"{name}: {clock / 60:.1f} minutes, {processor / 60:.1f} of processor time, "
        f"{lines / processor:,.0f} lines a second of it",
        flush=True,
    )


def used() -> float:
    """Processor seconds of all processes that were started and have ended."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def in_parts(command: list[str], every: float) -> int:
    """Run it, a worker killed every so many seconds -> how many were."""
    from recovery import workers_of

    draw, killed = random.Random(1), 0
    driver = subprocess.Popen(command)
    at = time.monotonic() + every
    while driver.poll() is None:
        time.sleep(0.2)
        if time.monotonic() < at:
            continue
        workers = workers_of(driver.pid)
        if workers:
            with suppress(ProcessLookupError):
                os.kill(draw.choice(workers), signal.SIGKILL)
                killed += 1
        at = time.monotonic() + every
    if driver.returncode:
        raise SystemExit(f"the command ended with {driver.returncode}")
    return killed


def digest(paths: list[Path]) -> str:
    """Of the content of files, one after another."""
    found = hashlib.sha256()
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--of-part", type=int, default=5_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill-every", type=float, default=20.0)
    parser.add_argument("--no-plain", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        run = given.run or here / "run"
        if given.run is None:
            from untrained_run import untrained_run

            run.mkdir()
            untrained_run(run)
        (here / "in").mkdir()
        inputs = write_lines(here / "in", given.lines)
        verb = [sys.executable, "-m", "dragoman", "translate", str(run)]
        expected = ""
        if not given.no_plain:
            begun = time.monotonic(), used()
            whole = here / "whole"
            subprocess.run([*verb, *map(str, inputs), "--to", str(whole), "--quiet"], check=True)
            timed("the plain verb", given.lines, begun)
            expected = digest([whole])
        begun = time.monotonic(), used()
        killed = in_parts(
            [*verb, str(here / "in"), "--to", str(here / "out"), "--on", f"local:{given.workers}",
             "--lines", str(given.of_part)],
            given.kill_every,
        )  # fmt: skip
        timed(f"in parts, {given.workers} workers, {killed} killed", given.lines, begun)
        parts = sorted((here / "out").glob("part-*"))
        print(f"{len(parts):,} parts, {sum(path.stat().st_size for path in parts) / 1e6:,.0f} MB")
        if expected:
            same = digest(parts) == expected
            print("the output is that of the plain verb" if same else "THE OUTPUT DIFFERS")
            return int(not same)
    return 0


if __name__ == "__main__":
    sys.exit(main())
