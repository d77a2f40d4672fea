"""Every task, kind of model and source together: each cell learns a toy, or is refused in one line,
and docs/sources.md says which."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tiny_cells import MODELS, SOURCES, tiny_cell

from dragoman.errors import RecipeError
from dragoman.runs.files import read_metrics
from dragoman.runs.run import METRICS
from dragoman.specs.catalogue import TASKS
from dragoman.tasks.training import train

PAGE = Path(__file__).parents[2] / "docs" / "sources.md"
CELLS = [(task, kind, source) for task in TASKS for kind in MODELS for source in SOURCES]


def told() -> dict[tuple[str, str], set[str]]:
    """(task, source) -> the kinds of models that the page names for it."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].strip("`") in TASKS and len(cells) == 1 + len(SOURCES):
            task = cells[0].strip("`")
            for source, cell in zip(SOURCES, cells[1:], strict=True):
                found[task, source] = set(re.findall(r"`([a-z-]+)`", cell))
    return found


TOLD = told()


@pytest.mark.parametrize(("task", "kind", "source"), CELLS, ids=map("-".join, CELLS))
def test_a_cell_learns_a_toy_or_is_refused_in_one_line(
    task: str, kind: str, source: str, tmp_path: Path
) -> None:
    is_told = kind in TOLD[task, source]
    try:
        recipe = tiny_cell(task, kind, source, tmp_path)
    except RecipeError as error:
        assert not is_told
        lines = str(error).splitlines()
        assert len(lines) == 1, lines
        assert any(word in lines[0] for word in (kind, source, TASKS[task].called, task)), lines
        return
    assert is_told
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    lines = list(read_metrics(tmp_path / "run" / METRICS))
    begun = next(line["nll"] for line in lines if line["kind"] == "update")
    (*_, held_out) = (line["scores"]["loss"] for line in lines if line["kind"] == "validation")
    assert held_out < 0.8 * begun
