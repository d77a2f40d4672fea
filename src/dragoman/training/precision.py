"""Which precision a run computes in, when its recipe says "auto"."""

from __future__ import annotations

import torch

from dragoman.errors import TrainingError
from dragoman.native.processor import cpu_flags
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
