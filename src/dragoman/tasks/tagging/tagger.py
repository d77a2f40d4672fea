"""The predictor of a tagging run: it reads sentences and gives each word a tag and its probability.

There is no search: the model scores all tags of a word at once, in fp32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from dragoman.base.errors import DragomanError
from dragoman.data.batches import in_batches
from dragoman.data.labelled import Pieces, WordCutter, WordRows
from dragoman.engine.predictor import NO_ENCODER, ReadingPredictor, Shown
from dragoman.forms.sides import Forms
from dragoman.models.interface import Network
from dragoman.runs.recipe.recipe import Recipe
from dragoman.search.hypothesis import Hypothesis, hypothesis_of
from dragoman.tasks.shared.examples import reading_of
from dragoman.tasks.tagging.form import Tags

_TOKENS_AT_ONCE = 8192

LogProbabilities = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Tagged:
    """One tagged sentence. ``str(tagged)`` gives words with tags: ``word_TAG word_TAG``."""

    words: tuple[str, ...]
    """The words of the sentence, split at its spaces."""
    names: tuple[str, ...]
    """The names of all tags, in their order."""
    log_probabilities: LogProbabilities
    """(words, K) log P of each tag, in nats."""
    parts: int
    """The number of parts that the sentence was read in: a sentence with too many tokens is cut,
    and each part is read without the others."""

    @property
    def values(self) -> list[int]:
        """The number of the most probable tag of each word."""
        numbers: list[int] = self.log_probabilities.argmax(axis=1).tolist()
        return numbers

    @property
    def tags(self) -> tuple[str, ...]:
        """The most probable tag of each word."""
        return tuple(self.names[value] for value in self.values)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The probability of the most probable tag of each word."""
        return tuple(np.exp(self.log_probabilities.max(axis=1)).tolist())

    def ranking(self, word: int) -> list[tuple[str, float]]:
        """Every tag of a word and its probability, the most probable first."""
        return most_probable(self.names, self.log_probabilities[word])

    def columns(self) -> str:
        """The sentence as lines: a word, a tab and its tag."""
        pairs = zip(self.words, self.tags, strict=True)
        return "".join(f"{word}\t{tag}\n" for word, tag in pairs)

    def as_text(self) -> str:
        """The sentence as ``word_TAG word_TAG``; as ``columns`` if tags contain an underscore."""
        return str(self) if read_back(self.names) else self.columns()

    def __str__(self) -> str:
        return join_tags(self.words, self.tags)


class ScoredWords(NamedTuple):
    """Some words of a sentence that were read together."""

    sentence: int
    """The number of the sentence, from 0."""
    first: int
    """The number of the first of these words."""
    log_probabilities: LogProbabilities
    """(words, K) log P of each tag, in nats."""


def most_probable(
    names: Sequence[str], scores: LogProbabilities, top: int | None = None
) -> list[tuple[str, float]]:
    """The ``top`` most probable tags of a word, or all, each with its probability, best first."""
    order = np.argsort(-scores, kind="stable")[:top]
    return [(names[k], float(np.exp(scores[k]))) for k in order]


def read_back(tags: Iterable[str]) -> bool:
    """Return whether ``word_TAG`` is unambiguous: a reader splits it at the last underscore."""
    return not any("_" in tag for tag in tags)


def join_tags(words: Iterable[str], tags: Iterable[str]) -> str:
    """Join words and tags as ``word_TAG word_TAG``."""
    return " ".join(f"{word}_{tag}" for word, tag in zip(words, tags, strict=True))


class Tagger(ReadingPredictor[Tagged]):
    """A trained tagger. Do not use it from several threads at once.

    ::

        tagger = dragoman.Tagger(dragoman.Run.open("runs/wsj"))
        tagged = tagger("The cat sleeps .")
        print(tagged, tagged.tags, tagged.probabilities)
    """

    asked_of: ClassVar[tuple[str, str]] = ("tagging", "which does not tag words")

    def prepare(self, recipe: Recipe, forms: Forms) -> None:
        self.network: Network = self.engine.network
        self.tags = Tags.of(forms.target)
        self.reading = reading_of(recipe, forms)
        self._cut = WordCutter(forms.source)

    @property
    def longest(self) -> int:
        """The most tokens that are read at once, including one special symbol."""
        return self.reading.longest

    def each(self, given: Iterable[str]) -> Iterator[Tagged]:
        """Tag sentences, in their order; a sentence without words has no tags. All sentences are
        read before the first result."""
        sentences = [text.split() for text in given]
        yield from self.tag_parts(sentences, self.cut(sentences))

    def tag_parts(
        self, sentences: Sequence[Sequence[str]], parts: Sequence[Sequence[Pieces]]
    ) -> Iterator[Tagged]:
        """Tag sentences that are already cut into parts, in their order."""
        tables = [np.empty((len(words), self.tags.size), np.float32) for words in sentences]
        for number, first, scores in self.score_parts(parts):
            tables[number][first : first + len(scores)] = scores
        names = self.tags.labels.names
        for words, scores, read in zip(sentences, tables, parts, strict=True):
            yield Tagged(tuple(words), names, scores, len(read))

    def cut(self, sentences: Sequence[Sequence[str]]) -> list[list[Pieces]]:
        """Cut each sentence into parts that are read at once, as the tokens of each word."""
        return [self._parts(pieces) for pieces in self._cut(sentences)]

    def tokens_read(self, sentences: Sequence[Sequence[Pieces]]) -> int:
        """The number of tokens in cut sentences, with one special symbol for each part."""
        return sum(_size(part) for parts in sentences for part in parts)

    def score_parts(
        self, sentences: Sequence[Sequence[Pieces]], together: int = _TOKENS_AT_ONCE
    ) -> Iterator[ScoredWords]:
        """Score the tags of sentences that were cut, part by part, the shortest first.
        ``together``: the most tokens that are read at once."""
        flat: list[tuple[int, int, Pieces]] = []
        for number, parts in enumerate(sentences):
            first = 0
            for part in parts:
                flat.append((number, first, part))
                first += len(part)
        flat.sort(key=lambda entry: _size(entry[2]))
        for batch in in_batches(flat, together, lambda entry: _size(entry[2])):
            every = self._scores([part for _, _, part in batch])
            for (number, first, _), scores in zip(batch, every, strict=True):
                yield ScoredWords(number, first, scores)

    def _parts(self, pieces: Pieces) -> list[Pieces]:
        """Cut a sentence into parts that are read at once; too long a word loses its end."""
        parts: list[list[Sequence[int]]] = []
        room, most = 0, self.longest - 1
        for word in pieces:
            cut = word[:most]
            if len(cut) > room:
                parts.append([])
                room = most
            parts[-1].append(cut)
            room -= len(cut)
        return list(parts)

    def _scores(self, parts: Sequence[Pieces]) -> list[LogProbabilities]:
        read = WordRows.of(parts, self.reading).to(self.engine.device)
        with torch.inference_mode():
            logits = self.network.project(read.windows(self.network.encode(read.source).rows))
            every = torch.log_softmax(logits.double(), dim=-1).float().cpu().numpy()
        return np.split(every, np.cumsum(read.counts)[:-1])

    # ---- looking

    def own_output(self, text: str, prefix: str = "") -> Shown:
        """The tags of a sentence, for figures. Errors: ``DragomanError`` for a prefix."""
        if prefix:
            raise DragomanError("tags cannot have a prefix. Leave it out")
        tagged = self(text)
        score = float(tagged.log_probabilities.max(axis=1).sum())
        return Shown(str(tagged), tuple(tagged.values), score)

    def source_ids(self, text: str) -> list[int]:
        """The ids that the model reads: tokens of words, up to the limit, and a special symbol."""
        (pieces,) = self._cut([text.split()])
        read: list[int] = WordRows.of([pieces], self.reading).source.values.tolist()
        return read

    def score_ids(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Hypothesis]:
        """log P of the tags of each sentence. ``targets``: the ids of the tags."""
        return [
            hypothesis_of(
                target,
                [float(row[tag]) for row, tag in zip(guess.log_probabilities, target, strict=True)],
                finished=False,
            )
            for guess, target in zip(self(sources), targets, strict=True)
        ]

    @property
    def no_inside(self) -> str | None:
        return NO_ENCODER if self.reading.before else None


def _size(part: Pieces) -> int:
    """The number of tokens in a part, including one special symbol."""
    return 1 + sum(map(len, part))
