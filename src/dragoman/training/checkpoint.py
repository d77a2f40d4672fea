"""All that a run needs to go on, in RUN/training/; and snapshots of its weights.

::

    RUN/training/
      checkpoint-00001200-0/ the newest resumable state; the one before goes when it is complete
        weights.safetensors    parameters
        first.safetensors      Adam's mean gradients
        second.safetensors     Adam's mean squared gradients
        ema.safetensors        the moving average of the weights, if there is one
        state.json             TrainingState
      snapshots/00001000.safetensors …   weights alone, for averaging
      splits.jsonl           micro-batches halved for lack of memory; splits-1.jsonl of process 1 …

A folder named ``checkpoint-…`` is always complete (see ``atomic.py``). Delete RUN/training/ and
the model still works; it only cannot be trained further.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from safetensors.torch import save_file
from torch import Tensor

from dragoman.atomic import creating_folder, remove_folder, sweep
from dragoman.errors import RunError
from dragoman.nn.linear import Precision
from dragoman.reading import MAX_JSON, parse_json, read_bytes
from dragoman.training.weights import load_weights, save_weights

_FORMAT = 4
"""4: names the GPU; 3: says where masks of dropout come from; 2: it is drawn for each example; 1:
for each micro-batch."""
Count = Annotated[int, Field(ge=0, lt=2**53)]
Few = Annotated[int, Field(ge=0, le=4096)]


@dataclass
class TrainingState:
    """Where a run stands, weights and moments aside. Changed by the trainer alone."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    update: Count = 0
    """Updates done, skipped ones counted."""
    steps: Count = 0
    """Steps that Adam took (skipped updates are none)."""
    elapsed: float = 0.0
    """Seconds of training so far."""
    metrics_bytes: Count = 0
    """Length of metrics.jsonl at this moment; what stands behind it did not happen."""
    validated: Count = 0
    """The last update after which a validation was completed."""
    best_value: float | None = None
    best_loss: float | None = None
    """At the best validation: it decides between two whose metric says that nothing is right."""
    best_update: Count = 0
    validations_without_gain: Count = 0
    bad_in_a_row: Count = 0
    """Updates skipped since the last good one."""
    bad_in_all: Count = 0
    finished: Count = 0
    """The number of updates with which the run came to its end (all done, or out of patience)."""
    precision: Precision | Literal[""] = ""
    """What "auto" chose when the run began."""
    kernels: str = ""
    """The instruction set of the native kernels in use, or "plain"."""
    masks: Literal["", "kernels", "pool"] = ""
    """Who makes the masks of dropout that no kernel has within itself (``nn/dropout.py``)."""
    processes: Few = 1
    """How many train together."""
    threads: Few = 0
    """Number of threads of each process."""
    cores: Few = 0
    """How many cores the machine has that the run began on."""
    gpu: str = ""
    """The GPU that trains; "": a CPU does."""

    def take(self, other: TrainingState) -> None:
        """Become equal to ``other``."""
        for name, value in asdict(other).items():
            setattr(self, name, value)

    def to_json(self) -> str:
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: bytes | str, where: Path) -> TrainingState:
        """Raises RunError for what this version did not write."""
        content = parse_json(text, str(where))
        written = content.pop("format", None) if isinstance(content, dict) else None
        if type(written) is not int or written < 1:
            raise RunError(f"{where} is damaged: it does not say what it is")
        if written > _FORMAT:
            raise RunError(f"{where} was written by a newer version of dragoman; update it.")
        if written < 2:
            raise RunError(
                f"{where} was written by an older version of dragoman, which drew dropout for each "
                "micro-batch. This one draws it for each example, so training cannot go on as if "
                "nothing had happened. The model still works; go on with the older version, or "
                "train from these weights: dragoman train FILES --from RUN"
            )
        if written == 2:
            content["masks"] = "pool"  # for all, then
        try:
            return _checked().validate_json(json.dumps(content))
        except ValidationError as error:
            problem = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, problem["loc"]))[:100]
            raise RunError(f"{where} is damaged: {place}: {problem['msg']}") from None


@functools.cache
def _checked() -> TypeAdapter[TrainingState]:
    return TypeAdapter(TrainingState)


@dataclass(frozen=True)
class Checkpoint:
    """What ``Checkpoints.latest`` finds."""

    weights: Mapping[str, Tensor]
    moments: Mapping[str, Mapping[str, Tensor]]
    """``first``, ``second`` and perhaps ``ema``, each by parameter name."""
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

    def sweep(self) -> None:
        """Remove what killed processes left half-written in the run."""
        for folder in (self.folder.parent, self.folder, self._snapshots):
            sweep(folder)

    def save(
        self,
        state: TrainingState,
        weights: Mapping[str, Tensor],
        moments: Mapping[str, Mapping[str, Tensor]],
    ) -> None:
        """Write a checkpoint, then remove those before. FileError when the disk is full."""
        # The same update may be saved twice (asked to stop right behind a checkpoint); the new
        # one must not take the old one's name before it is complete.
        same = [again for update, again in self._complete() if update == state.update]
        name = f"checkpoint-{state.update:08d}-{max(same, default=-1) + 1}"
        with creating_folder(self.folder / name) as folder:
            save_file(dict(weights), folder / "weights.safetensors")
            for moment, tensors in moments.items():
                save_file(dict(tensors), folder / f"{moment}.safetensors")
            (folder / "state.json").write_text(state.to_json(), "utf-8")
        for path in self._complete().values():
            if path.name != name:
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
        read = TrainingState.from_json(read_bytes(state, MAX_JSON), state)
        files = {path.stem: path for path in sorted(folder.glob("*.safetensors"))}
        weights = load_weights(files.pop("weights", folder / "weights.safetensors")).tensors
        moments = {name: load_weights(path).tensors for name, path in files.items()}
        return Checkpoint(weights, moments, read)

    def snapshot(self, update: int, weights: Mapping[str, Tensor], keep: int) -> None:
        """Keep the weights as of ``update``, and of all snapshots the last ``keep``."""
        path = self._snapshots / f"{update:08d}.safetensors"
        save_weights(path, weights, {"weights": "last", "update": str(update)})
        older = [path for number, path in self.snapshots() if number <= update]
        for path in older[:-keep]:
            path.unlink()

    def snapshots(self) -> list[tuple[int, Path]]:
        """Update and file of every snapshot, oldest first."""
        files = {
            int(p.stem): p for p in self._snapshots.glob("*.safetensors") if p.stem.isdecimal()
        }
        return sorted(files.items())

    def _complete(self) -> dict[tuple[int, int], Path]:
        """(update, how often it was saved before) -> folder."""
        found = {}
        for path in self.folder.glob("checkpoint-*"):
            if match := re.fullmatch(r"checkpoint-(\d+)-(\d+)", path.name):
                found[int(match[1]), int(match[2])] = path
        return found
