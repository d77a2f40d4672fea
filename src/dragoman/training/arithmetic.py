"""The ways in which a training run can compute on this machine, and the choice among them.

``ways_here`` lists the ways; ``fastest_way.py`` measures which of them is the fastest. The results
of different ways differ in their last digits, so a resumed run computes in the way in which it was
begun, or warns that it cannot (``way_of_run``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import torch
from torch import nn

from dragoman.base.errors import TrainingError
from dragoman.native import library, loader
from dragoman.native.processor import cores, no_bf16_units
from dragoman.nn.linear import Precision, kernels_fit
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks, gpu_name
from dragoman.training.settings import PLAIN, TrainingSettings, TrainingWay, this_machine

_PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16")


def ways_here(
    model: nn.Module, settings: TrainingSettings, device: torch.device
) -> list[TrainingWay]:
    """Return every way to train ``model`` with ``settings``, on as many threads as torch has. If
    nothing is measured, the first way is used: fp32, with the kernels of the best instruction set.
    The caller must check that these kernels compute correctly (``library.agrees``).

    bf16 is left out if neither the kernels nor the processor support it, unless ``settings``
    require it, because emulated bf16 is many times slower. Errors: ``TrainingError`` for bf16 on a
    GPU that has none.
    """
    threads, machine = min(torch.get_num_threads(), cores()), this_machine(gpu_name(device))
    ways = [
        TrainingWay(kernels=kernels, precision=precision, threads=threads, machine=machine)
        for precision in _PRECISIONS
        if settings.precision in ("auto", precision)
        for kernels in [*_levels(model, settings, device, precision), PLAIN]
        if kernels != PLAIN or _torch_has(precision, settings.precision, device)
    ]
    forced = (os.environ.get("DRAGOMAN_NATIVE") or "auto") not in ("auto", "off")
    by_kernels = [way for way in ways if way.by_kernels]
    return by_kernels if forced and by_kernels else ways


def _levels(
    model: nn.Module, settings: TrainingSettings, device: torch.device, precision: Precision
) -> list[str]:
    """Return the instruction sets that can train ``model`` in ``precision``, best first."""
    if settings.kernels == PLAIN or device.type != "cpu":
        return []
    levels: list[str] = []
    for offered in loader.levels_offered():
        level = loader.training_level(offered, precision)
        with loader.using(level):
            if level is not None and level not in levels and kernels_fit(model, precision):
                levels.append(level)
    return levels


def _torch_has(precision: Precision, wish: str, device: torch.device) -> bool:
    if precision == "fp32":
        return True
    if device.type == "cpu":
        return wish == "bf16" or no_bf16_units() is None
    able: bool = torch.cuda.is_bf16_supported(including_emulation=False)
    if wish == "bf16" and not able:
        raise TrainingError("this GPU does not compute in bf16. Set training.precision = fp32.")
    return able


def way_of_run(
    model: nn.Module, settings: TrainingSettings, state: TrainingState, ranks: Ranks
) -> tuple[TrainingWay, str | None]:
    """Return the way in which a run with this ``state`` computes, and a warning if its weights will
    not be the same to the last bit as if it had never stopped.

    A new run uses the way given in its settings if that way was measured on a machine like this
    one, else the first way of ``ways_here``. A resumed run uses the way in which it was begun, even
    if another way would be chosen now. If this machine cannot compute in that way (other
    instruction sets, another processor, fewer cores), the run keeps its precision and uses the best
    kernels that this machine has.
    """
    if state.precision and settings.precision == "auto":
        settings = settings.model_copy(update={"precision": state.precision})
    ways, gpu = ways_here(model, settings, ranks.device), gpu_name(ranks.device)
    if not state.kernels:
        way = settings.way
        if way is None or way.machine != this_machine(gpu):
            return _nearest_way(ways, ways[0].kernels, ways[0].precision), None
        return _nearest_way(ways, way.kernels, way.precision).on(way.threads), None
    if gpu != state.gpu:
        return _nearest_way(ways, ways[0].kernels, str(state.precision)), (
            f"this run was begun on {state.gpu or 'a CPU'} and is resumed on {gpu or 'a CPU'}, "
            "so its weights will differ"
        )
    if gpu:
        return _nearest_way(ways, PLAIN, str(state.precision)), None
    level = loader.training_level(state.kernels, str(state.precision)) or state.kernels
    nearest = _nearest_way(ways, level, str(state.precision))
    threads, warning = _threads(nearest.threads, state, ranks)
    if warning is None and nearest.kernels != level:
        warning = (
            f"this run was begun with {state.kernels} kernels and resumed with {nearest.kernels} "
            "ones, so its weights will differ in the last digits"
        )
    return nearest.on(threads), warning


def _nearest_way(ways: Sequence[TrainingWay], kernels: str, precision: str) -> TrainingWay:
    """Return the way that matches the requested precision and kernels best. If several ways match
    equally well, the first of them is returned."""
    nearest = max(ways, key=lambda way: (way.precision == precision, way.kernels == kernels))
    if nearest.level is None or library.agrees(nearest.level):
        return nearest
    return _nearest_way([way for way in ways if way.kernels != nearest.kernels], kernels, precision)


def _threads(available: int, state: TrainingState, ranks: Ranks) -> tuple[int, str | None]:
    """Return the number of threads with which the run was begun. If this process does not have as
    many, return ``available``, the number of threads that this process has, and a warning."""
    if not state.threads:
        return available, None
    if (state.cores, state.processes) == (cores(), ranks.size):
        return state.threads, None
    if (state.threads, state.processes) == (available, ranks.size):
        return available, None
    return available, (
        f"this run was begun on {state.processes} x {state.threads} threads and is resumed on "
        f"{ranks.size} x {available}, so its weights will differ in the last digits"
    )


def note(way: TrainingWay, state: TrainingState, ranks: Ranks) -> None:
    """Record in ``state`` the way in which the run computes: precision, kernels, threads, and the
    cores, processes and GPU that it uses."""
    state.precision, state.kernels, state.threads = way.precision, way.kernels, way.threads
    state.masks = "kernels" if way.by_kernels and state.masks != "pool" else "pool"
    state.cores, state.processes = cores(), ranks.size
    state.gpu = gpu_name(ranks.device)


@contextmanager
def computing(way: TrainingWay) -> Iterator[None]:
    """Use the kernels and the threads of ``way`` inside the ``with`` block."""
    before = torch.get_num_threads()
    if before != way.threads:
        torch.set_num_threads(way.threads)
    try:
        own_threads = loader.own_threads() if way.by_kernels else nullcontext()
        with loader.using(way.level), own_threads:
            yield
    finally:
        if before != way.threads:
            torch.set_num_threads(before)
