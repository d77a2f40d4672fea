"""A lexicon has the words that a model has read in training; this module also finds the words of
a text.

A vocabulary of subwords can cut any word, so it does not show whether the model has ever read
the word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Self

from dragoman.base.atomic import write_text
from dragoman.base.errors import RunError
from dragoman.base.reading import read_bytes

Span = tuple[int, int]
"""A range of characters of a text: the first, and the end, excluded."""

_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d"
    "\u0a81-\u0a83\u0abc-\u0acd\u0b82\u0bbe-\u0bcd\u0c00-\u0c03\u0c3e-\u0c4d\u0c82\u0c83"
    "\u0cbc-\u0ccd\u0d00-\u0d03\u0d3e-\u0d4d\u1dc0-\u1dff\u20d0-\u20ff"
)
"""Combining marks, which Python does not count as letters."""
_PART = re.compile(f"[^\\W\\d_][^\\W\\d_{_MARKS}]*(?:[{_MARKS}]+[^\\W\\d_]*)*")
_WORD = re.compile(rf"{_PART.pattern}(?:['’]{_PART.pattern})*|\d+(?:[.,:]\d+)*")

_MOST_WORDS = 200_000
_MOST_BYTES = 8 << 20
_MOST_LETTERS = 60
"""Longer words are not kept: they are addresses and accidents."""
_LINE = re.compile(r"([1-9]\d{0,14})\t(\S+)\Z")


def words_in(text: str) -> list[Span]:
    """Return the ranges of the words and numbers in a text: letters with the apostrophes between
    them."""
    return [match.span() for match in _WORD.finditer(text)]


class Lexicon:
    """Words in lower case, with the number of times each was read."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        """``counts`` has the most frequent words first."""
        self.counts = counts

    @classmethod
    def count(cls, texts: Iterable[str]) -> Self:
        """Return the words of some texts; if there are very many, the most frequent ones."""
        counts: Counter[str] = Counter()
        for text in texts:
            words = _WORD.findall(_fold(text))
            counts.update(word for word in words if not word[0].isdigit())
        return cls(_most_frequent(counts))

    def __len__(self) -> int:
        return len(self.counts)

    def has(self, word: str) -> bool:
        """Return True if a word, or each of its parts between apostrophes, was read; numbers
        count as read."""
        return all(part in self._shares for part in _PART.findall(_fold(word)))

    def share_before(self, word: str) -> float:
        """Return the share of all running words that are more frequent words than this one: 0
        for the most frequent, 1 for a word that was never read, and for numbers. The rarest of
        its parts counts."""
        parts = _PART.findall(_fold(word))
        return max((self._shares.get(part, 1.0) for part in parts), default=1.0)

    @cached_property
    def _shares(self) -> dict[str, float]:
        """The ``share_before`` of each part of a word."""
        counts: Counter[str] = Counter()
        for word, many in self.counts.items():
            for part in _PART.findall(word):
                counts[part] += many
        parts = dict(counts.most_common())
        total = max(1, sum(parts.values()))
        before = accumulate(parts.values(), initial=0)
        return {part: many / total for part, many in zip(parts, before, strict=False)}

    def join(self, other: Lexicon) -> Lexicon:
        """Return a lexicon with the words of both."""
        both = Counter(self.counts) + Counter(other.counts)
        return Lexicon(_most_frequent(both))

    def save(self, path: Path) -> None:
        """Write a line for each word: its count, a tab, the word. Errors: ``FileError``."""
        write_text(path, "".join(f"{n}\t{word}\n" for word, n in self.counts.items()))

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Read a lexicon; None if there is no such file. Errors: ``RunError`` if it is damaged."""
        if not path.exists():
            return None
        counts: dict[str, int] = {}
        try:
            lines = read_bytes(path, _MOST_BYTES).decode("utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise _damage_error(path, f"it is not UTF-8 at byte {error.start}") from None
        for number, line in enumerate(lines[:-1], 1):
            match = _LINE.match(line)
            if match is None or len(match[2]) > _MOST_LETTERS or number > _MOST_WORDS:
                raise _damage_error(path, f"line {number} is not a valid count and word")
            counts[match[2]] = int(match[1])
        return cls(counts)


def _most_frequent(counts: Counter[str]) -> dict[str, int]:
    """Return the most frequent words, as many as ``load`` reads. In a script without spaces
    (Thai, Chinese), a word may be a whole phrase, with three bytes per letter."""
    kept: dict[str, int] = {}
    size = 0
    for word, many in counts.most_common():
        if len(word) > _MOST_LETTERS:
            continue
        size += len(f"{many}\t{word}\n".encode())
        if size > _MOST_BYTES or len(kept) == _MOST_WORDS:
            break
        kept[word] = many
    return kept


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


def _damage_error(path: Path, where: str) -> RunError:
    return RunError(
        f"{path} is damaged ({where}). Remove it. The model works without it, but no longer "
        "reports words that it has never read"
    )
