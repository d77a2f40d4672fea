"""The corpora that the program generates itself (``data.embedded``), as a task has its examples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from dragoman.data.corpora import Pair
from dragoman.data.store_writer import store_key
from dragoman.demo.corpus import demo_corpus
from dragoman.demo.labels import label_of
from dragoman.demo.trees import demo_trees
from dragoman.recipe import Recipe
from dragoman.task import TASKS
from dragoman.tree import Tree


def embedded_pairs(recipe: Recipe, side: str) -> Iterator[Pair]:
    """One part ("train", "dev" or "test") of the embedded corpus, with the sides that the task has;
    of one side the English, if that is its language, or else the German."""
    if TASKS[recipe.task].target == "tree":
        return _of_trees(getattr(demo_trees(), side))
    corpus = demo_corpus()
    pairs = enumerate(getattr(corpus, side), 1)
    if TASKS[recipe.task].target == "label":
        labelled = ((line, pair.source, label_of(pair)) for line, pair in pairs)
        return (Pair(line, text, label) for line, text, label in labelled if label is not None)
    if "source" in TASKS[recipe.task].sides:
        return (Pair(line, pair.source, pair.target) for line, pair in pairs)
    of = "source" if recipe.languages.target == "en" else "target"
    # Two English sentences may have one German one, and two German ones one English: what is held
    # out must not be trained on.
    trained = {getattr(pair, of) for pair in corpus.train} if side != "train" else set()
    texts = ((line, getattr(pair, of)) for line, pair in pairs)
    return (Pair(line, "", text) for line, text in texts if text not in trained)


def all_embedded_pairs(recipe: Recipe) -> Iterator[Pair]:
    """All parts of the embedded corpus, one behind the other, whatever sides the task has."""
    if TASKS[recipe.task].target == "tree":
        trees = demo_trees()
        yield from _of_trees((*trees.train, *trees.dev, *trees.test))
        return
    parts = demo_corpus()
    for line, pair in enumerate((*parts.train, *parts.dev, *parts.test), 1):
        yield Pair(line, pair.source, pair.target)


def embedded_fingerprint(recipe: Recipe) -> str:
    """The fingerprint of the embedded training corpus, whichever of its sides the task has."""
    if TASKS[recipe.task].target == "tree":
        return store_key(json.dumps([str(tree) for tree in demo_trees().train]))
    return store_key(json.dumps([pair[:2] for pair in demo_corpus().train]))


def _of_trees(trees: Iterable[Tree]) -> Iterator[Pair]:
    return (Pair(line, " ".join(tree.words), str(tree)) for line, tree in enumerate(trees, 1))
