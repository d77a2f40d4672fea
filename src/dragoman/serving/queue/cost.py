"""The cost of a request, estimated before the work begins.

The unit is a token step: one token of one hypothesis, processed once by the int8 kernels. The
numbers of texts and characters do not determine the cost: a request of 1.4 kB with 256 words, each
searched with beam 16 and an output of up to 1,000 tokens, costs four million token steps.
Therefore, the maximum cost of each kind of work is estimated:

    a search     (rows x weight + n best) x the greatest length of the output
    reading      tokens x READING

Here, "rows" is the number of hypotheses that are searched at once, and "weight" is the cost of one
step of one row.

A request whose estimate is above ``limits.token_steps`` is refused, and the message gives the
estimate, the amount of work and the limit. The weights were measured (docs/experiments.md). A wider
model takes longer for each step, but its limit is the same number of steps.
"""

from __future__ import annotations

from typing import Literal

Work = Literal["search", "warnings", "look", "blanks", "reasons", "tags", "writing", "files"]
"""The kinds of work that may cost too much. These names are the value ``work`` of a refusal."""

ON_TORCH = 8
"""The cost of a search step of one row on plain torch, in token steps. For the demos, plain torch
takes 50 to 300 microseconds, and the kernels take 4 to 20; with few rows, the ratio is larger."""
LOOKING = 16
"""The cost of a search step of one row on plain torch, with everything that is recorded for the
view Look."""
READING = 4
"""The cost of a token that plain torch reads in a batch, which takes 15 to 200 microseconds."""
SEEING = 4
"""If the answer shows where the model looked, this many times the cost of reading the file is
added. Each layer then keeps the weights of every pair of rows: 1,024 patches take 0.5 seconds
instead of 0.1."""
EXPLAINING = 12
"""The cost of a token that is read and for which the gradient is also computed."""

PIXELS_OF_A_PLACE, SECONDS_OF_A_PLACE = 1_000_000, 60
"""While files are decoded, they occupy one place of their client, and one more for each time that
they contain this many pixels or seconds of sound, which take about a tenth of a second. Work of
more than one place is done in a separate thread."""

COSTLY = 4096
"""A search of at least this many token steps is costly: it occupies its rows for hundreds of steps,
and makes each step of its batch slower (``worker.py``)."""
