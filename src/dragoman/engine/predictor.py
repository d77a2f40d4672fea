"""The base of all predictors. A predictor is a run with its engine, which answers, scores and shows
attention.

``Translator`` translates a text; ``Writer`` continues a text; ``Filler`` fills in the blanks of a
text; ``Labeller`` chooses its label. All are called alike: one source gives one answer, several
give a list of answers. All are inspected alike, too: ``shown`` returns the output to look at.

``parts`` cuts sources into lists of one size; ``windows`` cuts standard input into lists that are
large enough for batches, without a long wait for more lines.
"""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

from dragoman.base.errors import DragomanError
from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings
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

WINDOW = 4000
"""The most lines that are translated together, and the most that are read ahead. It is several
times the number that a search sorts together, since the search's threads idle at the end of each
window."""
PATIENCE = 0.05
"""The seconds, counted from its first line, that a window waits for more lines before it is
translated."""


class Output(Protocol):
    """One output of a predictor, whatever else its class adds."""

    @property
    def text(self) -> str: ...

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens of the output, without start and end symbols."""

    @property
    def score(self) -> float: ...


@dataclass(frozen=True)
class Shown:
    """The output that is shown when a source is inspected."""

    text: str
    """The output as people read it."""
    ids: tuple[int, ...]
    """The tokens of the output, or the numbers of its labels."""
    score: float
    """log P of all ``ids`` together, in nats; for an output of a search, divided by the length
    penalty."""


NO_ENCODER = "reads a text from left to right and has no encoder to look into"
"""The ``Predictor.no_inside`` of a model that reads from left to right."""


Answer = TypeVar("Answer", covariant=True)
"""The answer of a predictor to one source."""
Found = TypeVar("Found")
"""The result of one search for a source, with all its hypotheses."""
Item = TypeVar("Item")


class Predictor(ABC, Generic[Answer]):
    """A trained model, ready for use. Only one thread at a time may use a predictor."""

    asked_of: ClassVar[tuple[str, str]]
    """The task of the runs that this class accepts, and the words that describe other runs: the
    arguments of ``Run.require_task``."""

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
        """Answer one text, or the file at one path; for several, return a list of answers, in
        order. The options and errors are those of ``each``. Errors: ``TypeError`` for anything but
        texts and paths."""
        if isinstance(given, str | Path):
            (answer,) = self.each([str(given)], *how, **options)
            return answer
        return list(self.each(as_texts(given), *how, **options))

    @abstractmethod
    def each(self, given: Iterable[str], *how: Any, **options: Any) -> Iterator[Answer]:
        """Yield the answer for each of several texts or files, in order. Take all answers before
        you use this predictor again."""

    @abstractmethod
    def own_output(self, text: str, prefix: str = "") -> Output:
        """Return the output to look at when no other is given: the output of the model for the
        whole text, or the text itself for a model that reads no source."""

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
        """The reason why ``look`` has nothing to show, worded to follow the name of the run; None
        if it has."""
        return None

    @property
    def plain(self) -> Network:
        """The model without fast paths, for inspection. To change it, open the run again and change
        that copy. Errors: ``DragomanError`` for an ensemble."""
        return self.engine.network

    @property
    def description(self) -> str:
        """One line that names the implementation which runs the model on this machine, and the
        reason."""
        return self.engine.description

    @property
    def precision(self) -> str:
        """The precision of the computation: int8, bf16, fp32, or mixed for an ensemble that uses
        several."""
        return self.engine.path.precision if self.engine.writes else "fp32"

    @property
    def level(self) -> str:
        """The instruction set of the kernels that run the model; empty for plain torch."""
        return self.engine.path.level if self.engine.writes else ""

    def source_ids(self, text: str) -> list[int]:
        """Return the tokens of a source with the end symbol; only the end symbol for a model that
        reads no source."""
        return self.engine.source.values([text])[0]

    def source_values(self, source: str) -> Sequence[int] | Values:
        """Return the values of a source that the model reads: ``source_ids``, or the rows of a
        file."""
        if self.run.task.reads_files:
            return self.engine.source.read([source])[0]
        return self.source_ids(source)

    def ids_to_show(self, text: str) -> list[int]:
        """Return the tokens of a text that is to be shown: the tokens that the model reads or, for
        a model that reads no source, those that it writes."""
        return self.source_ids(text) if self.reads else self.engine.target.tokens([text])[0]

    def score_ids(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Hypothesis]:
        """Score outputs that are given as tokens, without end symbols (force decoding)."""
        return self.engine.score([self.source_values(source) for source in sources], targets)

    def look(
        self, source: str, target_ids: Sequence[int], through: Probe | None = None
    ) -> AttentionRecord:
        """Return every attention weight of an output, computed by the plain model: see
        ``AttentionRecord``.

        ``through``: a recording probe that also intervenes, such as by switching heads off or
        hiding words. Errors: ``DragomanError`` if there is nothing to look into.
        """
        if self.no_inside is not None:
            raise DragomanError(f"{self.run.folder} {self.no_inside}")
        return self.engine.attention.record(self.source_values(source), target_ids, through)


class ReadingPredictor(Predictor[Answer]):
    """A predictor whose model reads but does not write. Only one thread at a time may use a
    predictor."""

    def __init__(self, run: Run, settings: EngineSettings | None = None) -> None:
        """Errors: ``RunError``, also for a run of another task."""
        run.require_task(*self.asked_of)
        super().__init__(run, Engine.reading(run, settings or EngineSettings(precision="fp32")))
        self.prepare(run.recipe, run.forms)

    @classmethod
    def over(cls, engine: Engine, recipe: Recipe, forms: Forms) -> Self:
        """Make a predictor of a network in training. Without a run, it can only answer."""
        predictor = cls.__new__(cls)
        predictor.engine = engine
        predictor.prepare(recipe, forms)
        return predictor

    @abstractmethod
    def prepare(self, recipe: Recipe, forms: Forms) -> None:
        """Take from a recipe and forms what the predictor needs to read and answer."""


class WritingPredictor(Predictor[Answer]):
    """A predictor whose outputs are searched for. Only one thread at a time may use a predictor."""

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
    """A predictor that searches once for each source. Only one thread at a time may use a
    predictor."""

    together: ClassVar[int] = 256
    """The number of sources that ``stream`` reads at once."""

    @classmethod
    def over(cls, engine: Engine) -> Self:
        """Make a predictor of a network in training. Without a run, it can only search."""
        predictor = cls.__new__(cls)
        predictor.engine = engine
        return predictor

    @abstractmethod
    def ask(self, given: str, settings: SearchSettings | None = None) -> Request:
        """Make the request for one source. ``settings`` replace the run's own. Errors:
        ``DataError`` for a source that cannot be read."""

    @abstractmethod
    def answer(self, given: str, hypotheses: Sequence[Hypothesis]) -> Found:
        """Return the result for a source, from the hypotheses of its search, the best first."""

    def answers(self, given: Sequence[str], requests: Iterable[Request]) -> Iterator[Found]:
        """Search for each request, and yield the result for its source, in order."""
        return self.engine.searcher.each(
            requests, lambda number, result: self.answer(given[number], result)
        )

    def stream(
        self, given: Iterable[str], settings: SearchSettings | None = None
    ) -> Iterator[Found]:
        """Search for any number of sources, ``together`` at a time, and yield the result for each,
        in order. Errors: ``DataError`` for a source that cannot be read, raised after the results
        for all sources before it."""
        for part in parts(given, self.together):
            yield from self.answers(part, (self.ask(source, settings) for source in part))


def parts(items: Iterable[Item], size: int = WINDOW) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items, the last of which may be shorter. An error of reading is
    raised after the items that were read before it."""
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


def as_texts(given: Iterable[object]) -> Iterator[str]:
    """Yield texts unchanged, and paths as texts. Errors: ``TypeError`` for anything else."""
    for number, item in enumerate(given):
        if not isinstance(item, str | Path):
            raise TypeError(
                f"expected texts or paths, but number {number}, counted from 0, is "
                f"{type(item).__name__}"
            )
        yield str(item)


def windows(
    lines: Iterable[Item], size: int = WINDOW, patience: float = PATIENCE
) -> Iterator[list[Item]]:
    """Cut a stream into windows: of ``size`` lines, or of the lines that came within ``patience``
    seconds.

    A thread reads at most ``size`` lines ahead while a window is being translated. An error of
    reading is raised after the lines that were read before it.
    """
    waiting: queue.Queue[tuple[Item] | Exception | None] = queue.Queue(maxsize=size)
    gone = threading.Event()

    def put(item: tuple[Item] | Exception | None) -> bool:
        while not gone.is_set():
            try:
                waiting.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for line in lines:
                if not put((line,)):
                    return
            put(None)
        except (OSError, ValueError, DragomanError) as error:
            put(error)

    threading.Thread(target=read, daemon=True, name="reader").start()
    try:
        window: list[Item] = []
        ready = 0.0
        while True:
            try:
                if window:
                    item = waiting.get(timeout=max(0.0, ready - time.monotonic()))
                else:
                    item = waiting.get()
                    ready = time.monotonic() + patience
            except queue.Empty:
                yield window
                window = []
                continue
            if not isinstance(item, tuple):
                if window:
                    yield window
                if item is None:
                    return
                raise item
            window.append(item[0])
            if len(window) == size:
                yield window
                window = []
    finally:
        gone.set()
