"""Force decoding of texts that stand alone, of any length: window by window, context carried.

A model that learned from C tokens at once reads long texts in windows of C. With a stride s < C
each window reads again the C - s tokens before those that it is asked for (``data/windows.py``), so
that no token is judged by less context than that, but for the first ones of a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import Tokens
from dragoman.data.windows import part_of, read_and_predicted, slide
from dragoman.models.interface import Scores
from dragoman.search.forced_decoding import TOKENS_PER_BATCH, log_probabilities_of


class _WindowJob(NamedTuple):
    """One window of a text."""

    is_last: bool
    """Whether it is the last window of its text."""
    old: int
    """How many places at its beginning are read again, and were predicted before."""
    read: Tensor
    predicted: Tensor


def score_windows(
    model: Scores,
    texts: Iterable[Sequence[int]],
    *,
    source: Tensor,
    bos: int,
    eos: int,
    context: int,
    stride: int,
    tokens_per_batch: int = TOKENS_PER_BATCH,
    device: torch.device | str = "cpu",
) -> Iterator[tuple[list[float], bool]]:
    """log P, in nats, of each token of each text (bare tokens) and of its end symbol: what each
    window predicts that none before it has, and whether it is the last of its text.

    ``source``: what the model encodes for each, as in ``Request``. The results are those of one
    window at a time, whatever ``tokens_per_batch`` puts together.
    """
    waiting: list[_WindowJob] = []

    def scored() -> Iterator[tuple[list[float], bool]]:
        found = log_probabilities_of(
            model,
            [source] * len(waiting),
            [job.read for job in waiting],
            [job.predicted for job in waiting],
            device,
        )
        for job, log_probabilities in zip(waiting, found, strict=True):
            yield log_probabilities[job.old :].tolist(), job.is_last
        waiting.clear()

    tokens = 0
    for text in texts:
        for job in _jobs(np.asarray(text, np.int32), context, stride, bos, eos):
            if waiting and tokens + len(job.read) > tokens_per_batch:
                yield from scored()
                tokens = 0
            tokens += len(job.read)
            waiting.append(job)
    if waiting:
        yield from scored()


def whole(windows: Iterable[tuple[list[float], bool]]) -> Iterator[list[float]]:
    """Join what ``score_windows`` gives to one list for each text."""
    found: list[float] = []
    for log_probabilities, is_last in windows:
        found += log_probabilities
        if is_last:
            yield found
            found = []


def _jobs(text: Tokens, context: int, stride: int, bos: int, eos: int) -> Iterator[_WindowJob]:
    for begin, new, end in slide(len(text) + 1, context, stride):
        part = text[part_of(begin, end - begin)]
        read, predicted = read_and_predicted(part, begin, end - begin, bos, eos)
        is_last = end == len(text) + 1
        yield _WindowJob(is_last, new - begin, _tensor(read), _tensor(predicted))


def _tensor(tokens: Tokens) -> Tensor:
    return torch.from_numpy(tokens.astype(np.int64))
