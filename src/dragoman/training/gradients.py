"""A process's share of one update, forward and backward: from micro-batches to summed gradients.

Micro-batches that do not fit into memory are halved. Each halved micro-batch is recorded, so that a
resumed run halves it again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from dragoman.base.errors import RunError, UntrainableError
from dragoman.base.reading import parse_json, read_bytes
from dragoman.data.hashing import torch_seed
from dragoman.nn import dropout
from dragoman.training.losses.objectives import MicroBatch, Objective

_MAX_BYTES = 8 << 20
"""The largest size of the file of ``Splits`` in bytes, enough for about 200,000 entries."""


class Splits:
    """The micro-batches that this process has halved, recorded in a file.

    Halving changes rounding, so a resumed run halves the same micro-batches, even if it has enough
    memory. Each process has its own file, because it may be unable to see the files of the others.
    """

    def __init__(self, folder: Path, rank: int = 0) -> None:
        """Read the file of process ``rank`` in ``folder``. If it does not exist yet, nothing has
        been halved."""
        path = folder / (f"splits-{rank}.jsonl" if rank else "splits.jsonl")
        self.path = path
        self._known: set[tuple[int, int]] = set()
        content = read_bytes(path, _MAX_BYTES) if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            # The process died while writing the last line, before it did what the line says.
            os.truncate(path, len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            record = parse_json(line, f"{path}, line {number}")
            place = record if isinstance(record, dict) else {}
            update, micro_batch = place.get("update"), place.get("micro_batch")
            if type(update) is not int or type(micro_batch) is not int:
                raise RunError(f"{path}, line {number} is damaged: {line[:80]!r}")
            self._known.add((update, micro_batch))

    def __contains__(self, place: tuple[int, int]) -> bool:
        return place in self._known

    def add(self, update: int, micro_batch: int) -> None:
        """Record that a micro-batch must be halved. The record is written to disk before it counts
        in memory."""
        line = json.dumps({"update": update, "micro_batch": micro_batch})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._known.add((update, micro_batch))


_NO_MEMORY = (
    "can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)  # fmt: skip

MakeBatch = Callable[[], MicroBatch]
"""A function that makes one micro-batch when it is needed. A process makes only the micro-batches
on which it works."""


@dataclass(eq=False)
class Gradients:
    """Adds up the gradients of the backward passes in one buffer."""

    model: nn.Module
    objective: Objective
    buffer: Tensor
    """The flat buffer (E,) to which ``backward`` adds (``optimizer.FlatParameters``)."""
    _: KW_ONLY
    seed: int
    splits: Splits
    warn: Callable[[str], None]
    masks_by_kernels: bool = False
    """True if kernels make the masks of dropout (``TrainingState.masks``)."""

    def accumulate(self, update: int, batches: Sequence[MakeBatch]) -> Tensor:
        """Fill the buffer with the gradients. Return (3,) fp64: the sums of loss, nll and tokens.

        If ``batches`` is empty, the buffer is filled with zeros. A micro-batch that does not fit
        into memory is halved, once; then all ``batches`` are computed again, because a part of its
        gradient may already have been added.
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
            with dropout.drawing(torch_seed(self.seed, update), by_kernels=self.masks_by_kernels):
                loss, nll, tokens = self.objective(self.model, part.to(self.buffer.device))
                loss.backward()
            sums[0] += loss.detach()
            sums[1] += nll
            sums[2] += tokens

    def _halve(self, update: int, number: int, of: int, batch: MicroBatch) -> None:
        """Halve this micro-batch from now on. Errors: ``UntrainableError`` if it is halved already,
        or if it is a single example, which cannot be halved."""
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
            "memory; trying it in two halves. If this happens often, lower the tokens per "
            "micro-batch."
        )


def _is_lack_of_memory(error: BaseException) -> bool:
    # On a CPU torch raises a bare RuntimeError, and so do CUDA and its libraries; only words tell.
    return isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or any(
        words in str(error) for words in _NO_MEMORY
    )
