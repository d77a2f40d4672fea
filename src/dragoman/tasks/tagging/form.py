"""The form of a target that has one tag for each word that is read: parts of speech, names.

A raw target is a line of tags, separated by spaces; its values are their places in the list of all
tags, which is in alphabetical order. The form also has the words of the training text and the most
frequent tag of each. The run folder contains all this as ``tags.txt``: a line for each tag and its
frequency, a blank line, a line for each word and the number of its tag.
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
from dragoman.base.wording import plural
from dragoman.forms.form import Form, Pair
from dragoman.forms.labels import LONGEST, MOST, Labels

_MOST_WORDS = 200_000
_LONGEST_WORD = 60
"""The most letters of a word that is kept: longer ones are addresses or mistakes."""
_MOST_BYTES = 32 << 20
_LINE = re.compile(r"(\S+)\t(0|[1-9]\d{0,14})\Z")
_NO_TEXT = re.compile("[\ud800-\udfff]")
"""Bytes that are not valid UTF-8."""


def _compose(word: str) -> str:
    """A word in Unicode normal form C: files of macOS have another form."""
    return unicodedata.normalize("NFC", word)


class Tags(Form):
    """All tags of a task, and the words of the training text."""

    def __init__(self, counts: Mapping[str, int], usual: Mapping[str, int]) -> None:
        """``counts``: the frequency of each tag, at least two tags; their order gives their values.
        ``usual``: the value of the most frequent tag of each word in the training text."""
        self.labels = Labels(list(counts))
        self.size = self.labels.size
        self.counts = counts
        self._usual = usual
        self._most = max(range(len(counts)), key=list(counts.values()).__getitem__)

    @classmethod
    def learn(cls, examples: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Tags:
        """Make the form from some sentences, each with its words and their tags.

        Errors: ``DataError`` if there is only one tag, or too many tags.
        """
        counts: Counter[str] = Counter()
        of_words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for words, tags in examples:
            counts.update(tags)
            if len(counts) > MOST:
                raise DataError(
                    f"the examples have more than {MOST:,} different tags, such as "
                    f"{next(iter(counts))[:60]!r}. If the column is wrong, set --columns"
                )
            for word, tag in zip(words, tags, strict=True):
                of_words[_compose(word)][tag] += 1
        if long := [tag for tag in counts if len(tag) > LONGEST]:
            raise DataError(f"the tag {long[0][:60]!r} has more than {LONGEST:,} characters")
        if len(counts) < 2:
            which = f"all have the tag {next(iter(counts))!r}" if counts else "there are none"
            raise DataError(
                f"of {counts.total():,} training words, {which}. Give examples with at least two "
                "tags"
            )
        ordered = {tag: counts[tag] for tag in sorted(counts)}
        value = {tag: number for number, tag in enumerate(ordered)}
        often = sorted(of_words, key=lambda word: (-of_words[word].total(), word))
        return cls(
            ordered,
            {
                # If two tags are equally frequent, the one that comes first in the alphabet.
                word: value[min(of_words[word], key=lambda tag: (-of_words[word][tag], tag))]
                for word in often[:_MOST_WORDS]
                if len(word) <= _LONGEST_WORD and not _NO_TEXT.search(word)
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tags:
        """Read ``tags.txt``. Errors: ``RunError`` if the file is missing or damaged."""
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
            raise RunError(f"{path} is damaged: it contains no tags and words")
        return cls(counts, usual)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``tags.txt``, whole or not at all."""
        parts = (self.counts, self._usual)
        text = "\n".join("".join(f"{k}\t{v}\n" for k, v in part.items()) for part in parts)
        write_text(Path(path), text)

    # ---- single words

    def knows(self, word: str) -> bool:
        """Return whether the training text has a word, in any Unicode form."""
        return self._value(word) is not None

    def usual(self, words: Iterable[str]) -> list[str]:
        """The most frequent tag of each word; for unknown words, the most frequent tag of all."""
        names = self.labels.names
        values = map(self._value, words)
        return [names[self._most if value is None else value] for value in values]

    def _value(self, word: str) -> int | None:
        """The value of the most frequent tag of a word; None for an unknown word."""
        return self._usual.get(word, self._usual.get(_compose(word)))

    def numbers(self, raws: Sequence[str]) -> list[list[int]]:
        """The values of lines of tags; -1 for a tag that the training text does not have."""
        values = [[self.labels.value(tag) for tag in raw.split()] for raw in raws]
        return [[-1 if value is None else value for value in line] for line in values]

    # ---- as a form

    @property
    def fingerprint(self) -> str:
        return self.labels.fingerprint

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """The values of lines of tags, which must all be known."""
        return [[value for (value,) in self.labels.tokens(raw.split())] for raw in raws]

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        return self.labels.raw(outputs)

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        return self.labels.names_of(tokens)

    def longest_output(self, length: int, extra: int) -> int:
        return length


def words_and_tags(pair: Pair, name: str) -> tuple[Sequence[str], Sequence[str]]:
    """The words and the tags of an example. Errors: ``DataError`` if their numbers differ."""
    words, tags = pair.source.split(), pair.target.split()
    if len(words) != len(tags):
        raise DataError(
            f"{name}, line {pair.line}: {plural(len(words), 'word')} and "
            f"{plural(len(tags), 'tag')}. Each word needs one tag"
        )
    return words, tags
