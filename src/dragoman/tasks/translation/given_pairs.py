"""Scoring translations that are given: log P(target | source) of each pair, by force decoding; a
source may be the name of a file.

There is no half of a score, so a side that is too long is not cut: it is refused, and by its
characters before it is cut into tokens where these say enough (``long_texts.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.engine.engine import Engine
from dragoman.engine.long_texts import far_too_long
from dragoman.engine.streaming import parts
from dragoman.errors import DataError
from dragoman.forms.form import Values
from dragoman.tasks.translation.result import Translation

MAX_TOKENS = 2000
"""Tokens of either side of a pair: attention grows by the square of it."""
_BATCH_SIZE = 256


class _Read(NamedTuple):
    """A pair, and what the model reads of it."""

    source: str
    target: str
    values: Sequence[int] | Values
    """Tokens, or the rows of a file."""
    tokens: Sequence[int]


def score_pairs(engine: Engine, pairs: Iterable[tuple[str, str]]) -> Iterator[Translation]:
    """Any number of pairs, in their order and in flat memory; ``text`` is the given target.

    Errors: ``DataError`` that says which line (from 1) has a side that is too long, when all before
    it have been scored.
    """
    for window in parts(_read(engine, pairs), _BATCH_SIZE):
        scored = engine.score([one.values for one in window], [one.tokens for one in window])
        for one, hypothesis in zip(window, scored, strict=True):
            yield Translation.of(one.source, [hypothesis], engine.written, one.target)


def _read(engine: Engine, pairs: Iterable[tuple[str, str]]) -> Iterator[_Read]:
    """Errors: ``DataError`` that says which line is too long."""
    most = MAX_TOKENS if engine.places is None else min(MAX_TOKENS, engine.places - 1)
    reads_files = engine.source.width is not None
    for number, (source, target) in enumerate(pairs, 1):
        sides: list[Sequence[int] | Values] = []
        for side, text in (("source", source), ("translation", target)):
            is_file = side == "source" and reads_files
            if not is_file and far_too_long(text, most):
                raise DataError(_too_long(number, side, f"{len(text):,} characters", most))
            found: Sequence[int] | Values
            if is_file:
                found = engine.source.read([text])[0]
            else:
                form = engine.source.values if side == "source" else engine.target.tokens
                found = form([text])[0]
            if len(found) > most:
                unit = "rows" if is_file else "tokens"
                raise DataError(_too_long(number, side, f"{len(found):,} {unit}", most))
            sides.append(found)
        values, tokens = sides
        yield _Read(source, target, values, tokens)  # type: ignore[arg-type]  # only a source has rows


def _too_long(line: int, side: str, length: str, most: int) -> str:
    return (
        f"line {line}: the {side} has {length}, and {most:,} tokens are scored at once. A line is "
        "a sentence or a few: cut both sides at the same places, or take the pair out"
    )
