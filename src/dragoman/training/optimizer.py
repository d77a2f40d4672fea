"""Adam (paper §5.3; Kingma and Ba 2015) over one flat buffer.

All parameters are views into one fp32 buffer, and so are their gradients. Clipping, the step, the
exchange between processes and moving averages are then a few large operations, whatever the number
of layers, and never a loop over parameters in Python. ``muon.py`` moves the matrices of hidden
layers in another way, and ``LayerRates`` gives parts of the buffer their own learning rates, for a
model whose lower layers were trained before (ULMFiT).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from dragoman.base.errors import RunError
from dragoman.nn.embedding import Embedding, Positions
from dragoman.nn.layers import Stack
from dragoman.training.settings import LayerSettings, OptimizerSettings

Part = TypeVar("Part")
T = TypeVar("T")

_ALIGNMENT = 16
"""Each parameter begins at a multiple of 16 elements, 64 bytes: a cache line, a vector register."""
_PIECE = 1 << 20
"""The number of elements that one thread moves at a time: 16 MB of values, gradients and
moments."""


class FlatParameters:
    """The parameters of a model in one buffer, and their gradients in a second buffer.

    Creating an object moves the parameters into the first buffer. A parameter that is used twice
    (tied weights) is stored once. ``values`` and ``gradients`` are (E,) fp32 on the model's device;
    the gaps between parameters are always zero.
    """

    def __init__(self, named_parameters: Iterable[tuple[str, nn.Parameter]]) -> None:
        """``named_parameters``: the parameters of a model, each of them once, as
        ``model.named_parameters()`` returns them."""
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
        """Return named tensors that share the memory of ``buffer`` (E,), which has the same layout
        as ``values``."""
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
    """Threads that sleep when their work is done, so that they do not disturb kernels that have
    threads of their own."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def map(self, task: Callable[[Part], T], parts: Sequence[Part], threads: int) -> list[T]:
        """Return the result of ``task`` for each part. The parts are computed on ``threads``
        threads, in each of which torch uses one thread. If ``threads`` is less than 2, the parts
        are computed one after the other, and torch uses all of its threads."""
        if threads < 2 or len(parts) < 2:
            return [task(part) for part in parts]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(threads, "step", partial(torch.set_num_threads, 1))
        return list(self._pool.map(task, parts))


class Adam:
    """Adam with bias correction (algorithm 1 of Kingma and Ba) and decoupled weight decay
    (Loshchilov and Hutter, 2019), in one pass over the flat buffer.

    ``torch.optim.Adam`` is not used, because creating it imports torch's compiler, which takes more
    time than many training updates, and a hundred megabytes of memory.
    """

    def __init__(self, flat: FlatParameters, settings: OptimizerSettings) -> None:
        self.settings = settings
        self.values = flat.values
        self.gradients = flat.gradients
        self.first = torch.zeros_like(flat.values)
        """(E,): the running mean of the gradient (m)."""
        self.second = torch.zeros_like(flat.values)
        """(E,): the running mean of the squared gradient (v)."""
        self._steps = torch.zeros((), device=flat.values.device)
        self.workers = Workers()

    @property
    def steps(self) -> int:
        """The number of steps taken so far (t of the bias correction)."""
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
        """Divide the gradients by ``divisor`` (in place), and move the values against the
        gradients.

        ``threads``: the number of threads (``Workers``), for kernels that have threads of their
        own; 0: torch's threads. ``shares``: parts of the buffer, each with the share of the
        learning rate at which it moves; a part whose share is 0 does not change. If ``shares`` is
        empty, the whole buffer moves at the full rate.
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


class LayerRates:
    """The share of the learning rate that each part of the flat parameters has.

    The shares follow two rules of ULMFiT (Howard and Ruder, 2018, §3.2 and §3.3), which are off by
    default. *Discriminative rates*: η_{l-1} = decay · η_l, so that the layers near the input, which
    are the most general, change least. *Gradual unfreezing*: at first, only the top is trained,
    then one more layer after every ``thaw`` updates, so that the gradients of an untrained head do
    not destroy what the layers below have learned.

    Neither the weights of a frozen layer nor their moments in Adam change, and its gradient is left
    out of every gradient norm. When the layer thaws, its moments begin at 0, but Adam's step count
    continues. For some tens of updates, the steps of the layer are therefore larger than they would
    be if its step count also began at 0: up to about 1.5 times with β₁ = 0.9 and β₂ = 0.98.
    """

    def __init__(self, model: nn.Module, flat: FlatParameters, settings: LayerSettings) -> None:
        self._settings = settings
        deep = depths(model)
        self._top = max(deep.values(), default=0)
        self._spans = list(_spans(flat, deep))

    def at(self, update: int) -> list[tuple[slice, float]]:
        """Return parts of the buffer, each with its share of the learning rate in update ``update``
        (from 1). The share of frozen parts is 0. The list is empty if all parts have the full
        learning rate."""
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
    """Return the distance of each parameter from the input: 0 for embeddings, then 1 more for each
    layer, and 1 more than the last layer for the parts above the layers. If the model is a body
    with a head on top, only the head is above the layers; other parts of the body, such as its last
    norm, are as far as its last layer."""
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


def within(
    shares: Sequence[tuple[slice, float]], spans: Sequence[slice]
) -> list[tuple[slice, float]]:
    """Return the parts of ``shares`` (see ``Adam.step``) that are within ``spans``. ``shares`` and
    ``spans`` are in the order of the buffer."""
    if not shares:
        return [(span, 1.0) for span in spans]
    return [
        (slice(max(a.start, b.start), min(a.stop, b.stop)), share)
        for a, share in shares
        for b in spans
        if a.start < b.stop and b.start < a.stop
    ]
