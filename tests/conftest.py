"""The same world for every test: no colours, a known width, one thread, no time limits."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from command_line import Dragoman, Said
from tiny_recipe import TINY

if TYPE_CHECKING:
    from inline_workers import InlineWorkers

    from dragoman.tasks.catalogue import Run

# Set before anything imports rich or torch. Tiny models lose time with many threads.
os.environ["COLUMNS"] = "100"
os.environ["NO_COLOR"] = "1"
os.environ["TERM"] = "dumb"
for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
    os.environ.pop(name, None)
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests are of the CPU, on every machine; those of a GPU ask for it (make test-gpu).
if os.environ.get("DRAGOMAN_TEST_GPU") != "on":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
# Which way trains a model the fastest depends on what else runs: tests train in fp32, by the best
# kernels. Those of measuring take it out again.
os.environ["DRAGOMAN_MEASURE"] = "off"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# A shell's background jobs, and all that they start, ignore Ctrl-C; tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The tests start hundreds of processes: each would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ["HF_HUB_OFFLINE"] = "1"

# `make test-matrix` varies this too; torch has no environment variable for it.
if os.environ.get("DRAGOMAN_TEST_ONEDNN") == "off":
    import torch

    torch.backends.mkldnn.set_flags(False)

# A busy machine is no reason to fail, and a failure must come back in the next run.
hypothesis.settings.register_profile("dragoman", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("dragoman")


@pytest.fixture(scope="session")
def empty_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One for each test, numbered here: for each new one ``mktemp`` reads the names of all."""
    base = tmp_path_factory.mktemp("here")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_working_folder(empty_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder: what a test writes by a relative path never lands in the tree."""
    folder = next(empty_folders)
    folder.mkdir()
    monkeypatch.chdir(folder)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Stores of tokens go to a folder of this session, never to the user's cache."""
    os.environ["DRAGOMAN_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def in_fp64() -> Iterator[None]:
    """Whatever is made is double, and drawn alike each time."""
    import torch

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="session")
def parallel_text(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two small files of the demo's sentences: my.en and my.de."""
    from dragoman.demo.corpus import demo_corpus

    folder = tmp_path_factory.mktemp("text")
    pairs = demo_corpus(train_pairs=600, dev_pairs=10, test_pairs=10).train
    (folder / "my.en").write_text("".join(f"{p.source}\n" for p in pairs), encoding="utf-8")
    (folder / "my.de").write_text("".join(f"{p.target}\n" for p in pairs), encoding="utf-8")
    return folder / "my.en", folder / "my.de"


@pytest.fixture(scope="session")
def tiny_run(parallel_text: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder, trained for some seconds: everything in it works, its translations do not. Its
    norms are the paper's, as those of Hugging Face's models."""
    from recipe_of_files import recipe_of

    from dragoman.tasks.training import train

    folder = tmp_path_factory.mktemp("runs") / "tiny"
    changes = (*TINY, "model.norm=post")
    recipe, _ = recipe_of([str(path) for path in parallel_text], changes=changes)
    train(recipe, folder, say=lambda _: None, display=False, measure=False)
    return folder


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """A run by its task, its source and the kind of its model, trained when it is first asked for.
    Tests do not write into its folder."""
    from every_task import run_of_cell

    from dragoman.tasks.catalogue import Run

    @cache
    def trained(task: str, source: str, kind: str) -> Run:
        return Run.open(run_of_cell(task, source, kind, tmp_path_factory.mktemp(kind)))

    return trained


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> Callable[..., InlineWorkers]:
    """Workers of this process, of which a test may ask for special ones: what they do does not
    depend on where they are."""
    from inline_workers import InlineWorkers

    def use(*arguments: Any, **options: Any) -> InlineWorkers:
        workers = InlineWorkers(*arguments, **options)
        monkeypatch.setattr("dragoman.cluster.driver.workers_at", lambda place: workers.all)
        return workers

    use(1)
    return use


@pytest.fixture(autouse=True)
def refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait where a client that asks too often does."""
    if "dragoman.serving.service.service" in sys.modules:
        monkeypatch.setattr("dragoman.serving.service.service.TOO_MANY_SECONDS", 0)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported with the tests stays: looking through all of it for circles, while it grows
    and then again and again, takes longer than most tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


SHORT_DEMO = (
    "plan.tokens_per_update=512", "plan.tokens_per_micro_batch=512", "model.dropout=0.05",
    "training.updates=1800", "training.validate_every=1800",
)  # fmt: skip
"""The demo with less than half of its text: it translates nearly as well."""


WHOLE = ("test_verb", "test_demo", "test_without_torch")
"""Beside those of cli/ and studies/, the files of tests that call a whole command."""


def needs(item: pytest.Item, *fixtures: str) -> bool:
    return not set(fixtures).isdisjoint(getattr(item, "fixturenames", ()))


@pytest.hookimpl(tryfirst=True)  # before those that a command line leaves out are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test of a whole command or study, or that needs a browser or the demo, as one of
    the system, and put the files in order. Those of which many wait for another process come
    first, while the demo is trained beside them; those that wait for the demo come late. Those
    shown in a browser come last, since its driver keeps an event loop in the thread of the tests;
    of these the files of many tests come first, so that several processes end together."""
    in_browser, places = Counter[Path](), dict[Path, int]()
    for item in items:
        folder = item.path.parent.name
        waits = folder in ("cluster", "prepare", "serving") or item.path.stem == "test_endpoint"
        place = 0 if waits else 1
        if folder in ("cli", "studies") or item.path.stem in WHOLE:
            item.add_marker(pytest.mark.system)
        if needs(item, "chromium", "demo"):
            item.add_marker(pytest.mark.system)
            place = 2
        if needs(item, "chromium"):
            in_browser[item.path] += 1
            place = 3
        places[item.path] = max(place, places.get(item.path, 0))
    items.sort(key=lambda item: (places[item.path], -in_browser[item.path]))


DEMO = (
    f"{sys.executable} -m dragoman demo %s > out 2> errors; echo $? > code.part; mv code.part code"
)


@pytest.fixture(scope="session", autouse=True)
def demo_under_way(
    request: pytest.FixtureRequest, own_cache: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path | None]:
    """``dragoman demo`` with no terminal and nobody to answer, begun before the first test where
    one will need it and trained beside the others, once for all processes of a test run -> the
    folder it is in. When it has ended, ``code`` there holds its exit code.

    By one thread, which a busy machine does not keep waiting; in bf16 where there are kernels for
    it, as users' machines choose it, in half the time. So one machine always makes the same
    weights, and what tests ask of them must hold for those of every other. The whole one where slow
    tests are run, too, and there are kernels, without which it takes many minutes; one test run
    alone sees the demo that ``make test`` has.
    """
    if not any(needs(item, "demo") for item in request.session.items):
        yield None
        return
    from dragoman.native.linear import is_supported

    slow = any(item.get_closest_marker("slow") for item in request.session.items)
    whole = slow and is_supported(128, 128, "fp32")
    bf16 = ("training.precision=bf16",) if is_supported(128, 128, "bf16") else ()
    changes = (*bf16, *(() if whole else SHORT_DEMO))
    base = tmp_path_factory.getbasetemp()
    shared = "PYTEST_XDIST_WORKER" in os.environ
    folder = (base.parent if shared else base) / "the demo"
    try:
        folder.mkdir()
    except FileExistsError:  # another process of this test run has begun it
        yield folder
        return
    command = DEMO % " ".join(f"--set={change}" for change in changes)
    process = subprocess.Popen(
        ["sh", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield folder
        if shared and not request.session.shouldstop:
            process.wait(1500)  # for those who still wait for it
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="session")
def demo(demo_under_way: Path) -> tuple[Path, str]:
    """The demo when it is done -> its run, and what it printed."""
    folder, code = demo_under_way, demo_under_way / "code"
    until = time.monotonic() + 1500
    while not code.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert code.read_text() == "0\n", (folder / "errors").read_text(encoding="utf-8")
    return folder / "runs" / "demo", (folder / "out").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """The command line sends the program's notes to standard error; each test begins without."""
    logger = logging.getLogger("dragoman")
    before = logger.handlers, logger.level, logger.propagate
    yield
    logger.handlers, logger.level, logger.propagate = before


@pytest.fixture
def measured_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a training will take is measured in three updates, not thirty: more than many
    trainings of the tests make."""
    from dragoman.tasks import training

    measured = partial(training.measure_throughput, most=3)
    monkeypatch.setattr(training, "measure_throughput", measured)


@pytest.fixture
def dragoman(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, measured_shortly: None
) -> Dragoman:
    """Call the command line within this process: ``dragoman("translate", run, stdin=b"...")``."""
    import io

    from dragoman.cli.app import main

    def call(*arguments: object, stdin: bytes = b"") -> Said:
        monkeypatch.setattr(sys, "argv", ["dragoman", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Said(code, out, err)

    return call


@pytest.fixture(autouse=True)
def own_choice_of_kernels() -> Iterator[None]:
    """A worker computes as the first one did, and tells its process so: where that is the process
    of the tests, the choice ends with the test."""
    before = os.environ.get("DRAGOMAN_NATIVE")
    yield
    if os.environ.get("DRAGOMAN_NATIVE") == before:
        return
    os.environ.pop("DRAGOMAN_NATIVE", None)
    if before is not None:
        os.environ["DRAGOMAN_NATIVE"] = before
    from dragoman.native import library

    library.reset()
