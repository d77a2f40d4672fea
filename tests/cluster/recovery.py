"""Faults in a translation in parts, really injected, and what they cost: make test-cluster

A translator of random weights translates some thousand lines, once as one process, then in parts
while workers and drivers are killed and an object store fails. Each row of the table is one such
translation: it ends with exit code 1 if any of them lost, doubled or changed a line.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "doubles")]
os.environ |= {"OMP_NUM_THREADS": "1", "DRAGOMAN_MEASURE": "off"}

LINES, OF_PART = 8_000, 200
_EVERY = 2.5
"""Seconds between two workers that are killed."""
_LONGEST = 1500
"""Seconds after which what waits for ever is ended, with exit code 1."""


@dataclass
class Row:
    """What one translation showed."""

    fault: str
    injected: int = 0
    lost: int = 0
    doubled: int = 0
    identical: bool = False
    seconds: float = 0.0
    pauses: list[float] = field(default_factory=list)
    """Seconds from each fault to the next part that was completed."""

    def __str__(self) -> str:
        pause = f"{median(self.pauses):.1f} / {max(self.pauses):.1f}" if self.pauses else "-"
        same = "yes" if self.identical else "NO"
        return (
            f"{self.fault:<42}{self.injected:>9}{self.lost:>6}{self.doubled:>9}{same:>11}"
            f"{self.seconds:>9.0f}{pause:>14}"
        )


HEAD = (
    f"{'fault':<42}{'injected':>9}{'lost':>6}{'doubled':>9}{'identical':>11}{'seconds':>9}"
    f"{'to next part':>14}"
)


class Parts:
    """The parts of an address, counted while they come."""

    def __init__(self, address: str) -> None:
        from dragoman.stores import is_remote, open_store

        base, _, self._below = address.rpartition("/") if is_remote(address) else (address, "", "")
        self._store = open_store(base)
        self._below = f"{self._below}/" if self._below else ""

    def names(self) -> list[str]:
        found = self._store.names(self._below)
        return [name for name, _ in found if name.rpartition("/")[2].startswith("part-")]

    def lines(self) -> list[bytes]:
        found: list[bytes] = []
        for name in self.names():
            stat = self._store.stat(name)
            assert stat is not None
            found += self._store.read(name, 0, stat.size).splitlines(keepends=True)
        return found


def command(here: Path, to: str) -> list[str]:
    return [
        sys.executable, "-m", "dragoman", "translate", str(here / "run"), str(here / "in"),
        "--to", to, "--on", "local:2", "--lines", str(OF_PART),
    ]  # fmt: skip


def start(here: Path, to: str) -> subprocess.Popen[str]:
    path = {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(
        command(here, to), text=True, stderr=subprocess.PIPE, env={**os.environ, **path}
    )


def workers_of(driver: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == driver and b"resource_tracker" not in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return sorted(found)


def next_part(parts: Parts, driver: subprocess.Popen[str], row: Row) -> None:
    """Wait until one more is complete."""
    before, began = len(parts.names()), time.monotonic()
    while driver.poll() is None and len(parts.names()) == before:
        time.sleep(0.05)
    if driver.poll() is None:
        row.pauses.append(time.monotonic() - began)


def kill_workers(row: Row, parts: Parts, here: Path, to: str) -> list[subprocess.Popen[str]]:
    draw = random.Random(1)
    driver = start(here, to)
    while driver.poll() is None and not parts.names():
        time.sleep(0.05)
    while driver.poll() is None:
        workers = workers_of(driver.pid)
        if workers:
            with suppress(ProcessLookupError):
                os.kill(draw.choice(workers), signal.SIGKILL)
                row.injected += 1
                next_part(parts, driver, row)
        time.sleep(_EVERY)
    return [driver if driver.returncode == 0 else start(here, to)]  # a part hit three times


def kill_driver(row: Row, parts: Parts, here: Path, to: str) -> list[subprocess.Popen[str]]:
    driver = start(here, to)
    while driver.poll() is None and len(parts.names()) < 5:
        time.sleep(0.05)
    driver.kill()
    driver.communicate()
    row.injected += 1
    again = start(here, to)
    next_part(parts, again, row)
    return [again]


def two_drivers(row: Row, parts: Parts, here: Path, to: str) -> list[subprocess.Popen[str]]:
    row.injected += 1
    return [start(here, to), start(here, to)]


def no_fault(row: Row, parts: Parts, here: Path, to: str) -> list[subprocess.Popen[str]]:
    return [start(here, to)]


Fault = Callable[[Row, Parts, Path, str], list[subprocess.Popen[str]]]


def translated(name: str, fault: Fault, here: Path, to: str, expected: list[bytes]) -> Row:
    row, parts = Row(name), Parts(to)
    began = time.monotonic()
    drivers = fault(row, parts, here, to)
    told = [driver.communicate()[1] for driver in drivers]
    row.seconds = time.monotonic() - began
    lines = parts.lines()
    row.lost, row.doubled = max(0, len(expected) - len(lines)), max(0, len(lines) - len(expected))
    row.identical = lines == expected and not any(driver.returncode for driver in drivers)
    if not row.identical:
        print("".join(told), file=sys.stderr)
    return row


def missing_for_store() -> str | None:
    """The package without which there is no object store."""
    return next((name for name in ("obstore", "moto") if find_spec(name) is None), None)


class Environment:
    """What a test's monkeypatch does."""

    def setenv(self, name: str, value: str) -> None:
        os.environ[name] = value


def of_store(here: Path, expected: list[bytes]) -> Iterator[Row]:
    import logging

    from faulty_s3 import BUCKET, s3

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    faults = {
        "a request in 20 refused (503)": {"refuse": 20},
        "an answer in 20 lost (500 after it)": {"lose": 20},
        "a body in 20 cut short": {"short": 20},
        "a request in 20 slow (0.5 s)": {"slow": 20},
    }
    for name, every in faults.items():
        with s3(Environment()) as switch:
            switch.every = every
            row = translated(f"S3: {name}", no_fault, here, f"s3://{BUCKET}/out", expected)
            row.injected = sum(switch.injected.values())
            twice = [n for path, n in switch.put.items() if "/part-" in path and n > 1]
            row.doubled += len(twice)
            yield row


@contextmanager
def prepared() -> Iterator[tuple[Path, list[bytes]]]:
    """A run and its input -> their folder, and the output of one process."""
    from untrained_run import untrained_run

    from dragoman.demo.corpus import demo_corpus

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for name in ("run", "in"):
            (here / name).mkdir()
        untrained_run(here / "run")
        pairs = demo_corpus(train_pairs=4000, dev_pairs=1, test_pairs=1).train
        sources = [pair.source for pair in pairs]
        for number in range(4):
            some = "".join(f"{sources[(k * 7 + number) % len(sources)]}\n"
                           for k in range(LINES // 4))  # fmt: skip
            (here / "in" / f"{number}.txt").write_text(some, encoding="utf-8")
        whole = here / "whole"
        subprocess.run(
            [*command(here, "")[:5], *map(str, sorted((here / "in").iterdir())), "--to",
             str(whole), "--quiet"],
            check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        yield here, whole.read_bytes().splitlines(keepends=True)


def main() -> int:
    """Print the table."""
    faulthandler.dump_traceback_later(_LONGEST, exit=True)
    began = time.monotonic()
    with prepared() as (here, expected):
        print(f"{len(expected):,} lines in parts of {OF_PART}, two workers of one thread\n{HEAD}")
        faults: dict[str, Fault] = {
            "none": no_fault,
            f"a worker killed every {_EVERY} s": kill_workers,
            "the driver killed once": kill_driver,
            "two drivers at once": two_drivers,
        }
        of_folder = (
            translated(name, fault, here, str(here / f"out{number}"), expected)
            for number, (name, fault) in enumerate(faults.items())
        )
        # Under its own name, which the file of the other rows imports.
        sys.modules.setdefault("recovery", sys.modules[__name__])
        import recovery_prepare

        of_prepare = here / "prepare"
        of_prepare.mkdir()
        found = chain(of_folder, recovery_prepare.of_folders(of_prepare))
        if (missing := missing_for_store()) is None:
            found = chain(found, of_store(here, expected), recovery_prepare.of_store(of_prepare))
        rows = []
        for row in found:
            print(row, flush=True)
            rows.append(row)
        if missing is not None:
            print(f"skipped, the rows of the object store: {missing} is not installed")
    print(f"{time.monotonic() - began:.0f} s in all")
    return int(any(row.lost or row.doubled or not row.identical for row in rows))


if __name__ == "__main__":
    sys.exit(main())
