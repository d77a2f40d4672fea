"""Every task, kind of model and source together: each cell learns a toy, or is refused in one line,
and docs/sources.md says which."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_cells import MODELS, SOURCES, tiny_cell, told_cells

from dragoman.base.errors import RecipeError
from dragoman.runs.files import read_metrics
from dragoman.runs.run import METRICS
from dragoman.tasks.catalogue import TASKS
from dragoman.tasks.training import train

pytestmark = pytest.mark.system

CELLS = [(task, kind, source) for task in TASKS for kind in MODELS for source in SOURCES]
TOLD = told_cells()


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
