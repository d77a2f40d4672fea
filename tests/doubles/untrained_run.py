"""A run folder of random weights, made in a moment. Not a test: tests import it."""

from __future__ import annotations

from pathlib import Path

import torch

from dragoman.data.demo_corpus import demo_corpus
from dragoman.forms.text import Text
from dragoman.recipe import Recipe
from dragoman.tasks.model import build_model
from dragoman.tasks.run import vocabulary_name
from dragoman.training.weights import save_weights


def untrained_run(folder: Path, *changes: str, recipe_name: str = "demo") -> Path:
    """What a recipe of the demo with ``changes`` begins with, written to ``folder``."""
    recipe = Recipe.load(recipe_name, changes)
    pairs = demo_corpus(train_pairs=600, dev_pairs=1, test_pairs=1).train
    text = Text.train((line for p in pairs for line in (p.source, p.target)), recipe.text)
    torch.manual_seed(1)
    model = build_model(recipe, text, text)
    recipe.save(folder / "recipe.toml")
    text.save(folder / vocabulary_name(recipe, "target"))
    save_weights(folder / "model.safetensors", model.state_dict(), {})
    return folder
