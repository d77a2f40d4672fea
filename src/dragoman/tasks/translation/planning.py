"""What is searched for of texts that have been cut: the same for ``Translator`` and the server."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.engine.engine import Engine
from dragoman.forms.passage import Passage
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.tasks.translation.minimum_risk import candidates_of


def requests_of(
    engine: Engine,
    passages: Sequence[Passage],
    settings: SearchSettings,
    begun: Sequence[Sequence[int]],
    candidates: int = 0,
) -> list[Request]:
    """A request for each piece of each passage. ``begun``: for each passage the tokens with which
    the output of its first piece begins. ``candidates``: of which minimum Bayes risk will choose
    one; 0: the most probable is wanted."""
    asked = candidates_of(settings, candidates) if candidates else settings
    pieces = [piece.values for one in passages for piece in one.pieces]
    begins = [
        begin if place == 0 else ()
        for one, begin in zip(passages, begun, strict=True)
        for place in range(len(one.pieces))
    ]
    if engine.source.width is not None:
        return [
            engine.request(np.asarray(rows), asked, begin)
            for rows, begin in zip(pieces, begins, strict=True)
        ]
    # One array for all: making one takes longer than cutting one.
    every = np.array([token for values in pieces for token in values], np.int64)
    sources = np.split(every, np.cumsum([len(values) for values in pieces])[:-1]) if pieces else []
    return [
        engine.request(source, asked, begin) for source, begin in zip(sources, begins, strict=True)
    ]
