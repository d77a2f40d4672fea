"""All programs kept to fewer instructions than the processor has, as most people's computers are.

    python benchmarks/translate.py --instructions avx2

Libraries read what they may use when they are loaded, so the script begins anew with it in its
environment; the programs that it starts inherit that.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_AVX2 = {
    "DRAGOMAN_NATIVE": "avx2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "CT2_FORCE_CPU_ISA": "AVX2",
    "CT2_VERBOSE": "1",  # it says which it takes
}
LIMITS = {
    "avx2": _AVX2,
    "avxvnni": _AVX2
    | {  # what others have of it is in the libraries that multiply for them
        "DRAGOMAN_NATIVE": "avxvnni",
        "ONEDNN_MAX_CPU_ISA": "AVX2_VNNI",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2_E1",
    },
}
IN_WORDS = {"avx2": "AVX2", "avxvnni": "AVX-VNNI"}
NAME = "BENCHMARKS_KEPT_TO"


def keep_to(name: str | None) -> None:
    """Begin this script anew, kept to the instructions of ``name``, unless it is already."""
    if name is None or os.environ.get(NAME) == name:
        return
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | LIMITS[name] | {NAME: name})


def kept_to() -> str | None:
    """One of ``LIMITS``, or None."""
    return os.environ.get(NAME)


def results_file(path: Path, name: str | None) -> Path:
    """Where results go: those of fewer instructions into a file of their own."""
    return path if name is None else path.with_stem(f"{path.stem}-{name}")
