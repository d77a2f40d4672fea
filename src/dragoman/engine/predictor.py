"""What every predictor is: a run and its engine, ready to be asked, scored and looked into.

``Translator`` reads a text and writes another; ``Writer`` goes on with the one that it is given;
``Filler`` fills in its blanks; ``Labeller`` says which label it has. Whoever looks inside asks none
which: what a text is *shown* as is what the model makes of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings
from dragoman.errors import DragomanError
from dragoman.forms.form import Values
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings

if TYPE_CHECKING:
    from dragoman.models.interface import Network
    from dragoman.nn.probes import Probe
    from dragoman.pictures.records import AttentionRecord


class Output(Protocol):
    """One output of a predictor, whatever else it knows of it."""

    @property
    def text(self) -> str: ...

    @property
    def ids(self) -> tuple[int, ...]:
        """Its tokens, without begin and end symbols."""

    @property
    def score(self) -> float: ...


@dataclass(frozen=True)
class ShownLabels:
    """What is shown of a text that is looked into, where labels are chosen for it or its words."""

    text: str
    """The labels as people read them."""
    ids: tuple[int, ...]
    """Their numbers."""
    score: float
    """log P of all of them, in nats."""


NO_ENCODER = "goes over a text from left to right, and has no encoder to look into"
"""``Predictor.no_inside`` of a model that reads as it writes."""


class Predictor(ABC):
    """A trained model, ready to be asked. Not for several threads at once."""

    def __init__(self, run: Run, engine: Engine) -> None:
        self.run = run
        self.engine = engine

    @abstractmethod
    def shown(self, text: str, prefix: str = "") -> Output:
        """The output that is looked at where nobody gives another: what the model makes of a text
        as one, or the text itself where nothing is read."""

    @property
    def reads(self) -> bool:
        """Whether a text is read before one is written."""
        return self.engine.source.reads

    @property
    def has_inside(self) -> bool:
        """Whether ``look`` has something to show."""
        return self.no_inside is None

    @property
    def no_inside(self) -> str | None:
        """What the run does that leaves ``look`` nothing to show; None where there is something."""
        return None

    @property
    def plain(self) -> Network:
        """The model without fast paths, for looking; whoever changes it opens his own. Errors:
        ``DragomanError`` for an ensemble."""
        return self.engine.network

    @property
    def description(self) -> str:
        """One line: what runs the model on this machine, and why."""
        return self.engine.description

    @property
    def precision(self) -> str:
        """What it computes in: int8, bf16 or fp32."""
        return self.engine.path.precision if self.engine.writes else "fp32"

    @property
    def level(self) -> str:
        """The instruction set of the kernels that run the model; nothing for plain torch."""
        return self.engine.path.level if self.engine.writes else ""

    def source_ids(self, text: str) -> list[int]:
        """Tokens of a source with the end symbol; the end symbol alone where nothing is read."""
        return self.engine.source.values([text])[0]

    def source_values(self, source: str) -> Sequence[int] | Values:
        """What the model reads of a source: ``source_ids``, or the rows of a file."""
        return self.engine.source.values_of(source)

    def given_ids(self, text: str) -> list[int]:
        """Tokens of a text that is to be shown: as it is read or, where nothing is, written."""
        return self.source_ids(text) if self.reads else self.engine.target.tokens([text])[0]

    def score_ids(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Hypothesis]:
        """Force decoding of outputs that are given as tokens, without end symbols."""
        return self.engine.score([self.source_values(source) for source in sources], targets)

    def look(
        self, source: str, target_ids: Sequence[int], through: Probe | None = None
    ) -> AttentionRecord:
        """Every attention weight of an output, by the plain model: see ``AttentionRecord``.

        ``through``: a recording probe that reaches in, with heads switched off or words hidden.
        Errors: ``DragomanError`` where there is nothing to look into.
        """
        if self.no_inside is not None:
            raise DragomanError(f"{self.run.folder} {self.no_inside}")
        return self.engine.attention.record(self.source_values(source), target_ids, through)


class WritingPredictor(Predictor):
    """A predictor whose outputs are searched for. Not for several threads at once."""

    asked_of: ClassVar[tuple[str, str]]
    """The task of its runs, and what those of others are, as ``Run.require_task`` takes both."""
    usual: ClassVar[EngineSettings] = EngineSettings()

    def __init__(
        self,
        run: Run,
        settings: EngineSettings | None = None,
        search_settings: SearchSettings | None = None,
    ) -> None:
        """Errors: ``RunError``, also for a run of another task."""
        run.require_task(*self.asked_of)
        super().__init__(run, Engine.open(run, settings or self.usual, search_settings))
