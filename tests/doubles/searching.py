"""A search for once, whose batches nobody keeps, and what it finds beside force decoding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from dragoman.models.interface import Generates, Model
from dragoman.models.on_torch import OnTorch
from dragoman.search.forced_decoding import force_decode
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.offline import Searcher
from dragoman.search.request import Request


def search(
    model: Generates, requests: Iterable[Request], *, bos: int, eos: int, **settings: Any
) -> Iterator[list[Hypothesis]]:
    """The n best of each request, in their order. ``settings`` are other arguments of Searcher."""
    yield from Searcher(OnTorch(model), bos=bos, eos=eos, **settings)(requests)


def assert_force_decoding_agrees(
    model: Model, requests: Sequence[Request], *, bos: int, eos: int
) -> None:
    """What is found for each request has the probabilities that it has as a given output."""
    found = [best for best, *_ in search(model, requests, bos=bos, eos=eos)]
    scored = force_decode(
        model, [r.source for r in requests], [h.tokens for h in found], bos=bos, eos=eos
    )
    for one, other in zip(found, scored, strict=True):
        count = len(one.token_log_probabilities)
        assert one.token_log_probabilities == pytest.approx(
            other.token_log_probabilities[:count], abs=1e-4
        )
