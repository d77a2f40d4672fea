"""A faster way to run the models of a kind, for callers that need not know the kind.

``catalogue/networks.py`` says which kinds have some. They keep the contract of ``interface.py`` and
are held to what the model itself computes (``tests/contract``). A list of them is read without
torch.
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
"""Rows of sentences that are searched at once: one by itself, whose products have few rows, or as
many as a batch holds. What is fastest for one need not be for many."""

Named = Mapping[str, npt.NDArray[np.float32]]
"""The weights of a model by their names in a file."""


class PackedModel(Protocol):
    """The weights of one model as a path computes with them: at first room for them alone."""

    @property
    def parts(self) -> Sequence[npt.NDArray[np.uint8]]:
        """The memory of all of them. Settings, instruction set and library decide how many parts
        there are and how large, so that what they hold can be kept and put back."""

    def pack(self, named: Named) -> None:
        """Fill them from weights of the shapes that ``WithoutTorch.shapes`` gives; once."""


@dataclass(frozen=True)
class WithoutTorch:
    """Functions that make a path from weights alone, without importing torch."""

    shapes: Callable[[Any, int, int], Mapping[str, tuple[int, ...]]]
    """The shape of every weight by name, for settings and the numbers of source and target tokens.
    Whoever packs weights sees to it that they have these shapes."""
    room: Callable[[Any, int, int], PackedModel]
    """Allocates room for weights, from settings and the numbers of source and target tokens."""
    make: Callable[[Any, Shortlist | None], SearchModel]
    """Packed weights -> what a search speaks with."""
    why_not: Callable[[Any], str | None]
    """Why models of such settings cannot be run so at all; None if they can, where kernels are."""


@dataclass(frozen=True)
class FastPath:
    """One way to run a model of the kind, told from the others by the precision of its products."""

    precision: Literal["int8", "bf16", "fp32"]
    make: Callable[[Any, Shortlist | None], Model]
    """The network on this path: its weights are packed now, and later changes do not show."""
    why_not: Callable[[ModelSettings | None], str | None]
    """Why models of such settings (None: all of the kind) cannot be run so on this machine; None
    if they can."""
    trial: Callable[[int], Callable[[], None]]
    """Makes some work of a small model with so many rows, whose time tells what this path is worth
    here."""
    line: Callable[[], str]
    """One line for a person: what runs the model."""
    units: Callable[[], str]
    """One line for ``dragoman doctor``: what of this machine does the work."""
    level: str | None = None
    """The instruction set whose kernels are to be in use where it is made and tried."""
    takes_shortlist: bool = False
    rows: int = 64
    """Hypotheses under way at once with which many sentences are fastest: more fall out of a
    processor's cache, and with fewer, the fixed cost of a step weighs more."""
    more_rows: int | None = None
    """A larger number of rows that is faster on some machines; it is measured."""
    rows_trial: Callable[[int], Callable[[], None]] | None = None
    """The ``trial`` for a given number of rows, if there are ``more_rows``."""
    trial_name: str = ""
    """The name under which its times are remembered; left out, its precision."""
    searched: Callable[[Any], SearchModel] | None = None
    """Wraps the result of ``make`` for a search; left out, it is searched through torch."""
    without_torch: WithoutTorch | None = None

    def remembered_as(self, amount: str) -> str:
        """The name of a trial's time; ``amount``: a key of ``AMOUNTS``, or a number of rows."""
        return f"{self.trial_name or self.precision}, {amount}"


def on_plain_torch(
    make: Callable[[Literal["bf16", "fp32"], Any, Shortlist | None], Model],
    small: Callable[[], Writing],
    trial_name: str = "",
    rows: int = 64,
) -> tuple[FastPath, FastPath]:
    """The paths that plain torch runs: in bf16 where the processor has units for it, and in fp32.

    ``make``: of a precision. ``small``: a model to try them with. ``trial_name``: what their trials
    are remembered by, before the precision. ``rows``: see ``FastPath``.
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
"""Tokens in each vocabulary of the small model that a trial runs."""
_BEAM = 4


def trial(
    network: Callable[[], Writing], make: Callable[[Any, None], Model], rows: int, steps: int = 6
) -> Callable[[], None]:
    """A small model that reads some sentences and writes some tokens, the way that ``make`` has it:
    what ``FastPath.trial`` gives. Four of the ``rows`` are hypotheses of a sentence, and move from
    step to step as those of a beam do."""
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
