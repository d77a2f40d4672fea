"""All that a run needs to go on, in RUN/training/; and snapshots of its weights.

::

    RUN/training/
      checkpoint-00001200/   the newest resumable state; the one before goes when it is complete
        weights.safetensors    parameters
        moments.safetensors    Adam's first.* and second.*, the moving average's ema.*
        state.json             TrainingState
      snapshots/00001000.safetensors …   weights alone, for averaging
      splits.jsonl           micro-batches halved for lack of memory
      lock                   held while a process trains here

A folder named ``checkpoint-…`` is always complete (see ``atomic.py``). Delete RUN/training/ and
the model still works; it only cannot be trained further.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from dragoman.errors import RunError
from dragoman.training.atomic import creating_folder, remove_folder, sweep
from dragoman.training.weights import load_weights, save_weights

_FORMAT = 1


@dataclass
class TrainingState:
    """Where a run stands, weights and moments aside. Changed by the trainer alone."""

    update: int = 0
    """Updates done, skipped ones counted."""
    steps: int = 0
    """Steps that Adam took (skipped updates are none)."""
    elapsed: float = 0.0
    """Seconds of training so far."""
    metrics_bytes: int = 0
    """Length of metrics.jsonl at this moment; what stands behind it did not happen."""
    validated: int = 0
    """The last update after which a validation was completed."""
    best_value: float | None = None
    best_update: int = 0
    validations_without_gain: int = 0
    bad_in_a_row: int = 0
    """Updates skipped since the last good one."""
    bad_in_all: int = 0
    finished: int = 0
    """The number of updates with which the run came to its end (all done, or out of patience)."""
    precision: str = ""
    """fp32 or bf16: what "auto" chose when the run began."""
    threads: int = 0
    torch: str = ""

    def to_json(self) -> str:
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, where: Path) -> TrainingState:
        """Raises RunError for what this version did not write."""
        try:
            content = json.loads(text)
            written = content.pop("format")
            if written > _FORMAT:
                raise RunError(f"{where} was written by a newer version of dragoman; update it.")
            return cls(**content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{where} is damaged: {error}") from error


@dataclass(frozen=True)
class Checkpoint:
    """What ``Checkpoints.latest`` finds."""

    weights: Mapping[str, Tensor]
    moments: Mapping[str, Tensor]
    state: TrainingState


class Checkpoints:
    """The folder RUN/training/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._snapshots = folder / "snapshots"

    @property
    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return bool(self._complete())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training here; rubbish of killed ones is removed.

        Raises RunError when another process holds the lock (it goes with its process).
        """
        self._snapshots.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.seek(0)
                raise RunError(
                    f"{self.folder.parent} is being trained by another process "
                    f"({lock.read().strip() or 'unknown'}). Wait for it, or stop it first."
                ) from None
            lock.truncate(0)
            lock.write(f"process {os.getpid()}")
            lock.flush()
            sweep(self.folder)
            sweep(self._snapshots)
            yield

    def save(
        self, state: TrainingState, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]
    ) -> None:
        """Write a checkpoint, then remove the one before. TrainingError when the disk is full."""
        with creating_folder(self.folder / f"checkpoint-{state.update:08d}") as folder:
            save_file(dict(weights), folder / "weights.safetensors")
            save_file(dict(moments), folder / "moments.safetensors")
            (folder / "state.json").write_text(state.to_json(), "utf-8")
        for update, path in self._complete().items():
            if update != state.update:
                remove_folder(path)

    def latest(self) -> Checkpoint:
        """The newest checkpoint. Raises RunError when there is none or it is damaged."""
        complete = self._complete()
        if not complete:
            raise RunError(f"{self.folder} holds no checkpoint: there is nothing to resume.")
        folder = complete[max(complete)]
        state = folder / "state.json"
        if not state.is_file():
            raise RunError(f"{state} is missing, so {folder.name} is damaged; remove the folder.")
        return Checkpoint(
            load_weights(folder / "weights.safetensors").tensors,
            load_weights(folder / "moments.safetensors").tensors,
            TrainingState.from_json(state.read_text("utf-8"), state),
        )

    def snapshot(self, update: int, weights: Mapping[str, Tensor], keep: int) -> None:
        """Keep the weights as of ``update``, and of all snapshots the last ``keep``."""
        path = self._snapshots / f"{update:08d}.safetensors"
        save_weights(path, weights, {"weights": "last", "update": str(update)})
        older = [path for number, path in self.snapshots() if number <= update]
        for path in older[:-keep]:
            path.unlink()

    def snapshots(self) -> list[tuple[int, Path]]:
        """Update and file of every snapshot, oldest first."""
        files = {int(p.stem): p for p in self._snapshots.glob("*.safetensors") if p.stem.isdigit()}
        return sorted(files.items())

    def _complete(self) -> dict[int, Path]:
        names = {p: re.fullmatch(r"checkpoint-(\d+)", p.name) for p in self.folder.glob("check*")}
        return {int(match[1]): path for path, match in names.items() if match}
