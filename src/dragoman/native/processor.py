"""The processor's abilities as the kernel reports them, this process's share of it, and how torch's
threads wait. Needs no torch."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/")
"""Under which the kernel's files lie."""


def cpu_flags() -> set[str]:
    """Its instruction sets, in the kernel's words; nothing where it does not say."""
    for line in cpuinfo():
        if line.startswith(("flags", "Features")):
            return set(line.partition(":")[2].split())
    return set()


def no_bf16_units(flags: str | None = None) -> str | None:
    """Why products in bf16 would only be imitated here; None where the processor has units for
    them. Whether these are faster than fp32 is to be measured. ``flags``: as in /proc/cpuinfo; read
    from there when left out."""
    known = cpu_flags() if flags is None else set(flags.split())
    return None if {"avx512_bf16", "amx_bf16"} & known else "the processor has no bf16 units"


def cpuinfo() -> list[str]:
    """The lines of /proc/cpuinfo; none where there is no such file."""
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def processor() -> str:
    """Its name; with family and model where Linux tells them, since many share one name."""
    facts: dict[str, str] = {}
    for line in cpuinfo():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    if "cpu family" not in facts:
        return name
    return f"{name}, family {facts['cpu family']} model {facts['model']}"


THREADS = "OMP_NUM_THREADS"
"""The variable from which torch takes its number of threads."""


@dataclass
class _Share:
    cores: int | None = None
    threads: str | None = None
    """The value of ``THREADS`` in the process that started this one."""


_share = _Share()


def share_cores(most: int, threads: str | None) -> None:
    """Use at most so many cores in this process, which works beside others like it, and as many
    threads of torch. Call it before torch is imported.

    ``threads``: what ``THREADS`` says to the process that started it. What was measured of this
    machine is looked up as that process would, so that both choose the same kernels.
    """
    _share.cores, _share.threads = most, threads
    os.environ[THREADS] = threads or str(most)


def cores() -> int:
    """Processor cores that this process uses: its share, or all that it may use."""
    return min(all_cores(), _share.cores or all_cores())


def all_cores() -> int:
    """Processor cores that this process may use: those of its affinity (macOS has none, and gives
    all), or as many as the quota of its container is worth, if that is fewer."""
    quota = min(_quotas(_ROOT), default=math.inf)
    return max(1, min(affinity(), math.ceil(quota))) if quota < math.inf else affinity()


def threads_asked() -> str:
    """Threads of torch that are asked for, or as many as there are cores; without a share."""
    asked = os.environ.get(THREADS) if _share.cores is None else _share.threads
    return str(all_cores()) if asked is None else asked


def affinity() -> int:
    """Processor cores that this process may run on, at least for a part of the time."""
    known = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1


def _quotas(root: Path) -> Iterator[float]:
    """In cores, what each control group that this process is in, or that is around one, may use:
    ``cpu.max`` of version 2, ``cpu.cfs_quota_us`` of version 1."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            yield from _up(root / "sys/fs/cgroup", path, _quota_of_2)
        elif "cpu" in controllers.split(","):
            for mounted in (controllers, "cpu"):
                yield from _up(root / "sys/fs/cgroup" / mounted, path, _quota_of_1)


def _up(top: Path, path: str, quota_of: Callable[[Path], float | None]) -> Iterator[float]:
    """Yields the quota of the group and of all around it. In a container the path may be one of the
    host's: what is mounted at the top is the container's own group then."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for count in range(len(parts), -1, -1):
        quota = quota_of(top.joinpath(*parts[:count]))
        if quota is not None:
            yield quota


def _quota_of_2(group: Path) -> float | None:
    return _cores_of(_text(group / "cpu.max").split())


def _quota_of_1(group: Path) -> float | None:
    return _cores_of([_text(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")])


def _cores_of(words: list[str]) -> float | None:
    """The cores of a quota and a period, both in microseconds; "max" and -1 mean no limit."""
    if len(words) != 2 or not all(word.isdecimal() and int(word) > 0 for word in words):
        return None
    return int(words[0]) / int(words[1])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


_SPINS = "1000"


def wait_briefly(environment: MutableMapping[str, str]) -> None:
    """Ask OpenMP for a short spin, unless ``environment`` says how long; call it before torch is
    imported.

    Torch cuts every operator into parts for a team of threads and waits until all are done. OpenMP
    lets the early ones spin for milliseconds before they sleep. On a machine that does other things
    too, the spinning takes the core that the late one needs: two threads then train ten times
    slower than one, or fifty times. A short spin, the one that OpenMP itself takes where threads
    outnumber cores, keeps the speed of an idle machine (docs/experiments.md).
    """
    if not any(name in environment for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")):
        environment["GOMP_SPINCOUNT"] = _SPINS


def keep_to_quota(environment: MutableMapping[str, str]) -> None:
    """Gives torch as many threads as a container's quota gives cores, unless ``environment`` sets
    the number; call it before torch is imported. Torch makes a thread for each core that it sees,
    and does not see a quota: 64 threads that share two cores' time wait for each other most of it.
    """
    if cores() < affinity():
        environment.setdefault(THREADS, str(cores()))
