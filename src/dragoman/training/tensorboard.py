"""The records of a run as TensorBoard event files (the extra ``tensorboard``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.base.errors import TrainingError, install
from dragoman.training.records import Listener, UpdateRecord, ValidationRecord

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoard(Listener):
    """Writes to a folder that ``tensorboard --logdir`` reads."""

    def __init__(self, folder: Path) -> None:
        """Raises TrainingError when TensorBoard is not installed."""
        try:
            import tensorboard  # noqa: F401
        except ImportError as error:
            raise TrainingError(
                "training.tensorboard is on, but TensorBoard is not installed: "
                f"{install('tensorboard')}, or set training.tensorboard = false."
            ) from error
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

    def on_plan(self, updates: int) -> None:
        """Curves have no end that is known beforehand."""

    def on_message(self, text: str) -> None:
        """Messages are for people in front of the terminal."""

    def end(self) -> None:
        if self._writer is not None:
            self._writer.close()

    @property
    def _open(self) -> SummaryWriter:
        assert self._writer is not None, "begin comes first"
        return self._writer
