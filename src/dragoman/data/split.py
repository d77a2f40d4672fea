"""This module holds out sentences for validation and test, and checks whether training has them
too.

A hash of its source (of its text, for single texts) decides the side of a pair, and nothing else:
all copies of a sentence are on one side, and new pairs in a corpus move none of the others. For
pairs with groups, such as speakers, it is a hash of the group.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings import Settings
from dragoman.base.wording import plural
from dragoman.forms.form import Pair

Side = Literal["train", "dev", "test"]

_SPACES = re.compile(r"\s+")
_ENDS = " .!?,;:…。！？\"'“”„«»"
_EXAMPLES = 3
_MOST_HELD = 3
_DOZEN = 12


class SplitSettings(Settings):
    """The share of the training data that is held out."""

    dev: float = Field(0.0, ge=0, lt=1)
    """The share held out for validation."""
    test: float = Field(0.0, ge=0, lt=1)
    """The share held out for testing."""
    whole_texts: bool = False
    """If a text is split into sections, hold out all of its sections or none. If this is false,
    sections are held out individually, and the model is trained on other sections of the same
    text."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.dev + self.test >= 1:
            raise ValueError("dev and test together leave nothing to train on. Set smaller shares")
        return self

    @classmethod
    def for_pairs(cls, pairs: int, *, dev: bool = True, test: bool = True) -> Self:
        """Hold out about 1,000 sentences for each side, and at most a twentieth of the corpus.

        Nothing is held out if that would be fewer than two: a score on one sentence says nothing,
        and copies of a single sentence, which are on one side, would leave nothing to train on.
        """
        share = round(min(0.05, 1000 / max(pairs, 1)), 6)
        if pairs * share < 2:
            share = 0.0
        return cls(dev=share if dev else 0.0, test=share if test else 0.0)

    def for_whole(self, characters: Mapping[str, int], most: float = _MOST_HELD) -> Self:
        """Return shares that hold out about as much in whole texts. The settings stay as they are
        if texts are so few or so long that this would hold out more than ``most`` times as much.

        ``characters``: the length of each text, by its name (``Pair.whole``); for groups, the
        number of their examples.
        """
        sizes = Counter[float]()
        for name, size in characters.items():
            sizes[_place(name)] += size  # names that differ only in case or stops are equal
        places = sorted(sizes.items())
        total = sum(characters.values())
        shares, at, begin = {}, 0, 0.0
        for side in ("test", "dev"):  # the order of ``side_of``
            wanted, held, end = getattr(self, side) * total, 0, begin
            while held < wanted and at < len(places):
                held, at = held + places[at][1], at + 1
            if held > most * wanted or at == len(places):
                return self
            if wanted:
                end = (places[at - 1][0] + places[at][0]) / 2
            shares[side], begin = end - begin, end
        return self.model_copy(update={**shares, "whole_texts": sum(shares.values()) > 0})

    def for_few(self, texts: Iterable[str], *, dev: bool = True, test: bool = True) -> Self:
        """Return shares that hold out the stated part of few ``texts``, and at least one: by chance
        a twentieth of 40 may be none. If nothing is held out, a twelfth of a dozen or more is, for
        each side that is wanted. Settings for whole texts stay as they are.

        ``texts``: the strings that decide the side of each example (``deciding_key``).
        """
        places = sorted({_place(text) for text in texts})
        if self.whole_texts:
            return self
        if self.dev or self.test:
            shares = (self.test, self.dev)
            wanted = [max(1, round(share * len(places))) if share else 0 for share in shares]
        else:
            wanted = [len(places) // _DOZEN * side for side in (test, dev)]
        test_end, dev_end = wanted[0], sum(wanted)
        if dev_end >= len(places):
            return self
        # In the order of ``side_of``.
        ends = [(places[at - 1] + places[at]) / 2 if at else 0.0 for at in (test_end, dev_end)]
        return self.model_copy(update={"test": ends[0], "dev": ends[1] - ends[0]})


def side_of(source: str, settings: SplitSettings) -> Side:
    """Return the side of the pairs with this source."""
    place = _place(source)
    if place < settings.test:
        return "test"
    return "dev" if place < settings.test + settings.dev else "train"


def side_of_pair(pair: Pair, settings: SplitSettings) -> Side:
    """Return the side of a pair."""
    return side_of(deciding_key(pair, whole_texts=settings.whole_texts), settings)


def deciding_key(pair: Pair, *, whole_texts: bool = False) -> str:
    """Return the string that decides the side of a pair: its group, the name of its text if texts
    stay whole, its source, or its target."""
    whole = pair.whole if whole_texts else ""
    return pair.group or whole or pair.source or pair.target


def _place(source: str) -> float:
    """Return a hash from 0 to 1 of the string that decides the side."""
    digest = hashlib.blake2b(_plain(source), digest_size=8, person=b"dragoman split").digest()
    return int.from_bytes(digest, "big") / 2**64


def split_pairs(pairs: Iterable[Pair], settings: SplitSettings, side: str) -> Iterator[Pair]:
    """Return the pairs of one side."""
    return (pair for pair in pairs if side_of_pair(pair, settings) == side)


@dataclass(frozen=True)
class Overlap:
    """The part of a held-out set that training also has, apart from case, spaces and stops."""

    pairs: int
    """The number of pairs in the held-out set."""
    source: int
    """The number of them whose source is in training."""
    target: int
    """The number of them whose target is in training."""
    both: int
    """The number of them that are in training as a pair."""
    parts: int
    """The number of sections of texts that training has other sections of."""
    first: tuple[Pair, ...]
    """The first pairs whose source or target is in training, with their held-out lines."""

    def summary(self, name: str) -> str | None:
        """Return a warning about the set of this name; None without any overlap."""
        if not (self.source or self.target or self.parts):
            return None
        lines = ", ".join(str(pair.line) for pair in self.first)
        if not any(pair.source for pair in self.first):
            texts = plural(self.target, "is", "are") + f" also in training (lines {lines}, …)"
            parts = plural(self.parts, "comes", "come") + (
                " from a text of which training has other parts"
            )
            reasons = [words for n, words in ((self.target, texts), (self.parts, parts)) if n]
            of = plural(self.pairs, f"{name} text")
            return f"of {of}, {' and '.join(reasons)}: scores on {name} may flatter"
        shared = ((self.source, "source"), (self.target, "target"), (self.both, "whole pair"))
        numbers = [f"the {what} of {number:,}" for number, what in shared if number]
        counted = " and ".join(filter(None, (", ".join(numbers[:-1]), numbers[-1])))
        return (
            f"of {plural(self.pairs, f'{name} pair')}, training also has {counted} "
            f"(lines {lines}, …): scores on {name} may flatter"
        )


def find_overlaps(
    train: Iterable[Pair], held_out: Mapping[str, Sequence[Pair]]
) -> dict[str, Overlap]:
    """Compare held-out sets, by name, with a training set, which is read once.

    The memory holds only hashes of the held-out sets.
    """
    keys = {
        name: [(pair.source and hash_of(pair.source), hash_of(pair.target)) for pair in pairs]
        for name, pairs in held_out.items()
    }
    wanted_sources, wanted_targets = (
        {key[side] for of_set in keys.values() for key in of_set} for side in (0, 1)
    )
    sources: set[int | str] = set()
    targets: set[int | str] = set()
    both: set[tuple[int | str, int]] = set()
    wanted_wholes = {pair.whole for pairs in held_out.values() for pair in pairs} - {""}
    wholes: set[str] = set()
    for pair in train:
        if pair.whole in wanted_wholes:
            wholes.add(pair.whole)
        key = (pair.source and hash_of(pair.source), hash_of(pair.target))
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
            parts=sum(pair.whole in wholes for pair in pairs),
            first=tuple(
                pair
                for pair, (source, target) in zip(pairs, keys[name], strict=True)
                if source in sources or target in targets
            )[:_EXAMPLES],
        )
        for name, pairs in held_out.items()
    }


def _plain(text: str) -> bytes:
    """Return a sentence without case, repeated spaces, and stops at its ends."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _SPACES.sub(" ", plain).strip(_ENDS).encode("utf-8", "surrogatepass")


def hash_of(text: str) -> int:
    """Return a 64-bit hash that ignores case, spaces, and stops at the ends."""
    return int.from_bytes(hashlib.blake2b(_plain(text), digest_size=8).digest(), "big")
