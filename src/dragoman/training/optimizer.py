"""Adam (paper §5.3; Kingma and Ba 2015) over one flat buffer.

All parameters are views into one fp32 buffer, and so are their gradients. Clipping, the step, the
exchange between processes and moving averages are then a few large operations, whatever the number
of layers, and never a loop over parameters in Python. ``muon.py`` moves the matrices of hidden
layers in another way, and ``layer_rates.py`` gives parts of the buffer their own learning rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from dragoman.base.errors import RunError
from dragoman.training.settings import OptimizerSettings

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
