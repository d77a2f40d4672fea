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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class AlignmentScores:
    """AER of every layer and head on some sentences."""

    sentences: int
    heads: dict[When, NDArray[np.float64]]
    """(L, H + 1): AER of each head, and last of the mean of the layer's heads."""

    @property
    def best(self) -> tuple[When, int, int | None, float]:
        """When, layer, head (None: the mean of the heads) and AER of what aligns best."""
        when: When = min(self.heads, key=lambda one: float(self.heads[one].min()))
        table = self.heads[when]
        layer, head = np.unravel_index(int(table.argmin()), table.shape)
        mean = int(head) == table.shape[1] - 1
        return when, int(layer), None if mean else int(head), float(table.min())

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        when, layer, head, rate = self.best
        return {
            "sentences": self.sentences,
            "heads": {name: table.tolist() for name, table in self.heads.items()},
            "best": {"when": when, "layer": layer, "head": head, "aer": rate},
        }


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


def alignment_error_rate(found: Sequence[Links], gold: Sequence[Gold]) -> float:
    """AER over all sentences together; 0 is perfect. Without any link at all it is 0."""
    sure = sum(len(links & g.sure) for links, g in zip(found, gold, strict=True))
    possible = sum(len(links & g.possible) for links, g in zip(found, gold, strict=True))
    size = sum(len(links) + len(g.sure) for links, g in zip(found, gold, strict=True))
    return 1 - (sure + possible) / size if size else 0.0


def score_alignments(records: Iterable[AttentionRecord], gold: Sequence[Gold]) -> AlignmentScores:
    """AER of every layer and head. ``records`` are of subword pieces; their words are scored."""
    by_words = [in_words(record) for record in records]
    layers, heads = by_words[0].cross.shape[:2]
    tables: dict[When, NDArray[np.float64]] = {}
    moments: tuple[When, ...] = ("choosing", "having read")
    for when in moments:
        table = np.zeros((layers, heads + 1))
        for layer in range(layers):
            for place, head in enumerate([*range(heads), None]):
                links = [align(record, layer, head, when=when) for record in by_words]
                table[layer, place] = alignment_error_rate(links, gold)
        tables[when] = table
    return AlignmentScores(len(by_words), tables)


def sharpest_layer(record: AttentionRecord) -> int:
    """The layer whose heads together look most surely at one word: the best guess without gold."""
    strongest = record.cross.mean(axis=1).max(axis=-1).mean(axis=-1)  # (L,)
    return int(strongest.argmax())


def read_gold(path: Path, *, first: int = 0) -> list[Gold]:
    """Links in the Pharaoh format, a line per pair (see ``parse_links``).

    ``first`` is the number of the first word, 0 or 1. Errors: ``DataError`` with the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    return [parse_links(line, f"{path}, line {n}", first=first) for n, line in enumerate(lines, 1)]


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
