"""Force decoding: the probability that a model assigns to given outputs.

Texts without a source may have any length: a model that was trained on C tokens at once reads long
texts in windows of C tokens (``score_windows``). With a stride s < C, each window begins with C - s
tokens that earlier windows have scored (``data/store.py``), so every token but the first ones of
a text is scored with at least that much context.

Shapes: P packed rows of a batch, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import Tokens, in_batches
from dragoman.data.store import part_of, read_and_predicted, slide
from dragoman.models.interface import Scores
from dragoman.nn.layout import Sequences
from dragoman.search.hypothesis import Hypothesis, hypothesis_of
from dragoman.search.settings import SearchSettings

TOKENS_PER_BATCH = 4096
"""The number of source and target positions that are computed at once."""

ROWS_PER_PIECE = 512
"""The number of rows of logits, V wide each, that are held at once."""


@torch.no_grad()
def force_decode(
    model: Scores,
    sources: Sequence[Tensor],
    targets: Sequence[Sequence[int]],
    *,
    bos: int,
    eos: int,
    settings: SearchSettings | None = None,
    tokens_per_batch: int = TOKENS_PER_BATCH,
    device: torch.device | str = "cpu",
) -> list[Hypothesis]:
    """Score ``targets`` (tokens without start and end symbols) as outputs for ``sources``.

    ``sources`` are as in ``Request``: exactly what the model encodes, not empty. Return one
    finished hypothesis per pair, in order, with the log-probability of each token and of the end
    symbol. Call this window by window for long inputs. ``settings`` give the length penalty;
    without them there is none.
    """
    scored: list[Hypothesis | None] = [None] * len(sources)
    costs = [len(source) + len(target) + 1 for source, target in zip(sources, targets, strict=True)]
    # Pairs of similar length are computed together.
    order = sorted(range(len(costs)), key=lambda i: (len(targets[i]), len(sources[i])))
    for batch in in_batches(order, tokens_per_batch, costs.__getitem__):
        of_tokens = log_probabilities_of(
            model,
            [sources[i] for i in batch],
            [torch.tensor([bos, *targets[i]]) for i in batch],
            [torch.tensor([*targets[i], eos]) for i in batch],
            device,
        )
        for i, log_probabilities in zip(batch, of_tokens, strict=True):
            scored[i] = hypothesis_of(
                [int(token) for token in targets[i]],
                log_probabilities.tolist(),
                settings,
                finished=True,
            )
    return [hypothesis for hypothesis in scored if hypothesis is not None]


@torch.no_grad()
def log_probabilities_of(
    model: Scores,
    sources: Sequence[Tensor],
    read: Sequence[Tensor],
    predicted: Sequence[Tensor],
    device: torch.device | str = "cpu",
) -> tuple[Tensor, ...]:
    """Return the log-probability of each token of ``predicted`` at each place of B outputs, given
    ``read``: one tensor (length,) per output."""
    memory = model.encode(Sequences.of(sources).to(device))
    target_in = Sequences.of(read)
    target_out = torch.cat(list(predicted)).to(device)
    hidden = model.decode(target_in.to(device), memory)  # (P, D)
    pieces = []
    for rows, out in zip(
        hidden.split(ROWS_PER_PIECE), target_out.split(ROWS_PER_PIECE), strict=True
    ):
        logits = model.project(rows).float()
        pieces.append(torch.log_softmax(logits, dim=-1).gather(1, out[:, None]).squeeze(1))
    lengths = list(target_in.layout.lengths)
    return tuple(torch.split(torch.cat(pieces), lengths))


class _WindowJob(NamedTuple):
    """One window of a text that is to be scored."""

    is_last: bool
    """True if the window is the last of its text."""
    old: int
    """The number of places at the beginning of the window that an earlier window has already
    predicted."""
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
    """Score texts (tokens without special symbols) window by window.

    Yield for each window the log-probabilities, in nats, of the tokens (or the end symbol) that it
    is the first to predict, and True if it is the last window of its text. ``source``: what the
    model encodes for each text, as in ``Request``. The results do not depend on
    ``tokens_per_batch``, which only says how many windows are computed together.
    """
    jobs = (
        job
        for text in texts
        for job in _jobs(np.asarray(text, np.int32), context, stride, bos, eos)
    )
    for batch in in_batches(jobs, tokens_per_batch, lambda job: len(job.read)):
        answers = log_probabilities_of(
            model,
            [source] * len(batch),
            [job.read for job in batch],
            [job.predicted for job in batch],
            device,
        )
        for job, log_probabilities in zip(batch, answers, strict=True):
            yield log_probabilities[job.old :].tolist(), job.is_last


def whole(windows: Iterable[tuple[list[float], bool]]) -> Iterator[list[float]]:
    """Join the results of ``score_windows`` into one list for each text."""
    scores: list[float] = []
    for log_probabilities, is_last in windows:
        scores += log_probabilities
        if is_last:
            yield scores
            scores = []


def _jobs(text: Tokens, context: int, stride: int, bos: int, eos: int) -> Iterator[_WindowJob]:
    for begin, new, end in slide(len(text) + 1, context, stride):
        part = text[part_of(begin, end - begin)]
        read, predicted = read_and_predicted(part, begin, end - begin, bos, eos)
        is_last = end == len(text) + 1
        yield _WindowJob(is_last, new - begin, _tensor(read), _tensor(predicted))


def _tensor(tokens: Tokens) -> Tensor:
    return torch.from_numpy(tokens.astype(np.int64))
