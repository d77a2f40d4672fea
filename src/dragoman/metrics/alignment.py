"""Word alignments: links between the words of two sentences, as files have them, and how good.

    Pharaoh    0-0 1-2 3?1        a line for each pair: source word, target word, counted from 0;
                                  - for a sure link, ? or p for a possible one
    NAACL      12 1 3 P           a line for each link: number of the pair, source word, target
                                  word, counted from 1; S for sure (or nothing), P for possible
                                  (Mihalcea and Pedersen 2003)

Against links made by people the alignment error rate (Och and Ney 2003) is

    AER(A; S, P) = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

with A the links found, S the sure and P ⊇ S the possible ones; precision is |A ∩ P| / |A|, recall
|A ∩ S| / |S|. Counts are summed over all sentences first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.base.wording import plural, shorten

Links = frozenset[tuple[int, int]]
"""(source word, target word), counted from 0."""


@dataclass(frozen=True)
class Gold:
    """Links made by people for one pair of sentences."""

    sure: Links
    possible: Links
    """The possible links, which include the sure ones."""


@dataclass(frozen=True)
class AlignmentQuality:
    """Counts over all sentences, and what follows from them."""

    links: int
    """|A|, the number of links found."""
    sure: int
    """|S|, the number of sure links."""
    found_sure: int
    """|A ∩ S|, the number of sure links found."""
    found_possible: int
    """|A ∩ P|, the number of possible links found."""

    @classmethod
    def of(cls, links: Iterable[Links], gold: Sequence[Gold]) -> AlignmentQuality:
        """Counts the links of all pairs; ``gold`` has the gold links of each."""
        counts = [
            (len(a), len(g.sure), len(a & g.sure), len(a & g.possible))
            for a, g in zip(links, gold, strict=True)
        ]
        return cls(*(sum(column) for column in zip(*counts, strict=True)))

    @property
    def error_rate(self) -> float:
        """AER; 0 where there is no link at all."""
        size = self.links + self.sure
        return 1 - (self.found_sure + self.found_possible) / size if size else 0.0

    @property
    def precision(self) -> float:
        """The share of the links found that is possible."""
        return self.found_possible / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        """The share of the sure links that was found."""
        return self.found_sure / self.sure if self.sure else 1.0

    def __str__(self) -> str:
        return (
            f"AER {self.error_rate:.3f}, precision {self.precision:.3f}, recall {self.recall:.3f}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The rates as JSON can hold them."""
        return {"aer": self.error_rate, "precision": self.precision, "recall": self.recall}


def pharaoh(links: Links) -> str:
    """Links as a line of the Pharaoh format, in the order of the source."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read_gold(path: Path, *, first: int | None = None) -> list[Gold]:
    """Links in the Pharaoh or the NAACL format, for each pair of sentences in its order.

    ``first`` is the number of the first word in a Pharaoh file, 0 or 1. None is 0, but not for a
    file in which no word has that number: most public sets count from 1.
    Errors: ``DataError`` with the line.
    """
    try:
        with path.open("rb") as file:  # a pipe too; a device may never end
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise DataError(
                f"{path} has more than the {_MAX_BYTES:,} bytes that are allowed in a file of links"
            )
        lines = content.decode("utf-8").splitlines()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text in UTF-8") from None
    written = [line for line in lines if line.strip()]
    if written and all(_NAACL.fullmatch(line) for line in written):
        return _naacl(lines, path)
    gold = [
        parse_links(line, f"{path}, line {n}", first=first or 0) for n, line in enumerate(lines, 1)
    ]
    linked = [pair.possible for pair in gold if pair.possible]
    if first is None and len(linked) >= _MANY and all(min(map(min, links)) > 0 for links in linked):
        raise DataError(
            f"{path}: no link of its {len(linked)} sentences touches a word 0, so they seem to be "
            "counted from 1. Set --gold-base 1, or --gold-base 0 if they are not"
        )
    return gold


_MAX_BYTES = 1 << 27
"""The most bytes of a file of links: those of some millions of sentences."""
_MANY = 20
"""Sentences among which at least one link would touch a first word, if it were number 0."""

_NAACL = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)(?:\s+([SP]))?(?:\s+[\d.]+)?\s*")

_MAX_PAIRS = 10_000_000


def parse_links(line: str, where: str, *, first: int = 0) -> Gold:
    """``0-0 1-2 3?1``: source word, target word, sure with -, possible with ? or p.

    Errors: ``DataError`` naming ``where``.
    """
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for link in line.split():
        match = re.fullmatch(r"(\d{1,9})([-?p])(\d{1,9})", link)
        if match is None or int(match[1]) < first or int(match[3]) < first:
            raise DataError(
                f"{where}: {shorten(link, 40)!r} is not a link. Write 0-1 for a sure link or "
                f"0?1 for a possible one, source word first, counted from {first}"
            )
        pair = (int(match[1]) - first, int(match[3]) - first)
        possible.add(pair)
        if match[2] == "-":
            sure.add(pair)
    return Gold(frozenset(sure), frozenset(possible))


def _naacl(lines: Sequence[str], path: Path) -> list[Gold]:
    """Up to the last pair that has a link. A link with word 0 says that a word has none."""
    links: dict[int, list[str]] = {}
    last = 0
    for number, line in enumerate(lines, 1):
        match = _NAACL.fullmatch(line)
        if match is None:
            continue
        pair, source, target = (int(match[n]) for n in (1, 2, 3))
        if not 0 < pair <= _MAX_PAIRS:
            raise DataError(f"{path}, line {number}: pairs are numbered from 1, not {pair}")
        last = max(last, pair)
        if source and target:
            kind = "?" if match[4] == "P" else "-"
            links.setdefault(pair, []).append(f"{source}{kind}{target}")
    return [
        parse_links(" ".join(links.get(pair, ())), f"{path}, pair {pair}", first=1)
        for pair in range(1, last + 1)
    ]


def check_gold(
    gold: Sequence[Gold], sizes: Iterable[tuple[int, int]], where: str = "the links"
) -> None:
    """Checks that the links are within their sentences, which have ``sizes`` words. ``where``: the
    name of the links in messages.

    Errors: ``DataError``, also for another number of sentences.
    """
    known = list(sizes)
    if len(known) != len(gold) or not gold:
        raise DataError(
            f"{where}: {plural(len(gold), 'line')} of links for {plural(len(known), 'pair')} of "
            "sentences"
        )
    for number, (pair, (sources, targets)) in enumerate(zip(gold, known, strict=True), 1):
        for source, target in sorted(pair.possible):
            if source >= sources or target >= targets:
                raise DataError(
                    f"{where}, pair {number}: the link from source word {source} to target word "
                    f"{target}, both counted from 0, is outside of its sentences of {sources} and "
                    f"{targets} words. Set --gold-base 1 if it is counted from 1"
                )
