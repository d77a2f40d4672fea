"""The training examples and the loss of a tagger: -log P of the tag of each word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.data.hashing import torch_seed
from dragoman.data.labelled import TaggedBatch, WordCutter, tagged_batch
from dragoman.data.store import TokenStore
from dragoman.forms.sides import Forms
from dragoman.models.interface import Network
from dragoman.runs.recipe.recipe import Recipe
from dragoman.tasks.shared.examples import Examples, reading_of
from dragoman.training.losses.loss import smoothed_cross_entropy
from dragoman.training.losses.objectives import Sums

_STREAM = 6
"""The stream of random numbers for subword sampling (``tasks/shared/examples.py`` uses others)."""


class TaggedSentences(Examples):
    """Sentences, each cut at ``plan.context`` tokens, and the tags of their words."""

    def __init__(self, store: TokenStore, recipe: Recipe, forms: Forms) -> None:
        super().__init__(store)
        self._reading = reading_of(recipe, forms)
        self._cut = WordCutter(forms.source)
        self._seed = recipe.seed if recipe.text.sampling else None
        # Longer sentences are cut, so a plan counts only the tokens that are read.
        read = np.minimum(store.lengths["source"], self._reading.longest - 1)
        self.lengths = {"target": read.astype(np.int32)}

    def batch(self, update: int, examples: Sequence[int]) -> TaggedBatch:
        """Make a batch of the given examples for update ``update``."""
        sentences = [self._store.text("source", number).split() for number in examples]
        if self._seed is None:
            pieces = self._cut(sentences)
        else:
            pieces = [
                self._cut.sample(words, torch_seed(self._seed, _STREAM, update, int(number)))
                for number, words in zip(examples, sentences, strict=True)
            ]
        tags = [self._store.tokens("target", number).tolist() for number in examples]
        return tagged_batch(pieces, tags, self._reading, examples)


class TagOfEachWord:
    """The cross-entropy of the tag of each word; words are counted."""

    def __init__(self, network: Network, smoothing: float) -> None:
        """``network``: a ``WordTagger`` (``head.py``), whose logits are few: no kernel is
        needed."""
        self._smoothing = smoothing

    def __call__(self, model: Network, batch: TaggedBatch) -> Sums:
        rows = model.encode(batch.read.source).rows  # (P, D)
        logits = model.project(batch.read.windows(rows))  # (W, K)
        loss, nll = smoothed_cross_entropy(logits, batch.tags, self._smoothing)
        return Sums(loss, nll, len(batch.tags))
