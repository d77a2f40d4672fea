"""How runs of each task are compared; tasks that are not listed are compared as translations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from dragoman.errors import DragomanError, RunError
from dragoman.specs.spec import Spec
from dragoman.studies.seeds import runs_of
from dragoman.studies.systems import ComparisonRequest


class ComparisonResult(Protocol):
    """What a comparison found."""

    def table(self) -> str:
        """Plain text."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""


Compare = Callable[[ComparisonRequest], ComparisonResult]


def task_of(paths: Sequence[Path]) -> Spec | None:
    """The task of the first run at ``paths``; None for finished translations alone.

    Errors: ``RunError`` for a folder that holds no run.
    """
    folder = next((path for path in paths if path.is_dir()), None)
    return None if folder is None else runs_of(folder)[0].task


def check_reads_text(paths: Sequence[Path]) -> None:
    """Errors: ``RunError`` for runs that read files: a report goes by the words of sources."""
    for run in (runs_of(path)[0] for path in paths if path.is_dir()):
        if run.task.reads_files:
            raise RunError(
                f"--to is a report of runs that read text, and {run.folder} reads "
                f"{run.task.noun}: leave it out"
            )


_NOT_COMPARED = {
    "detection": ("detectors", "boxes.json"),
    "codes": ("painters and their codes", "test.tsv"),
    "painting": ("painters and their codes", "test.tsv"),
}
"""Tasks whose runs no test of significance is for: who they are, and what one is measured on."""


def compare_by(task: Spec | None) -> Compare | None:
    """How runs of a task are compared, where not as translations are."""
    if task is None or task.writes_text:
        return None
    if task.name in _NOT_COMPARED:
        return _refused(*_NOT_COMPARED[task.name])
    # They import torch; what is wrong with files of translations is said without it.
    from dragoman.tasks.classification.comparison import compare_labels
    from dragoman.tasks.parsing.comparison import compare_parsers
    from dragoman.tasks.tagging.comparison import compare_taggers

    compared: dict[str, Compare] = {
        "classification": compare_labels, "parsing": compare_parsers, "tagging": compare_taggers,
    }  # fmt: skip
    return compared.get(task.name)


def _refused(who: str, test: str) -> Compare:
    """Of runs that no test of significance is for. ``test``: what one of them is measured on."""

    def compare(asked: ComparisonRequest) -> ComparisonResult:
        raise DragomanError(
            f"{who} are not compared by a test of significance: measure each on the same pictures "
            f"(dragoman evaluate RUN {test})"
        )

    return compare
