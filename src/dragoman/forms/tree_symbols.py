"""Trees as sequences of symbols (Vinyals et al., 2015, *Grammar as a Foreign Language*, section 2).

    (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))
    (S (NP DT NN )NP (VP VBZ )VP )S            with tags
    (S (NP XX XX )NP (VP XX )VP )S             without

Each opening and each closing bracket is a symbol with its label; a word is its tag, or one symbol
for all words. The words themselves are not written, because they are those of the source.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.base.errors import DataError, RunError
from dragoman.base.reading import read_json
from dragoman.base.settings import Settings
from dragoman.forms.form import SPECIAL, Symbols
from dragoman.forms.tree import Tree

NO_TAG = "XX"
"""The tag of every word if tags are not learned."""

_MOST = 10_000
"""The most labels, and the most tags; treebanks have some dozens."""
_ALL = 400_000
"""The most characters of all together: their file must not exceed MAX_JSON to be read."""


class TreeSettings(Settings):
    """The representation of trees as symbols (task parsing)."""

    tags: Literal["none", "kept"] = "none"
    """none: every word is written as the same symbol (XX), which gives better parses than tags
    (Vinyals et al., 2015, section 3.1); kept: the parser learns and writes the tag of each word."""
    chain: int = Field(5, ge=1, le=50)
    """The maximum number of nested brackets around the same words in a parse."""


class _TreeFile(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    format: Literal[1] = 1
    tags: list[str] = Field(min_length=1, max_length=_MOST)
    labels: list[str] = Field(min_length=1, max_length=_MOST)
    chain: int = Field(ge=1, le=50)


class TreeSymbols(Symbols):
    """The symbols of the brackets and tags of a treebank, in one file ``target.json``.

    Ids: 0 to 2 as in a vocabulary of text, then the tags, then for each label the bracket that
    opens and the one that closes.
    """

    def __init__(self, tags: Sequence[str], labels: Sequence[str], chain: int) -> None:
        """``chain`` is the setting that ``TreeSettings`` describes."""
        self.tags = tuple(tags)
        self.labels = tuple(labels)
        self.chain = chain
        self.tag_ids = {tag: number for number, tag in enumerate(tags, len(SPECIAL))}
        self.label_numbers = {label: number for number, label in enumerate(labels)}
        """The place of each label among ``labels``, from 0."""
        first = len(SPECIAL) + len(tags)
        self.size = first + 2 * len(labels)
        self.words = range(len(SPECIAL), first)
        """The ids of words."""
        self.opening = range(first, self.size, 2)
        """The ids of opening brackets, label by label."""
        self.closing = range(first + 1, self.size, 2)
        """The ids of closing brackets, in the same order."""

    @classmethod
    def learn(cls, trees: Iterable[Tree], settings: TreeSettings) -> Self:
        """Return the symbols of some trees, the most frequent first. Errors: ``DataError``
        without any tree, or for a bracket chain that is longer than the settings allow."""
        tags: Counter[str] = Counter()
        labels: Counter[str] = Counter()
        for tree in trees:
            tags.update(leaf.label for leaf in tree.leaves())
            labels.update(bracket.label for bracket in tree.brackets())
        if not labels:
            raise DataError("there are no trees to learn brackets from")
        if max(len(tags), len(labels)) > _MOST:
            raise DataError(
                f"these trees have {len(labels):,} labels and {len(tags):,} tags; at most "
                f"{_MOST:,} of each are allowed"
            )
        letters = sum(map(len, tags)) + sum(map(len, labels))
        if letters > _ALL:
            raise DataError(
                f"the {len(labels):,} labels and {len(tags):,} tags of these trees have "
                f"{letters:,} characters together. At most {_ALL:,} are allowed. They may be text "
                "instead of labels"
            )
        kept = _order(tags) if settings.tags == "kept" else [NO_TAG]
        return cls(kept, _order(labels), settings.chain)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the symbols. Errors: ``RunError`` if the file is missing or damaged."""
        try:
            content = _TreeFile.model_validate(read_json(path))
        except ValidationError as error:
            raise RunError(f"{path} is damaged: it has no brackets and tags") from error
        for names in (content.tags, content.labels):
            bad = [
                name for name in names if not name or any(c in "()" or c.isspace() for c in name)
            ]
            if bad or len(set(names)) < len(names):
                raise RunError(f"{path} is damaged: it has an invalid bracket or tag, or one twice")
        return cls(content.tags, content.labels, content.chain)

    @property
    def _json(self) -> str:
        record = _TreeFile(tags=list(self.tags), labels=list(self.labels), chain=self.chain)
        return json.dumps(record.model_dump(), ensure_ascii=False)

    @property
    def with_tags(self) -> bool:
        """True if the tags of words are learned."""
        return self.tags != (NO_TAG,)

    def names_of(self, ids: Iterable[int]) -> list[str]:
        """Return each symbol as it is written."""
        names = [*SPECIAL, *self.tags]
        for label in self.labels:
            names += [f"({label}", f"){label}"]
        return [names[symbol] for symbol in ids]


def _order(counts: Counter[str]) -> list[str]:
    return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
