"""The form of a target that has one tag for each word that is read: parts of speech, names.

Its raw is a line of tags, separated by spaces; its values are their places in the list of all tags,
which is in alphabetical order. Beside it stands what training has told of single words: which it
has read, and the most frequent tag of each. All of it lies in the run folder as ``tags.txt``: a
line for each tag and how often it is there, a blank line, a line for each word and its tag.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dragoman.base.atomic import write_text
from dragoman.base.errors import DataError, RunError
from dragoman.base.reading import read_bytes
from dragoman.forms.form import Form
from dragoman.forms.labels import LONGEST, MOST, Labels

_MOST_WORDS = 200_000
_LONGEST_WORD = 60
"""Letters of a word that is kept: longer ones are addresses and accidents."""
_MOST_BYTES = 32 << 20
_LINE = re.compile(r"(\S+)\t(0|[1-9]\d{0,14})\Z")
_NO_TEXT = re.compile("[\ud800-\udfff]")
"""Bytes that were not UTF-8."""


def _composed(word: str) -> str:
    """A word with its accents and syllables in one way: files of macOS have another."""
    return unicodedata.normalize("NFC", word)


class Tags(Form):
    """All tags of a task."""

    def __init__(self, counts: Mapping[str, int], usual: Mapping[str, int]) -> None:
        """``counts``: of different tags, two at least; their order is their values'. ``usual``: the
        value of the most frequent tag of each word that training has read."""
        self.labels = Labels(list(counts))
        self.counts = counts
        self._usual = usual
        self._most = max(range(len(counts)), key=list(counts.values()).__getitem__)

    @classmethod
    def learn(cls, examples: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Tags:
        """Those of some sentences, each with its words and their tags.

        Errors: ``DataError`` where they are all the same, or more than tags can be.
        """
        counts: Counter[str] = Counter()
        of_words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for words, tags in examples:
            counts.update(tags)
            if len(counts) > MOST:
                raise DataError(
                    f"the examples have more than {MOST:,} different tags, such as "
                    f"{next(iter(counts))[:60]!r}. Is it the words that stand in the tags' column? "
                    "--columns says which is which"
                )
            for word, tag in zip(words, tags, strict=True):
                of_words[_composed(word)][tag] += 1
        if long := [tag for tag in counts if len(tag) > LONGEST]:
            raise DataError(f"the tag {long[0][:60]!r} has more than {LONGEST:,} characters")
        if len(counts) < 2:
            which = f"all have the tag {next(iter(counts))!r}" if counts else "there are none"
            raise DataError(
                f"there is nothing to tell apart: of {counts.total():,} training words {which}. "
                "Give examples of two tags at least"
            )
        ordered = {tag: counts[tag] for tag in sorted(counts)}
        value = {tag: number for number, tag in enumerate(ordered)}
        often = sorted(of_words, key=lambda word: (-of_words[word].total(), word))
        return cls(
            ordered,
            {
                # Of two that are equally frequent the one that comes first.
                word: value[min(of_words[word], key=lambda tag: (-of_words[word][tag], tag))]
                for word in often[:_MOST_WORDS]
                if len(word) <= _LONGEST_WORD and not _NO_TEXT.search(word)
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tags:
        """Errors: ``RunError`` if the file is missing or damaged."""
        try:
            lines = read_bytes(Path(path), _MOST_BYTES).decode("utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise RunError(f"{path} is damaged: not UTF-8 at byte {error.start}") from None
        parts: list[dict[str, int]] = [{}]
        for number, line in enumerate(lines[:-1], 1):
            if not line and len(parts) == 1:
                parts.append({})
                continue
            match = _LINE.match(line)
            if match is None or match[1] in parts[-1] or len(match[1]) > LONGEST:
                raise RunError(f"{path} is damaged (line {number})")
            parts[-1][match[1]] = int(match[2])
        counts, usual = parts if len(parts) == 2 else ({}, {})
        sizes = 2 <= len(counts) <= MOST and len(usual) <= _MOST_WORDS
        if not sizes or max(usual.values(), default=0) >= len(counts):
            raise RunError(f"{path} is damaged: it holds no tags and words")
        return cls(counts, usual)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them, whole or not at all."""
        parts = (self.counts, self._usual)
        text = "\n".join("".join(f"{k}\t{v}\n" for k, v in part.items()) for part in parts)
        write_text(Path(path), text)

    # ---- single words

    def knows(self, word: str) -> bool:
        """Whether training has read a word, however its accents and syllables are composed."""
        return self._value(word) is not None

    def usual(self, words: Iterable[str]) -> list[str]:
        """The most frequent tag of each word, for unknown ones the most frequent of all."""
        names = self.labels.names
        values = map(self._value, words)
        return [names[self._most if value is None else value] for value in values]

    def _value(self, word: str) -> int | None:
        """Of the most frequent tag of a word that training has read."""
        return self._usual.get(word, self._usual.get(_composed(word)))

    def numbers(self, raws: Sequence[str]) -> list[list[int]]:
        """Of lines of tags; -1 for a tag that training had not."""
        found = [[self.labels.value(tag) for tag in raw.split()] for raw in raws]
        return [[-1 if value is None else value for value in line] for line in found]

    # ---- as a form

    @property
    def size(self) -> int:
        return self.labels.size

    @property
    def fingerprint(self) -> str:
        return self.labels.fingerprint

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """All tags must be known."""
        return [[value for (value,) in self.labels.tokens(raw.split())] for raw in raws]

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        return self.labels.raw(outputs)

    def shown(self, tokens: Iterable[int]) -> list[str]:
        return self.labels.shown(tokens)

    def longest_output(self, length: int, extra: int) -> int:
        return length
