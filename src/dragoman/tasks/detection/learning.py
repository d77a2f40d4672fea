"""The training examples and the losses of a detector.

The boxes of a picture have no order, so every update draws a random one (Chen et al., 2022, section
2.1). Noise boxes follow, up to ``boxes.most`` (section 2.3): about half of them near a true box,
the others anywhere. Only their class, "nothing", is learned: the model learns to reject wrong and
repeated boxes, and need not predict an end.

A detector that predicts all boxes as a set (Carion et al., 2020, section 3.1 and appendix A.2)
learns as follows. Each box of a picture is matched with one query so that the sum of

    - P(label) + 5 |b - b'| + 2 (1 - GIoU(b, b'))

is least. Matched queries learn label and box; all others learn the label "nothing", with a tenth of
the weight. Each layer of the decoder has its own matching and loss. The matching is the assignment
of the least cost (Kuhn, 1955, *The Hungarian method*; computed by shortest paths as by Jonker and
Volgenant, 1987).

Shapes: B pictures, Q queries, M boxes of a picture at most, T true boxes, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.data.batches import Batch, Tokens, Values, window_batch
from dragoman.data.hashing import torch_seed
from dragoman.data.store import TokenStore
from dragoman.forms.boxes import PER_BOX, BoxSymbols
from dragoman.forms.sides import Forms
from dragoman.models.interface import Scores, Writing
from dragoman.runs.recipe.recipe import Recipe
from dragoman.tasks.detection.head import FoundSet, SetPredictor
from dragoman.tasks.shared.examples import Examples
from dragoman.training.losses.objectives import NextToken, Objective, Sums, cross_entropy_of

IGNORED = -1
"""The mark of a symbol that is not learned."""
_OF_PLACES, _OF_OVERLAP, _OF_NOTHING = 5.0, 2.0, 0.1
"""The weights of the losses of places, of overlaps and of the label "nothing", relative to that of
another label."""
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


class SetLoss:
    """The loss of labels and places, summed over all queries and all layers of the decoder. The
    number of targets is that of the queries."""

    def __init__(self, symbols: BoxSymbols, smoothing: float) -> None:
        self._symbols, self._smoothing = symbols, smoothing

    def __call__(self, model: SetPredictor, batch: Batch) -> Sums:
        labels, places = self.true(batch)
        keys = batch.target_in.layout.first_row_keys
        losses = [
            set_loss(output, labels, places, self._smoothing)
            for output in model.layer_outputs(model.encode(batch.source), keys)
        ]
        return Sums(torch.stack(losses).sum(), losses[-1].detach(), len(batch) * labels.shape[1])

    def true(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the true boxes in the pictures of a batch: labels (B, M), which are K where there
        is no box, and places (B, M, 4) in the form of ``FoundSet``."""
        symbols = self._symbols
        fives = batch.target_out.view(len(batch), -1)[:, :-1].unflatten(1, (-1, PER_BOX))
        top, left, bottom, right = (
            (fives[..., :-1] - symbols.places.start) / symbols.bins
        ).unbind(-1)  # fmt: skip
        places = torch.stack(
            [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top], -1
        )
        is_box = fives[..., 0] != IGNORED
        none = fives.new_tensor(len(symbols.labels))
        return torch.where(is_box, fives[..., -1] - symbols.classes.start, none), places


def set_loss(output: FoundSet, labels: Tensor, places: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the loss of one layer of the decoder, summed over all queries. ``labels`` (B, M) and
    ``places`` (B, M, 4): see ``SetLoss.true``; ``smoothing``: the label smoothing."""
    nothing = output.logits.shape[-1] - 1
    picture, query, box = match_boxes(output, labels, places)
    wanted = labels.new_full(output.logits.shape[:2], nothing)  # (B, Q)
    wanted[picture, query] = labels[picture, box]
    weights = output.logits.new_ones(nothing + 1)
    weights[nothing] = _OF_NOTHING
    loss = F.cross_entropy(
        output.logits.flatten(0, 1), wanted.flatten(), weights,
        reduction="sum", label_smoothing=smoothing,
    )  # fmt: skip
    guessed, true = output.places[picture, query], places[picture, box].to(output.places)  # (T, 4)
    apart = 1 - generalised_iou(corners(guessed), corners(true))
    return loss + _OF_PLACES * (guessed - true).abs().sum() + _OF_OVERLAP * apart.sum()


@torch.no_grad()
def match_boxes(output: FoundSet, labels: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Match each true box with a query. Return three tensors (T,): the picture, the query, and the
    number of the box in ``labels`` (B, M) and ``places`` (B, M, 4)."""
    nothing = output.logits.shape[-1] - 1
    places = places.to(output.places)
    of_label = torch.softmax(output.logits, -1).take_along_dim(
        labels.clamp(max=nothing)[:, None], -1
    )  # (B, Q, M)
    distance = (output.places[:, :, None] - places[:, None]).abs().sum(-1)
    apart = 1 - generalised_iou(corners(output.places)[:, :, None], corners(places)[:, None])
    sums = (_OF_PLACES * distance + _OF_OVERLAP * apart - of_label).double()
    # The values that replace NaN do not matter: the trainer skips such an update.
    costs = sums.nan_to_num(0.0, 0.0, 0.0).cpu().numpy()
    triples = []
    for number, (cost, there) in enumerate(zip(costs, (labels < nothing).cpu(), strict=True)):
        boxes = there.nonzero().squeeze(1)
        queries = torch.from_numpy(assignment(cost[:, boxes.numpy()].T))
        triples.append(torch.stack([torch.full_like(boxes, number), queries, boxes]))
    picture, query, box = torch.cat(triples, 1).to(labels.device)
    return picture, query, box


def corners(places: Tensor) -> Tensor:
    """Turn centre and size (..., 4) of boxes into left, top, right and bottom (..., 4)."""
    centre, size = places.split(2, -1)
    return torch.cat([centre - size / 2, centre + size / 2], -1)


def generalised_iou(guess: Tensor, truth: Tensor) -> Tensor:
    """Return the generalised IoU (...), from -1 to 1, of two tensors of boxes (..., 4), which are
    given as corners (Rezatofighi et al., 2019). It is the intersection over union, minus the share
    of the smallest enclosing box that neither of the two boxes covers."""
    both = _area(
        torch.maximum(guess[..., :2], truth[..., :2]), torch.minimum(guess[..., 2:], truth[..., 2:])
    )
    union = _area(guess[..., :2], guess[..., 2:]) + _area(truth[..., :2], truth[..., 2:]) - both
    around = _area(
        torch.minimum(guess[..., :2], truth[..., :2]), torch.maximum(guess[..., 2:], truth[..., 2:])
    )
    tiny = torch.finfo(guess.dtype).tiny
    return both / union.clamp(min=tiny) - (around - union) / around.clamp(min=tiny)


def _area(first: Tensor, last: Tensor) -> Tensor:
    """Return the area (...) between two corners (..., 2). It is 0 if ``last`` is not to the right
    of ``first`` and below it."""
    sides = (last - first).clamp(min=0)
    return sides[..., 0] * sides[..., 1]


Costs = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


def assignment(costs: Costs) -> Places:
    """Return (T,): a different query for each of T boxes, so that the sum of ``costs`` (T, Q) is
    least. Costs must be finite.

    Boxes are added one by one. Each is assigned along the cheapest path to a free query, on which
    other boxes change their queries; prices of boxes and queries (the dual solution) keep all costs
    at 0 or more, so that Dijkstra's search applies.
    """
    boxes, queries = costs.shape
    assert boxes <= queries, "each box needs a query"
    price_of_box, price = np.zeros(boxes), np.zeros(queries)
    owner = np.full(queries, -1)  # the box of each query
    for box in range(boxes):
        cost = np.full(queries, np.inf)  # the cost of the cheapest path to each query
        before = np.full(queries, -1)  # the previous query on that path; -1: none
        done = np.zeros(queries, np.bool_)
        at, here, reached = box, -1, 0.0
        while True:
            through = reached + costs[at] - price_of_box[at] - price
            shorter = ~done & (through < cost)
            cost[shorter], before[shorter] = through[shorter], here
            here = int(np.where(done, np.inf, cost).argmin())
            reached = float(cost[here])
            if owner[here] < 0:
                break
            done[here] = True
            at = int(owner[here])
        price_of_box[box] += reached
        price_of_box[owner[done]] += reached - cost[done]
        price[done] -= reached - cost[done]
        while here >= 0:
            last, here = here, int(before[here])
            owner[last] = box if here < 0 else owner[here]
    query_of_box = np.empty(boxes, np.int64)
    taken = np.flatnonzero(owner >= 0)
    query_of_box[owner[taken]] = taken
    return query_of_box


def objective_of(model: Writing, smoothing: float) -> Objective:
    """Return the objective with which a detector is trained. ``smoothing``: the label smoothing."""
    if isinstance(model, SetPredictor):
        return SetLoss(model.symbols, smoothing)
    return BoxTokens(cross_entropy_of(model, smoothing))
