"""Weights in files: safetensors, names and plain text metadata; nothing in them can run as code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dragoman.atomic import replacing_file
from dragoman.errors import RunError


@dataclass(frozen=True)
class SavedWeights:
    """The content of a weights file."""

    tensors: Mapping[str, Tensor]
    """Parameter name -> values, on the CPU."""
    metadata: Mapping[str, str]
    """For a run's ``model.safetensors``: ``weights`` (``best``, ``average``, ``last``), ``update``,
    and where known the ``metric`` and its ``value``."""


def save_weights(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a file, atomically. Raises FileError when the disk is full."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing_file(path) as temporary:
        contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, temporary, metadata=dict(metadata))
        _sort_metadata(temporary)


def _sort_metadata(path: Path) -> None:
    """Equal weights make equal files; safetensors writes the metadata in random order."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) <= length:
            file.seek(8)
            file.write(text.ljust(length))


def load_weights(path: Path) -> SavedWeights:
    """Read a file. Raises RunError when it is missing, cut short or not of this format."""
    if not path.is_file():
        raise RunError(f"{path} is missing: the run has no weights yet, or they were removed.")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"{path} is damaged or cut short ({error}). Copy it again from where it came from; a "
            "run that still has its training folder can make its model.safetensors again from the "
            "last snapshot: dragoman average RUN --last 1"
        ) from error
    return SavedWeights(tensors, metadata)
