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
from dragoman.search.scoring import TOKENS_PER_BATCH, log_probabilities_of


class _Job(NamedTuple):
    """One window of a text."""

    text: int
    old: int
    """Places that are read again, and predicted already."""
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
) -> Iterator[list[float]]:
    """For each text (bare tokens), in order: log P, in nats, of each token and of the end symbol.

    ``source``: what the model encodes for each, as in ``Request``. The results are those of one
    window at a time, whatever ``tokens_per_batch`` puts together.
    """
    found: dict[int, list[float]] = {}
    waiting: list[_Job] = []
    tokens = done = number = 0

    def flush() -> None:
        if not waiting:
            return
        scored = log_probabilities_of(
            model,
            [source] * len(waiting),
            [job.read for job in waiting],
            [job.predicted for job in waiting],
            device,
        )
        for job, log_probabilities in zip(waiting, scored, strict=True):
            found.setdefault(job.text, []).extend(log_probabilities[job.old :].tolist())
        waiting.clear()

    for number, text in enumerate(texts):
        for job in _jobs(number, np.asarray(text, np.int32), context, stride, bos, eos):
            if waiting and tokens + len(job.read) > tokens_per_batch:
                flush()
                tokens = 0
            waiting.append(job)
            tokens += len(job.read)
        # What has no window waiting is whole.
        while done in found and (not waiting or waiting[0].text > done):
            yield found.pop(done)
            done += 1
    flush()
    while done in found:
        yield found.pop(done)
        done += 1


def _jobs(
    number: int, text: Tokens, context: int, stride: int, bos: int, eos: int
) -> Iterator[_Job]:
    for begin, new, end in slide(len(text) + 1, context, stride):
        part = text[part_of(begin, end - begin)]
        read, predicted = read_and_predicted(part, begin, end - begin, bos, eos)
        yield _Job(number, new - begin, _tensor(read), _tensor(predicted))


def _tensor(tokens: Tokens) -> Tensor:
    return torch.from_numpy(tokens.astype(np.int64))
