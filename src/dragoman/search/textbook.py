"""Beam search for one source, without cache, batch or early stopping: read it first.

Section 6.1 of the paper: the most probable outputs are searched for with a beam, hypotheses that
have ended are compared by a length penalty (``hypothesis.py``), and an output
is at most so much longer than its source. At each step every continuation of every live hypothesis
is looked at, most probable first: of the first ``beam``, those that end have ended, and of those
that do not end the first ``beam`` go on. With ``stop = "empty"``, only those of the first ``beam``
go on that do not end, and ``beam`` is smaller from there on by the number of those that end.

``Scheduler`` computes the same for many sources in one batch, with the model's cache, in native
code where it can. The tests hold it to this file, for every kind of model. Sampling and
alternatives are not searched for here.

Shapes: T tokens of a prefix, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import torch

from dragoman.models.interface import Scores
from dragoman.models.searched import Source
from dragoman.nn.layout import Sequences
from dragoman.search.hypothesis import Hypothesis, hypothesis_of, ranked
from dragoman.search.request import Request


@torch.no_grad()
def textbook(
    model: Scores, request: Request, *, bos: int, eos: int, forbidden: Collection[int] = ()
) -> list[Hypothesis]:
    """The n best of a source that is not empty, best first; ``forbidden`` as for ``Scheduler``."""
    settings = request.settings

    def continuation(before: Hypothesis, token: int, log_probability: float) -> Hypothesis:
        tokens = before.tokens if token == eos else (*before.tokens, token)
        log_probabilities = (*before.token_log_probabilities, log_probability)
        return hypothesis_of(tokens, log_probabilities, settings, finished=token == eos)

    live = [hypothesis_of((), (), finished=False)]
    ended: list[Hypothesis] = []
    width, shrinks = settings.beam, settings.stop == "empty"
    while True:
        candidates = [
            continuation(hypothesis, token, log_probability)
            for hypothesis in live
            for token, log_probability in enumerate(
                next_log_probabilities(model, request.source, hypothesis.tokens, bos=bos)
            )
            if may_follow(hypothesis.tokens, token, request, eos, forbidden)
            and log_probability > -torch.inf  # nor what is not a number
        ]
        candidates.sort(key=lambda candidate: -candidate.log_probability)
        ended += [c for c in candidates[:width] if c.finished]
        going_on = [
            c
            for c in candidates[: width if shrinks else None]
            if not c.finished and len(c.tokens) <= request.limit
        ]
        # Greedy search is over with its one output.
        is_full = len(ended) >= settings.beam and (settings.beam == 1 or settings.stop == "full")
        if is_full or not going_on:
            whole = {hypothesis.tokens for hypothesis in ended}
            cut = [hypothesis for hypothesis in live if hypothesis.tokens not in whole]
            return ranked([*ended, *cut], settings.n_best)
        live = going_on[:width]
        width = settings.beam - len(ended) if shrinks else width


def next_log_probabilities(
    model: Scores, source: Source, prefix: Sequence[int], *, bos: int
) -> list[float]:
    """(V,): log P of every token after ``prefix``, all of which is decoded again."""
    memory = model.encode(Sequences.of([torch.as_tensor(source)]))
    target_in = Sequences.of([torch.tensor([bos, *prefix])])
    last = model.decode(target_in, memory)[-1:]  # (T + 1, D) -> (1, D)
    return [float(value) for value in model.project(last)[0].float().log_softmax(-1)]


def may_follow(
    tokens: tuple[int, ...], token: int, request: Request, eos: int, forbidden: Collection[int]
) -> bool:
    """True if ``token`` may be the next: a prefix allows one token, whatever that is."""
    settings = request.settings
    if len(tokens) < len(request.prefix):
        return token == request.prefix[len(tokens)]
    if request.rules is not None:
        may = request.rules.allowed(np.array([tokens], np.int32))[0]
        if token >= len(may) or not may[token]:
            return False
    if token == eos:
        return eos not in forbidden and len(tokens) >= settings.min_length
    return token not in forbidden and not repeats((*tokens, token), settings.no_repeat_ngram)


def repeats(tokens: tuple[int, ...], ngram: int) -> bool:
    """True if the last ``ngram`` tokens also occur earlier in ``tokens``; never if it is 0."""
    last = tokens[-ngram:]
    return ngram > 0 and any(
        tokens[start : start + ngram] == last for start in range(len(tokens) - ngram)
    )
