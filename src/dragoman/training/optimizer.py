"""Adam (paper §5.3; Kingma and Ba 2015) and Muon (Jordan et al. 2024) over one flat buffer.

All parameters are views into one fp32 buffer, and all gradients into another. Clipping, the step,
the exchange between processes and moving averages are then a few large operations, whatever the
number of layers, and never a loop over parameters in Python. ``LayerRates`` lets parts of the
buffer learn at different rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from dragoman.base.errors import RunError
from dragoman.nn.layers import Stack
from dragoman.nn.linear import Computing, Embedding, Precision
from dragoman.nn.positions import Positions
from dragoman.training.distributed import Ranks
from dragoman.training.settings import LayerSettings, OptimizerSettings

Part = TypeVar("Part")
T = TypeVar("T")

_ALIGNMENT = 16
"""Each parameter begins at a multiple of 16 elements, 64 bytes: a cache line, a vector register."""

_TURNS = 2
"""Muon moves half of the matrices in each update, and each twice as far: their momentum changes
little between two updates, and finding its directions costs (docs/experiments.md)."""

_TOGETHER = 1 << 17
"""Elements of the matrices that one thread orthogonalises together: their products stay in its
second-level cache, and all threads have some."""

_PIECE = 1 << 20
"""Elements that one thread moves at a time: 16 MB of values, gradients and moments."""


class FlatParameters:
    """The parameters of a model as one buffer, and their gradients as another.

    Creating an object moves the parameters into the buffer. A parameter that is used twice (tied
    weights) is in it once. ``values`` and ``gradients`` are (E,) fp32 on the model's device; the
    gaps between parameters are always zero.
    """

    def __init__(self, named_parameters: Iterable[tuple[str, nn.Parameter]]) -> None:
        """``named_parameters``: the parameters of a model, each once
        (``model.named_parameters()``)."""
        parameters = dict(named_parameters)
        device = next(iter(parameters.values())).device
        self._places: dict[str, tuple[int, torch.Size]] = {}
        elements = 0
        for name, parameter in parameters.items():
            self._places[name] = (elements, parameter.shape)
            elements += -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT
        self.values = torch.zeros(elements, device=device)
        self.gradients = torch.zeros(elements, device=device)
        values, gradients = self.views(self.values), self.views(self.gradients)
        with torch.no_grad():
            for name, parameter in parameters.items():
                values[name].copy_(parameter)
                parameter.data = values[name]
                parameter.grad = gradients[name]

    @property
    def spans(self) -> dict[str, slice]:
        """The place of each parameter in the buffers, in the order of the buffers."""
        return {n: slice(start, start + s.numel()) for n, (start, s) in self._places.items()}

    def views(self, buffer: Tensor) -> dict[str, Tensor]:
        """Return ``buffer`` (E,), which is laid out as the values, as named tensors that share its
        memory."""
        return {
            name: buffer[start : start + shape.numel()].view(shape)
            for name, (start, shape) in self._places.items()
        }

    def fill(self, buffer: Tensor, named: Mapping[str, Tensor]) -> None:
        """Copy named tensors into ``buffer`` (E,).

        Raises RunError if the names or shapes are not those of the model.
        """
        views = self.views(buffer)
        for problem in _differences(views, named):
            raise RunError(
                f"the saved weights do not fit this model: {problem}. Use the recipe with which "
                "they were trained, or start a new run."
            )
        for name, view in views.items():
            view.copy_(named[name])


def _differences(views: Mapping[str, Tensor], named: Mapping[str, Tensor]) -> Iterator[str]:
    for name in sorted(views.keys() | named.keys()):
        if name not in named:
            yield f"{name} is missing"
        elif name not in views:
            yield f"{name} is unknown to it"
        elif views[name].shape != named[name].shape:
            yield f"{name} is {tuple(named[name].shape)}, not {tuple(views[name].shape)}"


class Workers:
    """Threads that sleep when they are done, for use next to kernels with their own threads."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def map(self, task: Callable[[Part], T], parts: Sequence[Part], threads: int) -> list[T]:
        """Return the result of ``task`` for each part, computed on ``threads`` threads, each of
        which has one of torch's threads. With fewer than 2, the parts are computed one after the
        other, on all of torch's threads."""
        if threads < 2 or len(parts) < 2:
            return [task(part) for part in parts]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(threads, "step", partial(torch.set_num_threads, 1))
        return list(self._pool.map(task, parts))


class Adam:
    """Adam with bias correction (algorithm 1 of Kingma and Ba) and decoupled weight decay
    (Loshchilov and Hutter, 2019), in one pass over the flat buffer.

    It is not ``torch.optim.Adam``, because creating one imports torch's compiler, which takes more
    time than many training updates, and a hundred megabytes of memory.
    """

    def __init__(self, flat: FlatParameters, settings: OptimizerSettings) -> None:
        self.settings = settings
        self.values = flat.values
        self.gradients = flat.gradients
        self.first = torch.zeros_like(flat.values)
        """(E,) running mean of the gradient (m)."""
        self.second = torch.zeros_like(flat.values)
        """(E,) running mean of the squared gradient (v)."""
        self._steps = torch.zeros((), device=flat.values.device)
        self.workers = Workers()

    @property
    def steps(self) -> int:
        """Steps taken so far (t of the bias correction)."""
        return int(self._steps)

    @steps.setter
    def steps(self, steps: int) -> None:
        self._steps.fill_(steps)

    def step(
        self,
        learning_rate: float,
        divisor: float = 1.0,
        threads: int = 0,
        shares: Sequence[tuple[slice, float]] = (),
    ) -> None:
        """Divide the gradients (in place), and move the values against them.

        ``threads``: the number of threads, which sleep when they are done, as suits kernels that
        have threads of their own; 0: torch's threads. ``shares``: parts of the buffer, each with
        the share of the learning rate at which it moves; a part with 0 stays as it is. Empty: the
        whole buffer moves at the full rate.
        """
        self._steps += 1
        parts = [(span, learning_rate * share) for span, share in shares if share]
        if not shares:
            parts = [(slice(0, len(self.values)), learning_rate)]
        scale = torch.full((), divisor, device=self.values.device)
        if threads > 1:
            parts = [
                (slice(begin, min(begin + _PIECE, span.stop)), rate)
                for span, rate in parts
                for begin in range(span.start, span.stop, _PIECE)
            ]
        self.workers.map(partial(self._fused_step, scale), parts, threads)

    def _fused_step(self, scale: Tensor, part: tuple[slice, float]) -> None:
        piece, learning_rate = part
        torch._fused_adamw_(
            [self.values[piece]],
            [self.gradients[piece]],
            [self.first[piece]],
            [self.second[piece]],
            [],
            [self._steps],
            lr=learning_rate,
            beta1=self.settings.beta1,
            beta2=self.settings.beta2,
            weight_decay=self.settings.weight_decay,
            eps=self.settings.epsilon,
            amsgrad=False,
            maximize=False,
            grad_scale=scale,
        )


class _Matrix(NamedTuple):
    """A matrix (R, C) that Muon updates, as views into the flat buffers."""

    value: Tensor
    gradient: Tensor
    momentum: Tensor
    place: int
    """The index of its first element in the buffers."""


class _Moving(NamedTuple):
    """A matrix that is updated, because it is not frozen."""

    matrix: _Matrix
    share: float
    """The factor of the learning rate."""


class Muon:
    """Momentum, orthogonalised: each matrix moves by the nearest orthogonal matrix to its momentum.

    M ← μ M + (1 - μ) G;  O = NewtonSchulz(μ M + (1 - μ) G);  W ← (1 - η λ) W - 0.2 η √max(R, C) O

    So all directions of a matrix move alike, where Adam follows the few that its gradients share
    (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"). With the factor
    0.2 √max(R, C), a step is about as long as one of Adam at the same rate η (Liu et al. 2025,
    "Muon is scalable for LLM training", §2.2). It moves the matrices that the model's modules name
    (``Computing.hidden_matrices``); what else there is, embeddings, output, norms and biases,
    is left to Adam.

    One half of the matrices moves in each update, and the other in the next, by 2 η instead of η.
    Several processes share the matrices out, and exchange what they have orthogonalised.
    """

    def __init__(self, model: nn.Module, flat: FlatParameters, adam: Adam, ranks: Ranks) -> None:
        """``flat`` contains the parameters of ``model``. ``adam`` updates those that Muon does not;
        Muon uses Adam's settings and threads, and stores its momentum where Adam would store the
        mean gradient of the same matrix."""
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
        """Matrices of one shape, which are orthogonalised together."""
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
        """Update the momentum with the gradients / ``divisor``, and the matrices whose turn it is.
        Call it before ``Adam.step``, which counts the steps.

        ``precision``: the precision of the products of Newton–Schulz. ``threads``, ``shares``: as
        for ``Adam.step``.
        """
        turn, workers = self.adam.steps % _TURNS, self.adam.workers
        groups = [
            [_Moving(m, share) for m in group if (share := _share_at(m.place, shares))]
            for group in self._groups
        ]
        workers.map(partial(self._follow, divisor), [g for g in groups if g], threads)
        moving = [group for group in groups[turn::_TURNS] if group]
        direct = partial(self._directions, divisor, precision)
        directions = workers.map(direct, moving, threads)
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

    def _directions(
        self, divisor: float, precision: Precision, moving: Sequence[_Moving]
    ) -> Tensor:
        """Return (N, R, C): the directions of this process's share of the matrices, and zeros for
        the rest."""
        mu = self.settings.momentum
        ahead = torch.stack([matrix.momentum for matrix, _ in moving]).mul_(mu)
        gradients = [matrix.gradient for matrix, _ in moving]
        torch._foreach_add_(list(ahead.unbind()), gradients, alpha=(1 - mu) / divisor)
        if self.ranks.size == 1:
            return orthogonal(ahead, precision)
        own = slice(self.ranks.rank, None, self.ranks.size)
        directions = torch.zeros_like(ahead)
        directions[own] = orthogonal(ahead[own], precision)
        return directions

    def _move(self, learning_rate: float, part: tuple[Sequence[_Moving], Tensor]) -> None:
        moving, directions = part
        length = 0.2 * max(directions.shape[1:]) ** 0.5
        for (matrix, share), direction in zip(moving, directions, strict=True):
            rate = learning_rate * share
            if self.settings.weight_decay:
                matrix.value.mul_(1 - rate * self.settings.weight_decay)
            matrix.value.add_(direction, alpha=-rate * length)


def hidden_matrices(model: nn.Module) -> dict[str, int]:
    """Return the names of the matrices that the modules of ``model`` list
    (``Computing.hidden_matrices``), each with its number of blocks."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        names[id(matrix)]: blocks
        for module in model.modules()
        if isinstance(module, Computing)
        for matrix, blocks in module.hidden_matrices()
    }


def _share_at(place: int, shares: Sequence[tuple[slice, float]]) -> float:
    """Return the share of the learning rate of the part that begins at ``place``. ``shares``: as
    for ``Adam.step``."""
    return next((s for span, s in shares if span.start <= place < span.stop), 1.0)


def within(
    shares: Sequence[tuple[slice, float]], spans: Sequence[slice]
) -> list[tuple[slice, float]]:
    """Return the parts of ``shares`` (see ``Adam.step``) that are within ``spans``. Both are in
    order."""
    if not shares:
        return [(span, 1.0) for span in spans]
    return [
        (slice(max(a.start, b.start), min(a.stop, b.stop)), share)
        for a, share in shares
        for b in spans
        if a.start < b.stop and b.start < a.stop
    ]


def orthogonal(matrices: Tensor, precision: Precision = "fp32") -> Tensor:
    """Return for each matrix of (N, R, C) about the nearest (semi-)orthogonal one, in fp32.

    Five steps of a Newton–Schulz iteration, whose polynomial 3.4445 σ - 4.7750 σ³ + 2.0315 σ⁵
    takes all but the least singular values to between 0.7 and 1.2 (Jordan et al. 2024).
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.transpose(-2, -1) if tall else matrices
    x = x / torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    x = x.bfloat16() if precision == "bf16" else x
    for _ in range(5):
        gram = x @ x.transpose(-2, -1)  # (N, R, R)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.transpose(-2, -1) if tall else x).float()


class LayerRates:
    """The share of the learning rate of each part of the flat parameters, for a model whose lower
    layers were trained before.

    There are two rules, both of ULMFiT (Howard and Ruder, 2018, §3.2 and §3.3), and both are off by
    default. *Discriminative rates*: η_{l-1} = decay · η_l, so the layers near the input, which are
    the most general, change least. *Gradual unfreezing*: at first only the top learns, then one
    more layer after every ``thaw`` updates, so that gradients of an untrained head do not undo what
    the layers below have learned.

    A frozen layer stays as it is: neither its weights nor Adam's moments change, and its gradient
    does not count in the gradient norm. When it thaws, its moments begin at 0, but Adam's step
    count continues: for some tens of updates, its steps are up to about 1.5 times as long as with a
    separate count (β₁ = 0.9, β₂ = 0.98).
    """

    def __init__(self, model: nn.Module, flat: FlatParameters, settings: LayerSettings) -> None:
        self._settings = settings
        deep = depths(model)
        self._top = max(deep.values(), default=0)
        self._spans = list(_spans(flat, deep))

    def at(self, update: int) -> list[tuple[slice, float]]:
        """Return parts of the buffer, each with its share of the learning rate in update ``update``
        (from 1). The share of frozen parts is 0. The list is empty if all parts move alike."""
        settings = self._settings
        if settings.decay == 1.0 and not settings.thaw:
            return []
        thawed = (update - 1) // settings.thaw if settings.thaw else self._top
        return [
            (span, settings.decay**below if below <= thawed else 0.0)
            for span, depth in self._spans
            for below in [self._top - depth]
        ]


def depths(model: nn.Module) -> dict[str, int]:
    """Return the distance of each parameter from the input: 0 for embeddings, then layer by layer,
    then what is above the layers. The parts of a stack below a head, such as its last norm, count
    as its last layer."""
    depth_of: dict[str, int] = {}
    layers = 0
    for name, module in model.named_modules():
        if isinstance(module, Stack):
            for number, layer in enumerate(module):
                for parameter, _ in layer.named_parameters(prefix=f"{name}.{number}"):
                    depth_of[parameter] = layers + 1 + number
            layers += len(module)
        elif isinstance(module, Embedding | Positions):
            depth_of |= {parameter: 0 for parameter, _ in module.named_parameters(prefix=name)}
    top = layers + 1
    for name, _ in model.named_parameters():
        depth_of.setdefault(name, layers if name.startswith("body.") else top)
    return depth_of


def _spans(flat: FlatParameters, deep: Mapping[str, int]) -> Iterator[tuple[slice, int]]:
    """Yield the spans of neighbouring parameters of the same depth, in the order of the buffer."""
    begin, last = 0, None
    for name, span in flat.spans.items():
        if last is not None and deep[name] != last:
            yield slice(begin, span.start), last
            begin = span.start
        last = deep[name]
    if last is not None:
        yield slice(begin, len(flat.values)), last
