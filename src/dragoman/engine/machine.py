"""The facts about this machine that ``doctor``, reports and benchmarks print."""

from __future__ import annotations

import os
import platform
import shutil
from importlib import metadata

from dragoman.models.catalogue.fastest import summary
from dragoman.native import library
from dragoman.native.processor import cores, cpu_flags, processor

__all__ = ["cores", "machine_facts", "processor", "vector_units"]

_UNITS = (
    ("amx_int8", "AMX int8"),
    ("amx_bf16", "AMX bf16"),
    ("avx512_vnni", "AVX512-VNNI (int8)"),
    ("avx512_bf16", "AVX512-BF16"),
    ("avx_vnni", "AVX-VNNI (int8)"),
    ("avx512f", "AVX512"),
    ("avx2", "AVX2"),
    ("asimddp", "NEON with dot products (int8)"),
)


def machine_facts() -> list[tuple[str, str]]:
    """Return the facts as names and values, the most important first."""
    import torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    status = library.status()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        ("processor", processor()),
        ("cores to use", str(cores())),
        ("threads of torch", str(torch.get_num_threads())),
        ("memory", f"{memory:.0f} GiB"),
        ("vector and matrix units", ", ".join(vector_units())),
        ("GPU", f"{', '.join(gpus)} (for training alone)" if gpus else "none"),
        ("training", "by the way that is measured to be the fastest: dragoman doctor --measure"),
        ("precision of translating", summary()),
        ("native kernels", status.reason),
        ("compiler", shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++") or "none"),
        ("Python", platform.python_version()),
        *((name, _version(name)) for name in ("dragoman", "torch", "sentencepiece", "sacrebleu")),
        ("system", platform.platform(terse=True)),
    ]


def vector_units() -> list[str]:
    """Return the instruction sets of this processor that the kernels and torch profit from, best
    first."""
    flags = cpu_flags()
    return [name for flag, name in _UNITS if flag in flags] or ["none that is known"]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
