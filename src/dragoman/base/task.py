"""A task as plain data: the names of its examples, its scores, its texts for people.

``tasks/NAME/runtime.py`` has that of each task, with all else of it that needs no torch, and
``tasks/catalogue.py`` lists them. The rest of a task is in the same folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dragoman.base.measure import Measure

Side = Literal["source", "target"]
"""The side of an example: what a model reads, or what it writes."""

ModelPart = Literal["encoder", "decoder"]
"""A part of a model that another model can begin with (``tasks/new_run.py``)."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task, as far as it is data. Its defaults are those of most tasks."""

    name: str
    """The name of the task in recipes."""
    called: str
    """The noun for a run of it in a sentence, after "a"."""
    sides: tuple[Side, ...] = ("source", "target")
    """The sides of an example, in the order in which a model takes them."""
    reads: bool = True
    """True if its models read something that is given whole (``ModelSettings.reads``)."""
    writes: bool
    """True if its models write token by token; if not, they predict something about their input."""
    texts: tuple[Side, ...] = ("source",)
    """The sides that are texts, each with a vocabulary."""
    noun: str
    """The noun for its examples, in the plural."""
    counted: str
    """The unit over which its loss is summed, and in which updates and speed are counted."""
    metrics: Mapping[str, Measure]
    """The scores that validation measures. The first decides which weights are best, unless a
    recipe names another."""
    evaluation_options: tuple[str, ...] = ()
    """The options of ``dragoman evaluate`` that it takes besides those of all tasks."""
    begins: tuple[float, float] = (0, 0)
    """(a, b): a model of width d begins to learn something after about d × max(a, b × L) of what is
    counted, L being the mean length of a target in tokens; of little text sooner
    (``sizing.minutes``). Of labels nothing is known: 0."""
    verbs: tuple[tuple[str, str], ...]
    """The commands for a finished run: each a verb, and what follows the run's name."""
    hub_tag: str
    """The tag that model hubs use for it, for the card."""
    limits: tuple[str, ...]
    """The warnings that its report and card give."""
    symbols: tuple[str, ...] = ()
    """Tokens of its vocabulary that stand for no text, besides those that every one has."""
    becomes: str = ""
    """The server's name for it, if that differs from ``name`` because of what it reads."""
    finished: Mapping[str, Measure] = field(default_factory=dict)
    """The scores that are measured only for a finished run."""
    loss_unit: str = "nats"
    """The unit of its loss, as charts name it."""
    compared: str | None = None
    """The score that compares where ``training.metric`` does not: across vocabularies."""

    @property
    def one_counted(self) -> str:
        """One of what its loss is summed over."""
        return self.counted.removesuffix("s")

    @property
    def purpose(self) -> str:
        """The purpose of its runs, as the server names it."""
        return self.becomes or self.name

    @property
    def reads_files(self) -> bool:
        """True if its models read files, such as recordings or pictures, and no text."""
        return "source" in self.sides and "source" not in self.texts

    @property
    def translates(self) -> bool:
        """True if both sides are texts: sentences and their translations."""
        return len(self.texts) > 1

    @property
    def writes_text(self) -> bool:
        """True if its models write text."""
        return self.writes and "target" in self.texts

    def measure(self, name: str) -> Measure:
        """The measure of a score with this name; a score of another version is written as it is."""
        known = {**self.metrics, **self.finished}
        return known.get(name, Measure(name, "higher", digits=3))
