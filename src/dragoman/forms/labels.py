"""The form of a target that is one of K labels: a sentence's topic, its source, its subject.

A label is a name without spaces around it; its value is its place in the list of all names,
which is in alphabetical order and in the run folder as ``labels.json``. Labels have no begin or
end symbol: a model scores all of them at once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman.base.atomic import write_text
from dragoman.base.errors import DataError, RunError
from dragoman.base.reading import read_json
from dragoman.forms.form import Form

MOST = 10_000
"""The most different labels. More are sentences, or numbers that accompany texts."""
LONGEST = 1_000
"""The most characters of a label."""
_ALL = 400_000
"""The most characters of all labels together: their file must not exceed MAX_JSON to be read."""
_SHOWN = 8


def plain(label: str) -> str:
    """Return a label without spaces around it."""
    return label.strip()


class Labels(Form):
    """The set of labels of a task."""

    def __init__(self, names: Sequence[str]) -> None:
        """``names``: at least two different names, in the order of their values."""
        self.names = tuple(names)
        self.size = len(self.names)
        self._values = {name: value for value, name in enumerate(self.names)}
        assert len(self._values) == len(self.names) > 1

    @classmethod
    def learn(cls, labels: Iterable[str]) -> tuple[Labels, Counter[str]]:
        """Return the labels of some examples, and the number of examples of each.

        Errors: ``DataError`` if all are equal, or if there are too many.
        """
        counts: Counter[str] = Counter()
        for label in labels:
            counts[plain(label)] += 1
            if len(counts) > MOST:
                raise DataError(
                    f"the examples have more than {MOST:,} different labels, such as "
                    f"{_quote(counts)}. If the column is wrong, set --columns"
                )
        if len(counts) < 2:
            which = f"all have the label {next(iter(counts))!r}" if counts else "none has a label"
            raise DataError(
                f"of {counts.total():,} training examples, {which}. Give examples with at least "
                "two labels"
            )
        letters = sum(map(len, counts))
        if letters > _ALL:
            raise DataError(
                f"the {len(counts):,} labels have {letters:,} characters together; at most "
                f"{_ALL:,} are allowed. Labels must be short names, not {_quote(sorted(counts))}"
            )
        return cls(sorted(counts)), counts

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Labels:
        """Read the labels. Errors: ``RunError`` if the file is missing or damaged."""
        names = read_json(Path(path))
        if (
            not isinstance(names, list)
            or not 2 <= len(names) <= MOST
            or not all(isinstance(name, str) and 0 < len(name) <= LONGEST for name in names)
            or len(set(names)) != len(names)
        ):
            raise RunError(f"{path} is damaged: it does not contain a list of different labels")
        return cls(names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the labels, all or nothing."""
        write_text(Path(path), json.dumps(self.names, indent=1, ensure_ascii=False) + "\n")

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of all names in their order."""
        return hashlib.sha256(json.dumps(self.names).encode()).hexdigest()

    def value(self, label: str) -> int | None:
        """Return the value of a label; None if it is unknown."""
        return self._values.get(plain(label))

    def summary(self) -> str:
        """Return the first names, and the number of the others."""
        return _quote(self.names)

    # ---- the methods of a form

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """Return the value of each label. All must be known."""
        return [[self._values[plain(raw)]] for raw in raws]

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        return [" ".join(self.names_of(output)) for output in outputs]

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        return [self.names[token] for token in tokens]

    def longest_output(self, length: int, extra: int) -> int:
        return 1


def _quote(names: Iterable[str]) -> str:
    all_of_them = list(names)
    first = ", ".join(repr(name[:60]) for name in all_of_them[:_SHOWN])
    more = len(all_of_them) - _SHOWN
    return first + (f" and {more:,} more" if more > 0 else "")
