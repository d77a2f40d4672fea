"""Training examples made from the tokens of a store: pairs, windows of texts, and texts that are
masked or labelled as a whole or word by word.

Each task has one kind (``Parts.examples``). A plan composes updates from the numbers and lengths of
examples; the classes here turn those numbers into batches, as pure functions of the seed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from dragoman.data.batches import Batch, MaskedBatch, Values, make_batch, masked_batch, window_batch
from dragoman.data.chunks import ChunkSums, CorpusRange
from dragoman.data.hashing import torch_seed
from dragoman.data.labelled import (
    LabelledBatch,
    TaggedBatch,
    TextLayout,
    WordCutter,
    labelled_batch,
    tagged_batch,
)
from dragoman.data.masking import Masking
from dragoman.data.plan import MicroBatchPlan, Plan
from dragoman.data.store import TextPieces, TokenStore, Windows
from dragoman.forms.form import Form
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.sources.augment import mask, mix, mixing, vary, with_noise
from dragoman.sources.picture.form import PictureSource, patches_of, pixels_from
from dragoman.training.gradients import MakeBatch
from dragoman.training.losses.objectives import MicroBatch


class Examples(ABC):
    """The examples from which a ``Plan`` is made, and from whose numbers batches are made."""

    corpora: Sequence[CorpusRange]
    lengths: Mapping[str, npt.NDArray[np.int32]]
    sums: ChunkSums | None = None
    """The running totals of the lengths, if these are the lengths in the store; otherwise None."""

    def __init__(self, store: TokenStore) -> None:
        self.corpora = store.corpora
        self._store = store

    @abstractmethod
    def batch(self, update: int, examples: Sequence[int]) -> MicroBatch:
        """Make a batch of update ``update`` from the examples with these numbers."""


class TrainingBatches:
    """The micro-batches of an update for one process, each made when it is asked for.

    They depend only on the plan's seed and the examples' seed.
    """

    def __init__(self, plan: Plan, examples: Examples) -> None:
        self._plan = plan
        self._examples = examples

    def __call__(self, update: int, rank: int = 0, ranks: int = 1) -> Sequence[MakeBatch]:
        return [partial(self._make, share) for share in self._plan.update(update, rank, ranks)]

    def _make(self, micro_batch: MicroBatchPlan) -> MicroBatch:
        return self._examples.batch(micro_batch.update, micro_batch.examples.tolist())


class Pairs(Examples):
    """Pairs of a source text and a target text."""

    def __init__(self, store: TokenStore, recipe: Recipe, forms: Forms) -> None:
        super().__init__(store)
        # A plan counts an end symbol on either side, but rows have none.
        spare = {"source": int(forms.source.end is None), "target": 0}
        self.lengths = {
            side: lengths - 1 if spare[side] else lengths for side, lengths in store.lengths.items()
        }
        self.sums = None if any(spare.values()) else store.sums
        self._read = _reads(store, recipe)
        self._forms = forms
        self._seed = recipe.seed
        self._noise = recipe.training.noise
        self._longest = recipe.bounded_plan.max_source

    def batch(self, update: int, examples: Sequence[int]) -> Batch:
        source, target = self._forms
        sources = self._side("source", 3, source, update, examples)
        targets = self._side("target", 4, target, update, examples)
        return make_batch(sources, targets, target.bos, target.eos, examples)

    def _side(
        self, side: str, stream: int, form: Form, update: int, examples: Sequence[int]
    ) -> list[Values]:
        """Read one side of each example; ``stream`` selects its random numbers."""
        store, vocabulary = self._store, form.vocabulary
        if vocabulary is not None and vocabulary.settings.sampling:
            # Seeded by update and example: any process cuts alike, and the next epoch cuts
            # differently.
            cut = (
                vocabulary.sample(
                    self._text(side, update, example),
                    torch_seed(self._seed, stream, update, example),
                )
                for example in examples
            )
            return [np.array(form.with_tag(tokens.tolist()), np.int32) for tokens in cut]
        if side == "source" and self._noise.is_on:
            noisy = form.encode([self._text(side, update, example) for example in examples])
            return [
                values if 0 < len(values) < self._longest else store.values(side, example)
                for values, example in zip(noisy, examples, strict=True)
            ]
        if side == "source":
            return [self._read(update, example) for example in examples]
        return [store.values(side, example) for example in examples]

    def _text(self, side: str, update: int, example: int) -> str:
        """Return the text of one side as it is read in an update: a source may get noise."""
        text = self._store.text(side, example)
        if side == "target" or not self._noise.is_on:
            return text
        return with_noise(text, self._noise, torch_seed(self._seed, 11, update, int(example)))


def _reads(store: TokenStore, recipe: Recipe) -> Callable[[int, int], Values]:
    """Make the function that reads the source of an example in an update. With SpecAugment it masks
    parts of recordings, with picture augmentation it varies pictures."""
    hiding, varying = recipe.training.spec_augment, recipe.training.picture_augment
    seed, hides = recipe.seed, hiding.is_on
    if not (hides or varying.is_on):
        return lambda _, example: store.values("source", example)

    def read(update: int, example: int) -> Values:
        values = store.values("source", example)
        drawn = torch_seed(seed, 7, update, int(example))
        if hides:
            return mask(values, hiding, drawn)
        source = PictureSource.of(recipe.source)
        pixels = pixels_from(values, source.height, source.width, source.patch)
        return patches_of(vary(pixels, varying, drawn), source.patch)

    return read


class TextWindows(Examples):
    """Windows of texts without sources (``data/store.py``)."""

    def __init__(self, store: TokenStore, recipe: Recipe, forms: Forms) -> None:
        target = forms.written
        self._windows = Windows(store, recipe.plan.context, target.bos, target.eos)
        self.corpora = self._windows.corpora
        self.lengths = self._windows.lengths
        self._eos = target.eos

    def batch(self, update: int, examples: Sequence[int]) -> Batch:
        windows = [self._windows.window(number) for number in examples]
        return window_batch(windows, self._eos, examples)


class MaskedTexts(Examples):
    """Pieces of texts without sources, masked differently in each update (``data/masking.py``)."""

    def __init__(self, store: TokenStore, recipe: Recipe, forms: Forms) -> None:
        target = forms.written
        self._pieces = TextPieces(store, recipe.plan.context)
        self.corpora = self._pieces.corpora
        self.lengths = self._pieces.lengths
        self._masking = Masking(target.vocabulary, recipe.masking)
        self._seed = recipe.seed
        self._eos = target.eos

    def batch(self, update: int, examples: Sequence[int]) -> MaskedBatch:
        pieces = [(number, self._pieces.piece(number)) for number in examples]
        return masked_batch(
            [
                (tokens, self._masking(tokens, torch_seed(self._seed, 5, update, int(number))))
                for number, tokens in pieces
            ],
            self._eos,
            examples,
        )


class LabelledTexts(Examples):
    """Texts with a label each, read up to ``plan.context``."""

    def __init__(self, store: TokenStore, recipe: Recipe, forms: Forms) -> None:
        super().__init__(store)
        self._read = _reads(store, recipe)
        self._mixup, self._seed = recipe.training.picture_augment.mixup, recipe.seed
        self._reading = reading_of(recipe, forms)
        # Long texts are cut off, so the plan counts only the tokens that are read.
        longest, symbols = self._reading.longest, self._reading.symbols
        read = np.minimum(store.lengths["source"], longest - symbols) + (symbols - 1)
        self.lengths = {"target": read.astype(np.int32)}

    def batch(self, update: int, examples: Sequence[int]) -> LabelledBatch:
        texts = [self._read(update, example) for example in examples]
        if self._mixup:
            return self._mix(update, examples, texts)
        return labelled_batch(texts, self._labels(examples), self._reading, examples)

    def _labels(self, examples: Sequence[int]) -> list[int]:
        return [int(self._store.tokens("target", example)[0]) for example in examples]

    def _mix(
        self, update: int, examples: Sequence[int], pictures: Sequence[Values]
    ) -> LabelledBatch:
        """Mix each picture with another training picture (``picture_augment.mixup``)."""
        count = len(self._store.lengths["target"])
        drawn = [
            mixing(self._mixup, count, torch_seed(self._seed, 9, update, int(example)))
            for example in examples
        ]
        both = zip(pictures, drawn, strict=True)
        mixtures = [mix(own, self._read(update, other), share) for own, (share, other) in both]
        whole = labelled_batch(mixtures, self._labels(examples), self._reading, examples)
        others = torch.tensor(self._labels([other for _, other in drawn]), dtype=torch.int64)
        shares = torch.tensor([share for share, _ in drawn], dtype=torch.float32)
        return replace(whole, others=others, shares=shares)


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
        sentences = [self._store.text("source", number).split() for number in examples]
        if self._seed is None:
            pieces = self._cut(sentences)
        else:
            pieces = [
                self._cut.sample(words, torch_seed(self._seed, 6, update, int(number)))
                for number, words in zip(examples, sentences, strict=True)
            ]
        tags = [self._store.tokens("target", number).tolist() for number in examples]
        return tagged_batch(pieces, tags, self._reading, examples)


def reading_of(recipe: Recipe, forms: Forms) -> TextLayout:
    """The layout in which a recipe's model reads a text to label."""
    source, model, settings = forms.source, recipe.model, recipe.source
    longest = min(recipe.plan.context, (model.longest or recipe.plan.context) * settings.shortens)
    symbol = source.end if model.reads else source.bos
    return TextLayout(symbol, before=not model.reads, longest=longest)
