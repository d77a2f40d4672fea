"""The processes that train one model together, as torchrun starts them.

The examples of an update are divided among the processes. Each process sums its gradients, one
exchange adds them up, and every process takes the same step. Examples and their dropout masks
depend on the recipe, and not on the number of processes, so four processes compute the same updates
as one process, except that sums may differ by rounding.

Work that only the first process does (preparing, validating, saving) may take hours. The other
processes wait for it in ``any`` or ``broadcast_text``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import Tensor, distributed

from dragoman.base.errors import TrainingError
from dragoman.native.processor import processor

_PATIENCE = timedelta(days=365)
"""The time for which processes wait while the first process prepares, validates or saves. torch's
limits, 10 to 30 minutes, are meant for exchanges, in which all processes take part."""


def processes() -> int:
    """Return the number of processes that torchrun started, or 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_device() -> str:
    """Select a GPU for this process, if the machine has any, and return it; else return the CPU.

    Errors: ``TrainingError`` if torchrun started more processes than there are GPUs.
    """
    if not torch.cuda.is_available():
        return "cpu"
    local, gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if local >= gpus:
        raise TrainingError(
            f"process {local} of this machine has no GPU: there are {gpus}. Start no more "
            "processes than GPUs."
        )
    torch.cuda.set_device(local)
    return f"cuda:{local}"


def gpu_name(device: torch.device) -> str:
    """Return the product name of a GPU, or "" for a CPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else ""


def own_machine() -> str:
    """Return the name of the processor and, if there is a GPU, its name: the speed of training
    depends on them."""
    gpu = gpu_name(torch.device(own_device()))
    return f"{processor()}, {gpu}" if gpu else processor()


class Ranks:
    """The place of this process among the processes that train together. If there is only one
    process, exchanges do nothing."""

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        device: str = "cpu",
        waiting: distributed.ProcessGroup | None = None,
    ) -> None:
        """If ``size`` > 1, torch's process group must be initialised before; ``Ranks.join`` does
        this.

        ``rank``: the number of this process, from 0; ``size``: the number of processes;
        ``waiting``: a group of the same processes, for exchanges that may have to wait a very long
        time.
        """
        self.rank = rank
        self.size = size
        self.device = torch.device(device)
        self._waiting = waiting
        if self.device.type == "cuda":  # else convolutions in fp32 round what they multiply
            torch.backends.cudnn.allow_tf32 = False

    @classmethod
    @contextmanager
    def join(cls) -> Iterator[Ranks]:
        """Join the processes that torchrun started, if its environment variables are set.

        Without torchrun, this process is alone. Its device is that of ``own_device``.
        """
        device, size = own_device(), processes()
        if size == 1:
            yield cls(device=device)
            return
        distributed.init_process_group("gloo" if device == "cpu" else "nccl")
        try:
            waiting = distributed.new_group(backend="gloo", timeout=_PATIENCE)
            yield cls(distributed.get_rank(), size, device, waiting)
        finally:
            distributed.destroy_process_group()

    @property
    def first(self) -> bool:
        """True in the first process, which writes files and prints messages."""
        return self.rank == 0

    def all_reduce(self, tensor: Tensor) -> None:
        """Replace ``tensor`` by its sum over all processes."""
        if self.size > 1:
            with _explaining_errors():
                distributed.all_reduce(tensor)

    def any(self, flag: bool) -> bool:
        """Return True if ``flag`` is true in any process. This call waits for all processes,
        however long that takes."""
        if self.size == 1:
            return flag
        count = torch.tensor([float(flag)])
        with _explaining_errors():
            distributed.all_reduce(count, group=self._waiting)
        return bool(count)

    def broadcast(self, tensor: Tensor) -> None:
        """Replace the values of ``tensor`` by those of the first process."""
        if self.size > 1:
            with _explaining_errors():
                distributed.broadcast(tensor, 0)

    def broadcast_text(self, text: str) -> str:
        """Return the text of the first process. This call waits for that text, however long that
        takes."""
        if self.size == 1:
            return text
        content = torch.tensor(list(text.encode()), dtype=torch.uint8)
        length = torch.tensor([len(content)])
        with _explaining_errors():
            distributed.broadcast(length, 0, group=self._waiting)
            if not self.first:
                content = torch.empty(int(length), dtype=torch.uint8)
            distributed.broadcast(content, 0, group=self._waiting)
        return bytes(content.tolist()).decode()


@contextmanager
def _explaining_errors() -> Iterator[None]:
    """Turn the error of a failed exchange into a message that says what happened."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            "another of the processes that train together has ended or cannot be reached. See "
            f"its own error message, then use dragoman resume. ({str(error).splitlines()[0]})"
        ) from error
