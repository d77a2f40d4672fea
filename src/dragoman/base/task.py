"""A task as plain data: what its examples are called, what is measured, what people are told.

``tasks/NAME/spec.py`` has that of each task, with all else of it that needs no torch, and
``tasks/catalogue.py`` lists them. The rest of a task lies in the same folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dragoman.base.measure import Measure

Side = Literal["source", "target"]
"""What a model reads, or what it writes."""

ModelPart = Literal["encoder", "decoder"]
"""A part of a model that another model can begin with (``tasks/new_run.py``)."""


@dataclass(frozen=True)
class Task:
    """A task, as far as it is data."""

    name: str
    """As recipes name it."""
    called: str
    """What a run of it is called in a sentence, after "a"."""
    sides: tuple[Side, ...]
    """Of an example, in the order in which a model takes them."""
    reads: bool
    """Whether its models read something that is given whole (``ModelSettings.reads``)."""
    writes: bool
    """Whether they write, token by token; else they say something of what they have read."""
    texts: tuple[Side, ...]
    """The sides that are texts, each with a vocabulary."""
    noun: str
    """What its examples are called, several of them."""
    counted: str
    """What its loss is summed over, as updates, speed and amount of training are counted."""
    metrics: Mapping[str, Measure]
    """What validation measures; by the first it is decided which weights are best, unless a recipe
    names another."""
    evaluation_options: tuple[str, ...]
    """The options of ``dragoman evaluate`` that it takes beside those that all tasks do."""
    begins: tuple[float, float]
    """(a, b): a model of width d begins to learn something after about d × max(a, b × L) of what is
    counted, L being the mean length of a target in tokens; of little text sooner
    (``sizing.minutes``). Of labels nothing is known: 0."""
    verbs: tuple[tuple[str, str], ...]
    """What can be done with a finished run: verbs, and what follows the run's name."""
    hub_tag: str
    """What model hubs call it, for the card."""
    limits: tuple[str, ...]
    """What report and card warn of."""
    symbols: tuple[str, ...] = ()
    """Tokens of its vocabulary that stand for no text, beside those that every one has."""
    becomes: str = ""
    """What it is called by the server where what is read makes another thing of it."""
    finished: Mapping[str, Measure] = field(default_factory=dict)
    """What is measured of a finished run alone."""
    loss_unit: str = "nats"
    """What its loss is in."""
    compared: str | None = None
    """The score that compares where ``training.metric`` does not: across vocabularies."""

    @property
    def one_counted(self) -> str:
        """One of what its loss is summed over."""
        return self.counted.removesuffix("s")

    @property
    def purpose(self) -> str:
        """What its runs are for, as the server calls it."""
        return self.becomes or self.name

    @property
    def reads_files(self) -> bool:
        """Whether what is read are files, such as recordings or pictures, and no text."""
        return "source" in self.sides and "source" not in self.texts

    @property
    def translates(self) -> bool:
        """Whether both sides are texts: sentences and their translations."""
        return len(self.texts) > 1

    @property
    def writes_text(self) -> bool:
        """Whether what its models write is text."""
        return self.writes and "target" in self.texts

    def measure(self, name: str) -> Measure:
        """Of a score by its name; one of another version of this program is written as it is."""
        known = {**self.metrics, **self.finished}
        return known.get(name, Measure(name, "higher", digits=3))
