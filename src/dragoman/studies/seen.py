"""Texts of a comparison that a run has learned from: its figures on them say nothing.

The test set is that of one run, or files; another run may have been trained on more, and on these
texts too, or begun from one that was (``runs/lineage.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman.data.files.pair import Pair
from dragoman.plural import plural
from dragoman.runs.lineage import BASES, Learned, learned_before, learned_itself, texts_of
from dragoman.runs.run import Run

MIN_TEXTS = 10
"""The fewest remaining texts that are compared by themselves."""


@dataclass(frozen=True)
class SeenExamples:
    """What is known of the training texts of the runs that are compared."""

    texts: tuple[bool, ...]
    """Of each test text: whether any of the runs has learned from it."""
    by_system: dict[str, int]
    """How many of them each system has learned from, where any."""
    by_base: dict[tuple[str, str], int]
    """How many of them the runs have learned from that a system was begun from, by the names of
    the system and of that run."""
    unknown: tuple[str, ...]
    """What is not known, and why, in words."""

    def summary(self) -> list[str]:
        """Warnings."""
        of = _counted(len(self.texts))
        own = [
            Learned("", None, {}).summary(name, seen, of) for name, seen in self.by_system.items()
        ]
        bases = [
            Learned(base, None, {}).summary(name, seen, of)
            for (name, base), seen in self.by_base.items()
        ]
        return [*own, *bases, *self.unknown]

    @property
    def left(self) -> list[int]:
        """The places of texts that none has learned from, where there are others and enough of
        these to compare on."""
        left = [place for place, seen in enumerate(self.texts) if not seen]
        return left if MIN_TEXTS <= len(left) < len(self.texts) else []


def seen_by(
    systems: Iterable[tuple[str, Sequence[Run]]], pairs: Sequence[Pair], *, kept_apart: str | None
) -> SeenExamples:
    """Look for ``pairs`` in what each run has learned from, and the runs that it was begun from.

    ``systems``: names and their runs. ``kept_apart``: the embedded corpus of which the pairs are
    the test set, whose training text has none of them.
    """
    any_seen, by_system, unknown = [False] * len(pairs), dict[str, int](), list[str]()
    by_base: dict[tuple[str, str], list[bool]] = {}
    of = _counted(len(pairs))
    known: dict[str, Learned] = {}
    read: dict[bool, Sequence[Pair]] = {True: pairs}  # by whether sources are texts
    for name, runs in systems:
        found = [False] * len(pairs)
        for run in runs:
            before = list(learned_before(run.folder, run.notes().get(BASES, [])))
            embedded, is_text = run.recipe.data.embedded, run.recipe.source.is_text
            if is_text not in read:
                read[is_text] = list(texts_of(run.recipe, pairs))
            key = run.recipe.data.model_dump_json()
            if embedded is None or embedded != kept_apart:
                if key not in known:
                    known[key] = learned_itself(run)
                before = [known[key], *before]
            for learned in before:
                if learned.unknown:
                    unknown.append(learned.summary(name, 0, of))
                seen = learned.has(read[is_text])
                any_seen = _either(any_seen, seen)
                if learned.base:
                    place = name, learned.base
                    by_base[place] = _either(by_base.get(place, seen), seen)
                else:
                    found = _either(found, seen)
        if any(found):
            by_system[name] = sum(found)
    told = {place: sum(seen) for place, seen in by_base.items() if any(seen)}
    return SeenExamples(tuple(any_seen), by_system, told, tuple(dict.fromkeys(unknown)))


def _either(one: Sequence[bool], other: Sequence[bool]) -> list[bool]:
    return [a or b for a, b in zip(one, other, strict=True)]


def _counted(texts: int) -> str:
    return plural(texts, "test text")
