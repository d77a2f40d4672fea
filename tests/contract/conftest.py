"""One run of every task, source and kind of model, trained when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from every_task import run_of_cell

from dragoman.tasks.catalogue import Run


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """A run by its task, its source and the kind of its model."""

    @cache
    def trained(task: str, source: str, kind: str) -> Run:
        return Run.open(run_of_cell(task, source, kind, tmp_path_factory.mktemp(kind)))

    return trained
