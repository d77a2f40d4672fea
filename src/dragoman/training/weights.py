"""Weights in safetensors files, which contain named tensors and plain text, and nothing that can
run as code.

This module also averages weights: over the last snapshots (paper §6.1), and as a moving average
during training.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from dragoman.base.atomic import replacing_file
from dragoman.base.errors import RunError
from dragoman.base.tensor_file import TensorFile, open_tensors, require_finite


@dataclass(frozen=True)
class SavedWeights:
    """The content of a weights file."""

    tensors: Mapping[str, Tensor]
    """The values of each parameter by its name, on the CPU."""
    metadata: Mapping[str, str]
    """In a run's ``model.safetensors``: ``weights`` (``best``, ``average`` or ``last``),
    ``update``, and if known the ``metric`` and its ``value``."""


def save_weights(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str], *, forced: bool = True
) -> None:
    """Write a file of weights atomically. ``forced``: to disk, so that it survives a power cut.
    Raises FileError if it cannot be written, for example because the disk is full."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing_file(path, forced=forced) as temporary:
        contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, temporary, metadata=dict(metadata))
        _sort_metadata(temporary)


def _sort_metadata(path: Path) -> None:
    """Sort the metadata of a file, so that equal weights make equal files. safetensors writes the
    metadata in random order."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) <= length:
            file.seek(8)
            file.write(text.ljust(length))


@contextmanager
def open_weights(path: Path, *, filmed: bool = False) -> Iterator[TensorFile]:
    """Open a file of weights and check its header. ``weights_in`` reads the weights. ``filmed``:
    the file may be one of a film, whose weights are fp16 and become fp32.

    Errors: ``RunError`` if the file is missing, cut short or not of this format.
    """
    if not path.is_file():
        raise RunError(f"{path} is missing: the run has no weights yet, or they were removed.")
    try:
        with open_tensors(path, *(("F32", "F16") if filmed else ("F32",))) as file:
            yield file
    except RunError as error:
        raise RunError(
            f"{error}. Copy it again from its source. If the run still has its training folder, "
            "make the weights again from the last snapshot: dragoman average RUN --last 1"
        ) from error


def weights_in(file: TensorFile) -> dict[str, Tensor]:
    """Return all weights of ``file``, copied into memory, so that the file may change afterwards.

    Errors: ``RunError`` if the file is cut short, or if a weight is not a finite number.
    """
    tensors = {}
    for name in file.shapes:
        array = file.read(name)
        require_finite(name, array)
        tensors[name] = torch.from_numpy(array)
    return tensors


def load_weights(path: Path) -> SavedWeights:
    """Read a file of weights. Errors: those of ``open_weights`` and ``weights_in``."""
    with open_weights(path) as file:
        return SavedWeights(weights_in(file), file.metadata)


def average_weights(
    files: Sequence[Path], shares: Sequence[float] | None = None
) -> dict[str, Tensor]:
    """Return the mean of several files of weights, summed in fp64. Only one of the files is in
    memory at a time.

    ``shares``: the weight of each file in the mean; None: all files have the same weight. A file
    whose share is 0 is not read, so if only one file has a share above 0, its weights are returned
    bit for bit. Raises RunError if there are no files, or if the names or shapes of their tensors
    differ.
    """
    shares = [1.0] * len(files) if shares is None else shares
    counted = [(path, share) for path, share in zip(files, shares, strict=True) if share]
    if not files:
        raise RunError("there are no weights to average: no snapshot was kept.")
    sums: dict[str, Tensor] = {}
    for number, (path, share) in enumerate(counted):
        tensors = load_weights(path).tensors
        if number == 0:
            sums = {name: tensor.double() * share for name, tensor in tensors.items()}
            continue
        if {n: t.shape for n, t in tensors.items()} != {n: t.shape for n, t in sums.items()}:
            raise RunError(f"{path} and {files[0]} are weights of different models.")
        for name, tensor in tensors.items():
            sums[name] += tensor.double() * share
    of_all = sum(share for _, share in counted)
    return {name: (total / of_all).float() for name, total in sums.items()}


class MovingAverage:
    """An exponential moving average of the flat values: ema ← d · ema + (1 - d) · values.

    In step t, the decay is at most (1 + t) / (10 + t), so that the first weights, which are noise,
    are soon forgotten.
    """

    def __init__(self, values: Tensor, decay: float) -> None:
        """Begin the average with a copy of ``values`` (E,). ``decay``: d, the share of the average
        that is kept in each step."""
        self.values = values.clone()
        self.decay = decay

    def follow(self, values: Tensor, step: int) -> None:
        """Update the average with the ``values`` (E,) of the weights after step ``step``, counted
        from 1."""
        decay = min(self.decay, (1 + step) / (10 + step))
        self.values.lerp_(values, 1 - decay)


def swap(first: Tensor, second: Tensor) -> None:
    """Exchange the contents of two buffers (E,)."""
    kept = first.clone()
    first.copy_(second)
    second.copy_(kept)
