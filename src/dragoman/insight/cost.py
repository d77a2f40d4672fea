"""The costs of a layer: operations, sequential steps, path length (paper §4, table 1).

An operation is one multiplication or one addition; a matrix product of (a, b) by (b, c) is 2abc of
them. n is the length of the sequence, d its width, k the kernel of a convolution. The 4·10⁹,
16·10⁹ and 6·10⁹ operations that are often quoted for n = d = 1000 and k = 3 are

- self-attention 4n²d: Q Kᵀ and weights · V, **without** the four projections W^Q, W^K, W^V, W^O;
- recurrence 16nd²: an LSTM's four gates, each with a matrix for the state **and** one for the
  input, although the latter is a projection that could be computed for all places at once;
- convolution 2knd², which is nothing but projections.

``core`` omits projections of the input that can be omitted, ``whole`` counts them all.
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
    """One kind of layer at one length and width."""

    kind: str
    core: int
    """The number of operations that mix positions."""
    whole: int
    """The operations with the projections of the input."""
    sequential: int
    """The number of steps that must wait for each other."""
    path: int
    """The most steps of a signal between the two ends of the sequence (in one layer, or in as
    many as it needs); 0 if it never arrives."""


def attention_cost(n: int, d: int) -> Cost:
    """Return the cost of attention of every place to every place: 4n²d, and 8nd² for the four
    projections."""
    core = 2 * (2 * n * n * d)
    return Cost("self-attention", core, core + 4 * (2 * n * d * d), 1, 1)


def recurrence_cost(n: int, d: int) -> Cost:
    """Return the cost of an LSTM with four gates: 8nd² for the state and 8nd² for the input."""
    of_state = 4 * (2 * n * d * d)
    return Cost("recurrence (LSTM)", of_state, 2 * of_state, n, n)


def convolution_cost(n: int, d: int, k: int) -> Cost:
    """Return the cost of a kernel of k places, 2knd²; its path is ⌈log_k n⌉ dilated layers."""
    core = 2 * k * n * d * d
    return Cost(f"convolution (k = {k})", core, core, 1, _layers(n, k))


def gated_convolution_cost(n: int, d: int, k: int) -> Cost:
    """Return the cost of a convolution with a gated linear unit (Gehring et al., 2017, §3.2): a
    second product of the same size makes the gates, so 4knd². Its kernels are contiguous, and
    each layer reaches (k - 1) / 2 places to either side."""
    core = 2 * (2 * k * n * d * d)
    path = max(1, math.ceil(2 * (n - 1) / (k - 1))) if k > 1 else 0
    return Cost(f"gated convolution (k = {k})", core, core, 1, path)


def restricted_cost(n: int, d: int, r: int) -> Cost:
    """Return the cost of attention to r places around each: 4rnd (table 1, last row)."""
    near = min(r, n)
    core = 2 * (2 * near * n * d)
    path = max(1, math.ceil(n / near))
    return Cost(f"restricted attention (r = {r})", core, core + 4 * (2 * n * d * d), 1, path)


def _layers(n: int, k: int) -> int:
    """Return the least number of dilated layers whose reach k^layers covers n places."""
    layers, reach = 0, 1
    while reach < n:
        layers, reach = layers + 1, reach * k
    return max(layers, 1)


KERNEL = 3
"""The kernel of the convolution that is timed."""


# These layers are spelled out for timing, so that the operations that are counted are those that
# run.


def _attention_core(x: Tensor) -> Tensor:
    scores = (x @ x.T) * x.shape[1] ** -0.5  # (n, n)
    return torch.softmax(scores, dim=-1) @ x  # (n, d)


def _attention_whole(x: Tensor, *matrices: Tensor) -> Tensor:
    query, key, value = (x @ matrix for matrix in matrices[:3])
    scores = (query @ key.T) * x.shape[1] ** -0.5
    mixed: Tensor = torch.softmax(scores, dim=-1) @ value @ matrices[3]
    return mixed


def _lstm(x: Tensor, of_state: Tensor, of_input: Tensor | None = None) -> Tensor:
    """Turn (n, d) with a matrix (d, 4d) into the last state (1, d). ``of_input``: (d, 4d)
    projects the input; without it, the input is taken to be projected already."""
    projected = x.repeat(1, 4) if of_input is None else x @ of_input  # (n, 4d)
    state = cell = projected.new_zeros(1, of_state.shape[0])
    for row in projected.split(1):
        into, forget, new, out = (row + state @ of_state).chunk(4, dim=-1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(new)
        state = torch.sigmoid(out) * torch.tanh(cell)
    return state


def _convolution(x: Tensor, kernel: Tensor) -> Tensor:
    made: Tensor = F.conv1d(x.T[None], kernel, padding=kernel.shape[-1] // 2)
    return made


LAYERS: dict[str, tuple[Callable[..., Tensor], Callable[[int], Sequence[tuple[int, ...]]]]] = {
    "self-attention core": (_attention_core, lambda d: ()),
    "self-attention whole": (_attention_whole, lambda d: ((d, d),) * 4),
    "recurrence core": (_lstm, lambda d: ((d, 4 * d),)),
    "recurrence whole": (_lstm, lambda d: ((d, 4 * d), (d, 4 * d))),
    "convolution": (_convolution, lambda d: ((d, d, KERNEL),)),
}
"""The timed layers, each with the shapes of its weights at a width."""


def operations(kind: str, n: int, d: int) -> int:
    """Return the number of operations of one of ``LAYERS``."""
    name, _, which = kind.partition(" ")
    made = {"self-attention": attention_cost(n, d), "recurrence": recurrence_cost(n, d)}
    cost = made.get(name) or convolution_cost(n, d, KERNEL)
    return cost.whole if which == "whole" else cost.core


def layer(kind: str, n: int, d: int) -> Callable[[], Tensor]:
    """Return one of ``LAYERS`` with random weights, ready to run over n places of width d."""
    function, shapes = LAYERS[kind]
    x, *weights = (torch.randn(*shape) / math.sqrt(shape[-1]) for shape in ((n, d), *shapes(d)))
    return lambda: function(x, *weights)


WITHIN = (("self-attention core", "self-attention whole"), ("recurrence core", "recurrence whole"))
"""Pairs of ``LAYERS`` of which the second does all that the first does, and more."""
ROUNDS = 5
"""The most times that impossible times are measured."""


def timed(kinds: Sequence[str], n: int, d: int, *, repeats: int = 5) -> dict[str, float | None]:
    """Return the seconds of one forward pass on this machine, by kind: the least of several
    turns.

    Other load only adds time, so the least is nearest to the truth; the kinds take turns, so that a
    busy moment does not affect only one. If a part of a layer (``WITHIN``) seems to take longer
    than the whole layer, both are measured again. If it still does, both results are None.
    """
    with torch.inference_mode():
        runs = {kind: layer(kind, n, d) for kind in kinds}
        best = dict.fromkeys(kinds, math.inf)
        for run in runs.values():
            run()
        wanted = set(kinds)
        for _ in range(ROUNDS):
            for _, kind in itertools.product(
                range(repeats), [one for one in kinds if one in wanted]
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
