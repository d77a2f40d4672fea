"""How runs of each task are compared; tasks that are not listed are compared as translations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from dragoman.errors import DragomanError, RunError
from dragoman.specs.spec import Spec
from dragoman.studies.seeds import runs_of


class ComparisonResult(Protocol):
    """What a comparison found."""

    def table(self) -> str:
        """Plain text."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""


Compare = Callable[
    [Sequence[Path], Path | None, Sequence[Path], str, int | None, int], ComparisonResult
]
"""(systems, source, references, test, samples, seed), as ``comparison.compare`` has them."""


def task_of(paths: Sequence[Path]) -> Spec | None:
    """The task of the first run at ``paths``; None for finished translations alone.

    Errors: ``RunError`` for a folder that holds no run.
    """
    folder = next((path for path in paths if path.is_dir()), None)
    return None if folder is None else runs_of(folder)[0].task


def check_reads_text(paths: Sequence[Path]) -> None:
    """Errors: ``RunError`` for runs that read files: a report goes by the words of sources."""
    for run in (runs_of(path)[0] for path in paths if path.is_dir()):
        if not run.recipe.source.is_text:
            raise RunError(
                f"--to is a report of runs that read text, and {run.folder} reads "
                f"{run.task.noun}: leave it out"
            )


def compare_by(task: Spec | None) -> Compare | None:
    """How runs of a task are compared, where not as translations are."""
    return _COMPARED.get(task.name) if task is not None else None


def _labels(*asked: Any) -> ComparisonResult:
    from dragoman.studies.label_comparison import compare_labels  # imports torch

    return compare_labels(*asked)


def _parses(
    systems: Sequence[Path],
    source: Path | None,
    references: Sequence[Path],
    test: str,
    samples: int | None,
    seed: int,
) -> ComparisonResult:
    if references:
        raise DragomanError("trees hold their sentences: name them with --source alone")
    from dragoman.studies.parse_comparison import compare_parsers  # imports torch

    return compare_parsers(systems, source, test, samples, seed)


def _tags(*asked: Any) -> ComparisonResult:
    from dragoman.studies.tag_comparison import compare_taggers  # imports torch

    return compare_taggers(*asked)


def _boxes(*asked: Any) -> ComparisonResult:
    raise DragomanError(
        "detectors are not compared by a test of significance: measure each on the same pictures "
        "(dragoman evaluate RUN boxes.json)"
    )


def _pictures(*asked: Any) -> ComparisonResult:
    raise DragomanError(
        "painters and their codes are not compared by a test of significance: measure each on the "
        "same pictures (dragoman evaluate RUN test.tsv)"
    )


_COMPARED: dict[str, Compare] = {
    "classification": _labels, "parsing": _parses, "tagging": _tags, "detection": _boxes,
    "codes": _pictures, "painting": _pictures,
}  # fmt: skip
