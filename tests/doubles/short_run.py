"""A run that writes little, so that a lesson about it is soon made. Not a test: tests import it."""

from __future__ import annotations

import shutil
from pathlib import Path


def short_run(run: Path, folder: Path) -> Path:
    """A copy of a run that has hardly learned and so would not end its outputs -> its folder."""
    shutil.copytree(run, folder)
    recipe = folder / "recipe.toml"
    text = recipe.read_text(encoding="utf-8")
    assert "[search]\n" in text
    recipe.write_text(text.replace("[search]\n", "[search]\nmax_length = 10\n"), encoding="utf-8")
    return folder
