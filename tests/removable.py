"""Take a task out of a copy of the tree, and see that the rest stands.

    python tests/removable.py [NAME ...]

Without a name, every task is taken out in turn. A task is its folder in ``tasks/``, the folders of
its tests and of its view, and its lines in the tables ``catalogue.py`` and ``program.py`` there.
Its recipes go with it, and tests and benchmarks that import the folder, or a double that does.
``tests/web/test_views.py`` takes the view out of the table of the page and builds the rest.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLES = ("tasks/catalogue.py", "tasks/program.py")
TASKS = sorted(
    path.parent.name
    for path in ROOT.glob("src/dragoman/tasks/*/runtime.py")
    if path.parent.name != "shared"
)
TOGETHER = {"codes": ("painting",), "translation": ("transcription",)}
"""What goes with a task: a painter writes the codes of a run that has learned them, and a run that
transcribes is one of the task translation that reads recordings."""
_COPIED = (
    "src", "tests", "docs", "benchmarks", "web", "deploy", "pyproject.toml", "README.md",
    "CONTRIBUTING.md",
)  # fmt: skip
_USUAL = "translation"
"""The task of a recipe, and of files to train on, where none is named: a test gives such files."""
_IMPORTED = ("doubles", "benchmarks")
"""Folders whose files tests import by their own names."""
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules", "*.pyc", ".pytest_cache")

EVERY_MODULE = """
import importlib, pathlib, dragoman
from dragoman.cli.app import PANELS
from dragoman.tasks.program import VERBS, demos, serving_tasks
root = pathlib.Path(dragoman.__file__).parent
for path in sorted(root.rglob("*.py")):
    if not path.stem.startswith("__"):
        parts = path.relative_to(root.parent).with_suffix("").parts
        importlib.import_module(".".join(parts))
for name in dragoman.__all__:
    getattr(dragoman, name)
[dict(verbs) for verbs in PANELS.values()]
print(sum(map(len, VERBS)), len(demos()), len(serving_tasks().runs))
"""
OPENAPI = """
import runpy
print(len(runpy.run_path("docs/endpoints.py")["description_of_server"]()["paths"]))
"""
QUICK = (
    "tests/test_imports.py", "tests/base/test_errors.py", "tests/base/test_wording.py",
    "tests/contract/test_search_contract.py",
)  # fmt: skip
"""Tests that pass without any task."""
_OF_ALL = "not few_files and not named_by and not name_are_there"
"""Of these, tests that count what there is of all tasks, or look for files that docstrings name."""


class WithoutTask(ast.NodeTransformer):
    """Takes the imports of a task's folder out of a table, and the elements that name the task."""

    def __init__(self, task: str, tree: ast.Module) -> None:
        self._folder, self._named = f"dragoman.tasks.{task}", task.replace("_", "-")
        self._module = f"tasks.{task}."
        self._names = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and self._is_of(node)
            for alias in node.names
        }

    def _is_of(self, node: ast.ImportFrom) -> bool:
        return f"{node.module}.".startswith(f"{self._folder}.")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        return None if self._is_of(node) else node

    def _names_it(self, node: ast.AST) -> bool:
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        texts = {str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant)}
        is_of_folder = any(text.startswith(self._module) for text in texts)
        return bool(names & self._names) or self._named in texts or is_of_folder

    def visit_Tuple(self, node: ast.Tuple) -> ast.Tuple:
        self.generic_visit(node)
        node.elts = [one for one in node.elts if not self._names_it(one)]
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        self.generic_visit(node)
        kept = [
            (key, value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is None or not (self._names_it(key) or self._names_it(value))
        ]
        node.keys, node.values = [key for key, _ in kept], [value for _, value in kept]
        return node


def without(task: str, table: str) -> str:
    """The source of a table that names all tasks but one."""
    tree = ast.parse(table)
    return ast.unparse(WithoutTask(task, tree).visit(tree))


def take_out(copy: Path, task: str) -> list[str]:
    """Take a task out of a copy -> the tests elsewhere that went with it."""
    shutil.rmtree(copy / "src/dragoman/tasks" / task)
    for own in ("tests/tasks", "tests/web", "web/src"):
        shutil.rmtree(copy / own / task, ignore_errors=True)
    for name in TABLES:
        path = copy / "src/dragoman" / name
        path.write_text(without(task, path.read_text(encoding="utf-8")) + "\n", encoding="utf-8")
    for recipe in copy.glob("src/dragoman/runs/recipe/shipped/*.toml"):
        named = re.search('^task = "(.+)"', recipe.read_text(encoding="utf-8"), re.M)
        if (named[1] if named else _USUAL) == task.replace("_", "-"):
            recipe.unlink()
    gone = [rf"dragoman\.tasks\.{task}\b"]
    files = [*copy.glob("tests/**/*.py"), *copy.glob("benchmarks/*.py")]
    went: list[Path] = []
    while found := [
        path
        for path in files
        if path not in went
        and re.search(
            rf"^\s*(from|import) ({'|'.join(gone)})", path.read_text(encoding="utf-8"), re.M
        )
    ]:
        went += found
        gone += [rf"{path.stem}\b" for path in found if path.parent.name in _IMPORTED]
    for path in went:
        path.unlink()
    return [str(path.relative_to(copy)) for path in went]


def run(copy: Path, *command: str) -> str:
    """What a command says in a copy. Errors: ``AssertionError`` where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    done = subprocess.run(
        [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{' '.join(command)[:200]}\n{done.stdout[-4000:]}{done.stderr}"
    return done.stdout


def check_without(task: str) -> list[str]:
    """Errors: ``AssertionError`` where something misses the task. -> What was found."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in _COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=_NOT_COPIED)
            else:
                shutil.copy(ROOT / name, copy / name)
        tasks = (task, *TOGETHER.get(task, ()))
        went = [test for one in tasks for test in take_out(copy, one)]
        for path in copy.glob("src/dragoman/**/*.py"):
            for one in tasks:
                named = f"tasks.{one}."
                assert named not in path.read_text(encoding="utf-8"), f"{path} names {named}"
        run(copy, "-m", "ruff", "check", "--select", "F", "--ignore", "F401", "src", "tests")
        pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
        quick = [one for one in QUICK if (copy / one).is_file()]
        unfit = " and not needs_no_torch" if _USUAL in tasks else ""
        commands = (
            (*pytest, "--collect-only", "tests"), ("-c", EVERY_MODULE), ("-c", OPENAPI),
            ("-m", "dragoman", "--help"), (*pytest, *quick, "-k", _OF_ALL + unfit),
        )  # fmt: skip
        with ThreadPoolExecutor(2) as pool:
            tests, _, paths, told, _ = pool.map(lambda command: run(copy, *command), commands)
        assert "Usage: dragoman" in told
    counted = tests.strip().splitlines()[-1]
    return [f"{paths.strip()} paths", counted, *(f"with it goes {test}" for test in went)]


def main(names: Sequence[str]) -> int:
    failed = 0
    for task in names or TASKS:
        began = time.monotonic()
        try:
            found = check_without(task)
        except AssertionError as error:
            failed, found = 1, [f"it is missed: {error}"]
        together = " and ".join((task, *TOGETHER.get(task, ())))
        seconds = time.monotonic() - began
        print(f"without {together}: {seconds:.0f} s; {'; '.join(found)}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
