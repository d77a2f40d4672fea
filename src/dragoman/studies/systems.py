"""The systems of a comparison: runs, groups of runs that differ only by their seed, and files of
finished translations; the test texts that they were trained on, whose scores mean nothing; and the
speed and the memory of runs.

The test set comes from one run, or from files. Another run may have been trained on more text,
these test texts included, or started from a run that was (``runs/lineage.py``).

To measure their speed, runs translate in turns, each in a process of its own. Every process is
warmed up; then all translate the same sentences, one after another, round by round, so that other
work on the machine slows all of them alike. Other work can only add time, so the shortest time
counts. Memory is the peak of the process, program included.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError, DragomanError, RunError
from dragoman.base.wording import plural, shorten
from dragoman.base.workers import WorkerProcess
from dragoman.forms.form import Pair
from dragoman.forms.languages import base
from dragoman.metrics.significance import Test
from dragoman.metrics.translation import compose
from dragoman.native.allocator import keep_memory, peak_bytes
from dragoman.runs.evaluation_set import EvaluationSet, own_test_set, read_line_for_each
from dragoman.runs.lineage import BASES, Learned, texts_of, texts_of_bases, texts_of_run
from dragoman.runs.run import Run
from dragoman.studies.seeds import runs_of

if TYPE_CHECKING:
    from dragoman.engine.settings import TranslatorSettings

logger = logging.getLogger("dragoman")

_OTHER_REFERENCES = 0.1
"""The largest share of common sources with different references that two test sets may have."""
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class ComparisonRequest:
    """The systems to compare, the test texts, and the significance test."""

    paths: Sequence[Path]
    """Run folders, folders of runs that differ by their seed (``train --seeds``), and files of
    finished translations. The first is what the others are compared with."""
    source: Path | None = None
    references: Sequence[Path] = ()
    """Reference files; without them the test set of the first run's recipe is used."""
    test: Test = "bootstrap"
    samples: int | None = None
    """The number of samples; None: the default of the test."""
    seed: int = 12345

    @property
    def files(self) -> list[Path]:
        """The source and reference files; empty if the test set of the first run is used."""
        return [*([self.source] if self.source else []), *self.references]


def open_translator(run: Run, settings: TranslatorSettings | None = None) -> Any:
    """Open the ``Translator`` of a run; this imports torch. Errors: ``RunError``, also for a run of
    another task."""
    run.require_task("translation", "which does not translate")
    return run.open_predictor(settings)


@dataclass(frozen=True)
class System:
    """A system to compare: a run, runs that differ only by their seed, or a file of finished
    translations."""

    name: str
    runs: tuple[Run, ...]
    """The runs of the system; empty for a file of translations."""
    path: Path

    def translations(
        self, measured: EvaluationSet, prepare: Callable[[str], str] | None = None
    ) -> list[list[str]]:
        """All sentences as translated by each run, or as the file contains them. ``prepare``
        applies the preparation of Moses; a run that was trained on prepared text returns its own
        tokens."""
        if not self.runs:
            lines = read_line_for_each(measured.pairs, self.path, "translations")
            return [lines if prepare is None else list(map(prepare, lines))]
        by_run = []
        for run in self.runs:
            translator = open_translator(run)
            logger.info("%s translates", run.folder)
            outputs = list(translator.stream(pair.source for pair in measured.pairs))
            if prepare is None:
                by_run.append([translation.text for translation in outputs])
            elif run.recipe.data.moses:
                by_run.append([translation.prepared for translation in outputs])
            else:
                by_run.append([prepare(translation.text) for translation in outputs])
        return by_run


def require_one_language(systems: Sequence[System]) -> None:
    """Errors: ``RunError`` for runs of different tasks or of sources of different kinds, or of
    different languages if the recipes name them."""
    runs = [run for system in systems for run in system.runs]
    for run in runs[1:]:
        if run.task.name != runs[0].task.name:
            raise RunError(
                f"{runs[0].folder} is a {runs[0].task.called} and {run.folder} a "
                f"{run.task.called}: only runs of the same task can be compared"
            )
        own, other = runs[0].recipe.source, run.recipe.source
        if own.kind != other.kind:
            raise RunError(
                f"{runs[0].folder} reads {own.units} and {run.folder} {other.units} "
                "(source.kind): only runs that read the same files or texts can be compared"
            )
        if len(run.languages) != len(runs[0].languages):
            continue
        for first, second in zip(runs[0].languages, run.languages, strict=True):
            if "und" not in (first, second) and base(first) != base(second):
                raise RunError(
                    f"{runs[0].folder} is of {' → '.join(runs[0].languages)} and {run.folder} of "
                    f"{' → '.join(run.languages)}: only runs of the same languages can be compared"
                )


def require_one_test_set(systems: Sequence[System], pairs: Sequence[Pair]) -> None:
    """Errors: ``RunError`` for a run whose own test set has other references for the same sources.
    A run is checked only if its languages or those of the first run are unknown. ``pairs``: the
    test set of the first run."""
    runs = [run for system in systems for run in system.runs]
    wanted = dict(_compose(pairs))
    for run in runs[1:]:
        if "und" not in (*run.languages, *runs[0].languages):
            continue  # compared in ``require_one_language``
        try:
            own, _ = own_test_set(run)
        except DragomanError:
            continue  # its text is missing
        both = [(source, target) for source, target in _compose(own) if source in wanted]
        differ = [(wanted[source], target) for source, target in both if wanted[source] != target]
        if len(differ) > _OTHER_REFERENCES * len(both):
            raise RunError(
                f"{runs[0].folder} and {run.folder} have different references for the same source "
                f"in {len(differ):,} of {len(both):,} test examples, such as "
                f"{shorten(differ[0][0], 60)!r} and {shorten(differ[0][1], 60)!r}. Only runs "
                "of the same languages can be compared. If these runs are of the same languages, "
                "name the test set: --source FILE --reference FILE"
            )


def _compose(pairs: Sequence[Pair]) -> Iterator[tuple[str, str]]:
    """Source and target of each pair in Unicode normal form C."""
    sources, targets = [pair.source.strip() for pair in pairs], [p.target.strip() for p in pairs]
    return zip(compose(sources), compose(targets), strict=True)


def significance_test(name: str) -> Test:
    """Check the name of a significance test. Errors: ``DragomanError`` for an unknown name."""
    if name not in ("bootstrap", "randomisation"):
        raise DragomanError(f"--test {name}: use bootstrap or randomisation")
    return "bootstrap" if name == "bootstrap" else "randomisation"


def runs_at(paths: Sequence[Path]) -> list[System]:
    """``systems_at`` for comparisons that accept only runs. Errors: also ``DataError`` for a file,
    ``RunError`` for runs of different languages."""
    systems = systems_at(paths)
    for system in systems:
        if not system.runs:
            raise DataError(f"{system.path} is a file: for runs of this task, give run folders")
    require_one_language(systems)
    return systems


def systems_at(paths: Sequence[Path]) -> list[System]:
    """Open the systems at some paths, before the slow translation. Errors: as ``compare``."""
    if len(paths) < 2:
        raise DataError("a comparison needs two systems or more: run folders, or translations")
    systems: list[System] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"{path} does not exist. Give run folders or files of translations")
        name = _name(path, {system.name for system in systems})
        systems.append(System(name, tuple(runs_of(path)) if path.is_dir() else (), path))
    return systems


def _name(path: Path, taken: set[str]) -> str:
    """The last part of a path; if the name is taken, the whole path, or the whole path with a
    number."""
    whole = str(path)
    numbered = (f"{whole} ({number})" for number in count(2))
    return next(name for name in chain((path.name or whole, whole), numbered) if name not in taken)


MIN_TEXTS = 10
"""The fewest unseen texts that get a comparison of their own."""


@dataclass(frozen=True)
class SeenExamples:
    """The test texts that the compared runs were trained on."""

    texts: tuple[bool, ...]
    """For each test text, True if any run was trained on it."""
    by_run: dict[tuple[str, str], int]
    """The number of such texts by the name of the system and that of the run that learned them: ""
    for its own runs, else a run that it was started from."""
    unknown: tuple[str, ...]
    """Messages about training text that could not be checked."""

    def summary(self) -> list[str]:
        """Return the warnings in words, a line each."""
        of = plural(len(self.texts), "test text")
        own_first = sorted(self.by_run.items(), key=lambda item: item[0][1] != "")
        return [
            *(Learned(base, None, {}).summary(name, seen, of) for (name, base), seen in own_first),
            *self.unknown,
        ]

    @property
    def left(self) -> list[int]:
        """The places of the texts that no run was trained on; empty if these are all texts, or too
        few to compare on."""
        left = [place for place, seen in enumerate(self.texts) if not seen]
        return left if MIN_TEXTS <= len(left) < len(self.texts) else []


def search_training_text(
    systems: Iterable[tuple[str, Sequence[Run]]], pairs: Sequence[Pair], *, kept_apart: str | None
) -> SeenExamples:
    """Search for ``pairs`` in the training text of each run and of the runs that it was started
    from.

    ``systems``: names and their runs. ``kept_apart``: the embedded corpus whose test set the pairs
    are; its training text contains none of them.
    """
    any_seen, unknown = np.zeros(len(pairs), np.bool_), list[str]()
    by_run: dict[tuple[str, str], npt.NDArray[np.bool_]] = {}
    of = plural(len(pairs), "test text")
    known: dict[str, Learned] = {}
    read = dict[str, Sequence[Pair]]()  # by the kind of source
    for name, run in ((name, run) for name, runs in systems for run in runs):
        before = list(texts_of_bases(run.folder, run.notes().get(BASES, [])))
        embedded, kind = run.recipe.data.embedded, run.recipe.source.kind
        if kind not in read:
            read[kind] = list(texts_of(run.recipe, pairs))
        key = run.recipe.data.model_dump_json()
        if embedded is None or embedded != kept_apart:
            if key not in known:
                known[key] = texts_of_run(run)
            before = [known[key], *before]
        for learned in before:
            if learned.unknown:
                unknown.append(learned.summary(name, 0, of))
            seen = np.array(learned.has(read[kind]), np.bool_)
            any_seen |= seen
            place = name, learned.base
            by_run[place] = by_run.get(place, seen) | seen
    counts = {place: int(seen.sum()) for place, seen in by_run.items() if seen.any()}
    return SeenExamples(tuple(any_seen.tolist()), counts, tuple(dict.fromkeys(unknown)))


ROUNDS = 3


@dataclass(frozen=True)
class TurnPace:
    """The speed and the memory of one run."""

    path: str
    """The implementation: int8 kernels, or torch in bf16 or fp32."""
    seconds: tuple[float, ...]
    """The time for all sentences, in every round."""
    sentences: int
    megabytes: float
    """The peak memory of its process in megabytes."""

    @property
    def sentences_per_second(self) -> float:
        """The speed in the fastest round."""
        return self.sentences / min(self.seconds)


def measure_in_turns(
    folders: Sequence[Path], sentences: Sequence[str], rounds: int = ROUNDS
) -> list[TurnPace]:
    """Measure some runs. Errors: ``RunError``, with the message of the process that failed."""
    with ExitStack() as stack:
        processes: list[tuple[Path, WorkerProcess]] = []
        paths: list[str] = []
        for folder in folders:
            process = WorkerProcess(keep_memory)
            stack.callback(process.stop)
            processes.append((folder, process))
            # Processes start one after another: they would slow each other down while they load.
            paths.append(_wait(folder, process.ask(_warm_up, str(folder), list(sentences))))
        turns = [
            [_wait(folder, process.ask(_translate)) for folder, process in processes]
            for _ in range(rounds)
        ]
        memory = [_wait(folder, process.ask(peak_bytes)) / 1e6 for folder, process in processes]
    return [
        TurnPace(path, seconds, len(sentences), megabytes)
        for path, seconds, megabytes in zip(paths, zip(*turns, strict=True), memory, strict=True)
    ]


def _wait(folder: Path, asked: Future[Answer]) -> Answer:
    try:
        return asked.result()
    except BrokenExecutor:
        raise RunError(f"the process that translates with {folder} ended at once") from None
    except DragomanError as error:
        raise RunError(f"{folder} could not translate: {error}") from error


def _warm_up(folder: str, sentences: list[str]) -> str:
    """Translate once, in a process of its own, so that ``_translate`` is timed warm. Returns a
    description of the implementation."""
    from dragoman.tasks import catalogue

    translator = open_translator(catalogue.Run.open(folder))
    list(translator.stream(sentences))
    _WARM.append((translator, sentences))
    description: str = translator.description
    return description


_WARM: list[tuple[Any, list[str]]] = []
"""The translator of a process and its sentences."""


def _translate() -> float:
    """Translate all sentences. Returns the seconds."""
    translator, sentences = _WARM[-1]
    began = time.perf_counter()
    list(translator.stream(sentences))
    return time.perf_counter() - began
