"""How torch's threads wait: how many there are, and how long they spin before they sleep.

Torch cuts every operator into parts for a team of threads and waits until all are done. OpenMP lets
the early ones spin for milliseconds before they sleep. On a machine that does other things too, the
spinning takes the core that the late one needs: two threads then train ten times slower than one,
or fifty times. A short spin, the one that OpenMP itself takes where threads outnumber cores, keeps
the speed of an idle machine (docs/experiments.md).

Torch makes a thread for each core that it sees, and sees nothing of the quota of a container: 64
threads that share two cores' time wait for each other most of it.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from dragoman.native.processor import affinity, cores

_SPINS = "1000"


def wait_briefly(environment: MutableMapping[str, str]) -> None:
    """Ask OpenMP for it, unless ``environment`` does already; call it before torch is imported."""
    if not any(name in environment for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")):
        environment["GOMP_SPINCOUNT"] = _SPINS


def keep_to_quota(environment: MutableMapping[str, str]) -> None:
    """As many threads for torch as a container's quota gives cores, unless ``environment`` says how
    many; call it before torch is imported."""
    if cores() < affinity():
        environment.setdefault("OMP_NUM_THREADS", str(cores()))
