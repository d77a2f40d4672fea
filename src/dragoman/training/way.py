"""A way to compute a training: whose kernels, in which precision, on how many threads.

Each gives the same results to within rounding and other last digits, so a run keeps the one that it
began with. Which one that is, is measured (``speed/fastest_way.py``); ``arithmetic.py`` says which
ways there are on this machine, and puts one in force.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dragoman.base.settings import Settings
from dragoman.base.wording import plural
from dragoman.native.processor import cores, processor

PLAIN = "plain"
"""In the place of an instruction set: torch does the work."""

_ON_GPU = "GPU: "
"""What the machine of a way begins with where a GPU does the work."""


class TrainingWay(Settings):
    """The kernels, precision and number of threads that were the fastest in a measurement. Written
    by dragoman, and chosen again on a different kind of machine."""

    kernels: str = Field(min_length=1, max_length=100)
    """The instruction set of the native kernels. plain: only torch."""
    precision: Literal["fp32", "bf16"]
    """The precision of matrix products."""
    threads: int = Field(ge=1, le=4096)
    """The number of threads in each process."""
    machine: str = Field(min_length=1, max_length=1000)
    """The processor on which this was measured, the number of cores that were available, and the
    GPU, if one does the work."""

    @property
    def by_kernels(self) -> bool:
        return self.kernels != PLAIN

    @property
    def on_gpu(self) -> bool:
        return self.machine.startswith(_ON_GPU)

    @property
    def level(self) -> str | None:
        """The instruction set of the kernels; None: torch does the work."""
        return self.kernels if self.by_kernels else None

    def summary(self) -> str:
        """For a person: "avx2 kernels in fp32, 2 threads"."""
        if self.on_gpu:
            gpu = self.machine.removeprefix(_ON_GPU).partition(";")[0]
            return f"{gpu} in {self.precision}"
        what = f"{self.kernels} kernels" if self.by_kernels else "plain torch"
        return f"{what} in {self.precision}, {plural(self.threads, 'thread')}"

    def on(self, threads: int) -> TrainingWay:
        return self.model_copy(update={"threads": threads})


def this_machine(gpu: str = "") -> str:
    """What decides whether a way that was measured holds here. ``gpu``: the name of the GPU that
    does the work, if one does."""
    machine = f"{processor()}; cores: {cores()}"
    return f"{_ON_GPU}{gpu}; {machine}" if gpu else machine
