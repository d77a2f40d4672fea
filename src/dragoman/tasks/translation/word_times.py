"""When each word of a transcription is said: by CTC, which knows its order, and by how loud it is.

The best way to spread the tokens over the rows of the encoder (``training/losses/ctc.py``) is found
by dynamic programming. CTC says where a token is surest, and little of where it begins: so two
words meet at the quietest place between the last row of one and the first of the next, and silence
at both ends of a word is taken off.

Shapes: T rows, V outputs of the decoder, behind which the blank is output V.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.forms.rows.recordings import Floats
from dragoman.recordings.captions import SpokenWord
from dragoman.recordings.cutting import Span, levels_of, threshold_of


class HeardWord(NamedTuple):
    """One word, as the decoder wrote it."""

    text: str
    tokens: slice
    """Which of the text's tokens are its own."""
    confidence: float
    """P(it | the words before it)."""


def best_rows(
    log_probabilities: npt.NDArray[Any], tokens: Sequence[int]
) -> list[tuple[int, int]] | None:
    """(T, V + 1) -> the first row of each token and the one behind its last, by the most probable
    of all ways; None where there are fewer rows than the tokens need."""
    rows, outputs = log_probabilities.shape
    states = np.full(2 * len(tokens) + 1, outputs - 1)  # a blank around each token
    states[1::2] = tokens
    count = len(states)
    # From a token to the next without a blank, unless both are the same.
    skips = np.zeros(count, np.bool_)
    skips[3::2] = states[3::2] != states[1:-2:2]
    best = np.full(count, -np.inf)
    best[:2] = log_probabilities[0, states[:2]]
    came = np.zeros((rows, count), np.int8)
    for row in range(1, rows):
        ways = np.full((3, count), -np.inf)
        ways[0] = best
        ways[1, 1:] = best[:-1]
        ways[2, 2:] = np.where(skips[2:], best[:-2], -np.inf)
        came[row] = ways.argmax(axis=0)
        best = ways.max(axis=0) + log_probabilities[row, states]
    ends = best[-2:] if tokens else best
    if not np.isfinite(ends).any():
        return None
    state = count - len(ends) + int(ends.argmax())
    path = [state]
    for row in range(rows - 1, 0, -1):
        state -= int(came[row, state])
        path.append(state)
    places = np.array(path[::-1])
    found = []
    for number in range(len(tokens)):
        (own,) = np.nonzero(places == 2 * number + 1)
        found.append((int(own[0]), int(own[-1]) + 1))
    return found


def timed(
    words: Sequence[HeardWord],
    rows: Sequence[tuple[int, int]],
    seconds_of_row: float,
    samples: Floats,
    rate: int,
    span: Span,
) -> list[SpokenWord]:
    """The words of a span with times in the whole recording. ``rows``: of each token
    (``best_rows``); ``samples``: of the span, ``rate`` a second."""
    levels = levels_of([samples], rate)
    frame = (span.end - span.begin) / max(1, len(levels))
    loud = levels >= threshold_of(levels)
    first = [rows[word.tokens.start][0] * seconds_of_row / frame for word in words]
    last = [rows[word.tokens.stop - 1][1] * seconds_of_row / frame for word in words]
    meets = [0]
    for end, begin in zip(last, first[1:], strict=False):
        low = min(max(meets[-1], math.floor(min(end, begin))), len(levels) - 1)
        high = max(low + 1, math.ceil(max(end, begin)))
        meets.append(low + int(levels[low:high].argmin()))
    meets.append(len(levels))
    found = []
    for word, begin, end in zip(words, meets, meets[1:], strict=False):
        (own,) = np.nonzero(loud[begin:end])
        if len(own):
            begin, end = begin + int(own[0]), begin + int(own[-1]) + 1
        found.append(
            SpokenWord(
                word.text, span.begin + begin * frame, span.begin + end * frame, word.confidence
            )
        )
    return found
