"""A process's share of one update, forward and backward: micro-batches in, summed gradients out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dragoman.errors import UntrainableError
from dragoman.nn import dropout
from dragoman.training.losses.objectives import MicroBatch, Objective
from dragoman.training.seeding import key
from dragoman.training.splits import Splits

_NO_MEMORY = (
    "can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)  # fmt: skip

MakeBatch = Callable[[], MicroBatch]
"""Makes one micro-batch when it is needed: a process makes only those that it works on."""


class Gradients:
    """Adds up what backward gives, in one buffer."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        buffer: Tensor,
        *,
        seed: int,
        splits: Splits,
        warn: Callable[[str], None],
        masks_by_kernels: bool = False,
    ) -> None:
        """``buffer`` (E,): the flat one that backward adds to (``optimizer.FlatParameters``).
        ``masks_by_kernels``: see ``TrainingState.masks``."""
        self.model = model
        self.objective = objective
        self.buffer = buffer
        self.seed = seed
        self.splits = splits
        self.warn = warn
        self.masks_by_kernels = masks_by_kernels

    def accumulate(self, update: int, batches: Sequence[MakeBatch]) -> Tensor:
        """Fill the buffer -> (3,) fp64: sums of loss, nll and tokens.

        A process without work leaves zeros. A micro-batch that does not fit into memory is
        halved, once; the whole share is then done again, because part of its gradient may have
        been added already.
        """
        while True:
            self.buffer.zero_()
            sums = torch.zeros(3, dtype=torch.float64, device=self.buffer.device)
            for number, make in enumerate(batches):
                batch = make()
                try:
                    self._run(update, number, batch, sums)
                    continue
                except (RuntimeError, MemoryError) as error:
                    if not _is_lack_of_memory(error):
                        raise
                # Behind the error, which holds all that the pass had made.
                self._halve(update, number, len(batches), batch)
                break
            else:
                return sums

    def _run(self, update: int, number: int, batch: MicroBatch, sums: Tensor) -> None:
        halve = (update, number) in self.splits and len(batch) > 1
        parts = batch.split() if halve else (batch,)
        for part in parts:
            # What else masks are keyed by, example and place in it, travels with the batch.
            with dropout.drawing(key(self.seed, update), by_kernels=self.masks_by_kernels):
                loss, nll, tokens = self.objective(self.model, part.to(self.buffer.device))
                loss.backward()
            sums[0] += loss.detach()
            sums[1] += nll
            sums[2] += tokens

    def _halve(self, update: int, number: int, of: int, batch: MicroBatch) -> None:
        """From now on. Errors: ``UntrainableError`` if it was halved already, or cannot be."""
        size = batch.summary()
        if (update, number) in self.splits or len(batch) < 2:
            raise UntrainableError(
                f"update {update + 1:,} does not fit into memory: micro-batch {number + 1} of {of} "
                f"({size})"
                + (", even halved" if len(batch) > 1 else "")
                + ". Lower the tokens per micro-batch, or the longest length allowed."
            ) from None
        if self.buffer.is_cuda:
            torch.cuda.empty_cache()
        self.splits.add(update, number)
        self.warn(
            f"update {update + 1:,}: micro-batch {number + 1} of {of} ({size}) did not fit into "
            "memory; trying it in two halves. Lower the tokens per micro-batch if this comes often."
        )


def _is_lack_of_memory(error: BaseException) -> bool:
    # On a CPU torch raises a bare RuntimeError, and so do CUDA and its libraries; only words tell.
    return isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or any(
        words in str(error) for words in _NO_MEMORY
    )
