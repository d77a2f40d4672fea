"""What a run computes with: precision, kernels and threads, chosen once and repeated on resuming.

Other arithmetic gives other last digits, so a run that goes on takes what it was begun with, or
says that it cannot.
"""

from __future__ import annotations

import os

import torch
from torch import nn

from dragoman.errors import TrainingError
from dragoman.native import library
from dragoman.native.gradients import add_directly
from dragoman.native.processor import cpu_flags
from dragoman.nn.linear import Precision, kernels_fit, use_precision
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.settings import TrainingSettings


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


def choose_kernels(
    model: nn.Module,
    settings: TrainingSettings,
    state: TrainingState,
    device: torch.device,
    *,
    asks_autograd: bool,
) -> tuple[bool, str | None]:
    """Native kernels where they fit, unless the run was begun without them -> whether they compute,
    and a warning. ``asks_autograd``: see ``objectives.Objective``."""
    precision = state.precision
    assert precision
    wanted = settings.kernels == "auto" and state.kernels != "plain"
    fit = wanted and device.type == "cpu" and kernels_fit(model, precision)
    level = (library.status().level or "plain") if fit else "plain"
    use_precision(model, precision, by_kernels=fit)
    add_directly(model.parameters(), on=fit and not asks_autograd)
    state.masks = "kernels" if fit and state.masks != "pool" else "pool"
    begun, state.kernels = state.kernels, level
    if begun and begun != level:
        return fit, (
            f"this run was begun with {begun} kernels and goes on with {level} ones: its "
            "weights will differ in the last digits from what they would have been"
        )
    return fit, None


def choose_threads(state: TrainingState, ranks: Ranks) -> str | None:
    """As many as the run was begun with, where that can be -> a warning where it cannot."""
    cores, threads = os.cpu_count() or 1, torch.get_num_threads()
    warning = None
    if state.threads and (state.threads, state.processes) != (threads, ranks.size):
        if (state.cores, state.processes) == (cores, ranks.size):
            torch.set_num_threads(state.threads)
        else:
            warning = (
                f"this run was begun on {state.processes} x {state.threads} threads and goes "
                f"on with {ranks.size} x {threads}: its weights will differ in the last "
                "digits from what they would have been"
            )
    state.threads, state.cores = torch.get_num_threads(), cores
    state.processes = ranks.size
    return warning
