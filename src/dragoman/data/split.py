"""Sentences held out for validation and test, and whether training has seen them.

The side of a pair is decided by a hash of its source (of a text that stands alone: by its own), so
it depends on nothing else: all copies of a sentence stand on one side, and adding pairs to a corpus
moves none of those it had.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.data.corpora import Pair
from dragoman.plural import plural
from dragoman.settings import Settings

Side = Literal["train", "dev", "test"]

_SPACES = re.compile(r"\s+")
_ENDS = " .!?,;:…。！？\"'“”„«»"
_EXAMPLES = 3


class SplitSettings(Settings):
    """Which share of the sentences is kept away from training."""

    dev: float = Field(0.0, ge=0, lt=1)
    """Share held out for validation."""
    test: float = Field(0.0, ge=0, lt=1)
    """Share held out for the test."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.dev + self.test >= 1:
            raise ValueError("dev and test together must leave something to train on")
        return self

    @classmethod
    def for_pairs(cls, pairs: int, *, dev: bool = True, test: bool = True) -> Self:
        """About 1,000 sentences each, and at most a twentieth of the corpus.

        Nothing where that would be fewer than two: a score on one sentence says nothing, and copies
        of a single sentence, which stand on one side, would leave nothing to train on.
        """
        share = round(min(0.05, 1000 / max(pairs, 1)), 6)
        if pairs * share < 2:
            share = 0.0
        return cls(dev=share if dev else 0.0, test=share if test else 0.0)


def side_of(source: str, settings: SplitSettings) -> Side:
    """Where the pairs with this source belong."""
    digest = hashlib.blake2b(_plain(source), digest_size=8, person=b"dragoman split").digest()
    place = int.from_bytes(digest, "big") / 2**64
    if place < settings.test:
        return "test"
    return "dev" if place < settings.test + settings.dev else "train"


def split_pairs(pairs: Iterable[Pair], settings: SplitSettings, side: Side) -> Iterator[Pair]:
    """Those of the pairs that belong on one side."""
    return (pair for pair in pairs if side_of(pair.source or pair.target, settings) == side)


@dataclass(frozen=True)
class Overlap:
    """How much of a held-out set stands in the training set, but for case, spaces and stops."""

    pairs: int
    """In the held-out set."""
    source: int
    """Of these, with a source that training has."""
    target: int
    """With a target that training has."""
    both: int
    """With a pair that training has."""
    first: tuple[Pair, ...]
    """The first few that overlap in any way, by their lines in the held-out set."""

    def in_words(self, name: str) -> str | None:
        """A warning about the set of this name; None if training has seen nothing of it."""
        if not (self.source or self.target):
            return None
        lines = ", ".join(str(pair.line) for pair in self.first)
        if not any(pair.source for pair in self.first):
            return (
                f"of {plural(self.pairs, f'{name} text')}, training has {self.target:,} "
                f"(lines {lines}, …): scores on {name} may flatter"
            )
        return (
            f"of {plural(self.pairs, f'{name} pair')}, training has the source of {self.source:,}, "
            f"the target of {self.target:,} and the whole pair of {self.both:,} "
            f"(lines {lines}, …): scores on {name} may flatter"
        )


def find_overlaps(
    train: Iterable[Pair], held_out: Mapping[str, Sequence[Pair]]
) -> dict[str, Overlap]:
    """Compare held-out sets, by name, with a training set, which is read once.

    Memory is that of hashes of the held-out sets.
    """
    keys = {
        name: [(pair.source and _hash(pair.source), _hash(pair.target)) for pair in pairs]
        for name, pairs in held_out.items()
    }
    wanted_sources, wanted_targets = (
        {key[side] for of_set in keys.values() for key in of_set} for side in (0, 1)
    )
    sources: set[int | str] = set()
    targets: set[int | str] = set()
    both: set[tuple[int | str, int]] = set()
    for pair in train:
        key = (pair.source and _hash(pair.source), _hash(pair.target))
        if pair.source and key[0] in wanted_sources:
            sources.add(key[0])
            if key[1] in wanted_targets:
                both.add(key)
        if key[1] in wanted_targets:
            targets.add(key[1])
    return {
        name: Overlap(
            pairs=len(pairs),
            source=sum(source in sources for source, _ in keys[name]),
            target=sum(target in targets for _, target in keys[name]),
            both=sum(key in both for key in keys[name]),
            first=tuple(
                pair
                for pair, (source, target) in zip(pairs, keys[name], strict=True)
                if source in sources or target in targets
            )[:_EXAMPLES],
        )
        for name, pairs in held_out.items()
    }


def _plain(text: str) -> bytes:
    """A sentence without what does not make it another one: case, spaces, stops at its ends."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _SPACES.sub(" ", plain).strip(_ENDS).encode("utf-8", "surrogatepass")


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(_plain(text), digest_size=8).digest(), "big")
