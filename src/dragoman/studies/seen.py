"""Texts of a comparison that a run has learned from: its figures on them say nothing.

The test set is that of one run, or files; another run may have been trained on more, and on these
texts too. Sentences are compared but for case, spaces and stops (``data/split.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from dragoman.data.corpora import Pair
from dragoman.data.split import find_overlaps
from dragoman.errors import DragomanError
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.tasks.corpora import plain_corpora
from dragoman.tasks.run import Run

FEWEST = 10
"""The fewest remaining texts that are compared by themselves."""


@dataclass(frozen=True)
class Seen:
    """What is known of the training texts of the runs that are compared."""

    texts: tuple[bool, ...]
    """Of each test text: whether any of the runs has learned from it."""
    by_system: dict[str, int]
    """How many of them each system has learned from, where any."""
    unknown: dict[str, str]
    """Systems whose training text cannot be read, and why."""

    def in_words(self) -> list[str]:
        """Warnings."""
        count = plural(len(self.texts), "test text")
        told = [
            f"{name} has learned from {seen:,} of the {count}: its figures may flatter it"
            for name, seen in self.by_system.items()
        ]
        return told + [
            f"whether {name} has learned from any of the {count} is not known: {why}"
            for name, why in self.unknown.items()
        ]

    @property
    def left(self) -> list[int]:
        """The places of texts that none has learned from, where there are others and enough of
        these to compare on."""
        left = [place for place, seen in enumerate(self.texts) if not seen]
        return left if FEWEST <= len(left) < len(self.texts) else []


def seen_by(
    systems: Iterable[tuple[str, Sequence[Run]]], pairs: Sequence[Pair], *, kept_apart: str | None
) -> Seen:
    """Read the training text of each run, and look for the sources of ``pairs`` in it; where texts
    stand alone, for them.

    ``systems``: names and their runs. ``kept_apart``: the embedded corpus of which the pairs are
    the test set, whose training text has none of them.
    """
    sources = [pair if not pair.source else Pair(pair.line, "", pair.source) for pair in pairs]
    any_seen, by_system, unknown = [False] * len(pairs), dict[str, int](), dict[str, str]()
    known: dict[str, list[bool]] = {}
    for name, runs in systems:
        found = [False] * len(pairs)
        for run in runs:
            recipe = run.recipe
            if recipe.data.embedded is not None and recipe.data.embedded == kept_apart:
                continue
            key = recipe.data.model_dump_json()
            try:
                if key not in known:
                    run.require_text("train")
                    known[key] = _seen(recipe, sources)
            except DragomanError as error:
                unknown[name] = str(error)
                continue
            found = [one or other for one, other in zip(found, known[key], strict=True)]
        if any(found):
            by_system[name] = sum(found)
            any_seen = [one or other for one, other in zip(any_seen, found, strict=True)]
    return Seen(tuple(any_seen), by_system, unknown)


def _seen(recipe: Recipe, sources: Sequence[Pair]) -> list[bool]:
    held = {str(place): [source] for place, source in enumerate(sources)}
    overlaps = find_overlaps(_sources(recipe), held)
    return [overlaps[str(place)].target > 0 for place in range(len(sources))]


def _sources(recipe: Recipe) -> Iterator[Pair]:
    """What is read of the training text, each as a text that stands alone."""
    corpora = plain_corpora(recipe, "train")
    for pair in chain.from_iterable(corpus.pairs for corpus in corpora):
        yield Pair(pair.line, "", pair.source or pair.target)
