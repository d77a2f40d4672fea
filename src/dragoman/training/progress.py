"""The display of the progress of training: live in a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from dragoman.base.measure import perplexity
from dragoman.base.task import Task
from dragoman.base.wording import shorten
from dragoman.training.records import Listener, Sample, UpdateRecord, ValidationRecord

_SAMPLES_SHOWN = 3
_SAMPLE_CHARACTERS = 240
_VALIDATIONS_SHOWN = 5


def make_display(
    task: Task,
    updates: int,
    line_every: float = 10.0,
    stream: TextIO | None = None,
    *,
    fills: float = 0.0,
) -> Listener:
    """Return the display that suits ``stream`` (standard error by default): live in a terminal,
    else plain lines.

    ``task``: the task whose scores and counts are shown. ``updates``: the number of updates of the
    run. ``line_every``: the seconds between plain lines. ``fills``: the seconds that the run will
    take after its number of updates is recalculated (``minutes.seconds_to_fill``); 0 if the number
    will not be recalculated.
    """
    console = Console(file=stream or sys.stderr)
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(task, updates, console, fills)
    return PlainDisplay(task, updates, line_every, stream or sys.stderr, fills)


class RecentLoss:
    """The means of loss, perplexity and speed over the updates since the last call of ``read``."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._clear()

    def _clear(self) -> None:
        self._tokens = 0
        self._nll = self._loss = self._seconds = 0.0

    def add(self, record: UpdateRecord) -> None:
        self._seconds += record.seconds
        if record.loss is not None and record.nll is not None:
            self._tokens += record.tokens
            self._loss += record.loss * record.tokens
            self._nll += record.nll * record.tokens

    def read(self, learning_rate: float) -> str:
        """Return a phrase with the mean loss and speed of the updates since the last call."""
        tokens = max(self._tokens, 1)
        speed = self._tokens / max(self._seconds, 1e-9)
        nll = self._nll / tokens
        scores = {"loss": self._loss / tokens, "perplexity": perplexity(nll)}
        means = "  ".join(
            f"{self._task.measure(name).called} {self._task.measure(name).text(value)}"
            for name, value in scores.items()
            if name in self._task.metrics
        )
        phrase = f"{means}  {speed:,.0f} {self._task.counted}/s  rate {learning_rate:.2e}"
        self._clear()
        return phrase


class ShownPace:
    """The time that is left of the run, including validations. It is estimated from the updates
    since this process began or resumed the run.

    The first updates are slow, so an estimate from them would be far too long. If minutes were
    requested, the number of updates will be recalculated to fit them. Until then, the time shown is
    what is left of those minutes.
    """

    def __init__(self, updates: int, fills: float = 0.0) -> None:
        self.updates = updates
        """The number of updates that the run will have."""
        self._fills = fills
        self._first = 0
        self._started = time.monotonic()

    def begin(self, update: int) -> None:
        self._first = update
        self._started = time.monotonic()

    def replan(self, updates: int) -> None:
        """Set the number of updates of the run after its plan was recalculated. The plan will not
        be recalculated again, so from now on the time left is estimated from the updates."""
        self.updates, self._fills = updates, 0.0

    def time_left(self, update: int, elapsed: float) -> str:
        """Return ``1:02:03 left``, or an empty text before the first update. ``elapsed``: the
        seconds of the run so far."""
        done = update - self._first
        if done <= 0:
            return ""
        if update < self.updates and elapsed < self._fills:
            return f"{clock(self._fills - elapsed)} left"
        per_update = (time.monotonic() - self._started) / done
        return f"{clock(per_update * (self.updates - update))} left"


class _Display(Listener):
    """Shows an update at intervals, and always the first and the last update."""

    def __init__(self, task: Task, updates: int, every: float, fills: float) -> None:
        """``every``: the seconds between two updates that are shown. ``fills``: as for
        ``make_display``."""
        self._task = task
        self._every = every
        self._recent = RecentLoss(task)
        self._pace = ShownPace(updates, fills)
        self._next = 0.0

    def begin(self, update: int) -> None:
        self._pace.begin(update)
        # The first update says whether all is well; then every so often.
        self._next = 0.0

    def on_update(self, record: UpdateRecord) -> None:
        self._recent.add(record)
        now = time.monotonic()
        if now < self._next and record.update != self._pace.updates:
            return
        self._next = now + self._every
        numbers = self._recent.read(record.learning_rate)
        self.show(record.update, numbers, self._pace.time_left(record.update, record.elapsed))

    def on_plan(self, updates: int) -> None:
        self._pace.replan(updates)

    def show(self, update: int, numbers: str, left: str) -> None:
        """Show an update: ``numbers``, the means since the last update that was shown, and the time
        ``left``."""
        raise NotImplementedError


class PlainDisplay(_Display):
    """Prints lines for log files at intervals, and validations in full."""

    def __init__(
        self, task: Task, updates: int, line_every: float, stream: TextIO, fills: float
    ) -> None:
        super().__init__(task, updates, line_every, fills)
        self._stream = stream
        self._next_samples = 0.0
        self._last: Sequence[Sample] = ()
        """The samples that were shown last; a sample that has not changed is not shown again."""

    def show(self, update: int, numbers: str, left: str) -> None:
        self.on_message(f"update {update:,} of {self._pace.updates:,}  {numbers}  {left}")

    def on_validation(self, record: ValidationRecord) -> None:
        self.on_message(describe(record, self._task))
        now, last = time.monotonic(), record.update >= self._pace.updates
        if now < self._next_samples and not last:
            return
        self._next_samples = now + self._every
        fresh = [sample for sample in record.samples[:_SAMPLES_SHOWN] if sample not in self._last]
        self._last = record.samples
        for line in sample_lines(fresh):
            self.on_message(f"  {line}")

    def on_message(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class LiveDisplay(_Display):
    """Shows a progress bar, the last validations and some translations, redrawn in place."""

    def __init__(self, task: Task, updates: int, console: Console, fills: float = 0.0) -> None:
        super().__init__(task, updates, 1.0, fills)
        self._validations: list[ValidationRecord] = []
        self._bar = Progress(
            TextColumn("update {task.completed:,.0f} of {task.total:,.0f}"),
            BarColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
        )
        self._row: TaskID = self._bar.add_task("", total=updates, left="")
        self._numbers = Text()
        self._live = Live(console=console, refresh_per_second=4)

    def begin(self, update: int) -> None:
        super().begin(update)
        self._bar.update(self._row, completed=update)
        self._live.start()
        self._draw()

    def show(self, update: int, numbers: str, left: str) -> None:
        self._numbers = Text(numbers)
        self._bar.update(self._row, completed=update, left=left)
        self._draw()

    def on_validation(self, record: ValidationRecord) -> None:
        self._validations = [*self._validations, record][-_VALIDATIONS_SHOWN:]
        self._draw()

    def on_plan(self, updates: int) -> None:
        super().on_plan(updates)
        self._bar.update(self._row, total=updates)

    def on_message(self, text: str) -> None:
        self._live.console.print(Text(text))

    def end(self) -> None:
        self._draw()
        self._live.stop()

    def _draw(self) -> None:
        lines: list[Text] = []
        for record in self._validations:
            lines.append(Text(describe(record, self._task), style="bold" if record.best else ""))
        if self._validations:
            lines += [Text(f"  {line}") for line in sample_lines(self._validations[-1].samples)]
        grid = Table.grid()
        for line in lines:
            grid.add_row(line)
        self._live.update(Group(grid, self._bar, self._numbers))


def describe(record: ValidationRecord, task: Task) -> str:
    """Return a line such as ``validation at 1,000: loss 2.413, BLEU 24.90 (best so far), 21 s``."""
    which = {"current": "", "ema": " of the moving average", "average": " of the averaged weights"}
    best = " (best so far)" if record.best else ""
    return (
        f"validation{which[record.weights]} at {record.update:,}: "
        f"{score_list(record.scores, task)}{best}, {record.seconds:.0f} s"
    )


def score_list(scores: Mapping[str, float], task: Task) -> str:
    """Return scores with their names, such as ``loss 2.413, BLEU 24.90``."""
    return ", ".join(
        f"{task.measure(name).called} {task.measure(name).text(value)}"
        for name, value in scores.items()
    )


def sample_lines(samples: Iterable[Sample]) -> Iterable[str]:
    """Return three lines for each of the first few samples."""
    for sample in list(samples)[:_SAMPLES_SHOWN]:
        yield f"source    {_make_harmless(sample.source)}"
        yield f"model     {_make_harmless(sample.translation)}"
        yield f"reference {_make_harmless(sample.reference)}"


def clock(seconds: float) -> str:
    """Return seconds as a time: 62.4 -> ``1:02``, 3723 -> ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _make_harmless(text: str) -> str:
    """Return the text cut to a few lines, because a model that has hardly been trained may repeat a
    word until it is stopped. Control characters, which could take over a terminal, are replaced.
    """
    text = re.sub(r"[\x00-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}", text)
    return shorten(text, _SAMPLE_CHARACTERS)
