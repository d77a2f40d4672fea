"""The processes that train one model together, as torchrun starts them.

An update's micro-batches are shared out; each process sums its gradients, one exchange adds them
up, and every process takes the same step. The recipe fixes the micro-batches, never the number of
processes, so four of them follow the path of one (sums agree within rounding).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, distributed

from dragoman.errors import TrainingError


class Ranks:
    """This process among all that train together; alone, every exchange is free."""

    def __init__(self, rank: int = 0, size: int = 1, device: str = "cpu") -> None:
        """``size`` > 1 needs an initialised process group; ``Ranks.joined`` sees to it."""
        self.rank = rank
        self.size = size
        self.device = torch.device(device)

    @classmethod
    @contextmanager
    def joined(cls) -> Iterator[Ranks]:
        """Join the processes that torchrun started (its environment variables), if it did.

        The device is this process's GPU where there is one, else the CPU.
        """
        local = int(os.environ.get("LOCAL_RANK", "0"))
        device = f"cuda:{local}" if torch.cuda.is_available() else "cpu"
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            yield cls(device=device)
            return
        if device != "cpu":
            if local >= torch.cuda.device_count():
                raise TrainingError(
                    f"process {local} of this machine has no GPU: there are "
                    f"{torch.cuda.device_count()}. Start no more processes than GPUs."
                )
            torch.cuda.set_device(local)
        distributed.init_process_group("gloo" if device == "cpu" else "nccl")
        try:
            yield cls(distributed.get_rank(), size, device)
        finally:
            distributed.destroy_process_group()

    @property
    def first(self) -> bool:
        """Whether this process writes files and talks to people."""
        return self.rank == 0

    def add_up(self, tensor: Tensor) -> None:
        """Replace ``tensor`` by its sum over all processes."""
        if self.size > 1:
            distributed.all_reduce(tensor)

    def any(self, flag: bool) -> bool:
        """Whether ``flag`` is true in any process."""
        if self.size == 1:
            return flag
        count = torch.tensor([float(flag)], device=self.device)
        self.add_up(count)
        return bool(count)

    def spread(self, tensor: Tensor) -> None:
        """Replace ``tensor`` by that of the first process."""
        if self.size > 1:
            distributed.broadcast(tensor, 0)

    def spread_text(self, text: str) -> str:
        """The text that the first process gives."""
        if self.size == 1:
            return text
        content = torch.tensor(list(text.encode()), dtype=torch.uint8, device=self.device)
        length = torch.tensor([len(content)], device=self.device)
        self.spread(length)
        if not self.first:
            content = torch.empty(int(length), dtype=torch.uint8, device=self.device)
        self.spread(content)
        return bytes(content.tolist()).decode()
