"""Every model and every fast path, searched in a shared batch, answers as in the textbook."""

from __future__ import annotations

import pytest
import torch
from implementations import IMPLEMENTATIONS, NETWORKS, SOURCE, TARGET, Path
from table_model import BOS, same
from torch import Tensor

from dragoman.models.interface import Memory
from dragoman.models.on_torch import OnTorch
from dragoman.nn.layout import Sequences
from dragoman.search.request import Request
from dragoman.search.scheduler import Scheduler
from dragoman.search.settings import SearchSettings
from dragoman.search.textbook import next_log_probabilities, textbook

REQUESTS = [
    (4, SearchSettings(beam=4, n_best=4, max_length=4), ()),
    (1, SearchSettings(beam=1, max_length=4), ()),
    (6, SearchSettings(beam=3, n_best=2, max_length=4, min_length=2, no_repeat_ngram=1), (9,)),
    (3, SearchSettings(beam=2, n_best=2, max_length=3, length_penalty=2.0, stop="full"), ()),
    (5, SearchSettings(beam=3, n_best=3, max_length=4, penalty="marian"), ()),
]
"""Length of the source, how to search, prefix."""


class StepByStep:
    """A model whose ``decode`` takes its own steps, one sentence at a time, from the beginning.

    A fast path computes ``decode`` by the plain model, from which its steps differ by rounding:
    which of two like hypotheses is the better could differ too.
    """

    def __init__(self, model: Path) -> None:
        self.model = model
        self.encode = model.encode

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        assert target_in.layout.batch == 1
        state = self.model.start(memory)
        return torch.cat([self.model.step(token.view(1, 1), state) for token in target_in.values])

    def project(self, hidden: Tensor) -> Tensor:
        return hidden


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_shared_batch_is_searched_as_in_the_textbook(name: str) -> None:
    one = IMPLEMENTATIONS[name]
    torch.manual_seed(1)
    torch.set_default_dtype(one.dtype)
    try:
        model = one.make()
        requests = [
            Request(torch.randint(3, SOURCE, (length,)), settings, prefix)
            for length, settings, prefix in REQUESTS
        ]
        alone = model if name in NETWORKS else StepByStep(model)
        # What a model without training would say first of all is the end, or none would end, and
        # what it would say next is forbidden. A token that a request forces is neither.
        forced = {token for _, _, prefix in REQUESTS for token in prefix}
        following = next_log_probabilities(alone, requests[0].source, (), bos=BOS)
        free = [token for token in range(TARGET) if token not in forced]
        eos, *forbidden = sorted(free, key=lambda token: -following[token])[:2]
        scheduler = Scheduler(
            OnTorch(model), bos=BOS, eos=eos, capacity_rows=8, forbidden=forbidden
        )
        tickets = [scheduler.submit(request) for request in requests]
        answers = {}
        with torch.no_grad():
            while not scheduler.idle:
                answers.update(scheduler.advance())
        for ticket, request in zip(tickets, requests, strict=True):
            expected = textbook(alone, request, bos=BOS, eos=eos, forbidden=forbidden)
            assert same(answers[ticket], expected, within=1e-4)
        assert any(h.finished for answer in answers.values() for h in answer)
    finally:
        torch.set_default_dtype(torch.float32)
