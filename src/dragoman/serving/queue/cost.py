"""What a request may cost, told before it is worked on.

The unit is a token step: one token of one hypothesis, taken through the model once by the int8
kernels. Counts of texts and characters do not tell what a request costs: 256 words, each searched
with beam 16 and made 1,000 tokens long, are four million token steps in 1.4 kB. So each kind of
work has an estimate of the most that it may take,

    a search     (rows x weight + translations told) x the greatest length of the output
    reading      tokens x READING

and a request whose estimate is above ``limits.token_steps`` is refused with all three numbers. The
weights were measured (docs/experiments.md); a wider model takes longer for each step, and has the
same budget in steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dragoman.search.request import Request

Work = Literal["search", "warnings", "look", "blanks", "reasons", "tags", "writing", "files"]
"""What may cost too much, as a refusal's values name it."""

ON_TORCH = 8
"""A token step of a search on plain torch, over one by the kernels: 50 to 300 microseconds over 4
to 20 for the demos, and more where few rows are under way."""
LOOKING = 16
"""The same where each step is recorded to be looked into."""
READING = 4
"""A token that plain torch reads, in a batch: 15 to 200 microseconds."""
SEEING = 4
"""Times that a file is read, if it is told where the model looked: each layer keeps the weights of
every pair of rows (0.1 second for 1,024 patches, and 0.4 more)."""
EXPLAINING = 12
"""A token that is read, and gone back through for its gradient."""

PIXELS_OF_A_PLACE, SECONDS_OF_A_PLACE = 1_000_000, 60
"""Of files that are decoded together, what counts as one place among those of a client: a tenth of
a second, about. Whatever takes more than one waits among its like."""

COSTLY = 4096
"""Token steps from which on one search is costly: it keeps its rows for hundreds of steps, and each
step of its whole batch takes longer (``worker.py``)."""


def search_cost(requests: Iterable[Request], weight: int) -> int:
    """The most token steps of some searches. ``weight``: of a row's step."""
    return sum(
        (one.rows * weight + one.settings.n_best) * one.limit for one in requests if len(one.source)
    )


def is_costly(request: Request) -> bool:
    return request.rows * request.limit >= COSTLY
