"""A task can be taken out: its folder, and its lines in two tables (``removable.py``)."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from removable import TASKS, check_without, without

pytestmark = pytest.mark.system


def test_the_task_of_today_can_be_taken_out() -> None:
    """One a day, in turn: all of them take minutes."""
    day = date.today().timetuple().tm_yday
    task = TASKS[day % len(TASKS)]
    print(f"the task of day {day} is {task}: python tests/removable.py {task}")  # if it fails
    check_without(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_every_task_can_be_taken_out(task: str) -> None:
    check_without(task)


def test_imports_and_elements_that_name_a_task_leave_a_table() -> None:
    table = """
from dragoman.tasks.humming import verb as hum
from dragoman.tasks.humming_more import verb as other
from dragoman.tasks.sorting.runtime import Tags
NAMES = {'tasks.humming.hummer': ('Hummed',), 'tasks.sorting.sorter': ('Sorter',)}
TRAINED = {'humming': 'hums', 'sorting': 'sorts'}
VERBS = all_of((hum.hum, other.other, Tags(of=(hum.sizes,))))
"""
    kept = """
from dragoman.tasks.humming_more import verb as other
from dragoman.tasks.sorting.runtime import Tags
NAMES = {'tasks.sorting.sorter': ('Sorter',)}
TRAINED = {'sorting': 'sorts'}
VERBS = all_of((other.other, Tags(of=())))
"""
    assert without("humming", table) == kept.strip()
