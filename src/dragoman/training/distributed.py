"""The processes that train one model together, as torchrun starts them.

An update's examples are shared out; each process sums its gradients, one exchange adds them up,
and every process takes the same step. Examples and their dropout masks follow from the recipe,
never from the number of processes, so four of them follow the path of one (sums agree within
rounding).

What only the first process does (preparing, validating, saving) may take hours, and the others
wait for it at ``any`` or ``broadcast_text``.
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
"""The time for which processes wait while the first one prepares, validates or saves. torch's own
limits, 10 to 30 minutes, are for exchanges, where all are at work."""


def processes() -> int:
    """The number of processes that torchrun started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_device() -> str:
    """This process's GPU, made the one that it uses, where the machine has any; else the CPU.

    Errors: ``TrainingError`` where torchrun started more processes than there are GPUs.
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
    """The maker's name of a GPU; "" for a CPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else ""


def own_machine() -> str:
    """The processor, and the GPU if there is one, on which the speed of a training depends."""
    gpu = gpu_name(torch.device(own_device()))
    return f"{processor()}, {gpu}" if gpu else processor()


class Ranks:
    """This process among all that train together; alone, every exchange is free."""

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        device: str = "cpu",
        waiting: distributed.ProcessGroup | None = None,
    ) -> None:
        """``size`` > 1 needs an initialised process group; ``Ranks.joined`` makes one.

        ``waiting``: the same processes as a group that waits for as long as it takes.
        """
        self.rank = rank
        self.size = size
        self.device = torch.device(device)
        self._waiting = waiting
        if self.device.type == "cuda":  # else convolutions in fp32 round what they multiply
            torch.backends.cudnn.allow_tf32 = False

    @classmethod
    @contextmanager
    def joined(cls) -> Iterator[Ranks]:
        """Join the processes that torchrun started (its environment variables), if it did.

        The device is ``own_device``.
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
        """True in the process that writes files and prints messages."""
        return self.rank == 0

    def all_reduce(self, tensor: Tensor) -> None:
        """Replace ``tensor`` by its sum over all processes."""
        if self.size > 1:
            with _explaining_errors():
                distributed.all_reduce(tensor)

    def any(self, flag: bool) -> bool:
        """True if ``flag`` is true in any process. Waits for all, however long that takes."""
        if self.size == 1:
            return flag
        count = torch.tensor([float(flag)])
        with _explaining_errors():
            distributed.all_reduce(count, group=self._waiting)
        return bool(count)

    def broadcast(self, tensor: Tensor) -> None:
        """Replace ``tensor`` by that of the first process."""
        if self.size > 1:
            with _explaining_errors():
                distributed.broadcast(tensor, 0)

    def broadcast_text(self, text: str) -> str:
        """The text that the first process gives. Waits for it, however long that takes."""
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
    """An exchange that fails -> what that means to a person."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            "another of the processes that train together has ended or cannot be reached. See "
            f"its own error message, then use dragoman resume. ({str(error).splitlines()[0]})"
        ) from error
