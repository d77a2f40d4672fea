"""The base class of all runs that the server holds: a run with its engine, its queue, its limits,
and the notes on its training.

The folder of each task has a subclass and its endpoint. ``tasks/program.py`` lists the subclasses.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import ValidationError

from dragoman.base.errors import RecipeError, RunError
from dragoman.base.wording import plural, shorten
from dragoman.demo.corpus import NOTICE
from dragoman.engine.alignment_head import Alignment, TokenPair
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.engine.settings import with_beams
from dragoman.runs.run import Run
from dragoman.search.request import Request, rows_of
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.limits import LOOKING, ON_TORCH, Work
from dragoman.serving.http.messages import Message
from dragoman.serving.http.refusals import Refusal, unsearchable
from dragoman.serving.look.inspector import Asked, Cut, Inspector
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.queue.queue import SearchQueue

logger = logging.getLogger("dragoman")

Asks = TypeVar("Asks", bound=Predictor[object])


class Knowledge(Message):
    """The description of a run's training data."""

    notice: str
    """A notice to show first, such as that the training text is synthetic. It may be empty."""
    verdict: str
    """A warning that the run has hardly learned its task, or writes the same for every input. Empty
    for other runs, and if the training did not record it."""
    pairs: int | None
    """The number of training examples; null if it is not known."""
    words: int | None
    """The number of different source words in the training text; null if it was not recorded."""
    commonest: list[str]
    """The most frequent source words in the training text, at most 300."""
    longest: int | None
    """The number of words that 99.9 % of the training sources do not exceed; null if it is not
    known. The run may omit parts of longer sentences."""
    examples: list[str]
    """Example inputs to try. They are not in the training text. For a run that reads files, the
    name of one, which `GET /v1/runs/{name}/example` returns."""
    label_smoothing: float
    """The label smoothing of the training (ε): the share of probability that the run learned to
    give to other words. Even a sure prediction has a probability of hardly more than 1 - ε."""


_COMMONEST = 300
_EXAMPLES = 4
_PAIR = (
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
)
"""Two example sentences for the demo, in which a single word decides what "it" refers to."""
_MAX_EXAMPLE = 90
"""The largest number of characters of an example."""


def knowledge_of(run: Run, examples: Callable[[Run], list[str]]) -> Knowledge:
    """Read the notes on the training from the folder of a run, and get example inputs from the
    function ``examples``. Damaged notes are left out, and a warning is logged."""
    values: dict[str, Any] = dict.fromkeys(("pairs", "words", "longest"))
    values |= {"verdict": "", "commonest": [], "examples": []}
    try:
        lexicon, verdict = run.lexicon(), " ".join(run.verdict())
        if verdict:
            logger.warning("%s: %s", run.folder, verdict)
        values = {
            "verdict": verdict,
            "pairs": run.notes().get("pairs", {}).get("train"),
            "words": None if lexicon is None else len(lexicon),
            "commonest": [] if lexicon is None else list(lexicon.counts)[:_COMMONEST],
            "longest": run.longest_words(),
            "examples": examples(run),
        }
    except RunError as error:  # it must not stop the run from translating
        logger.warning("%s", error)
    recipe = run.recipe
    notice = NOTICE if recipe.data.embedded else ""
    return Knowledge(notice=notice, label_smoothing=recipe.training.label_smoothing, **values)


def sample_sources(run: Run) -> list[str]:
    """Return the source texts of the samples in ``scores.json``; without scores, those of the last
    validation."""
    sources = [sample["source"] for sample in run.scores().get("samples", [])]
    return sources or run.sources_while_learning()


def sentences_of(run: Run) -> list[str]:
    """Return sentences of the test set as examples. For the demo, the list begins with two
    sentences that show what attention does."""
    if run.recipe.data.embedded and run.recipe.languages.source == "en":
        return short((*_PAIR, *sample_sources(run)))
    return sorted(short(sample_sources(run)), key=len)


def short(texts: Iterable[str]) -> list[str]:
    """Return the first few different texts that are short enough to be examples."""
    different = dict.fromkeys(text for text in texts if text and len(text) <= _MAX_EXAMPLE)
    return list(different)[:_EXAMPLES]


SPARE = 4
"""A batch has ``rows`` / ``SPARE`` rows more than ``rows``. They are reserved for clients without a
search in progress."""
OF_CLIENT, OF_ALL = 8, 64
"""The largest numbers of waiting requests for one kind of work other than searches: from one
client, and from all clients together."""


class ServedRun(ABC):
    """A run that the server holds. Call ``start`` in the event loop before use, and ``close`` after
    it."""

    task: ClassVar[str]
    """The name of its task in ``catalogue.TASKS``; for translators that read files, another name
    for this work."""
    does: ClassVar[str]
    """A phrase that says in messages what the run does, such as "finds boxes in pictures"."""
    path: ClassVar[str]
    """The path of the endpoint that serves the task."""
    trained: ClassVar[str]
    """A command that trains such a run, for messages."""
    translates: ClassVar[bool] = False
    """True if requests choose such runs by the languages of a text."""
    looked_into: ClassVar[bool] = True
    """True if the server can inspect such runs with ``/v1/look``, provided that the model of the
    run supports it."""
    takes_files: ClassVar[bool] = False
    """True if it reads files instead of text."""
    sent: ClassVar[type[Message]]
    """The class of the messages that its endpoint receives."""
    gives: ClassVar[type[Message]]
    """The class of the messages that its endpoint returns."""
    reads: str = "text"
    """The kind of its input: text, recordings or pictures."""
    reads_as: Mapping[str, int] = {}
    """A description of the files that it reads (``RowsSource.takes``); empty for text."""
    times_words: bool | None = None
    """True if it knows when each word is said; None for a run that does not transcribe."""
    has_figures: bool = True
    """True if figures can be computed from it: from runs that generate text or fill in blanks, and
    from runs that label pictures. For the latter, only figures that show no file are possible."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        settings: ServeSettings,
        run: Run,
        predictor: Predictor[object] | None = None,
    ) -> None:
        """``run``: the run with its folder, from which its description is read. ``predictor``:
        what answers with the run, if its text can be looked into; None for other runs."""
        self.name = name
        self.engine = engine
        self.settings = settings
        self.run = run
        self.knowledge = knowledge_of(run, self.examples)
        self.source = engine.source.language
        has_language = engine.target.vocabulary is not None
        self.target = engine.target.language if has_language else self.source
        self.targets = self.usual_targets = [self.target]
        """The codes of all languages into which it translates (``targets``), and of those that are
        possible for a request that names no target language (``usual_targets``)."""
        has_inside = self.looked_into and (predictor is None or predictor.has_inside)
        self.aligning = FairExecutor("align")
        self._executors = [self.aligning]
        self._inspector = None
        if has_inside:
            self._inspector = Inspector(engine, predictor, self.executor("look"))
        spare = max(1, settings.rows // SPARE)
        self.queue = SearchQueue(
            lambda: engine.scheduler(spare),
            spare=spare,
            name=name,
            eos=engine.target.eos,
            waiting=settings.limits.waiting,
            workers=engine.workers,
        )

    @classmethod
    def takes(cls, run: Run) -> bool:
        """Return True if this class can serve a run."""
        return run.task.purpose == cls.task and run.task.reads_files == cls.takes_files

    @classmethod
    @abstractmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> Self:
        """Load a run for serving. Errors: ``RunError``."""

    @staticmethod
    def examples(run: Run) -> list[str]:
        """Return a few short texts to try, from the samples of the run. Errors: ``RunError``."""
        return sorted(short(sample_sources(run)), key=len)

    def into(self, target: str) -> Self:
        """Return this run as a translator into one of its ``targets``."""
        return self

    def start(self) -> None:
        self.queue.start()

    async def close(self) -> None:
        """Finish the accepted requests, and end the threads."""
        await self.queue.close()
        for executor in self._executors:
            executor.close()

    def executor(self, kind: str) -> FairExecutor:
        """Make an executor, with a thread for one kind of work. It ends when the run is closed."""
        self._executors.append(FairExecutor(kind, of_client=OF_CLIENT, of_all=OF_ALL))
        return self._executors[-1]

    async def align(self, pairs: Sequence[TokenPair], client: str) -> list[Alignment]:
        """Return the attention of each output token to each source token, for each of the
        ``pairs``."""
        batches = await self.aligning.all(client, self.engine.attention.align(pairs))
        return [alignment for batch in batches for alignment in batch]

    # ---- looking inside

    @property
    def can_be_looked_into(self) -> bool:
        """True if the server can inspect the run, so that it has an ``inspector``."""
        return self._inspector is not None

    @property
    def inspector(self) -> Inspector:
        """The inspector of the run. Raises Refusal 400 if the server cannot inspect the run."""
        if self._inspector is None:
            message = f"{self.name} cannot be looked into here: {self.why_not_inside}"
            raise Refusal("cannot_look", message, run=self.name)
        return self._inspector

    @property
    def why_not_inside(self) -> str:
        """The reason why the server cannot inspect this run, as it follows the run's name in
        messages."""
        if self.takes_files:
            return f"it reads {self.reads}. From the command line: dragoman look"
        return "it goes over a text from left to right, and has no encoder."

    def look_cut(self, request: Asked) -> Cut[Asked]:
        """Check a request for ``/v1/look``, and choose the text to inspect. Raises Refusal if the
        request is not possible."""
        cut = self.inspector.cut(request, self.settings.look_longest)
        if self.engine.writes and not cut.request.given:  # the search is the costly part
            asked, search = cut.request, self.engine.search_settings
            rows = asked.beam or search.beam
            length = asked.max_length or len(cut.ids) + search.max_extra
            self.check_cost(
                rows * length * LOOKING,
                "look",
                f"{plural(length, 'token')} at most, with "
                f"{plural(rows, 'hypothesis', 'hypotheses')}, each step recorded",
                "Look at one sentence of the text (sentence), or use a smaller beam.",
            )
        return cut

    def beam_search(self, beam: int | None, n_best: int | None) -> SearchSettings:
        """Return the settings of the run's own search, without sampling, and with another beam or
        n-best if these are given. Raises Refusal 400."""
        try:
            changes = {"sampling": None, "alternatives": False}
            own = self.engine.search_settings.model_copy(update=changes)
            return with_beams(own, beam, n_best)
        except RecipeError as error:
            raise unsearchable(error) from None

    # ---- limits: each raises Refusal 400 for a request that exceeds it

    def check_search(self, settings: SearchSettings) -> None:
        """Check the beam, the number of outputs and the number of hypotheses of a search against
        the limits."""
        self.check_width(settings.beam, settings.n_best)
        rows = rows_of(settings)
        if rows > self.settings.rows:
            raise Refusal(
                "too_many_hypotheses",
                n_best=settings.n_best,
                beam=settings.beam,
                hypotheses=rows,
                most=self.settings.rows,
            )

    def check_width(self, *asked: int) -> None:
        """Check a beam size, or a number of translations of one text, against the limit."""
        limit = self.settings.limits.beam
        if max(asked) > limit:
            raise Refusal("beam_too_wide", asked=max(asked), most=limit)

    def check_searches(self, wanted: Sequence[Request]) -> None:
        """Check the total cost of all searches of one request. Raises Refusal 400 if it is above
        the limit."""
        weight = 1 if self.engine.path.whole_steps else ON_TORCH
        cost = sum(
            (rows_of(request.settings) * weight + request.settings.n_best) * request.limit
            for request in wanted
            if len(request.source)
        )
        longest = max((request.limit for request in wanted), default=0)
        widest = max((rows_of(request.settings) for request in wanted), default=0)
        self.check_cost(
            cost,
            "search",
            f"{plural(len(wanted), 'sentence')} of up to {plural(longest, 'token')}, with up to "
            f"{plural(widest, 'hypothesis', 'hypotheses')} each",
            "Send fewer or shorter sentences at once, or use a smaller beam, max_length or "
            "min_length.",
        )

    def check_cost(self, cost: int, work: Work, how_much: str, change: str) -> None:
        """Check the ``cost`` of a request, in token steps, against the limit. Raises Refusal 400 if
        it is too high. ``work``, ``how_much`` and ``change`` (what the client can change) are for
        the message."""
        most = self.settings.limits.token_steps
        if cost > most:
            raise Refusal(
                "too_costly",
                f"This request may take {cost:,} token steps ({how_much}); this server allows "
                f"{most:,} in one request. {change}",
                cost=cost,
                most=most,
                work=work,
            )


class AskedRun(ServedRun, Generic[Asks]):
    """A served run with a predictor, which answers requests in a separate thread, in turns with
    other clients."""

    opens: ClassVar[Callable[..., Any]]
    """A function that makes the predictor from the run and the settings."""
    work: ClassVar[str]
    """The name of the predictor's work in refusals."""

    def __init__(self, name: str, predictor: Asks, settings: ServeSettings) -> None:
        super().__init__(name, predictor.engine, settings, predictor.run, predictor)
        self.predictor = predictor
        self.asking = self.executor(self.work)
        """The thread in which the predictor answers."""

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> Self:
        return cls(name, cls.opens(run, settings), settings)


def bad_field(error: ValidationError, begin: str = "") -> Refusal:
    """Make the refusal for the first invalid field or setting of a validation error. ``begin``: the
    beginning of its message."""
    problem = error.errors()[0]
    where = shorten(".".join(str(part) for part in problem["loc"]), 100)
    message = problem["msg"].removeprefix("Value error, ")
    detail = f"{where}: {message}" if where else message
    return Refusal("bad_field", f"{begin}{detail}", field=where, problem=message)
