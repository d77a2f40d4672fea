"""The base of all predictors: a run and its engine, which answer, score and show attention.

``Translator`` reads a text and writes another; ``Writer`` goes on with the one that it is given;
``Filler`` fills in its blanks; ``Labeller`` says which label it has. All are called alike: one
source gives one answer, several give a list of answers. Looking inside is the same for all of them:
``shown`` gives the output to look at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

from dragoman.base.errors import DragomanError
from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings
from dragoman.engine.streaming import WINDOW
from dragoman.forms.form import Values
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
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
class Shown:
    """The output that is shown of a source that is looked into."""

    text: str
    """The output as people read it."""
    ids: tuple[int, ...]
    """Its tokens, or the numbers of its labels."""
    score: float
    """log P of all of them, in nats; of what is searched for, over the length penalty."""


NO_ENCODER = "reads a text from left to right and has no encoder to look into"
"""``Predictor.no_inside`` of a model that reads as it writes."""


Answer = TypeVar("Answer", covariant=True)
"""The answer of a predictor to one source."""
Found = TypeVar("Found")
"""The result of one search for a source, with all its hypotheses."""
Item = TypeVar("Item")


class Predictor(ABC, Generic[Answer]):
    """A trained model, ready to be asked. Not for several threads at once."""

    asked_of: ClassVar[tuple[str, str]]
    """The task of its runs, and what those of others are, as ``Run.require_task`` takes both."""

    def __init__(self, run: Run, engine: Engine) -> None:
        self.run = run
        self.engine = engine

    @overload
    def __call__(self, given: str | Path, *how: Any, **options: Any) -> Answer: ...

    @overload
    def __call__(self, given: Iterable[str | Path], *how: Any, **options: Any) -> list[Answer]: ...

    def __call__(
        self, given: str | Path | Iterable[str | Path], *how: Any, **options: Any
    ) -> Answer | list[Answer]:
        """One text, or the path of one file, gives one answer. Several give a list of answers, in
        their order. The options are those of ``each``. Errors: those of ``each``; ``TypeError`` for
        what is neither a text nor a path."""
        if isinstance(given, str | Path):
            (answer,) = self.each([str(given)], *how, **options)
            return answer
        return list(self.each(named(given), *how, **options))

    @abstractmethod
    def each(self, given: Iterable[str], *how: Any, **options: Any) -> Iterator[Answer]:
        """Gives the answer for each of several texts or files, in their order. Take all of them
        before you use this predictor again."""

    @abstractmethod
    def shown(self, text: str, prefix: str = "") -> Output:
        """The output that is looked at where nobody gives another: what the model makes of a text
        as one, or the text itself where nothing is read."""

    @property
    def reads(self) -> bool:
        """True if the model reads a source before it writes."""
        return self.engine.source.reads

    @property
    def has_inside(self) -> bool:
        """True if ``look`` has something to show."""
        return self.no_inside is None

    @property
    def no_inside(self) -> str | None:
        """The reason why ``look`` has nothing to show, as it follows the run's name; or None."""
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
        """The precision of the computation: int8, bf16 or fp32."""
        return self.engine.path.precision if self.engine.writes else "fp32"

    @property
    def level(self) -> str:
        """The instruction set of the kernels that run the model; nothing for plain torch."""
        return self.engine.path.level if self.engine.writes else ""

    def source_ids(self, text: str) -> list[int]:
        """Tokens of a source with the end symbol; the end symbol alone where nothing is read."""
        return self.engine.source.values([text])[0]

    def source_values(self, source: str) -> Sequence[int] | Values:
        """The values of a source that the model reads: ``source_ids``, or the rows of a file."""
        if self.run.task.reads_files:
            return self.engine.source.read([source])[0]
        return self.source_ids(source)

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


class ReadingPredictor(Predictor[Answer]):
    """A predictor whose model reads and writes nothing. Not for several threads at once."""

    def __init__(self, run: Run, settings: EngineSettings | None = None) -> None:
        """Errors: ``RunError``, also for a run of another task."""
        run.require_task(*self.asked_of)
        super().__init__(run, Engine.reading(run, settings or EngineSettings(precision="fp32")))
        self.prepare(run.recipe, run.forms)

    @classmethod
    def over(cls, engine: Engine, recipe: Recipe, forms: Forms) -> Self:
        """Open a network in training. The predictor has no run, so it answers, and no more."""
        predictor = cls.__new__(cls)
        predictor.engine = engine
        predictor.prepare(recipe, forms)
        return predictor

    @abstractmethod
    def prepare(self, recipe: Recipe, forms: Forms) -> None:
        """Take over what a recipe and forms say about reading and answering."""


class WritingPredictor(Predictor[Answer]):
    """A predictor whose outputs are searched for. Not for several threads at once."""

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


class SearchingPredictor(WritingPredictor[Answer], Generic[Answer, Found]):
    """A predictor that searches once for each source. Not for several threads at once."""

    together: ClassVar[int] = 256
    """The sources that ``stream`` reads at once."""

    @classmethod
    def over(cls, engine: Engine) -> Self:
        """A predictor of a network in training. It has no run, so it searches, and no more."""
        predictor = cls.__new__(cls)
        predictor.engine = engine
        return predictor

    @abstractmethod
    def ask(self, given: str, settings: SearchSettings | None = None) -> Request:
        """The search for one source. ``settings`` replace the run's own. Errors: ``DataError`` for
        a source that cannot be read."""

    @abstractmethod
    def answer(self, given: str, hypotheses: Sequence[Hypothesis]) -> Found:
        """The result for a source, from the hypotheses of its search, the best first."""

    def answers(self, given: Sequence[str], requests: Iterable[Request]) -> Iterator[Found]:
        """Searches for each request, and yields the result for its source, in their order."""
        return self.engine.searcher.each(
            requests, lambda number, found: self.answer(given[number], found)
        )

    def stream(
        self, given: Iterable[str], settings: SearchSettings | None = None
    ) -> Iterator[Found]:
        """Searches for any number of sources, ``together`` at a time, and gives what is found for
        each, in their order. Errors: ``DataError`` for a source that cannot be read, once all
        before it are answered."""
        for part in parts(given, self.together):
            yield from self.answers(part, (self.ask(one, settings) for one in part))


def parts(items: Iterable[Item], size: int = WINDOW) -> Iterator[list[Item]]:
    """Lists of ``size`` items, the last of fewer. An error of reading comes up behind those that
    were read before it."""
    waiting = iter(items)
    while True:
        part: list[Item] = []
        try:
            part.extend(islice(waiting, size))
        except DragomanError:
            if part:
                yield part
            raise
        if not part:
            return
        yield part


def named(given: Iterable[object]) -> Iterator[str]:
    """Texts as they are, and paths as texts. Errors: ``TypeError`` for anything else."""
    for number, one in enumerate(given):
        if not isinstance(one, str | Path):
            raise TypeError(
                f"expected texts or paths, but number {number}, counted from 0, is "
                f"{type(one).__name__}"
            )
        yield str(one)
