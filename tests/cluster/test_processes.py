"""Processes as workers: really started, really killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from asked_parts import asked, joined, run, wanted
from loud import DEADLY, described_process

from dragoman.base import workers as base_workers
from dragoman.base.errors import DragomanError
from dragoman.cluster import work
from dragoman.cluster.lines import Job
from dragoman.cluster.plan import make_plan
from dragoman.native.measured import machine_key
from dragoman.native.processor import all_cores

pytestmark = pytest.mark.system

DOUBLES = Path(__file__).parents[1] / "doubles"
LINES = [f"line {number}" for number in range(40)]

COMMAND = """
import signal, sys
from asked_parts import asked, run, wanted

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
    source, to, pause, on = sys.argv[1:]
    print(run(wanted(asked([source]), to, on=on, pause=float(pause))))
"""
"""A driver of its own: this one can be killed."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@pytest.fixture(autouse=True)
def doubles_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spawned process gets the path of this one; a driver that is started does not."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(DOUBLES), *sys.path]))


def begin(
    source: Path, to: Path, pause: float = 0.02, on: str = "local:2"
) -> subprocess.Popen[str]:
    script = to.with_name("driver.py")
    script.write_text(COMMAND)
    return subprocess.Popen(
        [sys.executable, str(script), str(source), str(to), str(pause), on], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def children_of(process: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            # Spawned workers have a helper beside them, which ends by itself.
            if parent == process and b"resource_tracker" not in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def wait_for(parts: int, to: Path) -> None:
    until = time.monotonic() + 60
    while len(list(to.glob("part-*"))) < parts:
        assert time.monotonic() < until, "no part came"
        time.sleep(0.01)


@pytest.mark.parametrize("forks", [True, False])
def test_processes_do_what_one_process_does(
    source: Path, tmp_path: Path, forks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "may_copy", lambda: forks)
    told = run(wanted(asked([source]), tmp_path / "out", on="local:2"))
    assert joined(tmp_path / "out").decode() == source.read_text().upper()
    assert "40 lines in 10 parts" in told


@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize("threads", [None, "3"])
def test_workers_share_the_cores_and_choose_kernels_as_the_command_does(
    source: Path, tmp_path: Path, forks: bool, threads: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "may_copy", lambda: forks)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if threads is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
    job = Job(str(tmp_path / "out"), make_plan(asked([source])), described_process)
    worker = work.local_worker(4)
    try:
        _, description = worker.ask(job).result(60)
    finally:
        worker.stop()
    expected = f"{min(4, all_cores())} cores, {threads or 4} threads, {machine_key()}"
    assert description == expected


def test_a_process_with_threads_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "obstore", "pyarrow", "ray"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    alone = threading.active_count() == 1 and sys.platform == "linux"
    assert base_workers.may_copy() == alone
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    try:
        assert not base_workers.may_copy()
    finally:
        waiting.set()
        thread.join()
    monkeypatch.setitem(sys.modules, "obstore", None)
    assert not base_workers.may_copy()


def test_a_line_that_kills_processes_costs_three_and_the_rest_is_done(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{line}\n" for line in [*LINES[:10], DEADLY, *LINES[10:]]))
    with pytest.raises(
        DragomanError, match=r"part-00002\.txt.*the system ended its process.*memory"
    ):
        run(wanted(asked([source]), tmp_path / "out", on="local:2"))
    assert len(list((tmp_path / "out").glob("part-*"))) == 10


@pytest.mark.slow  # it kills processes; `make test-cluster` runs it
def test_a_killed_driver_takes_its_workers_along_and_the_same_command_goes_on(
    source: Path, tmp_path: Path
) -> None:
    to = tmp_path / "out"
    driver = begin(source, to, pause=0.25)
    wait_for(2, to)
    workers = children_of(driver.pid)
    assert workers
    driver.kill()
    driver.communicate(timeout=60)
    until = time.monotonic() + 60
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < until, "a worker outlived its driver"
        time.sleep(0.01)
    assert len(list(to.glob("part-*"))) < 10
    told = run(wanted(asked([source]), to, on="local:2"))
    assert "of 10 parts are complete" in told
    assert joined(to).decode() == source.read_text().upper()


@pytest.mark.slow  # it kills processes; `make test-cluster` runs it
def test_workers_end_with_their_driver_whatever_they_are_at(source: Path, tmp_path: Path) -> None:
    to = tmp_path / "out"
    driver = begin(source, to, pause=600)
    until = time.monotonic() + 60
    while not (to / "_dragoman" / "way.json").exists():
        assert time.monotonic() < until, "no worker began"
        time.sleep(0.01)
    workers = children_of(driver.pid)
    driver.kill()
    driver.communicate(timeout=60)
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < until, "a worker outlived its driver"
        time.sleep(0.01)


def test_killed_workers_are_replaced(source: Path, tmp_path: Path) -> None:
    to = tmp_path / "out"
    driver = begin(source, to, pause=0.1)
    wait_for(1, to)
    for worker in children_of(driver.pid):
        os.kill(worker, signal.SIGKILL)
    told, _ = driver.communicate(timeout=60)
    assert driver.returncode == 0, told
    assert "a worker was lost: the system ended its process" in told
    assert joined(to).decode() == source.read_text().upper()


def test_two_drivers_at_once_write_each_part_once(source: Path, tmp_path: Path) -> None:
    to = tmp_path / "out"
    drivers = [begin(source, to), begin(source, to)]
    told = [driver.communicate(timeout=60)[0] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0], told
    assert joined(to).decode() == source.read_text().upper()
    assert len(list((to / "_dragoman" / "parts").iterdir())) == 10


@pytest.mark.slow  # it kills processes; `make test-cluster` runs it
def test_an_interrupted_driver_ends_with_its_workers(source: Path, tmp_path: Path) -> None:
    to = tmp_path / "out"
    driver = begin(source, to, pause=0.5)  # of twenty seconds it sees one or two
    wait_for(1, to)
    workers = children_of(driver.pid)
    driver.send_signal(signal.SIGINT)
    driver.communicate(timeout=60)
    assert driver.returncode != 0
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
