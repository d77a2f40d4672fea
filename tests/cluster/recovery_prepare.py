"""The rows of the table of ``recovery.py`` that are about ``dragoman prepare``."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from recovery import ROOT, Environment, Row, workers_of

PAIRS, OF_PART = 12_000, 300
_EVERY = 0.7
"""Seconds between two workers that are killed: there are several stages of a few seconds."""
RECIPE = """
name = "recovered"
[languages]
source = "en"
target = "de"
[data.split]
dev = 0.02
test = 0.02
[text]
vocabulary = 600
[[data.train]]
source = "{here}/all.en"
target = "{here}/all.de"
"""

Files = dict[str, bytes]


def command(here: Path, to: str) -> list[str]:
    return [
        sys.executable, "-m", "dragoman", "prepare", str(here / "recovered.toml"), "--to", to,
        "--on", "local:2", "--lines", str(OF_PART),
    ]  # fmt: skip


def start(here: Path, to: str) -> subprocess.Popen[str]:
    path = {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(
        command(here, to), text=True, stderr=subprocess.PIPE, env={**os.environ, **path}
    )


def files_at(to: str) -> Files:
    """What was prepared, without what the stages left."""
    from dragoman.stores import open_store

    store = open_store(to)
    return {
        name: store.read(name, 0, stat.size)
        for name, stat in store.names("")
        if not name.startswith("_")
    }


def kill_workers(row: Row, here: Path, to: str) -> subprocess.Popen[str]:
    draw = random.Random(1)
    driver = start(here, to)
    while driver.poll() is None:
        time.sleep(_EVERY)
        workers = workers_of(driver.pid)
        if workers:
            with suppress(ProcessLookupError):
                os.kill(draw.choice(workers), signal.SIGKILL)
                row.injected += 1
    return driver if driver.returncode == 0 else start(here, to)


def kill_driver(row: Row, here: Path, to: str) -> subprocess.Popen[str]:
    """In the middle of reading, of collecting lines, and of writing shards."""
    for stage in ("read", "lines", "shards"):
        driver = start(here, to)
        while driver.poll() is None and not any(Path(to, "_dragoman", stage).glob("*")):
            time.sleep(0.02)
        if driver.poll() is None:
            driver.kill()
            row.injected += 1
        driver.communicate()
    return start(here, to)


def no_fault(row: Row, here: Path, to: str) -> subprocess.Popen[str]:
    return start(here, to)


Fault = Callable[[Row, Path, str], subprocess.Popen[str]]


def prepared(name: str, fault: Fault, here: Path, to: str, expected: Files) -> Row:
    row = Row(f"prepare: {name}")
    began = time.monotonic()
    driver = fault(row, here, to)
    told = driver.communicate()[1]
    row.seconds = time.monotonic() - began
    found = files_at(to)
    row.lost, row.doubled = len(expected.keys() - found.keys()), len(found.keys() - expected.keys())
    row.identical = found == expected and driver.returncode == 0
    if not row.identical:
        print(told, file=sys.stderr)
    return row


def of_folders(here: Path) -> Iterator[Row]:
    """``here``: a folder to work in."""
    from dragoman.demo.corpus import demo_corpus

    pairs = demo_corpus(train_pairs=PAIRS, dev_pairs=1, test_pairs=1).train
    for side in ("source", "target"):
        lines = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
        (here / f"all.{'en' if side == 'source' else 'de'}").write_text(lines, encoding="utf-8")
    (here / "recovered.toml").write_text(RECIPE.format(here=here))
    alone = [*command(here, str(here / "one")), "--quiet"]
    alone[alone.index("local:2")] = "local:1"
    subprocess.run(alone, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
    expected = files_at(str(here / "one"))
    faults: dict[str, Fault] = {
        f"a worker killed every {_EVERY} s": kill_workers,
        "the driver killed in 3 stages": kill_driver,
    }
    for number, (name, fault) in enumerate(faults.items()):
        yield prepared(name, fault, here, str(here / f"prepared{number}"), expected)


def of_store(here: Path) -> Iterator[Row]:
    """The same folder, once ``of_folders`` is through."""
    from faulty_s3 import BUCKET, s3

    expected = files_at(str(here / "one"))
    with s3(Environment()) as switch:
        switch.every = {"refuse": 20, "short": 21}
        row = prepared("S3 refuses, cuts short", no_fault, here, f"s3://{BUCKET}/to", expected)
        row.injected = sum(switch.injected.values())
        yield row
