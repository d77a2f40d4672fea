"""The records of a training run: one for each update, and one for each validation.

The same records go to ``metrics.jsonl`` (one JSON object a line, each update once), to the progress
display and to TensorBoard. Updates are counted from 1 here: the record of update k describes the
k-th change of the weights, whose examples are those of ``batches(k - 1)``.

The lines of ``metrics.jsonl`` have two kinds, which ``kind`` names::

    {"kind": "update", "update": 12, "loss": 5.31, "nll": 4.97, "perplexity": 144.0,
     "tokens": 4091, "seconds": 0.61, "tokens_per_second": 6706.6, "learning_rate": 0.00021,
     "gradient_norm": 1.8, "elapsed": 9.4, "skipped": false}
    {"kind": "validation", "update": 500, "weights": "current", "best": true, "seconds": 21.0,
     "elapsed": 340.2, "scores": {"loss": 2.41, "bleu": 24.9},
     "samples": [{"source": "…", "reference": "…", "translation": "…"}]}

Losses are in nats per target token: ``loss`` is the smoothed loss, ``nll`` is the loss without
smoothing, and ``perplexity`` is exp(nll). ``elapsed`` is the number of seconds of training since
the first update, over all resumptions.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman.base.errors import TrainingError, needing
from dragoman.base.wording import shorten

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


Weights = Literal["current", "ema", "average"]
"""Which weights were validated: the current ones, their moving average, or the mean of the last
snapshots."""

MAX_SHOWN = 1000
"""The number of characters that are recorded of each text of a sample."""


@dataclass(frozen=True)
class Sample:
    """One sentence of the dev set, and its translation by the model."""

    source: str
    reference: str
    translation: str

    def shorten(self, most: int = MAX_SHOWN) -> Sample:
        """Return the sample with each text cut to ``most`` characters, because a text may be a
        document of thousands of characters."""
        return Sample(
            *(shorten(text, most) for text in (self.source, self.reference, self.translation))
        )


@dataclass(frozen=True)
class Evaluation:
    """The result of ``evaluate``: named scores (``loss``, ``bleu``, …) and some samples."""

    scores: Mapping[str, float]
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UpdateRecord:
    """One update of the weights. Numbers of a skipped update are None if they are not finite."""

    kind: Literal["update"] = "update"
    update: int
    loss: float | None
    nll: float | None
    perplexity: float | None
    tokens: int
    seconds: float
    tokens_per_second: float
    learning_rate: float
    gradient_norm: float | None
    elapsed: float
    skipped: bool = False


@dataclass(frozen=True, kw_only=True)
class ValidationRecord:
    """One validation on the dev set."""

    kind: Literal["validation"] = "validation"
    update: int
    weights: Weights
    scores: Mapping[str, float]
    samples: tuple[Sample, ...]
    best: bool
    seconds: float
    elapsed: float


Record = UpdateRecord | ValidationRecord


def as_json(record: Record) -> str:
    """Return one line without its line end. A score that is not finite becomes null, because JSON
    cannot express it."""
    content = asdict(record)
    for name, value in content.get("scores", {}).items():
        if not math.isfinite(value):
            content["scores"][name] = None
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


class Listener:
    """The interface of an object that receives the events of a training run, such as a display or
    ``TensorBoard``. A method that is not overridden does nothing."""

    def begin(self, update: int) -> None:
        """Called when training starts or resumes, after ``update`` updates."""

    def on_update(self, record: UpdateRecord) -> None:
        """Called after each update with its record."""

    def on_validation(self, record: ValidationRecord) -> None:
        """Called after each validation with its record."""

    def on_plan(self, updates: int) -> None:
        """Called when the plan was corrected: the run will have ``updates`` updates."""

    def on_message(self, text: str) -> None:
        """Called with a text that a person should read, such as a warning."""

    def end(self) -> None:
        """Called once, when training ends for any reason."""


class MetricsLog:
    """The open file ``metrics.jsonl``. A checkpoint stores its ``position``.

    One line is appended for each record. A process that was killed may have written more lines than
    its last checkpoint knows of. When training resumes from that checkpoint, the file is first cut
    back to ``position``.
    """

    def __init__(self, path: Path, position: int) -> None:
        """Open the file for appending, at ``position`` bytes; anything after that is cut off.

        If the file is shorter than that (somebody edited it or copied half of it), it is continued
        after its last whole line.
        """
        self.path = path
        self._file = path.open("ab", buffering=0)
        if self._file.tell() < position:
            position = path.read_bytes().rfind(b"\n") + 1
        if self._file.tell() > position:
            self._file.truncate(position)
            self._file.seek(position)

    @property
    def position(self) -> int:
        """The length of the file in bytes."""
        return self._file.tell()

    def write(self, record: Record) -> None:
        """Append the record as a line. Raises TrainingError if it cannot be written, for example
        because the disk is full."""
        line = as_json(record).encode() + b"\n"
        try:
            written = self._file.write(line)
            if written != len(line):  # a disk that filled up in the middle of the line
                self._file.write(line[written:])
        except OSError as error:
            raise TrainingError(
                f"cannot write {self.path}: {error.strerror}. The last checkpoint is unchanged. "
                "Free some space or correct the problem, then resume."
            ) from error

    def force_to_disk(self) -> None:
        """Write all lines to the disk, so that they survive a power cut. Call it before a
        checkpoint that stores ``position`` is saved."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class TensorBoard(Listener):
    """Writes event files (the extra ``tensorboard``) to a folder that ``tensorboard --logdir``
    reads."""

    def __init__(self, folder: Path) -> None:
        """Raises TrainingError if TensorBoard is not installed."""
        why = "training.tensorboard is on, but TensorBoard is not installed"
        then = ", or set training.tensorboard = false."
        with needing("tensorboard", why, TrainingError, then):
            import tensorboard  # noqa: F401
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def begin(self, update: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # What a killed process wrote behind its last checkpoint is hidden.
        self._writer = SummaryWriter(str(self._folder), purge_step=update + 1)

    def on_update(self, record: UpdateRecord) -> None:
        values = {
            "loss": record.loss,
            "nll": record.nll,
            "gradient norm": record.gradient_norm,
            "learning rate": record.learning_rate,
            "tokens per second": record.tokens_per_second,
        }
        for name, value in values.items():
            if value is not None:
                self._open.add_scalar(f"training/{name}", value, record.update)

    def on_validation(self, record: ValidationRecord) -> None:
        for name, value in record.scores.items():
            self._open.add_scalar(f"validation/{name}", value, record.update)
        if record.samples:
            rows = [f"| {s.source} | {s.translation} | {s.reference} |" for s in record.samples]
            head = ["| source | translation | reference |", "|---|---|---|"]
            self._open.add_text("samples", "\n".join([*head, *rows]), record.update)

    def end(self) -> None:
        if self._writer is not None:
            self._writer.close()

    @property
    def _open(self) -> SummaryWriter:
        assert self._writer is not None, "begin comes first"
        return self._writer
