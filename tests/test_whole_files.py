"""Processes that share the tests take whole files, so that what a file needs is made once."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="module")
def of_this_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is made once, or the second process that makes it is told so."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    (shared / "made for one file").mkdir()


@pytest.mark.parametrize("test", range(6))
def test_one_process_takes_all_of_a_file(of_this_file: None, test: int) -> None:
    """More than one process is given in advance."""
