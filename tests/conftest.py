"""The same world for every test: no colours, a known width, one thread, no time limits."""

from __future__ import annotations

import os

import hypothesis
import pytest

# Set before anything imports rich or torch. Tiny models lose time with many threads.
os.environ["COLUMNS"] = "100"
os.environ["NO_COLOR"] = "1"
os.environ["TERM"] = "dumb"
for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
    os.environ.pop(name, None)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

# A busy machine is no reason to fail, and a failure must come back in the next run.
hypothesis.settings.register_profile("dragoman", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("dragoman")


@pytest.fixture(autouse=True)
def own_working_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run in an empty folder: what a test writes by a relative path never lands in the tree."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
