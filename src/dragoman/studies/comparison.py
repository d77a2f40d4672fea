"""Comparing runs, groups of runs, and finished translations on one set of sentences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from dragoman.data.corpora import read_lines
from dragoman.errors import DataError, DragomanError, RunError
from dragoman.forms.moses import MosesText
from dragoman.metrics.significance import Significance, Test, compare_systems
from dragoman.studies.seeds import runs_of
from dragoman.task import Target
from dragoman.tasks.evaluation_set import EvaluationSet
from dragoman.tasks.run import Run

logger = logging.getLogger("dragoman")

PREPARED = (
    "All figures are over lower-cased, Moses-tokenised text, since a run here knows no other: they "
    "compare with those of papers that do so, not with BLEU over plain text."
)


@dataclass(frozen=True)
class System:
    """What is compared with others: a run, runs that differ by their seed alone, or a file of
    finished translations."""

    name: str
    runs: tuple[Run, ...]
    """None of a file."""
    path: Path

    def translations(
        self, measured: EvaluationSet, prepare: Callable[[str], str] | None = None
    ) -> list[list[str]]:
        """Of all sentences, by each of its runs; what the file holds. With ``prepare`` as Moses
        prepares text: a run that speaks it says its own tokens."""
        if not self.runs:
            lines = list(read_lines(self.path))
            return [lines if prepare is None else list(map(prepare, lines))]
        from dragoman.tasks.translator import Translator  # finished translations need no torch

        found = []
        for run in self.runs:
            translator = Translator(run)
            logger.info("%s translates: %s", run.folder, translator.description)
            said = list(translator.stream(pair.source for pair in measured.pairs))
            if prepare is None:
                found.append([translation.text for translation in said])
            elif run.recipe.data.moses:
                found.append([translation.prepared for translation in said])
            else:
                found.append([prepare(translation.text) for translation in said])
        return found


@dataclass(frozen=True)
class Compared:
    """Systems, and how good each is on the same texts."""

    systems: tuple[System, ...]
    """The first is what the others are compared with."""
    test: str
    """Which texts."""
    quality: Significance

    def table(self) -> str:
        """Plain text."""
        return f"{self.test}\n{self.quality.table()}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        systems = [
            {"system": one.name, "runs": [str(run.folder) for run in one.runs]}
            for one in self.systems
        ]
        return {"systems": systems, "on": self.test, **self.quality.to_dict()}


@dataclass(frozen=True)
class Translated:
    """A comparison of translations, and the translations."""

    compared: Compared
    measured: EvaluationSet
    """The sentences."""
    outputs: Mapping[str, Sequence[Sequence[str]]]
    """What each run of each system made of them, as it is compared."""
    references: Sequence[Sequence[str]]
    """As they are compared."""
    tokenizer: str | None
    """Of BLEU; None: the usual one."""

    def against(self, name: str) -> Significance:
        """The same with another system as the baseline."""
        systems = {name: self.outputs[name], **self.outputs}
        quality = self.compared.quality
        runs = (run for system in self.compared.systems for run in system.runs)
        language = next((run.recipe.languages.target for run in runs), "und")
        return compare_systems(
            systems, self.references, language, quality.test, tokenizer=self.tokenizer,
            samples=quality.samples, seed=quality.seed,
        )  # fmt: skip


def compare(
    paths: Sequence[Path],
    source: Path | None = None,
    references: Sequence[Path] = (),
    test: str = "bootstrap",
    samples: int | None = None,
    seed: int = 12345,
) -> Translated:
    """Compare what lies at ``paths``: run folders, folders of runs that differ by their seed
    (``train --seeds``), and files of finished translations.

    ``source``, ``references``: the sentences; left out, the test set of the first run's recipe.
    ``test``: bootstrap or randomisation; ``samples`` None: as many as is usual for it.
    Errors: ``DataError`` if there are fewer than two systems, or lines do not pair up;
    ``RunError`` for a folder that holds no run, or one that does not translate.
    """
    chosen, systems = chosen_test(test), systems_at(paths)
    runs = [run for system in systems for run in system.runs]
    for run in runs:
        if run.task.name != "translation":
            raise RunError(
                f"{run.folder} is a {run.task.called}: what is compared are runs that all "
                "translate, that all label or that all parse; dragoman evaluate "
                f"{run.folder} tells what this one is worth"
            )
    if runs and references and source is None:
        raise DragomanError("comparing runs on files needs --source and --reference")
    if not runs and not references:
        raise DragomanError("comparing files of translations needs --reference FILE")
    if runs:
        measured = EvaluationSet.of(runs[0], [*([source] if source else []), *references])
    else:
        measured = EvaluationSet.of_references(references)
    language = runs[0].recipe.languages.target if runs else "und"
    # A run that knows lower-cased tokens alone has no case to be measured by, nor have those that
    # are compared with it.
    moses = MosesText(language).prepare if any(run.recipe.data.moses for run in runs) else None
    outputs = {system.name: system.translations(measured, moses) for system in systems}
    wanted, tokenizer = measured.references, None
    if moses is not None:
        wanted, tokenizer = [list(map(moses, lines)) for lines in wanted], "none"
    quality = compare_systems(
        outputs, wanted, language, chosen, tokenizer=tokenizer, samples=samples, seed=seed
    )
    if moses is not None:
        quality = replace(quality, notes=(*quality.notes, PREPARED))
    compared = Compared(tuple(systems), measured.name, quality)
    return Translated(compared, measured, outputs, wanted, tokenizer)


def chosen_test(name: str) -> Test:
    """Errors: ``DragomanError`` for a name that no test has."""
    if name not in ("bootstrap", "randomisation"):
        raise DragomanError(f"--test {name}: it is bootstrap or randomisation")
    return "bootstrap" if name == "bootstrap" else "randomisation"


def target_of(paths: Sequence[Path]) -> Target:
    """What the first run at ``paths`` writes: a text, as finished translations do, a label or a
    tree. Errors: ``RunError`` for a folder that holds no run."""
    folder = next((path for path in paths if path.is_dir()), None)
    return "text" if folder is None else runs_of(folder)[0].task.target


def runs_at(paths: Sequence[Path]) -> list[System]:
    """``systems_at``, of what is compared as runs alone. Errors: ``DataError`` for a file."""
    systems = systems_at(paths)
    for system in systems:
        if not system.runs:
            raise DataError(
                f"{system.path} is a file: of runs that label, and of parsers, the run folders are "
                "compared"
            )
    return systems


def systems_at(paths: Sequence[Path]) -> list[System]:
    """What lies there, before the first translates, which may take long. Errors: as ``compare``."""
    if len(paths) < 2:
        raise DataError("a comparison needs two systems or more: run folders, or translations")
    systems: list[System] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"{path} does not exist; give run folders or files of translations")
        name = _name(path, {one.name for one in systems})
        systems.append(System(name, tuple(runs_of(path)) if path.is_dir() else (), path))
    return systems


def _name(path: Path, taken: set[str]) -> str:
    """The last part of a path; all of it, then with a number, where others have that name."""
    whole = str(path)
    numbered = (f"{whole} ({number})" for number in count(2))
    return next(name for name in chain((path.name or whole, whole), numbered) if name not in taken)
