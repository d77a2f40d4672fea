"""Beam search for one source, without cache, batch or early stopping: read it first.

This is section 6.1 of the paper: a beam searches for the most probable outputs, a length penalty
(``hypothesis.py``) makes hypotheses of different lengths comparable, and an output may exceed its
source by a limited number of tokens. Each step ranks every continuation of every live hypothesis
(one that has not ended), most probable first: those among the first ``beam`` that end have ended,
and the first ``beam`` of those that do not end go on. With ``stop = "empty"``, only those among the
first ``beam`` that do not end go on, and ``beam`` is then smaller by the number of those that
ended.

``Scheduler`` computes the same for many sources in one batch, with the model's cache, in native
code where possible. The tests compare the two for every kind of model. This file has no sampling
and no alternatives.

Shapes: T tokens of a prefix, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import torch

from dragoman.models.interface import Scores
from dragoman.models.searched import Source
from dragoman.nn.layout import Sequences
from dragoman.search.hypothesis import Hypothesis, best_of, hypothesis_of
from dragoman.search.request import Request


@torch.no_grad()
def textbook(
    model: Scores, request: Request, *, bos: int, eos: int, forbidden: Collection[int] = ()
) -> list[Hypothesis]:
    """Return the n best hypotheses for a source that is not empty, best first. ``forbidden``:
    tokens that no output may hold."""
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
            return best_of([*ended, *cut], settings.n_best)
        live = going_on[:width]
        width = settings.beam - len(ended) if shrinks else width


def next_log_probabilities(
    model: Scores, source: Source, prefix: Sequence[int], *, bos: int
) -> list[float]:
    """Return (V,) the log-probability of every token after ``prefix``, all of which is decoded
    again."""
    memory = model.encode(Sequences.of([torch.as_tensor(source)]))
    target_in = Sequences.of([torch.tensor([bos, *prefix])])
    last = model.decode(target_in, memory)[-1:]  # (T + 1, D) -> (1, D)
    return [float(value) for value in model.project(last)[0].float().log_softmax(-1)]


def may_follow(
    tokens: tuple[int, ...], token: int, request: Request, eos: int, forbidden: Collection[int]
) -> bool:
    """Return True if ``token`` may be the next one. Within a prefix, only the token of the prefix
    may follow, whatever it is."""
    settings = request.settings
    if len(tokens) < len(request.prefix):
        return token == request.prefix[len(tokens)]
    if request.rules is not None:
        may = request.rules.allows(np.array([tokens], np.int32))[0]
        if token >= len(may) or not may[token]:
            return False
    if token == eos:
        return eos not in forbidden and len(tokens) >= settings.min_length
    return token not in forbidden and not repeats((*tokens, token), settings.no_repeat_ngram)


def repeats(tokens: tuple[int, ...], ngram: int) -> bool:
    """Return True if the last ``ngram`` tokens also occur earlier in ``tokens``; False if ``ngram``
    is 0."""
    last = tokens[-ngram:]
    return ngram > 0 and any(
        tokens[start : start + ngram] == last for start in range(len(tokens) - ngram)
    )
