"""Which precision a run computes in, when its recipe says "auto"."""

from __future__ import annotations

from pathlib import Path

import torch

from dragoman.errors import TrainingError
from dragoman.nn.linear import Precision


def choose_precision(wish: str, device: torch.device, flags: str | None = None) -> Precision:
    """``auto`` -> bf16 where the processor multiplies it faster than fp32, else fp32.

    ``flags``: as in /proc/cpuinfo; read from there when left out. Raises TrainingError for
    bf16 on a GPU that has none. (A CPU without bf16 instructions computes it, slowly.)
    """
    if wish == "fp32":
        return "fp32"
    if device.type == "cuda":
        able = torch.cuda.is_bf16_supported(including_emulation=False)
        if wish == "bf16" and not able:
            raise TrainingError("this GPU does not compute in bf16: set training.precision = fp32.")
        return "bf16" if able else "fp32"
    if wish == "bf16":
        return "bf16"
    able = {"avx512_bf16", "amx_bf16"} & (cpu_flags() if flags is None else set(flags.split()))
    return "bf16" if able else "fp32"


def cpu_flags() -> set[str]:
    """What the processor can do, in the kernel's words; nothing where it does not say."""
    for line in cpuinfo():
        if line.startswith(("flags", "Features")):
            return set(line.partition(":")[2].split())
    return set()


def cpuinfo() -> list[str]:
    """The lines of /proc/cpuinfo; none where there is no such file."""
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
