"""Faster ways to run the models of a kind, for callers that need not know the kind.

``catalogue/networks.py`` lists the fast paths of each kind. They keep the contract of
``interface.py``, and tests compare their results with those of the model itself
(``tests/contract``). Their list can be read without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from dragoman.models.searched import SearchModel
from dragoman.models.settings import ModelSettings
from dragoman.models.shortlist import Shortlist
from dragoman.native.processor import no_bf16_units

if TYPE_CHECKING:
    from dragoman.models.interface import Model, Writing

AMOUNTS = {"one": 4, "many": 48}
"""The numbers of rows (hypotheses) in a trial: those of one sentence, with which products have few
rows, or as many as a batch holds. The path that is fastest for one need not be the fastest for
many."""

Named = Mapping[str, npt.NDArray[np.float32]]
"""The weights of a model by their names in a file."""


class PackedModel(Protocol):
    """The weights of one model as a path uses them. At first, only their memory is allocated."""

    @property
    def parts(self) -> Sequence[npt.NDArray[np.uint8]]:
        """The memory of all weights. Settings, instruction set and library determine the number and
        sizes of the parts, so that their contents can be stored and restored."""

    def pack(self, named: Named) -> None:
        """Fill the parts from weights of the shapes that ``WithoutTorch.shapes`` gives. Call this
        only once."""


@dataclass(frozen=True)
class WithoutTorch:
    """Functions that make a path from weights alone, without importing torch."""

    shapes: Callable[[Any, int, int], Mapping[str, tuple[int, ...]]]
    """Returns the shape of every weight by name, for settings and the numbers of source and target
    tokens. The caller must check that the weights have these shapes before it packs them."""
    room: Callable[[Any, int, int], PackedModel]
    """Allocates room for weights, from settings and the numbers of source and target tokens."""
    make: Callable[[Any, Shortlist | None], SearchModel]
    """Makes the model for a search from packed weights."""
    why_not: Callable[[Any], str | None]
    """Returns the reason why no machine can run models with such settings on this path; None if a
    machine with kernels can."""


@dataclass(frozen=True)
class FastPath:
    """One way to run models of a kind. ``precision`` is the precision of its products."""

    precision: Literal["int8", "bf16", "fp32"]
    make: Callable[[Any, Shortlist | None], Model]
    """Puts a network on this path. The weights are packed at once, and later changes to them have
    no effect."""
    why_not: Callable[[ModelSettings | None], str | None]
    """Returns the reason why this machine cannot run models with such settings (None: any of the
    kind) on this path; None if it can."""
    trial: Callable[[int], Callable[[], None]]
    """Prepares work of a small model with that number of rows. The time of the work shows how fast
    this path is here."""
    line: Callable[[], str]
    """Returns one line for people that names what runs the model."""
    units: Callable[[], str]
    """Returns one line for ``dragoman doctor`` that names the units of this machine that do the
    work."""
    level: str | None = None
    """The instruction set whose kernels must be in use where the path is made and tried; None:
    any."""
    takes_shortlist: bool = False
    rows: int = 64
    """The number of rows (hypotheses) per batch with which many sentences are fastest. More rows do
    not fit in a processor's cache; with fewer, the fixed cost of a step weighs more."""
    more_rows: int | None = None
    """A larger number of rows that is faster on some machines, which a trial finds out; None: there
    is none."""
    rows_trial: Callable[[int], Callable[[], None]] | None = None
    """Prepares work like ``trial``, to compare ``rows`` with ``more_rows``; None if there are no
    ``more_rows``."""
    trial_name: str = ""
    """The name under which the times of the trials are remembered; empty: the precision."""
    searched: Callable[[Any], SearchModel] | None = None
    """Wraps the result of ``make`` for a search; None: the search goes through torch
    (``on_torch.py``)."""
    without_torch: WithoutTorch | None = None

    def time_key(self, amount: str) -> str:
        """Return the name of a trial's time. ``amount``: a key of ``AMOUNTS``, or a number of
        rows."""
        return f"{self.trial_name or self.precision}, {amount}"


def on_plain_torch(
    make: Callable[[Literal["bf16", "fp32"], Any, Shortlist | None], Model],
    small: Callable[[], Writing],
    trial_name: str = "",
    rows: int = 64,
) -> tuple[FastPath, FastPath]:
    """Return the paths that plain torch runs: bf16, for processors with units for it, and fp32.

    ``make``: puts a model on the path of a precision. ``small``: makes a model for trials.
    ``trial_name``: the beginning of the names of the trials, before the precision. ``rows``: see
    ``FastPath``.
    """

    def path(
        precision: Literal["bf16", "fp32"], why_not: Callable[[ModelSettings | None], str | None]
    ) -> FastPath:
        return FastPath(
            precision,
            make=partial(make, precision),
            why_not=why_not,
            trial=partial(trial, small, partial(make, precision)),
            line=lambda: f"{precision} on plain torch",
            units=lambda: f"{precision} on plain torch",
            rows=rows,
            trial_name=trial_name and f"{trial_name} {precision}",
        )

    return path("bf16", lambda _: no_bf16_units()), path("fp32", lambda _: None)


TRIAL_TOKENS = 2000
"""The number of tokens in each vocabulary of the small model of a trial."""
_BEAM = 4


def trial(
    network: Callable[[], Writing], make: Callable[[Any, None], Model], rows: int, steps: int = 6
) -> Callable[[], None]:
    """Prepare the work of a ``FastPath.trial``: a small model, put on a path by ``make``, reads
    some sentences and takes some steps of a search. Every four of the ``rows`` are hypotheses of
    one sentence, and are reordered at each step as in a beam."""
    import torch

    from dragoman.nn.layout import Sequences

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        plain = network().eval()
    model = make(plain, None)
    source = Sequences.of([torch.arange(3, 15)] * (rows // _BEAM))
    begin = torch.arange(rows // _BEAM).repeat_interleave(_BEAM)
    moved = torch.arange(rows).view(-1, _BEAM)[:, [1, 0, 0, 2]].flatten()
    tokens = torch.ones(rows, 1, dtype=torch.int64)

    def work() -> None:
        with torch.no_grad():
            state = model.start(model.encode(source))
            state.select(begin)
            for _ in range(steps):
                model.best(tokens, state, _BEAM + 1)
                state.select(moved)

    return work
