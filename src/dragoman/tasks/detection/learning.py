"""The training examples and the loss of a detector.

The boxes of a picture have no order, so every update draws a random one (Chen et al., 2022, section
2.1). Noise boxes follow, up to ``boxes.most`` (section 2.3): about half of them near a true box,
the others anywhere. Only their class, "nothing", is learned: the model learns to reject wrong and
repeated boxes, and need not predict an end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.data.batches import Batch, Tokens, Values, window_batch
from dragoman.data.hashing import torch_seed
from dragoman.data.store import TokenStore
from dragoman.forms.box_form import PER_BOX, BoxSymbols
from dragoman.forms.sides import Forms
from dragoman.models.interface import Scores, Writing
from dragoman.runs.recipe.recipe import Recipe
from dragoman.tasks.detection.head import SetPredictor
from dragoman.tasks.detection.set_loss import IGNORED, SetLoss
from dragoman.tasks.shared.examples import Examples
from dragoman.training.losses.objectives import NextToken, Objective, Sums, cross_entropy_of

_STREAM = 8
"""The stream of random numbers for order and noise."""


def with_noise(
    tokens: Tokens, symbols: BoxSymbols, jitter: float, draw: np.random.Generator
) -> tuple[Tokens, Tokens]:
    """Shuffle the boxes of a picture (``tokens``), and add noise boxes up to ``symbols.most``
    boxes. Return the symbols to read and those to predict.

    ``jitter``: how far the edges of a noise box near a true box are moved, at most, as a share of
    the sides of the true box; ``draw``: the source of random numbers.
    """
    first, last = symbols.places.start, symbols.places.stop - 1
    true = tokens.reshape(-1, PER_BOX)
    true = draw.permutation(true)[: symbols.most]
    count = symbols.most - len(true)
    noise = np.sort(draw.integers(first, last + 1, (count, 2, 2)), axis=1).reshape(count, 4)
    if len(true):
        beside = true[draw.integers(len(true), size=count), :4]
        sides = np.tile(beside[:, 2:] - beside[:, :2], 2)
        moved = beside + np.rint(draw.uniform(-jitter, jitter, (count, 4)) * sides).astype(int)
        noise = np.where(draw.random((count, 1)) < 0.5, moved, noise)
    noise[:, :2] = noise[:, :2].clip(first, last - 1)
    noise[:, 2:] = np.maximum(noise[:, 2:], noise[:, :2] + 1).clip(first, last)
    named = draw.integers(symbols.classes.start, symbols.classes.stop, (count, 1))
    read = np.vstack([true, np.hstack([noise, named])]).ravel()
    wrong = np.full((count, PER_BOX), IGNORED)
    wrong[:, -1] = symbols.nothing
    predicted = np.vstack([true, wrong]).ravel()
    begin, end = [symbols.bos], [IGNORED]
    return (
        np.concatenate([begin, read]).astype(np.int32),
        np.concatenate([predicted, end]).astype(np.int32),
    )


def boxes_batch(
    sources: Sequence[Values],
    targets: Sequence[Tokens],
    recipe: Recipe,
    symbols: BoxSymbols,
    update: int,
    ids: Sequence[int],
) -> Batch:
    """Make a batch of pictures for update ``update``. ``sources``: the patches of the pictures;
    ``targets``: the symbols of their true boxes; ``ids``: their numbers, from which their noise is
    drawn."""
    windows = [
        with_noise(
            target, symbols, recipe.boxes.jitter,
            np.random.default_rng(torch_seed(recipe.seed, _STREAM, update, int(number))),
        )
        for target, number in zip(targets, ids, strict=True)
    ]  # fmt: skip
    return window_batch(windows, symbols.eos, ids, sources)


class PicturesWithBoxes(Examples):
    """The training examples: pictures with their boxes (``tasks.shared.examples.Examples``)."""

    def __init__(self, store: TokenStore, recipe: Recipe, forms: Forms) -> None:
        super().__init__(store)
        self._symbols = forms.boxes.symbols
        whole = np.full_like(store.lengths["target"], PER_BOX * self._symbols.most)
        self.lengths = {"source": store.lengths["source"] - 1, "target": whole}
        self._recipe = recipe

    def batch(self, update: int, examples: Sequence[int]) -> Batch:
        store = self._store
        return boxes_batch(
            [store.values("source", number) for number in examples],
            [store.tokens("target", number) for number in examples],
            self._recipe, self._symbols, update, examples,
        )  # fmt: skip


class BoxTokens(NextToken):
    """The cross-entropy of the symbols that are learned, which leaves out those marked
    ``IGNORED``."""

    def __call__(self, model: Scores, batch: Batch) -> Sums:
        hidden = model.decode(batch.target_in, model.encode(batch.source))  # (P, D)
        places = torch.nonzero(batch.target_out != IGNORED).squeeze(1)
        wanted = batch.target_out.index_select(0, places)
        loss, nll = self._cross_entropy(hidden.index_select(0, places), wanted)
        return Sums(loss, nll, len(places))


def objective_of(model: Writing, smoothing: float) -> Objective:
    """Return the objective with which a detector is trained. ``smoothing``: the label smoothing."""
    if isinstance(model, SetPredictor):
        return SetLoss(model.symbols, smoothing)
    return BoxTokens(cross_entropy_of(model, smoothing))
