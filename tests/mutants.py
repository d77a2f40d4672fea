"""How good are the tests? Draw mutants of the code by a seed, and see which survive.

    .venv/bin/python tests/mutants.py --count 200 --only specs/ tasks/ --to mutants.jsonl

A mutant is the source with one small fault: a comparison, a sign, a number, a condition, a dropped
statement. First all quick tests run once, and which lines each of them runs is written beside the
results (eleven minutes of two cores). Then each mutant is tried, in a copy of the committed tree,
by the tests that run its line, until one fails. Every result is one line of the file, so that a
stopped run goes on where it was. Not part of any test run: 200 mutants take an hour or more of two
cores.
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
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = "src/dragoman"
LIBRARY = f"{SOURCE}/native/libdragoman.so"

MUTATED = (
    "nn/*.py",
    "models/*.py",
    "models/transformer/*.py",
    "search/*.py",
    "data/plan.py",
    "training/**/*.py",
    "metrics/*.py",
    "specs/*.py",
    "tasks/**/*.py",
    "engine/*.py",
    "sizing/*.py",
    "serving/queue/*.py",
    "console/options.py",
)
"""What is mutated."""

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
    of_table: bool = False
    """Whether it is another number outside of functions: a size, a limit, a share that was chosen
    by experience, as in ``base/settings.py``, where the next number would do as well."""


class Mutant(NamedTuple):
    path: str
    """Of the source, from the root."""
    number: int
    """Among the mutations of that file."""


def mutations(node: ast.AST, inside: bool = False) -> Iterator[Mutation]:
    """Every fault that can be put in, in the order of the source; ``inside``: of a function."""
    inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
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
            one = exchange(node, node.__dict__, "value", node.value + step)
            yield one._replace(of_table=not inside)
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
            yield from mutations(child, inside)


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
    every = [
        (Mutant(str(path.relative_to(tree)), number), mutation.of_table)
        for path in dict.fromkeys(
            path for pattern in MUTATED for path in sorted((tree / SOURCE).glob(pattern))
        )
        if path.name != "base/settings.py"  # numbers there are defaults and bounds
        and not str(path).endswith(NOT_MEASURING)
        if not only or any(part in str(path.relative_to(tree)) for part in only)
        for number, mutation in enumerate(mutations(ast.parse(path.read_text(encoding="utf-8"))))
    ]
    # Tables are passed over here, and not above, so that a file of results from before stays good.
    draw = random.Random(seed).sample(every, min(2 * count, len(every)))
    return [mutant for mutant, of_table in draw if not of_table][:count]


def warm() -> None:
    """Load once what every test process needs and no mutant is in: tests run in forks of this."""
    for name in ("numpy", "pytest", "torch", "pydantic", "sacrebleu", "sentencepiece", "typer"):
        importlib.import_module(name)


ENOUGH_SECONDS = 40
"""Of a processor, for the tests of a mutant, after which it has survived."""

MAX_TESTS = 300
"""More are not finished in that time, but would all be collected."""

MAX_CPU_SECONDS = 150
"""With what is begun by then: an endless loop is found out by it."""

MAX_SECONDS = 400
"""Of the clock: what waits for itself takes no processor."""


class Reached(NamedTuple):
    """What one test runs of the code, with what its fixtures do."""

    test: str
    seconds: float
    lines: dict[str, set[int]]
    """Of the files that were drawn then; 0 in place of those of any other."""


class Watcher:
    """A plugin of pytest that notes which lines of the code each test runs.

    What a fixture does belongs to every test that uses it, whichever it was made for.
    """

    def __init__(self, tree: Path, mutated: set[str], to: Path, part: int, parts: int) -> None:
        self._source = str(tree / SOURCE)
        self._mutated = {str(tree / path) for path in mutated}
        self._to, self._part, self._parts, self._root = to, part, parts, f"{tree}/"
        self._lines: set[tuple[str, int]] = set()
        self._of_fixtures: dict[int, set[tuple[str, int]]] = {}
        self._used: list[Any] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        quick = [item for item in items if not {"demo", "chromium"} & {*item.fixturenames}]
        files = list(dict.fromkeys(item.path for item in quick))
        mine = set(files[self._part :: self._parts])
        items[:] = [item for item in quick if item.path in mine]

    def _trace(self, frame: FrameType, event: str, _arg: object) -> object:
        path = frame.f_code.co_filename
        if not path.startswith(self._source):
            return None
        if path not in self._mutated:
            self._lines.add((path, 0))
            return None
        self._lines.add((path, frame.f_lineno))
        return self._trace

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        before, self._lines = self._lines, set()
        try:
            return (yield)
        finally:
            self._of_fixtures.setdefault(id(fixturedef), set()).update(self._lines)
            self._lines |= before

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        from _pytest.runner import runtestprotocol

        self._lines = set()
        began = time.monotonic()
        threading.settrace(self._trace)  # type: ignore[arg-type]
        sys.settrace(self._trace)  # type: ignore[arg-type]
        try:
            reports = runtestprotocol(item, nextitem=nextitem)
        finally:
            sys.settrace(None)
            threading.settrace(None)
        for fixture in self._used:
            self._lines |= self._of_fixtures.get(id(fixture), set())
        if all(report.passed for report in reports):
            lines: dict[str, list[int]] = {}
            for path, line in sorted(self._lines):
                lines.setdefault(path.removeprefix(self._root), []).append(line)
            found = [item.nodeid, round(time.monotonic() - began, 3), lines]
            with self._to.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_call(self, item: Any) -> None:
        self._used = list(item._request._fixture_defs.values())


class Order:
    """A plugin of pytest: the tests as they were chosen, until they have had time enough."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid in self._place]
        items.sort(key=lambda item: self._place[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, object, object]:
        result = yield
        if sum(os.times()[:4]) > ENOUGH_SECONDS:  # of this process, which began with none
            item.session.shouldstop = "time enough"
        return result


def chosen(mutant: Mutant, line: int, tree: Path, watched: Sequence[Reached]) -> list[str]:
    """The tests for a fault: those that run its line, the nearest and quickest files first.

    What stands outside functions runs when a file is imported, whoever did that first: it gets the
    tests that run anything of the file, or of the files that import it.
    """
    text = (tree / mutant.path).read_text(encoding="utf-8")
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        # The line of `def` itself, with its defaults, runs on import.
        and node.lineno < line <= (node.end_lineno or 0)
    ]
    # A statement of several lines is known by its first; 0 stands for any line of the file.
    places = {0, *(line - back for back in range(4))}
    if functions:
        of = [one for one in watched if places & one.lines.get(mutant.path, set())]
    else:
        module = mutant.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
        of = [one for one in watched if mutant.path in one.lines]
        importers = [
            str(path.relative_to(tree))
            for path in sorted((tree / SOURCE).rglob("*.py"))
            if f"from {module} import" in path.read_text(encoding="utf-8")
        ]
        of += [
            one
            for one in watched
            if mutant.path not in one.lines and any(path in one.lines for path in importers)
        ]
    files: dict[str, list[Reached]] = {}
    for one in sorted(of, key=lambda one: one.seconds):
        files.setdefault(one.test.split("::")[0], []).append(one)
    near = Path("tests", *Path(mutant.path).parts[2:])

    def far(file: str) -> tuple[int, float]:
        """Tests stand where the source does; and the slowest of a file made what others share."""
        common = len(Path(os.path.commonpath([file, near])).parts)
        return -common, files[file][-1].seconds

    return [one.test for file in sorted(files, key=far) for one in files[file]][:MAX_TESTS]


class Trial:
    """A tree whose tests are running, in a process of their own and all that they start."""

    def __init__(
        self, tree: Path, tests: Sequence[str], plugin: object, options: Sequence[str] = (),
        cpu_seconds: int | None = None,
    ) -> None:  # fmt: skip
        """``cpu_seconds``: after which it is ended."""
        self.began, self._limited = time.monotonic(), cpu_seconds is not None
        self._process = os.fork()
        if self._process == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if cpu_seconds is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
            with open(os.devnull, "w") as nowhere:
                for stream in (sys.stdout, sys.stderr):
                    os.dup2(nowhere.fileno(), stream.fileno())
            os.chdir(tree)
            os.environ |= {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
            sys.path[:0] = [str(tree), str(tree / "src")]
            every = ["-q", "-m", "not slow", "-p", "no:cacheprovider", *options]
            os._exit(pytest.main([*every, *tests], plugins=[plugin]))

    def ended(self) -> bool | None:
        """Whether no test has failed; None while they run."""
        process, status = os.waitpid(self._process, os.WNOHANG)
        if not process:
            if not self._limited or time.monotonic() - self.began < MAX_SECONDS:
                return None
            self.stop()
            return False
        self._sweep()
        stopped = (pytest.ExitCode.OK, pytest.ExitCode.INTERRUPTED)  # in time, and for want of it
        return os.WIFEXITED(status) and os.WEXITSTATUS(status) in stopped

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

    def begin(self, mutant: Mutant, watched: Sequence[Reached]) -> bool:
        """False where no test runs what is wrong: then nothing is tried."""
        path = self.tree / mutant.path
        self._text = path.read_text(encoding="utf-8")
        parsed = ast.parse(self._text)
        self._mutation = list(mutations(parsed))[mutant.number]
        tests = chosen(mutant, self._mutation.line, self.tree, watched)
        self.mutant, self._tests = mutant, len(tests)
        if not tests:
            return False
        self._mutation.apply()
        path.write_text(ast.unparse(ast.fix_missing_locations(parsed)), encoding="utf-8")
        self._trial = Trial(self.tree, tests, Order(tests), ["-x"], MAX_CPU_SECONDS)
        return True

    def ended(self) -> dict[str, object] | None:
        """What became of its mutant; None while that is tried."""
        if self.mutant is None or self._trial is None:
            return None
        passed = self._trial.ended()
        if passed is None:
            return None
        (self.tree / self.mutant.path).write_text(self._text, encoding="utf-8")
        seconds = round(time.monotonic() - self._trial.began, 1)
        self._trial = None
        return self.result(passed, seconds)

    def result(self, survives: bool, seconds: float = 0.0) -> dict[str, object]:
        assert self.mutant is not None
        mutant, self.mutant = self.mutant, None
        return {
            "path": mutant.path, "number": mutant.number, "line": self._mutation.line,
            "mutation": self._mutation.words, "survives": survives, "tests": self._tests,
            "seconds": seconds,
        }  # fmt: skip

    def stop(self) -> None:
        if self._trial is not None:
            self._trial.stop()


def watch(workers: Sequence[Worker], mutated: set[str], to: Path) -> None:
    """Run all tests without a mutant, each worker its part, and write what each reaches.

    Without those that a browser or the demo's training makes long; a test that fails is left out.
    """
    parts = [to.with_suffix(f".{part}") for part in range(len(workers))]
    without = ["--ignore=tests/web", "--ignore=tests/docs", "--ignore=tests/cli/test_demo.py"]
    running = []
    for part, worker in enumerate(workers):
        parts[part].unlink(missing_ok=True)
        watcher = Watcher(worker.tree, mutated, parts[part], part, len(workers))
        running.append(Trial(worker.tree, ["tests"], watcher, without))
    try:
        while running:
            time.sleep(0.2)
            running = [trial for trial in running if trial.ended() is None]
    finally:
        for trial in running:
            trial.stop()
    to.write_text("".join(path.read_text(encoding="utf-8") for path in parts), encoding="utf-8")
    for path in parts:
        path.unlink()


def read_watched(path: Path) -> list[Reached]:
    with path.open(encoding="utf-8") as file:
        return [
            Reached(test, seconds, {of: set(lines) for of, lines in of_files.items()})
            for test, seconds, of_files in map(json.loads, file)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", nargs="*", default=[], help="of files whose path holds one of these"
    )
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at a time")
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
        watched_in = given.to.with_suffix(f".{commit[:8]}.watched")
        if not watched_in.exists():
            watch(workers, {mutant.path for mutant in mutants}, watched_in)
        watched = read_watched(watched_in)

        def keep(result: dict[str, object]) -> None:
            results.append({"commit": commit, **result})
            with given.to.open("a", encoding="utf-8") as file:
                file.write(json.dumps(results[-1]) + "\n")

        while waiting or any(worker.mutant for worker in workers):
            time.sleep(0.05)
            for worker in workers:
                if (result := worker.ended()) is not None:
                    keep(result)
                if worker.mutant is None and waiting and not worker.begin(waiting.pop(0), watched):
                    keep(worker.result(survives=True))
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
