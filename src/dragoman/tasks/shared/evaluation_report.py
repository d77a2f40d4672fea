"""What every evaluation of a finished run tells: whose figures these are, on what, and where they
are kept."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dragoman.base.errors import DragomanError
from dragoman.data.files.corpora import files_of, read_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.file_kinds import NotLines, check_is_lines
from dragoman.engine.search_settings import for_test_set
from dragoman.forms.form import Pair
from dragoman.forms.identification import can_identify, identify
from dragoman.forms.languages import NAMES, base, name_of
from dragoman.metrics.significance import MeasuredSystem
from dragoman.runs.evaluation_set import nothing_to_measure, own_test_set
from dragoman.runs.lineage import warn_of_learned, watched_texts
from dragoman.runs.run import Run
from dragoman.runs.scores import keep_scores, samples

logger = logging.getLogger("dragoman")

Found = TypeVar("Found")


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

    def how(self) -> dict[str, str]:
        return {"search": self.search, "path": self.path}

    def amount(self, counted: str) -> str:
        """The second and third line of its table: how the search went, and over how much."""
        return f"{self.search}; {self.path}\n{counted}, {self.seconds:.1f} s"


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


def require_no_changes(run: Run, changes: Sequence[str]) -> None:
    """Errors: ``DragomanError`` for changes of a search, of which there is none."""
    if changes:
        raise DragomanError(
            f"{changes[0]}: {run.folder} is a {run.task.called} and is measured without a search; "
            "nothing can be set"
        )


def measured_on(
    run: Run,
    files: Sequence[Path],
    corpus: Callable[[Run, Sequence[Path]], CorpusSettings],
    wanted: tuple[str, str, str],
    one_of: str = "",
) -> tuple[list[Pair], str]:
    """The examples that a run is measured on, and what to call them: those of ``files``, by their
    ``corpus``, or the recipe's test set. That it has learned from any of them is logged.

    ``wanted``: what is missing where there are none, as ``nothing_to_measure`` takes it;
    ``one_of``: what stands in the file, where there can be one alone. Errors:
    ``DataError`` for files that cannot be used, ``DragomanError`` where there is nothing.
    """
    if one_of:
        require_one_file(run, files, one_of)
    if files:
        pairs, name = list(read_pairs(corpus(run, files))), files[0].name
    else:
        pairs, name = own_test_set(run)
    if not pairs:
        raise nothing_to_measure(run, *wanted)
    warn_of_learned(run, pairs)
    return pairs, name


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


def keep_figures(
    run: Run,
    report: EvaluationReport,
    pairs: Sequence[Pair],
    changes: Sequence[str],
    precision: str,
) -> None:
    """``changes``: ``key=value``, of the recipe's search settings. With any that matter, or with a
    precision that was asked for, the figures are not the run's own, and ``keep_scores`` says so."""
    own = for_test_set(run.recipe, changes) == for_test_set(run.recipe)
    found = report.to_dict() | samples(run, pairs, list(report.outputs()))
    keep_scores(run, found, own=own and precision == "auto")


_SAMPLE_SIZE = 100
"""Texts by which the language of a file is told."""


def texts_of(run: Run, files: Sequence[Path]) -> tuple[Iterator[str], str]:
    """What a run is measured on, and what to call it: the texts of a file, or those of the run's
    test set, that say anything. That it has learned from any of them is logged."""
    require_one_file(run, files, "texts, without references")
    if files:
        _warn_of_other_text(run, files[0])
        texts, name = read_like(run, files[0]), files[0].name
    else:
        pairs, name = own_test_set(run)
        texts = (pair.target for pair in pairs)
    return watched_texts(run, (text for text in texts if text.strip())), name


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
