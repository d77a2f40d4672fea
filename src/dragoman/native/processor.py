"""What the processor can do, as the kernel tells it. Needs no torch."""

from __future__ import annotations

from pathlib import Path


def cpu_flags() -> set[str]:
    """Its instruction sets, in the kernel's words; nothing where it does not say."""
    for line in cpuinfo():
        if line.startswith(("flags", "Features")):
            return set(line.partition(":")[2].split())
    return set()


def no_bf16_units() -> str | None:
    """Why products in bf16 are not faster than in fp32 here; None where they are."""
    return None if {"avx512_bf16", "amx_bf16"} & cpu_flags() else "the processor has no bf16 units"


def cpuinfo() -> list[str]:
    """The lines of /proc/cpuinfo; none where there is no such file."""
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
