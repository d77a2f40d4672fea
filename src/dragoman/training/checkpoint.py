"""Everything that a run needs to be resumed (RUN/training/), snapshots of its weights, and the film
of its training (RUN/film/).

::

    RUN/training/
      checkpoint-00001200-0/ the newest resumable state; older ones are deleted when it is complete
        weights.safetensors    parameters
        first.safetensors      the mean gradients of Adam and Muon
        second.safetensors     Adam's mean squared gradients
        ema.safetensors        the moving average of the weights, if there is one
        state.json             TrainingState, with the SHA-256 of the other files
      snapshots/00001000.safetensors …   weights alone, for averaging
      splits.jsonl           micro-batches halved for lack of memory; splits-1.jsonl of process 1 …
    RUN/film/
      00000000.safetensors … the weights after that many updates, in fp16

A folder named ``checkpoint-…`` is always complete (see ``base/atomic.py``). Training resumes from
a checkpoint only if its files are those that ``state.json`` names. If you delete RUN/training/, the
model still works, but its training cannot be resumed.

The film shows how the model learned. Its updates are spread evenly on a logarithmic scale, because
a model changes most at the beginning. They depend only on the settings, so a run that was killed
and resumed has the same film. Nothing is trained or averaged from a film, and a run works without
it.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from safetensors.torch import save_file
from torch import Tensor, nn

from dragoman.base.atomic import creating_folder, remove_folder, sweep
from dragoman.base.errors import RunError
from dragoman.base.reading import MAX_JSON, hash_of_file, parse_json, read_bytes
from dragoman.base.tensor_file import files_by_update
from dragoman.nn.linear import Precision
from dragoman.training.settings import TrainingSettings
from dragoman.training.weights import load_weights, save_weights

_FORMAT = 5
"""The format of checkpoints. Format 5 names the optimizer, and the files with their SHA-256."""
_OLDEST = 4
"""The oldest format that can be resumed: that of the runs of commit c1266482."""
_NEEDED = ("weights.safetensors", "first.safetensors", "second.safetensors")
"""The files that every checkpoint has. A checkpoint of format 4 does not name its files."""
Count = Annotated[int, Field(ge=0, lt=2**53)]
Few = Annotated[int, Field(ge=0, le=4096)]
Hashes = dict[Annotated[str, Field(pattern=r"^\w+\.safetensors$")], str]
"""The SHA-256 of each file, by its name. Names have a form that cannot lead to another folder."""
MOST_PARAMETERS = 20_000_000
"""Unless a recipe sets the length of its film, only a model of fewer parameters has one."""
_USUAL_LENGTH = 20
_LARGEST = torch.finfo(torch.float16).max


@dataclass
class TrainingState:
    """The state of a run, without its weights and moments. Only the trainer changes this state."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    update: Count = 0
    """The number of updates done, including skipped updates."""
    steps: Count = 0
    """The number of steps that Adam took. Skipped updates do not count."""
    elapsed: float = 0.0
    """The seconds of training so far."""
    metrics_bytes: Count = 0
    """The length of metrics.jsonl at this moment. Lines that a killed run wrote after it are
    removed."""
    validated: Count = 0
    """The last update after which a validation was completed."""
    best_value: float | None = None
    best_loss: float | None = None
    """The loss at the best validation. Among validations whose metric says that the whole output is
    wrong, the one with the lowest loss is the best."""
    best_update: Count = 0
    validations_without_gain: Count = 0
    bad_in_a_row: Count = 0
    """The number of updates skipped since the last update that was not skipped."""
    bad_in_all: Count = 0
    finished: Count = 0
    """The number of updates with which the run ended, because all were done or its patience was
    used up."""
    precision: Precision | Literal[""] = ""
    """The precision that "auto" chose when the run began."""
    kernels: str = ""
    """The instruction set of the native kernels in use, or "plain"."""
    masks: Literal["", "kernels", "pool"] = ""
    """The source of those dropout masks that no other kernel includes: native kernels, or a pool of
    random bits (``nn/dropout.py``)."""
    processes: Few = 1
    """The number of processes that train together."""
    threads: Few = 0
    """The number of threads of each process."""
    cores: Few = 0
    """The number of cores of the machine on which the run began."""
    gpu: str = ""
    """The GPU on which the run is trained; "": the CPU."""
    optimizer: Literal["adam", "muon"] = "adam"
    """The optimizer whose moments the checkpoint holds."""
    files: Hashes = field(default_factory=dict)
    """The name and SHA-256 of each file next to this state in its checkpoint; empty if an older
    version of dragoman wrote the checkpoint."""
    snapshots: Hashes = field(default_factory=dict)
    """The name and SHA-256 of each snapshot that existed when the checkpoint was saved, oldest
    first."""

    def take(self, other: TrainingState) -> None:
        """Copy all fields of the state ``other``."""
        for name, value in asdict(other).items():
            setattr(self, name, value)

    def to_json(self) -> str:
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: bytes | str, where: Path, remedy: str = "") -> TrainingState:
        """Return the state that is written in ``text``. Raises RunError if ``text`` is damaged, or
        if a version of dragoman wrote it that this version cannot read. ``remedy``: the end of the
        message about damage."""
        try:
            content = parse_json(text, str(where))
        except RunError as error:
            raise RunError(f"{error}{remedy}") from error
        written = content.pop("format", None) if isinstance(content, dict) else None
        if type(written) is not int or written < 1:
            raise RunError(f"{where} is damaged: it has no format number{remedy}")
        if written > _FORMAT:
            raise RunError(f"{where} was written by a newer version of dragoman; update it.")
        if written < _OLDEST:
            raise RunError(
                f"{where} was written by a version of dragoman before 0.1.0, and cannot be "
                "resumed. The model still works. Train from its weights: dragoman train FILES "
                "--from RUN"
            )
        try:
            return _state_adapter().validate_json(json.dumps(content))
        except ValidationError as error:
            problem = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, problem["loc"]))[:100]
            raise RunError(f"{where} is damaged: {place}: {problem['msg']}{remedy}") from None


@functools.cache
def _state_adapter() -> TypeAdapter[TrainingState]:
    return TypeAdapter(TrainingState)


@dataclass(frozen=True)
class Checkpoint:
    """The newest checkpoint, as ``Checkpoints.latest`` returns it."""

    weights: Mapping[str, Tensor]
    moments: Mapping[str, Mapping[str, Tensor]]
    """``first``, ``second`` and perhaps ``ema``, each by parameter name."""
    state: TrainingState


class Checkpoints:
    """The checkpoints and snapshots in the folder RUN/training/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._snapshots = folder / "snapshots"
        self._hashes: dict[str, str] = {}
        """SHA-256 of the snapshots that this process wrote or checked, by name."""

    @property
    def exists(self) -> bool:
        """True if there is a complete checkpoint."""
        return bool(self._complete())

    def sweep(self) -> None:
        """Remove half-written files that killed processes left in the run."""
        for folder in (self.folder.parent, self.folder, self._snapshots):
            sweep(folder)

    def save(
        self,
        state: TrainingState,
        weights: Mapping[str, Tensor],
        moments: Mapping[str, Mapping[str, Tensor]],
    ) -> None:
        """Write a checkpoint, then remove the older checkpoints. Raises FileError if it cannot be
        written, for example because the disk is full; then the older checkpoints are kept."""
        # The same update may be saved twice (asked to stop right behind a checkpoint); the new
        # one must not take the old one's name before it is complete.
        same = [again for update, again in self._complete() if update == state.update]
        name = f"checkpoint-{state.update:08d}-{max(same, default=-1) + 1}"
        with creating_folder(self.folder / name) as folder:
            save_file(dict(weights), folder / "weights.safetensors")
            for moment, tensors in moments.items():
                save_file(dict(tensors), folder / f"{moment}.safetensors")
            files = {path.name: hash_of_file(path) for path in sorted(folder.iterdir())}
            snapshots = {
                path.name: self._hashes.get(path.name) or hash_of_file(path)
                for _, path in self.snapshots()
            }
            named = replace(state, files=files, snapshots=snapshots)
            (folder / "state.json").write_text(named.to_json(), "utf-8")
        for path in self._complete().values():
            if path.name != name:
                remove_folder(path)

    def latest(self) -> Checkpoint:
        """Return the newest checkpoint. Raises RunError if there is no checkpoint, or if a file is
        missing or damaged."""
        if not self.exists:
            raise RunError(f"{self.folder} has no checkpoint to resume from.")
        folder, state = self._newest()
        present = dict.fromkeys(path.name for path in folder.glob("*.safetensors"))
        files = dict.fromkeys(_NEEDED) | (state.files or present)
        read = {}
        for name, expected in files.items():
            if problem := _problem(folder / name, expected):
                raise RunError(f"{folder / name} {problem}{self._remedy(folder)}")
            read[Path(name).stem] = load_weights(folder / name).tensors
        return Checkpoint(read.pop("weights"), read, state)

    def check_snapshots(self, last: int) -> None:
        """Check that the last ``last`` snapshots of the newest checkpoint have not changed.

        Raises RunError if one of them is missing or damaged. A snapshot that may have been deleted
        to make room for a snapshot newer than the checkpoint is not checked.
        """
        if not self.exists or not last:
            return
        _, state = self._newest()
        newer = sum(update > state.update for update, _ in self.snapshots())
        for name in list(state.snapshots)[newer:][-last:]:
            path = self._snapshots / name
            if problem := _problem(path, state.snapshots[name]):
                raise RunError(
                    f"{path} {problem}. It is one of the last {last} snapshots, which are to be "
                    f"averaged. Copy {self._snapshots} again from its source, or average fewer: "
                    "with --last of dragoman average, or with training.average_last in the run's "
                    "recipe.toml if you resume a training run"
                )
            self._hashes[name] = state.snapshots[name]

    def _newest(self) -> tuple[Path, TrainingState]:
        complete = self._complete()
        folder = complete[max(complete)]
        path = folder / "state.json"
        if not path.is_file():
            raise RunError(f"{path} is missing{self._remedy(folder)}")
        text = read_bytes(path, MAX_JSON)
        return folder, TrainingState.from_json(text, path, self._remedy(folder))

    def _remedy(self, folder: Path) -> str:
        """Return the end of a message about a damaged file of the checkpoint ``folder``."""
        run = shlex.quote(str(self.folder.parent))
        if len(self._complete()) > 1:
            remedy = f"Remove {folder}: dragoman resume {run} then continues from the previous one"
        else:
            remedy = (
                f"Copy {folder} again from its source, or start a new run from the weights of "
                f"this one: dragoman train FILES --from {run}"
            )
        return f", so training cannot be resumed from {folder.name}. {remedy}"

    def snapshot(self, update: int, weights: Mapping[str, Tensor], keep: int) -> None:
        """Save the weights after ``update`` as a snapshot, and keep only the last ``keep``
        snapshots."""
        path = self._snapshots / f"{update:08d}.safetensors"
        save_weights(path, weights, {"weights": "last", "update": str(update)})
        self._hashes[path.name] = hash_of_file(path)
        older = [path for number, path in self.snapshots() if number <= update]
        for path in older[:-keep]:
            path.unlink()

    def snapshots(self) -> list[tuple[int, Path]]:
        """Return the update and the file of every snapshot, oldest first."""
        return files_by_update(self._snapshots)

    def _complete(self) -> dict[tuple[int, int], Path]:
        """Return the folder of each complete checkpoint, by the number of its update and the number
        of times that this update was saved before."""
        folders = {}
        for path in self.folder.glob("checkpoint-*"):
            if match := re.fullmatch(r"checkpoint-(\d+)-(\d+)", path.name):
                folders[int(match[1]), int(match[2])] = path
        return folders


def _problem(path: Path, expected: str | None) -> str:
    """Return what is wrong with a file whose SHA-256 should be ``expected`` (None: unknown), or an
    empty text."""
    if not path.is_file():
        return "is missing"
    return "is damaged" if expected is not None and hash_of_file(path) != expected else ""


class Film:
    """Writes the film of one run while it is trained."""

    def __init__(self, folder: Path, settings: TrainingSettings, model: nn.Module) -> None:
        """``folder``: the folder of the film, which need not exist yet."""
        length = settings.film
        if length is None:
            parameters = sum(parameter.numel() for parameter in model.parameters())
            length = _USUAL_LENGTH if parameters < MOST_PARAMETERS else 0
        self._folder = folder
        self._length = length
        self.plan(settings)

    def plan(self, settings: TrainingSettings) -> None:
        """Spread the film over the updates of ``settings``, which were corrected."""
        self._updates = film_updates(settings, self._length)

    def sweep(self) -> None:
        """Remove half-written files that killed processes left."""
        sweep(self._folder)

    def is_due(self, update: int) -> bool:
        """Return True if the weights after ``update`` belong to the film."""
        return update in self._updates

    def keep(self, update: int, weights: Mapping[str, Tensor]) -> None:
        """Write the weights after ``update``. Raises FileError if they cannot be written."""
        halves = {
            name: tensor.detach().clamp(-_LARGEST, _LARGEST).half()
            for name, tensor in weights.items()
        }
        path = self._folder / f"{update:08d}.safetensors"
        # A power cut may cost the last picture; a training never needs it.
        save_weights(path, halves, {"weights": "last", "update": str(update)}, forced=False)


def film_updates(settings: TrainingSettings, length: int) -> frozenset[int]:
    """Return the updates of a film: at most ``length``, the first of them 0.

    If the plan was corrected after the first minute, the updates until then are those of the first
    plan, and the rest are spread over the new one.
    """
    first = settings.first_plan
    if first is None:
        begun = frozenset({0, 1} if length > 2 else {0} if length else ())
        return begun | _spread(1, settings.updates, length - len(begun))
    before = settings.model_copy(update={"first_plan": None, "updates": first.updates})
    begun = frozenset(u for u in film_updates(before, length) if u <= first.until)
    return begun | _spread(first.until, settings.updates, length - len(begun))


def _spread(after: int, last: int, count: int) -> frozenset[int]:
    """Return at most ``count`` updates from ``after`` to ``last`` whose logarithms are evenly
    spread, without ``after``."""
    steps = range(1, count + 1)
    return frozenset(round(after * (last / after) ** (step / count)) for step in steps)
