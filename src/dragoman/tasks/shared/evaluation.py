"""How a finished run is measured: the same steps for every task, and where its figures are kept.

``scores.json`` of a run holds what it scores on the test set of its recipe, by the recipe's
settings. Seeds, reports and pages read it, so figures of other settings are never written there.
"""

from __future__ import annotations

import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from dragoman.base.atomic import write_text
from dragoman.base.errors import DragomanError
from dragoman.base.measure import score_table
from dragoman.base.task import Task
from dragoman.data.files.corpora import files_of, read_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.file_kinds import NotLines, check_is_lines
from dragoman.engine.search_settings import for_test_set
from dragoman.engine.settings import EngineSettings
from dragoman.forms.form import Pair
from dragoman.forms.identification import can_identify, identify
from dragoman.forms.languages import NAMES, base, name_of
from dragoman.runs.evaluation_set import nothing_to_measure, own_test_set
from dragoman.runs.lineage import warn_of_learned, watched_texts
from dragoman.runs.run import SCORES, Run
from dragoman.search.settings import SearchSettings
from dragoman.training.records import MAX_SHOWN, Sample

if TYPE_CHECKING:
    from dragoman.metrics.significance import MeasuredSystem

_CHARACTERS = 500_000
"""Of all samples together: the file is read back only if it is no larger than ``MAX_JSON``."""

logger = logging.getLogger("dragoman")


@dataclass(frozen=True)
class EvaluationRequest:
    """A run that is to be measured, on what, and how. ``Task.evaluation_options`` says which of
    the options a task has."""

    run: Run
    files: Sequence[Path] = ()
    """What it is measured on; without any, the test set of its recipe."""
    changes: Sequence[str] = ()
    """``key=value``, merged into the recipe's settings of a search; of a language model those of
    the windows that it reads in."""
    precision: str = "auto"
    shortlist: bool = False
    mbr: int = 0
    """As ``TranslatorSettings``, and the two before."""
    ensemble: Sequence[Run] = ()
    """Runs that translate together with this one."""
    columns: str | None = None
    keys: tuple[str, str] | None = None
    """Where one file has both sides; as in training if not given."""
    judge: Run | None = None
    """A run that reads pictures, and says in how many of them it reads their caption."""
    best_of: int = 1
    """Of so many pictures of each caption the judge chooses one."""

    @property
    def search(self) -> SearchSettings:
        """How outputs are searched for. Errors: ``RecipeError``."""
        return for_test_set(self.run.recipe, self.changes)

    @property
    def searches_as_usual(self) -> bool:
        """Whether outputs are searched for as the recipe says, by the run alone."""
        changed = self.shortlist or self.mbr or self.ensemble or self.precision != "auto"
        return not changed and self.search == for_test_set(self.run.recipe)

    def settings(self, **others: int) -> EngineSettings:
        """How the run is opened. ``others``: further settings. Errors: ``ValidationError``."""
        return EngineSettings.model_validate({"precision": self.precision, **others})

    def about(self, test: str, seconds: float) -> tuple[str, str, str, float]:
        """What every report begins with. ``test``: the name of the examples."""
        runs = (self.run, *self.ensemble)
        weights = dict.fromkeys(one.weights_summary for one in runs)
        return " + ".join(one.folder.name for one in runs), "; ".join(weights), test, seconds


@dataclass(frozen=True)
class EvaluationReport(ABC):
    """The figures of a run on a test set."""

    run: str
    weights: str
    """Which weights these are: best, average or last, and of which update."""
    test: str
    """The name of the test set."""
    seconds: float

    @abstractmethod
    def table(self) -> str:
        """Plain text."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """All but what every evaluation tells, as plain values for JSON: figures, not sentences."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "run": self.run,
            "weights": self.weights,
            "test": self.test,
            "seconds": round(self.seconds, 2),
            **self.how(),
            **self.details(),
        }

    def how(self) -> dict[str, str]:
        """The search that was measured, and its path, where there is one."""
        return {}

    def outputs(self) -> Sequence[str]:
        """What the run made of each example, where it writes."""
        return ()

    def to_keep(self, run: Run) -> dict[str, Any]:
        """What is written to ``scores.json``: ``ScoresFile`` of ``runs/files.py`` reads it back."""
        return self.to_dict()

    @property
    def head(self) -> str:
        """The first line of its table."""
        return f"{self.run} ({self.weights}) on {self.test}"

    def lines(self, amount: str, scores: str, notes: Sequence[str]) -> str:
        """Its table: what was measured, the scores, and below them what is to be known of them."""
        return "\n".join([self.head, amount, "", scores, "", *notes])


@dataclass(frozen=True)
class SearchReport(EvaluationReport):
    """The figures of a run that searches for what it writes."""

    search: str
    """The settings of the search, in words."""
    path: str
    """What has searched: int8 kernels, or torch in bf16 or fp32."""
    pairs: Sequence[Pair]

    def how(self) -> dict[str, str]:
        return {"search": self.search, "path": self.path}

    def amount(self, counted: str) -> str:
        """The second and third line of its table: how the search went, and over how much."""
        return f"{self.search}; {self.path}\n{counted}, {self.seconds:.1f} s"

    def to_keep(self, run: Run) -> dict[str, Any]:
        return self.to_dict() | samples(run, self.pairs, self.outputs())


Examples = TypeVar("Examples")
Report = TypeVar("Report", bound=EvaluationReport)


class RunEvaluation(ABC, Generic[Examples, Report]):
    """How finished runs of a task are measured. A task says what its examples are, and what is
    found on them."""

    def __call__(
        self, run: Run, files: Sequence[Path] = (), changes: Sequence[str] = (), **options: Any
    ) -> Report:
        """Measure a run. Figures on the recipe's own test set, by the recipe's own settings, are
        written to the run's scores.json.

        ``files``, ``changes``, ``options``: as those of ``EvaluationRequest``. Errors: ``RunError``
        for a run; ``DataError`` for files that cannot be used; ``DragomanError`` where there is
        nothing to measure on, and for changes and files that the task does not take.
        """
        asked = EvaluationRequest(run, files, changes, **options)
        self.check(asked)
        report = self.report(asked, self.examples(asked))
        if not files and asked.judge is None:
            keep_scores(run, report.to_keep(run), own=self.is_own(asked))
        return report

    def check(self, asked: EvaluationRequest) -> None:
        """Errors: ``DragomanError`` for changes of a search where there is none; those of one are
        looked at when it begins."""
        if asked.changes and "beam" not in asked.run.task.evaluation_options:
            raise DragomanError(
                f"{asked.changes[0]}: {asked.run.folder} is a {asked.run.task.called} and is "
                "measured without a search; nothing can be set"
            )

    @abstractmethod
    def examples(self, asked: EvaluationRequest) -> Examples:
        """What the run is measured on, with its name; that it has learned from any of it is
        logged."""

    @abstractmethod
    def report(self, asked: EvaluationRequest, examples: Examples) -> Report:
        """Ask the run, and score what it answers."""

    def is_own(self, asked: EvaluationRequest) -> bool:
        """Whether the run is measured as its recipe says."""
        return asked.searches_as_usual


def keep_scores(run: Run, found: Mapping[str, Any], *, own: bool) -> None:
    """``found``: on the recipe's test set. ``own``: by the recipe's settings; others are not
    written, and that is said."""
    path = run.folder / SCORES
    if not own:
        logger.info("%s is not changed: it holds the scores with the recipe's own settings", path)
        return
    write_text(path, json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def scores_of(task: Task, scores: Mapping[str, float]) -> str:
    """A line for each score of a task, by its name."""
    return score_table({name: (task.measure(name), value) for name, value in scores.items()})


def signed(scores: Mapping[str, float], signature: str) -> dict[str, dict[str, Any]]:
    """Each score with its signature: how it was computed."""
    return {name: {"value": value, "signature": signature} for name, value in scores.items()}


def samples(run: Run, pairs: Sequence[Pair], hypotheses: Sequence[str]) -> dict[str, Any]:
    """As many as the recipe says, spread over all: pairs, and what the run makes of them. Long
    texts are shortened, the more the more samples there are."""
    wanted = run.recipe.evaluation.samples
    most = min(MAX_SHOWN, _CHARACTERS // (3 * max(1, wanted)))
    step = max(1, len(pairs) // max(1, wanted))
    some = list(zip(pairs, hypotheses, strict=True))[::step][:wanted]
    return {
        "samples": [
            asdict(Sample(pair.source, pair.target, hypothesis).shortened(most))
            for pair, hypothesis in some
        ]
    }


class ComparedRuns(NamedTuple):
    """What the runs of some systems make of the same examples, for a test of significance."""

    test: str
    """The name of the examples."""
    pairs: Sequence[Pair]
    measured: Mapping[str, MeasuredSystem]
    """By the name of each score, over all ``pairs``; ``{}`` in a signature is their number."""
    outputs: Sequence[Sequence[str]]
    """What the first run of each system makes of each example."""
    guessed: Sequence[str]
    """The scores by which a system that only guesses is known."""
    shown: Sequence[Pair] | None = None
    """The pairs as they are shown, where that differs."""
    tables: Sequence[str] = ()
    """Further tables, as plain text."""
    details: Mapping[str, Any] = {}
    """What these tables hold, as plain values for JSON."""


CompareRuns = Callable[[Mapping[str, Sequence[Run]], Path | None, Sequence[Path]], ComparedRuns]
"""(the runs of each system by its name, the file of examples, files of references): asks all runs.
Without files it is about the test set of the first run."""


Found = TypeVar("Found")


def timed(measure: Callable[[], Found]) -> tuple[Found, float]:
    """What ``measure`` returns, and the seconds that it took."""
    began = time.perf_counter()
    found = measure()
    return found, time.perf_counter() - began


def require_one_file(run: Run, files: Sequence[Path], of: str) -> None:
    """Errors: ``DragomanError`` for a second file. ``of``: what stands in the first."""
    if len(files) > 1:
        raise DragomanError(
            f"{run.folder} is a {run.task.called}: it is measured on one file of {of}; what is "
            f"{files[1]}?"
        )


class ExampleSet(NamedTuple):
    """The examples that runs are measured on."""

    pairs: Sequence[Pair]
    name: str
    left_out: int = 0
    """Examples of a label that training had not, where these are not measured."""


def corpus_like(run: Run, files: Sequence[Path]) -> CorpusSettings:
    """The corpus in ``files``, laid out as the first one that ``run`` has learned from. Errors:
    ``DragomanError`` for another number of files."""
    (learned, *_) = run.recipe.data.train
    wanted = 1 if learned.target is None else 2
    if len(files) != wanted:
        one = "a folder" if learned.format == "folders" else "a list of files"
        what = one if wanted == 1 else "two IDX files, of pictures and of their labels,"
        raise DragomanError(
            f"{run.folder} is measured on {what} as it has learned from, and {len(files)} are named"
        )
    target = str(files[1]) if wanted == 2 else None
    return learned.model_copy(update={"source": str(files[0]), "target": target})


class PairsEvaluation(RunEvaluation[ExampleSet, Report]):
    """How runs are measured on files of pairs, or on the recipe's test set."""

    wanted: ClassVar[tuple[str, str, str]]
    """What is missing where there are none, as ``nothing_to_measure`` takes it."""
    one_of: ClassVar[str] = ""
    """What stands in the file, where there can be one alone."""

    def corpus(self, run: Run, files: Sequence[Path]) -> CorpusSettings:
        """How files are read."""
        return corpus_like(run, files)

    def examples(self, asked: EvaluationRequest) -> ExampleSet:
        run, files = asked.run, asked.files
        if self.one_of:
            require_one_file(run, files, self.one_of)
        if files:
            pairs, name = list(read_pairs(self.corpus(run, files))), files[0].name
        else:
            pairs, name = own_test_set(run)
        if not pairs:
            raise nothing_to_measure(run, *self.wanted)
        warn_of_learned(run, pairs)
        return ExampleSet(pairs, name)


_AT_ONCE = 100
"""Texts that a run reads at once."""
_SAMPLE_SIZE = 100
"""Texts by which the language of a file is told."""


class TextStream(NamedTuple):
    """Texts that runs are measured on, which are read as they are asked for."""

    texts: Iterator[str]
    name: str

    def parts(self) -> Iterator[list[str]]:
        """Some of them at once."""
        while part := list(islice(self.texts, _AT_ONCE)):
            yield part


def texts_of(run: Run, files: Sequence[Path]) -> TextStream:
    """What a run is measured on: the texts of a file, or those of the run's test set, that say
    anything. That it has learned from any of them is logged."""
    require_one_file(run, files, "texts, without references")
    if files:
        _warn_of_other_text(run, files[0])
        texts, name = read_like(run, files[0]), files[0].name
    else:
        pairs, name = own_test_set(run)
        texts = (pair.target for pair in pairs)
    return TextStream(watched_texts(run, (text for text in texts if text.strip())), name)


class TextsEvaluation(RunEvaluation[TextStream, Report]):
    """How runs are measured on texts that stand alone."""

    def examples(self, asked: EvaluationRequest) -> TextStream:
        return texts_of(asked.run, asked.files)


def no_texts(run: Run) -> DragomanError:
    """What is said where there are no texts."""
    return nothing_to_measure(run, "is no text", "a file of texts", "test.txt")


def _warn_of_other_text(run: Run, path: Path) -> None:
    """Log that the text of a file, or of the first of a folder, is in another language than that of
    the run, or is no text of lines. Errors: ``DataError`` for what cannot be read."""
    first = files_of(str(path))[0]
    if not first.is_file() or not first.stat().st_size:
        return  # a pipe is read once, and what cannot be read is said where it is read
    try:
        next(read_lines(first, check_is_lines), None)
    except NotLines as error:
        logger.warning("warning: %s", error)
        return
    code = base(run.recipe.languages.target)
    reads = identify(islice(read_like(run, first), _SAMPLE_SIZE))
    if can_identify(code) and reads and code not in reads:
        names = " or ".join(sorted(name_of(one) for one in reads if one in NAMES))
        logger.warning("warning: %s should be %s and reads as %s", first, name_of(code), names)


def read_like(run: Run, path: Path) -> Iterator[str]:
    """The texts of a file or folder, told apart as those that a run has learned from; sections are
    as long as may be, as nothing is held out of them."""
    learned = [corpus.format for corpus in run.recipe.data.train if corpus.is_alone]
    corpus = CorpusSettings(source=str(path), format=learned[0] if learned else "text")
    return (pair.target for pair in read_pairs(corpus))
