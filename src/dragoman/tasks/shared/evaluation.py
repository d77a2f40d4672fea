"""Evaluation of a finished run: the steps that all tasks share, and where scores are kept.

The examples are pairs or texts, from files or from the test set of the recipe.

``scores.json`` of a run holds its scores on the test set of its recipe, by the recipe's settings.
Seeds, reports and pages read it, so scores by other settings are never written there.
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
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from dragoman.base.atomic import write_text
from dragoman.base.errors import DragomanError
from dragoman.base.measure import score_table
from dragoman.base.task import Task
from dragoman.data.files.corpora import files_of, read_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.file_kinds import NotLines, check_is_lines
from dragoman.engine.settings import EngineSettings, for_test_set
from dragoman.forms.form import Pair
from dragoman.forms.identification import other_language
from dragoman.forms.languages import base, name_of
from dragoman.runs.evaluation_set import nothing_to_measure, own_test_set
from dragoman.runs.lineage import warn_of_learned, watch_texts
from dragoman.runs.run import SCORES, Run
from dragoman.search.settings import SearchSettings
from dragoman.training.records import MAX_SHOWN, Sample

_CHARACTERS = 500_000
"""The most characters of all samples: a file above ``MAX_JSON`` is not read back."""

logger = logging.getLogger("dragoman")

_AT_ONCE = 100
"""The number of texts that a run reads at once."""
_SAMPLE_SIZE = 100
"""The number of texts from which the language of a file is identified."""


@dataclass(frozen=True)
class EvaluationRequest:
    """A run to evaluate, the examples, and the settings. ``Task.evaluation_options`` names the
    options that a task takes."""

    run: Run
    files: Sequence[Path] = ()
    """The files to evaluate on; without any, the run is evaluated on the test set of its recipe."""
    changes: Sequence[str] = ()
    """Changes ``key=value`` to the recipe's search settings; for a language model, to the windows
    in which it reads."""
    precision: str = "auto"
    shortlist: bool = False
    mbr: int = 0
    """``precision``, ``shortlist`` and ``mbr`` are those of ``TranslatorSettings``."""
    ensemble: Sequence[Run] = ()
    """Runs that translate together with this one."""
    columns: str | None = None
    keys: tuple[str, str] | None = None
    """The columns or keys of the two sides of a file that contains both. Default: as in
    training."""
    judge: Run | None = None
    """For a painter: a run that reads pictures. It counts the painted pictures for which it
    predicts a right caption."""
    robust: bool = False
    """For a translator: also translate the sources with noise."""
    best_of: int = 1
    """The number of pictures of each caption from which the judge chooses one."""

    @property
    def search(self) -> SearchSettings:
        """The settings of the search. Errors: ``RecipeError``."""
        return for_test_set(self.run.recipe, self.changes)

    @property
    def searches_as_usual(self) -> bool:
        """True if the run searches alone and by the settings of its recipe."""
        changed = self.shortlist or self.mbr or self.ensemble or self.precision != "auto"
        return not changed and self.search == for_test_set(self.run.recipe)

    def settings(self, **others: int) -> EngineSettings:
        """The settings with which the run is opened; ``others`` are added. Errors:
        ``ValidationError``."""
        return EngineSettings.model_validate({"precision": self.precision, **others})

    def about(self, test: str, seconds: float) -> tuple[Task, str, str, str, float]:
        """The fields that every report begins with. ``test``: the name of the examples."""
        runs = (self.run, *self.ensemble)
        weights = dict.fromkeys(run.weights_summary for run in runs)
        names = " + ".join(run.folder.name for run in runs)
        return self.run.task, names, "; ".join(weights), test, seconds


@dataclass(frozen=True)
class EvaluationReport(ABC):
    """The scores of a run on a test set."""

    task: Task
    run: str
    weights: str
    """The kind of the weights (best, average or last) and their update."""
    test: str
    """The name of the test set."""
    seconds: float

    @abstractmethod
    def table(self) -> str:
        """Return the whole report as plain text."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """The figures that only this kind of report has, as plain values for JSON."""

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values for JSON."""
        return {
            "run": self.run,
            "weights": self.weights,
            "test": self.test,
            "seconds": round(self.seconds, 2),
            **self.how(),
            **self.details(),
        }

    def how(self) -> dict[str, str]:
        """The search settings and the path that was used, if outputs were searched for."""
        return {}

    def outputs(self) -> Sequence[str]:
        """The output of the run for each example, if it writes text."""
        return ()

    def to_keep(self, run: Run) -> dict[str, Any]:
        """The content of ``scores.json``; ``ScoresFile`` of ``runs/files.py`` reads it back."""
        return self.to_dict()

    @property
    def head(self) -> str:
        """The first line of the table."""
        return f"{self.run} ({self.weights}) on {self.test}"

    def score_lines(self, scores: Mapping[str, float]) -> str:
        """Format one line for each score."""
        return score_table({name: (self.task.measure(name), scores[name]) for name in scores})

    def lines(self, amount: str, scores: Mapping[str, float], notes: Sequence[str]) -> str:
        """Join the parts of the table: what was evaluated, the scores, and notes on them."""
        return "\n".join([self.head, amount, "", self.score_lines(scores), "", *notes])


@dataclass(frozen=True)
class SearchReport(EvaluationReport):
    """The scores of a run whose outputs are searched for."""

    search: str
    """The settings of the search, as text."""
    path: str
    """The path that was used: int8 kernels, or torch in bf16 or fp32."""
    pairs: Sequence[Pair]
    hypotheses: Sequence[str]
    """The output of the run for each example."""

    def outputs(self) -> Sequence[str]:
        return self.hypotheses

    def how(self) -> dict[str, str]:
        return {"search": self.search, "path": self.path}

    def amount(self, counted: str) -> str:
        """The next two lines of the table: search settings, path, number of examples, time."""
        return f"{self.search}; {self.path}\n{counted}, {self.seconds:.1f} s"

    def to_keep(self, run: Run) -> dict[str, Any]:
        return self.to_dict() | samples(run, self.pairs, self.outputs())


Examples = TypeVar("Examples")
Report = TypeVar("Report", bound=EvaluationReport)


class RunEvaluation(ABC, Generic[Examples, Report]):
    """Evaluates finished runs. A task defines its examples and the report on them."""

    def __call__(
        self, run: Run, files: Sequence[Path] = (), changes: Sequence[str] = (), **options: Any
    ) -> Report:
        """Evaluate a run. Scores on the recipe's own test set, by the recipe's own settings, are
        written to the run's scores.json.

        ``files``, ``changes`` and ``options`` are those of ``EvaluationRequest``.
        Errors: ``RunError`` for an unusable run; ``DataError`` for unusable files;
        ``DragomanError`` if there are no examples, and for changes and files that the task does not
        take.
        """
        asked = EvaluationRequest(run, files, changes, **options)
        self.check(asked)
        report = self.report(asked, self.examples(asked))
        if not files and asked.judge is None:
            keep_scores(run, report.to_keep(run), own=self.is_own(asked))
        return report

    def check(self, asked: EvaluationRequest) -> None:
        """Raise ``DragomanError`` for changes to the search of a task that has none. Other changes
        are checked when the search begins."""
        if asked.changes and "beam" not in asked.run.task.evaluation_options:
            raise DragomanError(
                f"{asked.changes[0]}: {asked.run.folder} is a {asked.run.task.called} and is "
                "measured without a search. Leave out --set"
            )

    @abstractmethod
    def examples(self, asked: EvaluationRequest) -> Examples:
        """Read the examples and their name. A warning is logged if the run has learned from any of
        them."""

    @abstractmethod
    def report(self, asked: EvaluationRequest, examples: Examples) -> Report:
        """Run the model on the examples, and score its outputs."""

    def is_own(self, asked: EvaluationRequest) -> bool:
        """True if the run is evaluated by the settings of its recipe."""
        return asked.searches_as_usual


def keep_scores(run: Run, scores: Mapping[str, Any], *, own: bool) -> None:
    """Write ``scores``, the scores on the recipe's test set, to ``scores.json``. If they were
    computed with other settings than the recipe's (``own`` is false), they are not written, and a
    message says so."""
    path = run.folder / SCORES
    if not own:
        logger.info("%s is not changed: it holds the scores with the recipe's own settings", path)
        return
    write_text(path, json.dumps(scores, indent=2, ensure_ascii=False) + "\n")


def sign(scores: Mapping[str, float], signature: str) -> dict[str, dict[str, Any]]:
    """Pair each score with its signature, which says how it was computed."""
    return {name: {"value": value, "signature": signature} for name, value in scores.items()}


def samples(run: Run, pairs: Sequence[Pair], hypotheses: Sequence[str]) -> dict[str, Any]:
    """Take as many samples as the recipe says, spread over all pairs, each with the output of the
    run. Texts are shortened, more so if there are many samples."""
    wanted = run.recipe.evaluation.samples
    most = min(MAX_SHOWN, _CHARACTERS // (3 * max(1, wanted)))
    step = max(1, len(pairs) // max(1, wanted))
    some = list(zip(pairs, hypotheses, strict=True))[::step][:wanted]
    return {
        "samples": [
            asdict(Sample(pair.source, pair.target, hypothesis).shorten(most))
            for pair, hypothesis in some
        ]
    }


Found = TypeVar("Found")


def clock(measure: Callable[[], Found]) -> tuple[Found, float]:
    """Call ``measure`` -> its result, and the seconds that it took."""
    began = time.perf_counter()
    result = measure()
    return result, time.perf_counter() - began


def require_one_file(run: Run, files: Sequence[Path], of: str) -> None:
    """Raise ``DragomanError`` for a second file. ``of``: the contents of the first."""
    if len(files) > 1:
        raise DragomanError(
            f"{run.folder} is a {run.task.called}: it is measured on one file of {of}. Leave "
            f"{files[1]} out"
        )


class ExampleSet(NamedTuple):
    """A set of examples for evaluation."""

    pairs: Sequence[Pair]
    name: str
    left_out: int = 0
    """The number of examples that are left out because their label did not occur in training."""


def corpus_like(run: Run, files: Sequence[Path]) -> CorpusSettings:
    """The corpus in ``files``, laid out like the first training corpus of ``run``.

    Errors: ``DragomanError`` for another number of files."""
    (learned, *_) = run.recipe.data.train
    wanted = 1 if learned.target is None else 2
    if len(files) != wanted:
        single = "a folder" if learned.format == "folders" else "a list of files"
        what = single if wanted == 1 else "two IDX files, of pictures and of their labels,"
        raise DragomanError(
            f"{run.folder} is measured on {what}, like in training, not on {len(files)}"
        )
    target = str(files[1]) if wanted == 2 else None
    return learned.model_copy(update={"source": str(files[0]), "target": target})


class PairsEvaluation(RunEvaluation[ExampleSet, Report]):
    """Evaluates runs on files of pairs, or on the recipe's test set."""

    wanted: ClassVar[tuple[str, str, str]]
    """The arguments of ``nothing_to_measure`` if there are no examples."""
    one_of: ClassVar[str] = ""
    """The contents of the file, for tasks that take a single one."""

    def corpus(self, run: Run, files: Sequence[Path]) -> CorpusSettings:
        """The settings with which the files are read."""
        return corpus_like(run, files)

    def read(self, asked: EvaluationRequest) -> ExampleSet:
        """Read all examples. Errors: those of ``read_fitting``."""
        run, files = asked.run, asked.files
        if self.one_of:
            require_one_file(run, files, self.one_of)
        if not files:
            return ExampleSet(*own_test_set(run))
        return ExampleSet(list(read_pairs(self.corpus(run, files))), files[0].name)

    def fitting(self, asked: EvaluationRequest, examples: ExampleSet) -> Sequence[Pair]:
        """Select the examples that can be evaluated. Errors: ``DataError``."""
        return examples.pairs

    def read_fitting(self, asked: EvaluationRequest) -> ExampleSet:
        """Read the examples, without a warning about those that the run has learned from.

        Errors: ``DataError`` for unusable files; ``DragomanError`` for too many files, or if there
        are no examples.
        """
        every = self.read(asked)
        pairs = self.fitting(asked, every)
        if not pairs:
            raise nothing_to_measure(asked.run, *self.wanted)
        return ExampleSet(pairs, every.name, len(every.pairs) - len(pairs))

    def examples(self, asked: EvaluationRequest) -> ExampleSet:
        examples = self.read_fitting(asked)
        warn_of_learned(asked.run, examples.pairs)
        return examples


class TextStream(NamedTuple):
    """Texts for evaluation, read one after the other as they are needed."""

    texts: Iterator[str]
    name: str

    def parts(self) -> Iterator[list[str]]:
        """Yield the texts in batches of at most ``_AT_ONCE``."""
        while part := list(islice(self.texts, _AT_ONCE)):
            yield part


def texts_of(run: Run, files: Sequence[Path]) -> TextStream:
    """Read the texts of a file, or of the run's test set, without blank ones. A warning is logged
    if the run has learned from any of them."""
    require_one_file(run, files, "texts, without references")
    if files:
        _warn_of_other_text(run, files[0])
        texts, name = read_like(run, files[0]), files[0].name
    else:
        pairs, name = own_test_set(run)
        texts = (pair.target for pair in pairs)
    return TextStream(watch_texts(run, (text for text in texts if text.strip())), name)


class TextsEvaluation(RunEvaluation[TextStream, Report]):
    """Evaluates runs on texts without references."""

    def examples(self, asked: EvaluationRequest) -> TextStream:
        return texts_of(asked.run, asked.files)


def no_texts(run: Run) -> DragomanError:
    """The error for a test set without texts."""
    return nothing_to_measure(run, "is no text", "a file of texts", "test.txt")


def _warn_of_other_text(run: Run, path: Path) -> None:
    """Log a warning if a file, or the first of a folder, is in another language than the run, or is
    no text of lines. Errors: ``DataError`` for an unreadable file."""
    first = files_of(str(path))[0]
    if not first.is_file() or not first.stat().st_size:
        return  # A pipe can be read only once, and an unreadable file fails where it is read.
    try:
        next(read_lines(first, check_is_lines), None)
    except NotLines as error:
        logger.warning("warning: %s", error)
        return
    code = base(run.recipe.languages.target)
    if reads := other_language(islice(read_like(run, first), _SAMPLE_SIZE), code):
        logger.warning("warning: %s should be %s and reads as %s", first, name_of(code), reads)


def read_like(run: Run, path: Path) -> Iterator[str]:
    """Read the texts of a file or folder, separated as in the training files of the run. Sections
    are made as long as possible, because no section has to be held out here."""
    learned = [corpus.format for corpus in run.recipe.data.train if corpus.layout.by]
    corpus = CorpusSettings(source=str(path), format=learned[0] if learned else "text")
    return (pair.target for pair in read_pairs(corpus))
