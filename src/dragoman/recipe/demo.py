"""The corpora that the program generates (``demo/``), as examples."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dragoman.data.store_writer import store_key
from dragoman.demo.corpus import demo_corpus, label_of
from dragoman.demo.trees import demo_trees
from dragoman.forms.form import Pair


def pairs_of_demo(*parts: str) -> Iterator[Pair]:
    """Sentences and their translations."""
    corpus = demo_corpus()
    every = (pair for part in parts for pair in getattr(corpus, part))
    return (Pair(line, pair.source, pair.target) for line, pair in enumerate(every, 1))


def texts_of_demo(part: str, language: str) -> Iterator[Pair]:
    """Sentences alone: English, or else German ones."""
    corpus = demo_corpus()
    of = "source" if language == "en" else "target"
    # Two English sentences may have one German one, and two German ones one English: what is held
    # out must not be trained on.
    trained = {getattr(pair, of) for pair in corpus.train} if part != "train" else set()
    texts = ((line, getattr(pair, of)) for line, pair in enumerate(getattr(corpus, part), 1))
    return (Pair(line, "", text) for line, text in texts if text not in trained)


def labels_of_demo(part: str) -> Iterator[Pair]:
    """Sentences and what they tell of (``demo/corpus.py``)."""
    pairs = enumerate(getattr(demo_corpus(), part), 1)
    labelled = ((line, pair.source, label_of(pair)) for line, pair in pairs)
    return (Pair(line, text, label) for line, text, label in labelled if label is not None)


def trees_of_demo(*parts: str) -> Iterator[Pair]:
    """Sentences and their trees."""
    trees = demo_trees()
    every = enumerate((tree for part in parts for tree in getattr(trees, part)), 1)
    return (Pair(line, " ".join(tree.words), str(tree)) for line, tree in every)


def fingerprint_of_pairs() -> str:
    """Of the sentences to train on and their translations."""
    return store_key(json.dumps([pair[:2] for pair in demo_corpus().train]))


def fingerprint_of_trees() -> str:
    """Of the trees to train on."""
    return store_key(json.dumps([str(tree) for tree in demo_trees().train]))
