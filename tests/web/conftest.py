"""A browser, the demo run served, and the page built: what the page's tests stand on.

They need Chromium (Debian: ``apt install chromium-headless-shell``, or ``chromium``, which takes
more than twice as long to open a page) and Node. In CI their absence is a failure;
elsewhere the page's tests are left out, and pytest says so in one line.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from opening import AXE, Open, opening
from playwright.sync_api import Browser, sync_playwright
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run
from untrained_run import untrained_run
from warm_server import serving

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "dragoman" / "serving" / "web" / "index.html"


DEVICES = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
"""A camera that shows a clock, and a microphone that beeps every second."""


def leave_out(reason: str) -> None:
    """Skip, or fail where nothing may be left out."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(f"the page is not tested: {reason}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless, with a camera and a microphone that it makes up."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    program = next((found for name in names if (found := shutil.which(name))), None)
    if program is None:
        leave_out("there is no Chromium here (Debian: apt install chromium-headless-shell)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", *DEVICES]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, built from its sources if that has not been done since they changed: by one of the
    processes that share the tests."""
    with (tmp_path_factory.getbasetemp().parent / "page.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return _built_now()


def _built_now() -> Path:
    sources = [
        path
        for path in (ROOT / "web").rglob("*")
        if path.is_file() and "node_modules" not in path.parts
    ]
    newest = max(path.stat().st_mtime for path in sources)
    if not AXE.is_file() or not BUILT.is_file() or BUILT.stat().st_mtime < newest:
        builder = _builder()
        try:
            builder.build_page(ROOT)
        except builder.PageError as error:
            leave_out(str(error))
    return BUILT.parent


@pytest.fixture(scope="session")
def address(built: Path, demo: tuple[Path, str]) -> Iterator[str]:
    """The demo run, served by the program itself."""
    with serving(demo[0]) as address:
        yield address


@pytest.fixture(scope="module")
def untrained(
    built: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A run of random weights, of the ``RECIPE`` and the ``SMALL`` changes that a module names,
    served by the program itself, in a folder called as its ``FOLDER`` says."""
    module = request.module
    folder = tmp_path_factory.mktemp(getattr(module, "FOLDER", "untrained"))
    with serving(untrained_run(folder, *module.SMALL, recipe_name=module.RECIPE)) as address:
        yield address


@pytest.fixture
def opened(chromium: Browser, untrained: str) -> Open:
    return opening(chromium, untrained)


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_page", ROOT / "build_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KINDS = {
    "translator": ("demo", "model.decoder_layers=1", "text.vocabulary=300"),
    "writer": ("demo-letters", "model.layers=2"),
    "labeller": ("demo-labels", "model.layers=2", "plan.context=24"),
    "filler": ("demo-masked", "model.layers=2"),
    "parser": ("demo-trees", "model.decoder_layers=1", "text.vocabulary=400"),
}
"""A small run of random weights for each view that asks one about a text."""
_TINY = ("model.model_dim=32", "model.ffn_dim=1024", "model.attention.num_heads=2")


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The run folders of ``KINDS``, and one that tags spans, trained for four updates."""
    folders = {name: tmp_path_factory.mktemp("kinds") / name for name in KINDS}
    for name, folder in folders.items():
        folder.mkdir()
        recipe, *changes = KINDS[name]
        longest = () if recipe in ("demo-labels", "demo-masked") else ("search.max_length=30",)
        untrained_run(folder, *_TINY, *changes, *longest, recipe_name=recipe)
    text = tmp_path_factory.mktemp("tagged")
    folders["tagger"] = text / "tagger"
    trained_run(tiny_recipe_of("tagging", text), folders["tagger"])
    return folders


@pytest.fixture(scope="session")
def opened_kinds(chromium: Browser, built: Path, kinds: dict[str, Path]) -> Iterator[Open]:
    """All of ``KINDS`` behind one address."""
    with serving(*kinds.values()) as address:
        yield opening(chromium, address)
