"""Model and loss as one module, and the work of one update: micro-batches in, summed gradients out.

Losses are summed and tokens counted; the division happens once per update, so that the result does
not depend on how the update was cut into micro-batches, nor on how many processes shared them.
Dropout belongs to the examples (``nn/dropout.py``) for the same reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.errors import RunError, TrainingError
from dragoman.models.interface import Memory
from dragoman.nn import dropout
from dragoman.nn.layout import Sequences
from dragoman.reading import parse_json, read_bytes
from dragoman.training.loss import CrossEntropy, PiecewiseCrossEntropy
from dragoman.training.seeding import key

_MOST_SPLITS = 8 << 20
"""Bytes of the file that remembers which micro-batches were halved: some 200,000 of them."""

MakeBatch = Callable[[], Batch]
"""Makes one micro-batch when it is needed: a process makes only those that it works on."""


class EncoderDecoder(Protocol):
    """What training calls: its part of the models' contract (``models/interface.py``), and the
    parameters of a torch module."""

    def encode(self, source: Sequences) -> Memory: ...

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor: ...

    def project(self, hidden: Tensor) -> Tensor: ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...


class UpdateStep(nn.Module):
    """``forward(batch)`` is all that is differentiated.

    Model and loss are one module because what wraps a module (data parallelism, compilation) acts
    on its ``forward`` alone.
    """

    def __init__(
        self, model: EncoderDecoder, smoothing: float, cross_entropy: CrossEntropy | None = None
    ) -> None:
        """``cross_entropy`` replaces the pieces of ``model.project`` by a fused one."""
        super().__init__()
        self.model = model
        self.cross_entropy = cross_entropy or PiecewiseCrossEntropy(
            model.project, [p for _, p in model.named_parameters()], smoothing
        )

    def forward(self, batch: Batch) -> tuple[Tensor, int, Tensor]:
        """-> smoothed loss summed over the target tokens, their number, plain loss (nll) summed."""
        memory = self.model.encode(batch.source)
        hidden = self.model.decode(batch.target_in, memory)  # (P, D)
        loss, nll = self.cross_entropy(hidden, batch.target_out)
        return loss, batch.target_tokens, nll


class Gradients:
    """Runs a process's share of an update, its micro-batches, forward and backward."""

    def __init__(
        self,
        step: UpdateStep,
        gradients: Tensor,
        *,
        seed: int,
        splits: Splits,
        warn: Callable[[str], None],
    ) -> None:
        """``gradients`` (E,): the flat buffer that backward adds to."""
        self.step = step
        self.gradients = gradients
        self.seed = seed
        self.splits = splits
        self.warn = warn

    def accumulate(self, update: int, batches: Sequence[MakeBatch]) -> Tensor:
        """Fill the gradient buffer -> (3,) fp64: sums of loss, nll and target tokens.

        A process without work leaves zeros. A micro-batch that does not fit into memory is
        halved, once; the whole share is then done again, because part of its gradient may have
        been added already.
        """
        while True:
            self.gradients.zero_()
            sums = torch.zeros(3, dtype=torch.float64, device=self.gradients.device)
            for number, make in enumerate(batches):
                batch = make()
                try:
                    self._run(update, number, batch, sums)
                except (RuntimeError, MemoryError) as error:
                    if not _is_lack_of_memory(error):
                        raise
                    size = _size(batch)
                    if (update, number) in self.splits or len(batch) < 2:
                        raise TrainingError(
                            f"update {update + 1} does not fit into memory: micro-batch "
                            f"{number + 1} of {len(batches)} ({size})"
                            + (", even halved" if len(batch) > 1 else "")
                            + ". Lower the tokens per micro-batch, or the longest length allowed."
                        ) from None
                    break
            else:
                return sums
            if self.gradients.is_cuda:
                torch.cuda.empty_cache()
            self.splits.add(update, number)
            self.warn(
                f"update {update + 1}: micro-batch {number + 1} of {len(batches)} ({size}) did "
                "not fit into memory; trying it in two halves. Lower the tokens per micro-batch "
                "if this comes often."
            )

    def _run(self, update: int, number: int, batch: Batch, sums: Tensor) -> None:
        halve = (update, number) in self.splits and len(batch) > 1
        parts = batch.split() if halve else (batch,)
        for part in parts:
            # What else masks are keyed by, example and place in it, travels with the batch.
            with dropout.drawing(key(self.seed, update)):
                loss, tokens, nll = self.step(part.to(self.gradients.device))
                loss.backward()
            sums[0] += loss.detach()
            sums[1] += nll
            sums[2] += tokens


class Splits:
    """The micro-batches that this process halved, remembered in a file.

    Halving changes rounding, so a resumed run halves the same ones, also when memory would suffice
    by now. Each process has a file of its own: they may not see each other's.
    """

    def __init__(self, folder: Path, rank: int = 0) -> None:
        """A file that is not there yet is one without entries."""
        path = folder / (f"splits-{rank}.jsonl" if rank else "splits.jsonl")
        self.path = path
        self._known: set[tuple[int, int]] = set()
        content = read_bytes(path, _MOST_SPLITS) if path.exists() else b""
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
        """Remember it, on disk first."""
        line = json.dumps({"update": update, "micro_batch": micro_batch})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._known.add((update, micro_batch))


def _is_lack_of_memory(error: BaseException) -> bool:
    # On a CPU torch raises a bare RuntimeError; only its words tell.
    return isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or (
        "can't allocate memory" in str(error)
    )


def _size(batch: Batch) -> str:
    source, target = batch.source.layout, batch.target_in.layout
    return (
        f"{len(batch)} sentence pairs, {source.total} source and {target.total} target tokens, "
        f"the longest {max(source.longest, target.longest)}"
    )
