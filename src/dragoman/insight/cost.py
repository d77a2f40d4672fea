"""The cost of a layer: operations, sequential steps and path length (paper §4, table 1).

An operation is one multiplication or one addition; the product of matrices (a, b) and (b, c) has
2abc of them. n is the length of the sequence, d its width, k the kernel of a convolution. The
4·10⁹, 16·10⁹ and 6·10⁹ operations that are often quoted for n = d = 1000 and k = 3 are

- self-attention 4n²d: Q Kᵀ and weights · V, **without** the four projections W^Q, W^K, W^V, W^O;
- recurrence 16nd²: an LSTM's four gates, each with a matrix for the state **and** one for the
  input, although the latter is a projection that could be computed for all positions at once;
- convolution 2knd², which is nothing but projections.

``core`` counts a layer without its projections: attention without W^Q, W^K, W^V and W^O, an LSTM
without its matrices for the input. A convolution has no projections to leave out. ``whole`` counts
all operations.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Cost:
    """The cost of one kind of layer at one length and width."""

    kind: str
    core: int
    """The number of operations without projections: without W^Q, W^K, W^V and W^O of attention, and
    without the matrices for the input of an LSTM. A convolution has no projections to leave out."""
    whole: int
    """The number of all operations, including projections."""
    sequential: int
    """The number of steps that must be computed one after another."""
    path: int
    """The largest number of steps that a signal takes from one end of the sequence to the other,
    within one layer or through as many layers as it needs; 0 if it never arrives."""


def attention_cost(n: int, d: int) -> Cost:
    """Return the cost of self-attention over ``n`` positions of width ``d``: 4n²d operations, and
    8nd² for the four projections."""
    core = 2 * (2 * n * n * d)
    return Cost("self-attention", core, core + 4 * (2 * n * d * d), 1, 1)


def recurrence_cost(n: int, d: int) -> Cost:
    """Return the cost of an LSTM with four gates over ``n`` positions of width ``d``: 8nd²
    operations for the state and 8nd² for the input."""
    of_state = 4 * (2 * n * d * d)
    return Cost("recurrence (LSTM)", of_state, 2 * of_state, n, n)


def convolution_cost(n: int, d: int, k: int) -> Cost:
    """Return the cost of a convolution over ``n`` positions of width ``d`` with a kernel of ``k``
    positions: 2knd² operations. Its path is ⌈log_k n⌉ dilated layers."""
    core = 2 * k * n * d * d
    return Cost(f"convolution (k = {k})", core, core, 1, _layers(n, k))


def gated_convolution_cost(n: int, d: int, k: int) -> Cost:
    """Return the cost of a convolution with a gated linear unit (Gehring et al., 2017, §3.2) over
    ``n`` positions of width ``d``. A second product of the same size computes the gates, so it has
    4knd² operations. Its kernels are contiguous, and each layer reaches (k - 1) / 2 positions to
    either side."""
    core = 2 * (2 * k * n * d * d)
    path = max(1, math.ceil(2 * (n - 1) / (k - 1))) if k > 1 else 0
    return Cost(f"gated convolution (k = {k})", core, core, 1, path)


def restricted_attention_cost(n: int, d: int, r: int) -> Cost:
    """Return the cost of attention that sees only ``r`` positions around each of ``n`` positions of
    width ``d``: 4rnd operations (table 1, last row), and 8nd² for the projections."""
    near = min(r, n)
    core = 2 * (2 * near * n * d)
    path = max(1, math.ceil(n / near))
    return Cost(f"restricted attention (r = {r})", core, core + 4 * (2 * n * d * d), 1, path)


def _layers(n: int, k: int) -> int:
    """Return the smallest number of dilated layers, each with a kernel of ``k`` positions, that
    together reach ``n`` positions: k^layers ≥ n."""
    layers, reach = 0, 1
    while reach < n:
        layers, reach = layers + 1, reach * k
    return max(layers, 1)


KERNEL = 3
"""The number of positions in the kernel of the convolution that is timed."""


# These layers are spelled out for timing, so that the operations that are counted are those that
# run.


def _attention_core(x: Tensor) -> Tensor:
    scores = (x @ x.T) * x.shape[1] ** -0.5  # (n, n)
    return torch.softmax(scores, dim=-1) @ x  # (n, d)


def _attention_whole(x: Tensor, *matrices: Tensor) -> Tensor:
    query, key, value = (x @ matrix for matrix in matrices[:3])
    scores = (query @ key.T) * x.shape[1] ** -0.5
    return torch.softmax(scores, dim=-1) @ value @ matrices[3]


def _lstm(x: Tensor, of_state: Tensor, of_input: Tensor | None = None) -> Tensor:
    """Run an LSTM over ``x`` (n, d), and return its last state (1, d). ``of_state`` and
    ``of_input`` (d, 4d) project the state and the input. Without ``of_input``, four copies of ``x``
    stand for the projected input, which costs no product."""
    projected = x.repeat(1, 4) if of_input is None else x @ of_input  # (n, 4d)
    state = cell = projected.new_zeros(1, of_state.shape[0])
    for row in projected.split(1):
        into, forget, new, out = (row + state @ of_state).chunk(4, dim=-1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(new)
        state = torch.sigmoid(out) * torch.tanh(cell)
    return state


def _convolution(x: Tensor, kernel: Tensor) -> Tensor:
    return F.conv1d(x.T[None], kernel, padding=kernel.shape[-1] // 2)


LAYERS: dict[str, tuple[Callable[..., Tensor], Callable[[int], Sequence[tuple[int, ...]]]]] = {
    "self-attention core": (_attention_core, lambda d: ()),
    "self-attention whole": (_attention_whole, lambda d: ((d, d),) * 4),
    "recurrence core": (_lstm, lambda d: ((d, 4 * d),)),
    "recurrence whole": (_lstm, lambda d: ((d, 4 * d), (d, 4 * d))),
    "convolution": (_convolution, lambda d: ((d, d, KERNEL),)),
}
"""The layers that can be timed, by name: for each, the function that computes it, and a function
that returns the shapes of its weights for a given width."""


def operations(kind: str, n: int, d: int) -> int:
    """Return the number of operations of the layer ``kind`` of ``LAYERS`` over ``n`` positions of
    width ``d``."""
    name, _, which = kind.partition(" ")
    made = {"self-attention": attention_cost(n, d), "recurrence": recurrence_cost(n, d)}
    cost = made.get(name) or convolution_cost(n, d, KERNEL)
    return cost.whole if which == "whole" else cost.core


def layer(kind: str, n: int, d: int) -> Callable[[], Tensor]:
    """Return the layer ``kind`` of ``LAYERS`` with random weights, as a function that runs it over
    ``n`` positions of width ``d``."""
    function, shapes = LAYERS[kind]
    x, *weights = (torch.randn(*shape) / math.sqrt(shape[-1]) for shape in ((n, d), *shapes(d)))
    return lambda: function(x, *weights)


WITHIN = (("self-attention core", "self-attention whole"), ("recurrence core", "recurrence whole"))
"""Pairs (part, whole) of ``LAYERS``: the whole computes all that the part computes, and more."""
ROUNDS = 5
"""The largest number of times that layers are timed if a part seems to take longer than the whole.
"""


def durations(kinds: Sequence[str], n: int, d: int, *, repeats: int = 5) -> dict[str, float | None]:
    """Return, for each of ``kinds``, the seconds of a forward pass over ``n`` positions of width
    ``d`` on this machine: the least of ``repeats`` passes.

    Other load only adds time, so the least time is nearest to the truth. The kinds take turns, so
    that a busy moment does not affect only one of them. If a part of a layer (``WITHIN``) seems to
    take longer than the whole layer, both are measured again. If it still does, both results are
    None.
    """
    with torch.inference_mode():
        runs = {kind: layer(kind, n, d) for kind in kinds}
        best = dict.fromkeys(kinds, math.inf)
        for run in runs.values():
            run()
        wanted = set(kinds)
        for _ in range(ROUNDS):
            for _, kind in itertools.product(
                range(repeats), [name for name in kinds if name in wanted]
            ):
                begin = time.perf_counter()
                runs[kind]()
                best[kind] = min(best[kind], time.perf_counter() - begin)
            wanted = {kind for pair in _impossible(best) for kind in pair}
            if not wanted:
                break
    return {kind: None if kind in wanted else seconds for kind, seconds in best.items()}


def _impossible(seconds: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the pairs of ``WITHIN`` whose part took longer than the whole."""
    return [
        (part, whole)
        for part, whole in WITHIN
        if part in seconds and whole in seconds and seconds[part] > seconds[whole]
    ]
