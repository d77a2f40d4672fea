"""How good are the tests of the core? Draw mutants of it by a seed, and see which survive.

    .venv/bin/python tests/mutants.py --count 400 --to mutants.jsonl

A mutant is the source with one small fault: a comparison, a sign, a number, a condition, a dropped
statement. Each is run against its own tests, in a copy of the committed tree that is made for this
and removed again. Every result is one line of the file, so that a stopped run goes on where it was.
Not part of any test run: 400 mutants take about an hour of two cores.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = "src/dragoman"
LIBRARY = f"{SOURCE}/native/libdragoman.so"

TESTS = {
    "nn/*.py": "tests/nn tests/models tests/contract/test_model_contract.py",
    "models/shortlist.py": "tests/inference/test_shortlist.py tests/inference/test_fastest.py",
    "models/*.py": "tests/models tests/contract/test_model_contract.py",
    "models/transformer/*.py": (
        "tests/models tests/contract/test_model_contract.py tests/inference"
    ),
    "search/*.py": "tests/search tests/native/test_beam.py",
    "data/plan.py": "tests/data/test_plan.py",
    "training/losses/loss.py": "tests/training/test_parts.py tests/native/test_loss.py",
    "training/schedule.py": "tests/training/test_parts.py",
    "training/optimizer.py": "tests/training/test_parts.py tests/training/test_updates.py",
    "training/update.py": "tests/training/test_updates.py",
    "training/gradients.py": "tests/training/test_updates.py",
    "training/losses/objectives.py": "tests/training/test_updates.py",
    "training/checkpoint.py": (
        "tests/training/test_parts.py tests/training/test_updates.py tests/training/test_resume.py "
        "tests/runs/test_untrusted_runs.py"
    ),
    "metrics/*.py": "tests/metrics",
    **{
        f"tasks/translation/{name}.py": f"tests/tasks/translation/test_{tests}.py"
        for name, tests in (
            ("aligner", "aligner"),
            ("given_pairs", "aligner"),
            ("reranking", "reranking"),
            ("minimum_risk", "minimum_risk"),
            ("translator", "translator"),
            ("planning", "translator"),
            ("lines", "translator"),
            ("result", "translator"),
            ("evaluation", "translator"),
            ("proofreading/*", "warnings"),
        )
    },
    **{
        f"{room}/{name}{rest}": f"tests/tasks/{name} tests/test_recipe.py"
        for name in (
            "classification",
            "detection",
            "language_model",
            "masked",
            "painting",
            "parsing",
            "tagging",
            "translation",
        )
        for room, rest in (("specs", ".py"), ("tasks", "/*.py"))
    },
    "specs/codes.py": "tests/tasks/painting tests/test_recipe.py",
    "tasks/codes/*.py": "tests/tasks/painting tests/test_recipe.py",
    "specs/*.py": "tests/test_recipe.py tests/tasks/language_model",
    "tasks/shared/*.py": "tests/tasks/shared tests/tasks/test_verdict.py tests/tasks/parsing",
    "tasks/verdict.py": "tests/tasks/test_verdict.py",
    "tasks/inspection.py": "tests/sizing/test_from_files.py tests/tasks/tagging",
    "tasks/*.py": "tests/tasks/classification tests/runs/test_prepare.py",
    "engine/*.py": "tests/engine tests/tasks/translation/test_translator.py",
    **{
        f"sizing/{name}.py": f"tests/sizing/test_from_files.py {tests}"
        for name, tests in (
            ("painting", "tests/tasks/painting"),
            ("boxes", "tests/tasks/detection"),
            ("codes", "tests/tasks/painting"),
            ("spoken", "tests/cli/test_spoken.py"),
            ("pictures", "tests/cli/test_rows.py"),
            ("files", "tests/cli/test_rows.py"),
        )
    },
    "sizing/*.py": (
        "tests/sizing/test_from_files.py tests/sizing/test_held_out.py "
        "tests/sizing/test_sizing.py tests/docs/test_size_tables.py"
    ),
    "serving/queue/*.py": (
        "tests/serving/test_batches.py tests/serving/test_cost.py tests/serving/test_parts.py "
        "tests/serving/test_turns.py"
    ),
    "cli/options.py": "tests/cli/test_options.py tests/cli/test_given.py",
}
"""What is mutated, and the tests that it belongs to; of several that fit, the first."""

OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OTHER_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}  # fmt: skip
NOT_MUTATED = {"annotation", "returns", "decorator_list", "type_params"}
"""Fields of a node that only say types."""
NOT_MEASURING = "engine/ways.py"
"""Sizes of what is measured, where any would do, are most of it."""


class Mutation(NamedTuple):
    line: int
    words: str
    apply: Callable[[], None]
    """Puts the fault into the tree from which this came."""


class Mutant(NamedTuple):
    path: str
    """Of the source, from the root."""
    number: int
    """Among the mutations of that file."""
    tests: str


def mutations(node: ast.AST) -> Iterator[Mutation]:
    """Every fault that can be put in, in the order of the source."""
    # An assertion states an invariant, a message has no truth to be tested.
    if isinstance(node, ast.Assert | ast.Raise | ast.JoinedStr):
        return
    # That two are as long as each other.
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
    # The bounds and the default of a setting.
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field":
        return
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER_COMPARISON:
        yield exchange(node, node.ops, 0, OTHER_COMPARISON[type(node.ops[0])]())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OTHER_ARITHMETIC:
        yield exchange(node, node.__dict__, "op", OTHER_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield exchange(node, node.__dict__, "op", other)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield exchange(node, node.__dict__, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        for step in (1, -1):
            yield exchange(node, node.__dict__, "value", node.value + step)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield exchange(node.test, node.__dict__, "test", ast.UnaryOp(ast.Not(), node.test))
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for place, child in enumerate(children):
            if name in NOT_MUTATED or not isinstance(child, ast.AST):
                continue
            is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            droppable = isinstance(child, ast.Expr | ast.AugAssign | ast.Raise)
            if isinstance(value, list) and droppable and not is_text:
                yield exchange(child, value, place, ast.Pass())
            yield from mutations(child)


def exchange(shown: ast.AST, where: object, key: object, fault: object) -> Mutation:
    """``where[key]`` becomes ``fault``; ``shown`` is the node that a reader is told of."""

    def apply() -> None:
        where[key] = fault  # type: ignore[index]

    words = f"{ast.unparse(shown)}  ->  "
    words += (
        ast.unparse(fault)
        if isinstance(fault, ast.expr | ast.stmt)
        else (type(fault).__name__ if isinstance(fault, ast.AST) else repr(fault))
    )
    return Mutation(getattr(shown, "lineno", 0), words, apply)


def drawn(tree: Path, seed: int, count: int, only: Sequence[str] = ()) -> list[Mutant]:
    owners: dict[Path, str] = {}
    for pattern, tests in TESTS.items():
        for path in sorted((tree / SOURCE).glob(pattern)):
            owners.setdefault(path, tests)
    every = [
        Mutant(str(path.relative_to(tree)), number, tests)
        for path, tests in owners.items()
        if path.name != "settings.py"  # numbers there are defaults and bounds
        and not str(path).endswith(NOT_MEASURING)
        if not only or any(part in str(path.relative_to(tree)) for part in only)
        for number, _ in enumerate(mutations(ast.parse(path.read_text(encoding="utf-8"))))
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def warm() -> None:
    """Load once what every test process needs and no mutant is in: tests run in forks of this."""
    for name in ("numpy", "pytest", "torch", "pydantic", "sacrebleu", "sentencepiece", "typer"):
        importlib.import_module(name)


MOST_SECONDS = 170
"""Of a processor, for the tests of a mutant: twice what the slowest take without one."""

MOST_WAITED = 400
"""Seconds of the clock: what waits for itself takes no processor."""

Reached = dict[str, tuple[float, set[tuple[str, int]]]]
"""Of each test, the seconds that it takes and the lines of the core that it runs."""


class Watcher:
    """A plugin of pytest that notes which lines of the files with mutants each test runs."""

    def __init__(self, tree: Path, paths: set[str], to: Path) -> None:
        self._paths, self._to = {str(tree / path): path for path in paths}, to
        self._lines: set[tuple[str, int]] = set()
        self._found: dict[str, tuple[float, list[tuple[str, int]]]] = {}

    def _trace(self, frame: FrameType, event: str, _arg: object) -> object:
        path = self._paths.get(frame.f_code.co_filename)
        if path is None:
            return None
        if event == "line":
            self._lines.add((path, frame.f_lineno))
        return self._trace

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        from _pytest.runner import runtestprotocol

        self._lines = set()
        began = time.monotonic()
        threading.settrace(self._trace)  # type: ignore[arg-type]
        sys.settrace(self._trace)  # type: ignore[arg-type]
        try:
            runtestprotocol(item, nextitem=nextitem)
        finally:
            sys.settrace(None)
            threading.settrace(None)
        self._found[item.nodeid] = (time.monotonic() - began, sorted(self._lines))
        return True

    def pytest_sessionfinish(self) -> None:
        self._to.write_text(json.dumps(self._found), encoding="utf-8")


class WithoutDemo:
    """A plugin of pytest: without the tests for which the demo trains some minutes."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if "demo" not in item.fixturenames]


class Order:
    """A plugin of pytest: first the tests that run the line of a fault, the quick ones before."""

    def __init__(self, reached: Reached, path: str, line: int) -> None:
        self._reached = reached
        # A statement of several lines is known by its first.
        self._places = {(path, line - back) for back in range(4)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        def rank(item: Any) -> tuple[bool, float]:
            seconds, lines = self._reached.get(item.nodeid, (0.0, set()))
            return not lines & self._places, seconds

        items.sort(key=rank)


class Trial:
    """A tree whose tests are running, in a process of their own and all that they start."""

    def __init__(self, tree: Path, tests: str, plugin: object, most: int | None = None) -> None:
        """``most``: seconds of a processor after which it is ended."""
        self.began, self._most = time.monotonic(), most
        self._process = os.fork()
        if self._process == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if most is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (most, most))
            with open(os.devnull, "w") as nowhere:
                for stream in (sys.stdout, sys.stderr):
                    os.dup2(nowhere.fileno(), stream.fileno())
            os.chdir(tree)
            os.environ |= {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
            sys.path[:0] = [str(tree), str(tree / "src")]
            import pytest

            options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider"]
            os._exit(pytest.main([*options, *tests.split()], plugins=[plugin, WithoutDemo()]))

    def ended(self) -> bool | None:
        """Whether the tests have passed; None while they run."""
        process, status = os.waitpid(self._process, os.WNOHANG)
        if not process:
            if self._most is None or time.monotonic() - self.began < MOST_WAITED:
                return None
            self.stop()
            return False
        self._sweep()
        return status == 0

    def stop(self) -> None:
        self._sweep()
        os.waitpid(self._process, 0)

    def _sweep(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)


class Worker:
    """A copy of the tree in which one mutant after another is tried."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.mutant: Mutant | None = None
        self._trial: Trial | None = None

    def begin(self, mutant: Mutant, reached: Reached) -> None:
        self.mutant = mutant
        path = self.tree / mutant.path
        self._text = path.read_text(encoding="utf-8")
        parsed = ast.parse(self._text)
        self._mutation = list(mutations(parsed))[mutant.number]
        self._mutation.apply()
        path.write_text(ast.unparse(ast.fix_missing_locations(parsed)), encoding="utf-8")
        order = Order(reached, mutant.path, self._mutation.line)
        # An endless loop is found out by the time it takes.
        self._trial = Trial(self.tree, mutant.tests, order, MOST_SECONDS)

    def ended(self) -> dict[str, object] | None:
        """What became of its mutant; None while that is tried."""
        assert self.mutant is not None and self._trial is not None
        passed = self._trial.ended()
        if passed is None:
            return None
        mutant, self.mutant = self.mutant, None
        (self.tree / mutant.path).write_text(self._text, encoding="utf-8")
        return {
            "path": mutant.path, "number": mutant.number, "line": self._mutation.line,
            "mutation": self._mutation.words, "survives": passed,
            "seconds": round(time.monotonic() - self._trial.began, 1),
        }  # fmt: skip

    def stop(self) -> None:
        if self.mutant is not None and self._trial is not None:
            self._trial.stop()


def sound(tree: Path, tests: str, paths: set[str]) -> Reached:
    """What the tests reach of some files without a mutant, with which they must pass."""
    to = tree.parent / "reached.json"
    to.unlink(missing_ok=True)
    trial = Trial(tree, tests, Watcher(tree, paths, to))
    while (passed := trial.ended()) is None:
        time.sleep(0.1)
    if not passed:
        sys.exit(f"without a mutant, {tests} must pass")
    found = json.loads(to.read_text(encoding="utf-8"))
    return {
        name: (seconds, {(path, line) for path, line in lines})
        for name, (seconds, lines) in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", nargs="*", default=[], help="of files whose path holds one of these"
    )
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at a time")
    unmeasured = "not to find out first which tests reach a fault: for few mutants of many files"
    parser.add_argument("--unmeasured", action="store_true", help=unmeasured)
    parser.add_argument("--to", type=Path, default=Path("mutants.jsonl"))
    given = parser.parse_args()
    # What stops it lets it tidy up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; the same command goes on"))

    def git(*words: str) -> str:
        return subprocess.check_output(["git", "-C", ROOT, *words], text=True).strip()

    commit = git("rev-parse", "HEAD")
    lines = given.to.read_text(encoding="utf-8").splitlines() if given.to.exists() else []
    results = [json.loads(line) for line in lines]
    if any(result["commit"] != commit for result in results):
        sys.exit(f"{given.to} is of another commit: its numbers mean other mutants. Name another.")
    known = {(result["path"], result["number"]) for result in results}
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    workers = [Worker(folder / str(number)) for number in range(given.workers)]
    try:
        for worker in workers:
            git("worktree", "add", "--detach", str(worker.tree), commit)
            if (ROOT / LIBRARY).exists():
                shutil.copy(ROOT / LIBRARY, worker.tree / LIBRARY)
        warm()
        mutants = drawn(workers[0].tree, given.seed, given.count, given.only)
        waiting = [mutant for mutant in mutants if (mutant.path, mutant.number) not in known]
        reached: dict[str, Reached] = {}
        while waiting or any(worker.mutant for worker in workers):
            time.sleep(0.05)
            for worker in workers:
                if worker.mutant is not None and (result := worker.ended()) is not None:
                    results.append({"commit": commit, **result})
                    with given.to.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(results[-1]) + "\n")
                if worker.mutant is None and waiting:
                    mutant = waiting.pop(0)
                    if given.unmeasured:
                        reached[mutant.tests] = {}
                    elif mutant.tests not in reached:
                        paths = {one.path for one in mutants if one.tests == mutant.tests}
                        reached[mutant.tests] = sound(worker.tree, mutant.tests, paths)
                    worker.begin(mutant, reached[mutant.tests])
    finally:
        for worker in workers:
            worker.stop()
            git("worktree", "remove", "--force", str(worker.tree))
        shutil.rmtree(folder)
    survivors = [result for result in results if result["survives"]]
    print(f"{len(results)} mutants, {len(survivors)} survived")
    for result in survivors:
        print(f"{result['path']}:{result['line']}: {result['mutation']}")


if __name__ == "__main__":
    main()
