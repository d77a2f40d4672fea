"""Scoring translations that are given: log P(target | source) of each pair, by force decoding.

There is no half of a score, so a side that is too long is not cut: it is refused, and by its
characters before it is cut into tokens where these say enough (``long_texts.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.errors import DataError
from dragoman.tasks.engine import Engine
from dragoman.tasks.long_texts import far_too_long
from dragoman.tasks.streaming import parts
from dragoman.tasks.translation_result import Translation

LONGEST = 2000
"""Tokens of either side of a pair: attention grows by the square of it."""
_TOGETHER = 256


def score_pairs(engine: Engine, pairs: Iterable[tuple[str, str]]) -> Iterator[Translation]:
    """Any number of pairs, in their order and in flat memory; ``text`` is the given target.

    Errors: ``DataError`` that says which line (from 1) has a side that is too long, when all before
    it have been scored.
    """
    for window in parts(enumerate(pairs, 1), _TOGETHER):
        values, tokens, refused = list[list[int]](), list[list[int]](), None
        for number, (source, target) in window:
            try:
                both = _read(engine, source, "source"), _read(engine, target, "translation")
            except DataError as error:
                refused = DataError(f"line {number}: {error}")
                break
            values.append(both[0])
            tokens.append(both[1])
        scored = zip(window, engine.score(values, tokens), strict=refused is None)
        for (_, (source, target)), hypothesis in scored:
            yield Translation.of(source, [hypothesis], engine.written, target)
        if refused is not None:
            raise refused


def _read(engine: Engine, text: str, side: str) -> list[int]:
    """What the model reads of one side. Errors: ``DataError`` for one that is too long."""
    most = LONGEST if engine.places is None else min(LONGEST, engine.places - 1)
    if far_too_long(text, most):
        raise DataError(_too_long(side, f"{len(text):,} characters", most))
    (found,) = engine.source.values([text]) if side == "source" else engine.target.tokens([text])
    if len(found) > most:
        raise DataError(_too_long(side, f"{len(found):,} tokens", most))
    return list(found)


def _too_long(side: str, length: str, most: int) -> str:
    return (
        f"the {side} has {length}, and {most:,} tokens are scored at once. A line is a sentence or "
        "a few: cut both sides at the same places, or take the pair out"
    )
