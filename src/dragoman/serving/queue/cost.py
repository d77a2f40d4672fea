"""The cost of a request, estimated before the work begins.

The unit is a token step: one token of one hypothesis, processed once by the int8 kernels. Numbers
of texts and characters do not determine the cost: 256 words, each searched with beam 16 to 1,000
tokens, are four million token steps in 1.4 kB. So each kind of work has an estimate of its maximum,

    a search     (rows x weight + n best) x the greatest length of the output
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
"""The kinds of work that may cost too much, by their names in a refusal's values."""

ON_TORCH = 8
"""The cost of a search step on plain torch, in token steps: 50 to 300 microseconds over 4 to 20 for
the demos, and more with few rows."""
LOOKING = 16
"""The cost of a search step on plain torch that is recorded for the view Look."""
READING = 4
"""The cost of a token that plain torch reads in a batch: 15 to 200 microseconds."""
SEEING = 4
"""The factor for a file if the answer says where the model looked: each layer keeps the weights of
every pair of rows (0.1 second for 1,024 patches, and 0.4 more)."""
EXPLAINING = 12
"""The cost of a token that is read and through which the gradient is computed."""

PIXELS_OF_A_PLACE, SECONDS_OF_A_PLACE = 1_000_000, 60
"""The pixels, or seconds of sound, that take one more place of a client while files are decoded:
about a tenth of a second of work. Work of more than one place has a thread of its own."""

COSTLY = 4096
"""The token steps from which a search is costly: it keeps its rows for hundreds of steps, and each
step of its whole batch takes longer (``worker.py``)."""


def search_cost(requests: Iterable[Request], weight: int) -> int:
    """The maximum token steps of some searches. ``weight``: the cost of one row in one step."""
    return sum(
        (one.settings.rows * weight + one.settings.n_best) * one.limit
        for one in requests
        if len(one.source)
    )


def is_costly(request: Request) -> bool:
    return request.settings.rows * request.limit >= COSTLY
