"""Each task has a folder of ``web/src`` that ``views.ts`` alone names; and the page asks and reads
what the OpenAPI description of the server says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from page_types import PACKAGES, TYPES, WEB, check_logic, check_types, write_types

SOURCE = WEB / "src"
TABLE = SOURCE / "views.ts"
TASKS = sorted({*re.findall(r'"\./(\w+)/view', TABLE.read_text(encoding="utf-8"))} - {"page"})


def imported(path: Path) -> list[Path]:
    """The files and modules of the page that a file imports, without their endings."""
    names = re.findall(r'(?:from|import) "(\.[^"]+)"', path.read_text(encoding="utf-8"))
    return [(path.parent / name).resolve() for name in names]


def test_the_folders_are_called_as_the_tasks() -> None:
    tasks = {path.name for path in (WEB.parent / "src/dragoman/tasks").iterdir()}
    assert len(TASKS) > 8
    assert set(TASKS) <= tasks


def test_only_the_table_of_views_names_a_task() -> None:
    """So the page can be built without the folder of a task and its lines in the table."""
    for path in [*SOURCE.rglob("*.ts"), *SOURCE.rglob("*.svelte")]:
        home = path.relative_to(SOURCE).parts[0]
        for other in imported(path):
            if SOURCE not in other.parents:  # the guide, from docs/
                continue
            place = other.relative_to(SOURCE).parts[0]
            assert place not in TASKS or place == home or path == TABLE, f"{path} imports {other}"


@pytest.fixture(scope="module")
def types(built: Path) -> None:
    """The types of the server, for the page's packages, which ``built`` has installed."""
    write_types()


@pytest.mark.system
@pytest.mark.usefixtures("types")
def test_the_page_is_typed_as_the_server_answers() -> None:
    checked = check_types()
    assert checked.returncode == 0, checked.stdout


@pytest.mark.system
@pytest.mark.usefixtures("built")
def test_the_logic_of_the_page() -> None:
    checked = check_logic()
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow  # half a minute for each task
@pytest.mark.usefixtures("types")
@pytest.mark.parametrize("task", TASKS)
def test_the_page_is_whole_without_a_task(task: str, tmp_path: Path) -> None:
    web = tmp_path / "web"
    shutil.copytree(WEB, web, ignore=shutil.ignore_patterns("node_modules", "tests"))
    (web / "node_modules").symlink_to(PACKAGES)
    types = web.parent / TYPES.relative_to(WEB.parent)
    types.parent.mkdir(parents=True)
    shutil.copy(TYPES, types)
    shutil.rmtree(web / "src" / task)
    table = web / "src" / "views.ts"
    text = table.read_text(encoding="utf-8")
    found = re.findall(rf'import {{ (.*) }} from "\./{task}/', text)
    names = "|".join(found).replace(", ", "|")
    text = re.sub(rf'import .* from "\./{task}/.*\n', "", text)
    table.write_text(re.sub(rf"^  ({names}),\n", "", text, flags=re.MULTILINE), "utf-8")
    checked = check_types(web)
    assert checked.returncode == 0, checked.stdout
