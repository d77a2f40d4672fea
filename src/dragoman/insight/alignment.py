"""Which source word a target word comes from, read from cross-attention, and how often that is so.

A target word is linked to the source word it looked at most. Against links made by people the
alignment error rate (Och and Ney 2003) is

    AER(A; S, P) = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

with A the links found, S the sure and P ⊇ S the possible ones. Attention is no alignment: the row
of the step that *chose* a word says where the model looked to choose it; often the row of the next
step, which has read the word, aligns better (Kobayashi et al. 2020). Both are measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.pictures.records import AttentionRecord
from dragoman.pictures.words import in_words

Links = frozenset[tuple[int, int]]
"""(source word, target word), counted from 0."""

When = Literal["choosing", "having read"]


@dataclass(frozen=True)
class Gold:
    """Links made by people for one pair of sentences."""

    sure: Links
    possible: Links
    """The sure ones too."""


Counts = NDArray[np.int64]
"""(N, L, H + 1, 2) of each sentence, layer and head, last of the mean of the layer's heads:
|A ∩ S| + |A ∩ P|, and |A| + |S|."""


@dataclass(frozen=True)
class AligningHead:
    """Which attention aligns, layer and head counted from 0, and how well on some sentences."""

    when: When
    layer: int
    head: int | None
    """None: the mean of the heads."""
    rate: float
    """AER."""

    def __str__(self) -> str:
        head = "mean of the heads" if self.head is None else f"head {self.head + 1}"
        return f"layer {self.layer + 1}, {head}, the step {self.when} the word"


@dataclass(frozen=True)
class AlignmentScores:
    """How well every layer and head aligns some sentences."""

    counts: dict[When, Counts]

    @property
    def sentences(self) -> int:
        return len(self.counts["choosing"])

    @property
    def heads(self) -> dict[When, NDArray[np.float64]]:
        """(L, H + 1): AER of each head, and last of the mean of the layer's heads."""
        return {when: _rates(counts) for when, counts in self.counts.items()}

    @property
    def best(self) -> AligningHead:
        """What aligns these sentences best. An oracle: it is chosen with their own gold."""
        tables = self.heads
        when: When = min(tables, key=lambda one: float(tables[one].min()))
        table = tables[when]
        layer, head = np.unravel_index(int(table.argmin()), table.shape)
        mean = int(head) == table.shape[1] - 1
        return AligningHead(when, int(layer), None if mean else int(head), float(table.min()))

    def chosen_on(self, development: int) -> AligningHead:
        """What aligns the first ``development`` sentences best, with its AER on all others."""
        assert 0 < development < self.sentences
        first, rest = (
            AlignmentScores({when: counts[part] for when, counts in self.counts.items()})
            for part in (slice(development), slice(development, None))
        )
        best = first.best
        rate = rest.heads[best.when][best.layer, -1 if best.head is None else best.head]
        return replace(best, rate=float(rate))

    def in_words(self, development: int) -> str:
        """One line: the AER of what the first ``development`` sentences choose; 0: of an oracle."""
        if not development:
            best = self.best
            return f"AER {best.rate:.3f}: {best}; an oracle, chosen with these very links"
        chosen = self.chosen_on(development)
        return (
            f"AER {chosen.rate:.3f}: {chosen}; chosen on the first {development} pairs, measured "
            f"on the other {self.sentences - development}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        best = self.best
        return {
            "sentences": self.sentences,
            "heads": {name: table.tolist() for name, table in self.heads.items()},
            "best": {
                "when": best.when,
                "layer": best.layer,
                "head": best.head,
                "aer": best.rate,
                "oracle": True,
            },
        }


def _rates(counts: Counts) -> NDArray[np.float64]:
    """(N, L, H + 1, 2) -> (L, H + 1) AER over all sentences together; without any link 0."""
    hits, size = np.moveaxis(counts.sum(axis=0), -1, 0)
    return np.where(size > 0, 1 - hits / np.maximum(size, 1), 0.0)


def align(
    record: AttentionRecord,
    layer: int,
    head: int | None = None,
    *,
    when: When = "choosing",
) -> Links:
    """Each target word to the source word it looked at most; end symbols take no part.

    ``record`` is of words (``pictures.words.in_words``); ``head`` None is the mean of the heads.
    """
    weights = record.cross[layer].mean(axis=0) if head is None else record.cross[layer, head]
    weights = weights[:, : len(record.source) - 1]
    rows = weights[1:] if when == "having read" else weights[:-1]
    if weights.shape[1] == 0:
        return frozenset()
    return frozenset((int(row.argmax()), target) for target, row in enumerate(rows))


def _counted(links: Links, gold: Gold) -> tuple[int, int]:
    """|A ∩ S| + |A ∩ P|, and |A| + |S|."""
    return len(links & gold.sure) + len(links & gold.possible), len(links) + len(gold.sure)


def score_alignments(records: Iterable[AttentionRecord], gold: Sequence[Gold]) -> AlignmentScores:
    """AER of every layer and head. ``records`` are of subword pieces; their words are scored.

    Errors: ``DataError`` for links outside of their sentence, or of another number of sentences.
    """
    counts: dict[When, list[list[list[tuple[int, int]]]]] = {"choosing": [], "having read": []}
    number = 0
    for number, record in enumerate(records, 1):
        if number > len(gold):
            raise DataError(f"there are {len(gold)} lines of links, but more pairs of sentences")
        words, links = in_words(record), gold[number - 1]
        _check_inside(links, words, number)
        layers, heads = words.cross.shape[:2]
        for when, rows in counts.items():
            rows.append(
                [
                    [
                        _counted(align(words, layer, head, when=when), links)
                        for head in (*range(heads), None)
                    ]
                    for layer in range(layers)
                ]
            )
    if number != len(gold) or not gold:
        raise DataError(f"there are {len(gold)} lines of links for {number} pairs of sentences")
    return AlignmentScores({when: np.array(rows, np.int64) for when, rows in counts.items()})


def _check_inside(gold: Gold, words: AttentionRecord, number: int) -> None:
    sizes = len(words.source) - 1, len(words.target) - 1  # end symbols take no part
    for source, target in sorted(gold.possible):
        if source >= sizes[0] or target >= sizes[1]:
            raise DataError(
                f"pair {number}: the link from source word {source} to target word {target}, both "
                f"counted from 0, lies outside of its sentences of {sizes[0]} and {sizes[1]} "
                "words. Is it counted from 1 (--gold-base 1), or of text cut into other words?"
            )


def sharpest_layer(record: AttentionRecord) -> int:
    """The layer whose heads together look most surely at one word: the best guess without gold."""
    strongest = record.cross.mean(axis=1).max(axis=-1).mean(axis=-1)  # (L,)
    return int(strongest.argmax())


def read_gold(path: Path, *, first: int | None = None) -> list[Gold]:
    """Links in the Pharaoh format, a line per pair (see ``parse_links``).

    ``first`` is the number of the first word, 0 or 1. None is 0, but not for a file in which no
    word has that number: most public sets count from 1. Errors: ``DataError`` with the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    gold = [
        parse_links(line, f"{path}, line {n}", first=first or 0) for n, line in enumerate(lines, 1)
    ]
    linked = [one.possible for one in gold if one.possible]
    if first is None and len(linked) >= _MANY and all(min(map(min, one)) > 0 for one in linked):
        raise DataError(
            f"{path}: no link of its {len(linked)} sentences touches a word 0, so they seem to be "
            "counted from 1. Say which: --gold-base 1, or --gold-base 0 if they are not"
        )
    return gold


_MANY = 20
"""Sentences among which at least one link would touch a first word, if it were number 0."""


def parse_links(line: str, where: str, *, first: int = 0) -> Gold:
    """``0-0 1-2 3?1``: source word, target word, sure with -, possible with ? or p.

    Errors: ``DataError`` naming ``where``.
    """
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for link in line.split():
        match = re.fullmatch(r"(\d+)([-?p])(\d+)", link)
        if match is None or int(match[1]) < first or int(match[3]) < first:
            raise DataError(
                f"{where}: {link!r} is no link; write 0-1 for a sure one and 0?1 for a possible "
                f"one, source word first, words counted from {first}"
            )
        pair = (int(match[1]) - first, int(match[3]) - first)
        possible.add(pair)
        if match[2] == "-":
            sure.add(pair)
    return Gold(frozenset(sure), frozenset(possible))
