"""Comparing runs, groups of runs, and finished translations on one set of sentences."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.data.corpora import read_lines
from dragoman.errors import DataError, DragomanError
from dragoman.metrics.significance import Significance, Test, compare_systems
from dragoman.studies.seeds import runs_of
from dragoman.tasks.evaluation_set import EvaluationSet
from dragoman.tasks.run import Run

logger = logging.getLogger("dragoman")


@dataclass(frozen=True)
class System:
    """What is compared with others: a run, runs that differ by their seed alone, or a file of
    finished translations."""

    name: str
    runs: tuple[Run, ...]
    """None of a file."""
    path: Path

    def translations(self, measured: EvaluationSet) -> list[list[str]]:
        """Of all sentences, by each of its runs; what the file holds."""
        if not self.runs:
            return [list(read_lines(self.path))]
        from dragoman.tasks.translator import Translator  # finished translations need no torch

        found = []
        for run in self.runs:
            translator = Translator(run)
            logger.info("%s translates: %s", run.folder, translator.description)
            sources = (pair.source for pair in measured.pairs)
            found.append([translation.text for translation in translator.stream(sources)])
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
    """What each run of each system made of them."""

    def against(self, name: str) -> Significance:
        """The same with another system as the baseline."""
        systems = {name: self.outputs[name], **self.outputs}
        quality, runs = (
            self.compared.quality,
            (run for s in self.compared.systems for run in s.runs),
        )
        language = next((run.recipe.languages.target for run in runs), "und")
        return compare_systems(
            systems, self.measured.references, language, quality.test,
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
    ``RunError`` for a folder that holds no run.
    """
    chosen, systems = chosen_test(test), systems_at(paths)
    runs = [run for system in systems for run in system.runs]
    if runs and references and source is None:
        raise DragomanError("comparing runs on files needs --source and --reference")
    if not runs and not references:
        raise DragomanError("comparing files of translations needs --reference FILE")
    if runs:
        measured = EvaluationSet.of(runs[0], [*([source] if source else []), *references])
    else:
        measured = EvaluationSet.of_references(references)
    language = runs[0].recipe.languages.target if runs else "und"
    outputs = {system.name: system.translations(measured) for system in systems}
    quality = compare_systems(
        outputs, measured.references, language, chosen, samples=samples, seed=seed
    )
    return Translated(Compared(tuple(systems), measured.name, quality), measured, outputs)


def chosen_test(name: str) -> Test:
    """Errors: ``DragomanError`` for a name that no test has."""
    if name not in ("bootstrap", "randomisation"):
        raise DragomanError(f"--test {name}: it is bootstrap or randomisation")
    return "bootstrap" if name == "bootstrap" else "randomisation"


def labelling(paths: Sequence[Path]) -> bool:
    """Whether what lies at ``paths`` are runs, and the first of them labels."""
    return all(path.is_dir() for path in paths) and runs_of(paths[0])[0].task.target == "label"


def systems_at(paths: Sequence[Path]) -> list[System]:
    """What lies there, before the first translates, which may take long. Errors: as ``compare``."""
    if len(paths) < 2:
        raise DataError("a comparison needs two systems or more: run folders, or translations")
    systems: list[System] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"{path} does not exist; give run folders or files of translations")
        name = path.name if path.name not in {one.name for one in systems} else str(path)
        systems.append(System(name, tuple(runs_of(path)) if path.is_dir() else (), path))
    return systems
