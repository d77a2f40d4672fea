"""Runs that a test trains without a word. Not a test: tests import it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.training import train


def trained_run(recipe: Recipe, folder: Path, **options: Any) -> Run:
    """``options``: as ``train`` takes them, but that nothing is timed before it starts."""
    train(recipe, folder, say=lambda _: None, display=False, **{"measure": False} | options)
    return Run.open(folder)


def on_texts(demo: str, texts: Path, *changes: str) -> Recipe:
    """A demo's recipe for a file of texts in place of the embedded corpus, a part held out."""
    plain = Recipe.load(demo).model_dump(mode="json", exclude_none=True)
    del plain["data"]["embedded"]
    data = f'data.train=[{{source="{texts}", format="text"}}]'
    return Recipe.parse(plain, [data, "data.split.dev=0.1", "data.split.test=0.1", *changes])
