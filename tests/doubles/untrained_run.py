"""A run folder of random weights, made in a moment. Not a test: tests import it."""

from __future__ import annotations

from pathlib import Path

import torch
from tiny_treebank import treebank

from dragoman.demo.corpus import demo_corpus
from dragoman.forms.form import Form
from dragoman.forms.labels import Labels
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.forms.text_form import TextForm
from dragoman.forms.tree_form import TreeForm, TreeSymbols
from dragoman.runs.model import build_model
from dragoman.runs.run import vocabulary_name
from dragoman.tasks.catalogue import Recipe
from dragoman.training.weights import save_weights

TOPICS = ("animals", "food", "weather")
"""The labels of a run that labels."""


def untrained_run(folder: Path, *changes: str, recipe_name: str = "demo") -> Path:
    """What a recipe of the demo with ``changes`` begins with, written to ``folder``. A run that
    labels has ``TOPICS``, one that parses the brackets of ``tiny_treebank``."""
    recipe = Recipe.load(recipe_name, changes)
    task = recipe.spec
    pairs = demo_corpus(train_pairs=600, dev_pairs=1, test_pairs=1).train
    text = learn_vocabulary(
        (line for p in pairs for line in (p.source, p.target)), recipe.text, symbols=task.symbols
    )
    source = TextForm(text, "en")
    target: Form = source
    text.save(folder / vocabulary_name(recipe, task.texts[-1]))
    if task.has_head:
        target = Labels(TOPICS)
    elif task.keeps_order:
        target = TreeForm(TreeSymbols.learn(treebank(40), recipe.trees))
    torch.manual_seed(1)
    if task.target_file is not None:
        target.save(folder / task.target_file)
    model = build_model(recipe, source, target)
    recipe.save(folder / "recipe.toml")
    save_weights(folder / "model.safetensors", model.state_dict(), {})
    return folder
