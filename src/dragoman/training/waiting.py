"""How long torch's threads spin while they wait for each other, where torch does the training.

Torch cuts every operator into parts for a team of threads and waits until all are done. OpenMP lets
the early ones spin for milliseconds before they sleep. On a machine that does other things too, the
spinning takes the core that the late one needs: two threads then train ten times slower than one.
Where the native kernels train, torch has one thread and nothing waits; elsewhere a short spin, the
one that OpenMP itself takes where threads outnumber cores, keeps the speed. It is asked for where
it was measured: on processors without AVX-512.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from dragoman.native.processor import cpu_flags

_SPINS = "1000"


def wait_briefly(environment: MutableMapping[str, str]) -> None:
    """Ask OpenMP for it, unless ``environment`` does already; call it before torch is imported."""
    asked = any(name in environment for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"))
    if not asked and "avx512f" not in cpu_flags():
        environment["GOMP_SPINCOUNT"] = _SPINS
