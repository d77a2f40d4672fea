"""The units of a document, translated by an engine: the same for every program that asks.

A part of the units at a time is cut into sentences, searched for, aligned where codes stand inside
sentences, and put together again. ``steps`` computes and asks for searches and alignments; whoever
drives it gives them: ``translate_units`` at once, the server in its queue.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from dragoman.data.batches import in_batches
from dragoman.documents.placing import Translated, place_codes
from dragoman.engine.alignment_head import Alignment, TokenPair
from dragoman.engine.engine import Engine
from dragoman.formats.units.document import Target, Unit
from dragoman.forms.form import Passage
from dragoman.search.hypothesis import Hypothesis

TOGETHER = 20_000
"""Characters that are translated at a time."""
Search: TypeAlias = Callable[[Sequence[Passage]], Iterable[Hypothesis]]
"""The best output for each piece of some passages, in their order."""


@dataclass(frozen=True)
class ToSearch:
    """Asks for the best output for each piece of some passages, in their order."""

    passages: Sequence[Passage]


@dataclass(frozen=True)
class ToAlign:
    """Asks how much the tokens of some outputs looked at those of their sources."""

    pairs: Sequence[TokenPair]


Steps: TypeAlias = Generator[ToSearch | ToAlign | int | list[Target], Any, None]
"""Yields requests, whose answers are sent in, the number of translated units in between, and at the
end the translations."""


def steps(units: Iterable[Unit], engine: Engine) -> Steps:
    """Translates units, and yields at the end a translation for each."""
    targets: list[Target] = []
    known: dict[Unit, Target] = {}
    source = engine.source
    for part in in_batches(units, TOGETHER, lambda unit: len(unit.text)):
        new = list(dict.fromkeys(key for unit in part if (key := bare(unit)) not in known))
        passages = engine.cut([unit.text for unit in new], whole=False)
        hypotheses = iter((yield ToSearch(passages)))
        plans = [
            Translated(unit, passage, list(islice(hypotheses, len(passage.pieces))), source)
            for unit, passage in zip(new, passages, strict=True)
        ]
        pairs = [pair for plan in plans for pair in plan.pairs]
        alignments = iter((yield ToAlign(pairs)) if pairs else ())
        for unit, plan in zip(new, plans, strict=True):
            known[unit] = place_codes(engine, plan, list(islice(alignments, len(plan.pairs))))
        targets += [known[bare(unit)] for unit in part]
        yield len(targets)
    yield targets


def translate_units(
    units: Sequence[Unit],
    engine: Engine,
    search: Search,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Target]:
    """A translation for each unit; ``progress`` gets their number so far."""
    running = steps(units, engine)
    answer: Any = None
    while True:
        step = running.send(answer)
        answer = None
        if isinstance(step, list):
            return step
        if isinstance(step, ToSearch):
            answer = search(step.passages)
        elif isinstance(step, ToAlign):
            answer = _align(engine, step.pairs)
        else:
            progress(step)


def bare(unit: Unit) -> Unit:
    """A unit without what does not matter to where its codes go: equal ones are translated
    once."""
    codes = tuple(replace(code, written="", inserts=()) for code in unit.tags)
    return replace(unit, tags=codes) if codes else unit


def _align(engine: Engine, pairs: Sequence[TokenPair]) -> Iterator[Alignment]:
    if pairs and not engine.has_inside:  # several models together have no attention of their own
        yield from (_align_in_proportion(len(target), len(source)) for source, target in pairs)
    elif pairs:
        for batch in engine.attention.align(pairs):
            yield from batch


def _align_in_proportion(target: int, source: int) -> Alignment:
    """(T, S): each token looks at the one that stands as far from the beginning."""
    weights = np.zeros((target, source))
    if source:
        weights[np.arange(target), np.arange(target) * source // max(1, target)] = 1.0
    return weights
