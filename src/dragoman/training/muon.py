"""Muon (Jordan et al. 2024), which moves matrices by the direction of their momentum alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.native import orthogonal
from dragoman.nn.linear import Computing, Precision
from dragoman.training.distributed import Ranks
from dragoman.training.optimizer import Adam, FlatParameters

_TURNS = 2
"""In each update, Muon moves only half of the matrices, but twice as far, because it takes long to
compute the directions, and momentum changes little between two updates (docs/experiments.md)."""
_TOGETHER = 1 << 17
"""The largest number of elements of the matrices that one thread orthogonalises together. It is
small enough that they fit into the second-level cache with their products, and that every thread
has work."""


class _Matrix(NamedTuple):
    """A matrix (R, C) that Muon updates, as views into the flat buffers."""

    value: Tensor
    gradient: Tensor
    momentum: Tensor
    place: int
    """The index of the first element of the parameter in the buffers."""


class _Moving(NamedTuple):
    """A matrix that is updated, because it is not frozen, and its share of the learning rate."""

    matrix: _Matrix
    share: float
    """The factor by which the learning rate of this matrix is multiplied."""


class Muon:
    """Muon orthogonalises momentum: each matrix moves by the orthogonal matrix that is nearest to
    its momentum.

    M ← μ M + (1 - μ) G;  O = NewtonSchulz(μ M + (1 - μ) G);  W ← (1 - η λ) W - 0.2 η √max(R, C) O

    So a matrix moves equally far in all directions, but with Adam it moves mainly in the few
    directions that its gradients have in common (Jordan et al. 2024, "Muon: An optimizer for hidden
    layers in neural networks"). With the factor 0.2 √max(R, C), a step of Muon is about as long as
    a step of Adam at the same rate η (Liu et al. 2025, "Muon is scalable for LLM training", §2.2).
    Muon moves the matrices that the model's modules name (``Computing.hidden_matrices``). Adam
    updates everything else: embeddings, output, norms and biases.

    One half of the matrices moves in each update, and the other half in the next update, by 2 η
    instead of η. Several processes divide the matrices among themselves, and exchange the
    orthogonalised matrices.
    """

    def __init__(self, model: nn.Module, flat: FlatParameters, adam: Adam, ranks: Ranks) -> None:
        """``flat`` contains the parameters of ``model``. ``adam`` updates the parameters that Muon
        does not. Muon uses Adam's settings and threads, and stores the momentum of a matrix where
        Adam would store its mean gradient."""
        self.settings = adam.settings
        self.adam = adam
        self.ranks = ranks
        matrices = hidden_matrices(model)
        buffers = [flat.views(b) for b in (flat.values, flat.gradients, adam.first)]
        alike: dict[tuple[int, ...], list[_Matrix]] = {}
        for name, blocks in matrices.items():
            parts = [views[name].unflatten(0, (blocks, -1)).unbind() for views in buffers]
            for value, gradient, mean in zip(*parts, strict=True):
                matrix = _Matrix(value, gradient, mean, flat.spans[name].start)
                alike.setdefault(tuple(value.shape), []).append(matrix)
        most = _TOGETHER if flat.values.device.type == "cpu" else len(flat.values)
        self._groups = [
            group[begin : begin + many]
            for group in alike.values()
            for many in [max(1, most // group[0].value.numel())]
            for begin in range(0, len(group), many)
        ]
        """Groups of matrices of the same shape. Each group is orthogonalised together."""
        self.left = [span for name, span in flat.spans.items() if name not in matrices]
        """The parts of the buffer that Muon does not move."""

    def step(
        self,
        learning_rate: float,
        divisor: float = 1.0,
        precision: Precision = "fp32",
        threads: int = 0,
        shares: Sequence[tuple[slice, float]] = (),
    ) -> None:
        """Update the momentum of all matrices with their gradients divided by ``divisor``, and move
        the matrices whose turn it is. Call this method before ``Adam.step``, which counts the
        steps.

        ``precision``: the precision of the products of Newton–Schulz. ``threads``, ``shares``: as
        for ``Adam.step``.
        """
        turn, workers = self.adam.steps % _TURNS, self.adam.workers
        groups = [
            [_Moving(m, share) for m in group if (share := _share_at(m.place, shares))]
            for group in self._groups
        ]
        at_once = max(1, threads)
        shared = [[*chain.from_iterable(groups[k::at_once])] for k in range(at_once)]
        workers.map(partial(self._follow, divisor), [part for part in shared if part], threads)
        moving = [group for group in groups[turn::_TURNS] if group]
        directions = workers.map(partial(self._ahead, divisor), moving, threads)
        own = [part[self.ranks.rank :: self.ranks.size] for part in directions]
        if threads and orthogonal.is_supported([part.shape for part in own], precision):
            orthogonal.orthogonalise(own, precision)
        else:
            workers.map(partial(_direct, precision), own, threads)
        for together in directions:
            self.ranks.all_reduce(together)
        move = partial(self._move, _TURNS * learning_rate)
        workers.map(move, list(zip(moving, directions, strict=True)), threads)

    def _follow(self, divisor: float, group: Sequence[_Moving]) -> None:
        mu = self.settings.momentum
        momenta = [matrix.momentum for matrix, _ in group]
        torch._foreach_mul_(momenta, mu)
        gradients = [matrix.gradient for matrix, _ in group]
        torch._foreach_add_(momenta, gradients, alpha=(1 - mu) / divisor)

    def _ahead(self, divisor: float, moving: Sequence[_Moving]) -> Tensor:
        """Return (N, R, C): the momentum after the next step of this process's share of the
        matrices, and zeros for the other matrices."""
        mu = self.settings.momentum
        ahead = torch.stack([matrix.momentum for matrix, _ in moving]).mul_(mu)
        gradients = [matrix.gradient for matrix, _ in moving]
        torch._foreach_add_(list(ahead.unbind()), gradients, alpha=(1 - mu) / divisor)
        for rank in {*range(self.ranks.size)} - {self.ranks.rank}:
            ahead[rank :: self.ranks.size] = 0
        return ahead

    def _move(self, learning_rate: float, part: tuple[Sequence[_Moving], Tensor]) -> None:
        moving, directions = part
        length = 0.2 * max(directions.shape[1:]) ** 0.5
        for (matrix, share), direction in zip(moving, directions, strict=True):
            rate = learning_rate * share
            if self.settings.weight_decay:
                matrix.value.mul_(1 - rate * self.settings.weight_decay)
            matrix.value.add_(direction, alpha=-rate * length)


def hidden_matrices(model: nn.Module) -> dict[str, int]:
    """Return the names of the matrices that ``Computing.hidden_matrices`` returns for the modules
    of ``model``, each with its number of blocks: matrices that are stored as one, such as those of
    queries, keys and values."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        names[id(matrix)]: blocks
        for module in model.modules()
        if isinstance(module, Computing)
        for matrix, blocks in module.hidden_matrices()
    }


def _share_at(place: int, shares: Sequence[tuple[slice, float]]) -> float:
    """Return the share of the learning rate that the element at ``place`` has. ``shares``: as for
    ``Adam.step``."""
    return next((s for span, s in shares if span.start <= place < span.stop), 1.0)


def _direct(precision: Precision, matrices: Tensor) -> None:
    """Orthogonalise (N, R, C) in place, in plain torch."""
    matrices.copy_(orthogonal.orthogonal_plain(matrices, precision))
