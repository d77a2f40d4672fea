"""A search for once, whose batches nobody keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.models.interface import Generates
from dragoman.models.on_torch import OnTorch
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.offline import Searcher
from dragoman.search.request import Request


def search(
    model: Generates, requests: Iterable[Request], *, bos: int, eos: int, **settings: Any
) -> Iterator[list[Hypothesis]]:
    """The n best of each request, in their order. ``settings`` are other arguments of Searcher."""
    yield from Searcher(OnTorch(model), bos=bos, eos=eos, **settings)(requests)
