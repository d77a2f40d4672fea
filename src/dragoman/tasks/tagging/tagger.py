"""The predictor of a run that tags: sentences in, a tag and its probability for each word out.

Nothing is searched for: all tags of a word are scored at once, by the model as it is, in fp32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from dragoman.base.errors import DragomanError
from dragoman.data.labelled import Pieces, WordCutter, WordRows
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import NO_ENCODER, Predictor, Shown
from dragoman.engine.settings import EngineSettings
from dragoman.models.interface import Network
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis, hypothesis_of
from dragoman.tasks.shared.examples import in_batches, reading_of
from dragoman.tasks.tagging.form import Tags

_TOKENS_AT_ONCE = 8192

LogProbabilities = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Tagged:
    """One sentence. ``str(tagged)`` is it with its tags: ``word_TAG word_TAG``."""

    words: tuple[str, ...]
    """What stands between its spaces."""
    names: tuple[str, ...]
    """The names of all tags."""
    log_probabilities: LogProbabilities
    """(words, K) log P of each tag, in nats."""
    parts: int
    """In how many parts it was read: a sentence with more tokens than are read at once in
    several, each without what stands around it."""

    @property
    def values(self) -> list[int]:
        """The number of the most probable tag of each word."""
        found: list[int] = self.log_probabilities.argmax(axis=1).tolist()
        return found

    @property
    def tags(self) -> tuple[str, ...]:
        """The most probable tag of each word."""
        return tuple(self.names[value] for value in self.values)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """How probable the tag of each word is."""
        return tuple(np.exp(self.log_probabilities.max(axis=1)).tolist())

    def ranked(self, word: int) -> list[tuple[str, float]]:
        """Every tag of a word and its probability, the most probable first."""
        return most_probable(self.names, self.log_probabilities[word])

    def columns(self) -> str:
        """A word, a tab and its tag, a line each."""
        pairs = zip(self.words, self.tags, strict=True)
        return "".join(f"{word}\t{tag}\n" for word, tag in pairs)

    def written(self) -> str:
        """``word_TAG word_TAG``; columns, where tags of the task hold an underscore themselves."""
        return str(self) if read_back(self.names) else self.columns()

    def __str__(self) -> str:
        return underscored(self.words, self.tags)


class ScoredWords(NamedTuple):
    """Some words of a sentence that were read together."""

    sentence: int
    """The number of the sentence."""
    first: int
    """The number of the first of them."""
    log_probabilities: LogProbabilities
    """(words, K) log P of each tag, in nats."""


def most_probable(
    names: Sequence[str], scores: LogProbabilities, top: int | None = None
) -> list[tuple[str, float]]:
    """So many tags of a word, or all, each with its probability, the most probable first."""
    order = np.argsort(-scores, kind="stable")[:top]
    return [(names[k], float(np.exp(scores[k]))) for k in order]


def read_back(tags: Iterable[str]) -> bool:
    """Whether ``word_TAG`` can be read again: it is parted at its last underscore."""
    return not any("_" in tag for tag in tags)


def underscored(words: Iterable[str], tags: Iterable[str]) -> str:
    """``word_TAG word_TAG``."""
    return " ".join(f"{word}_{tag}" for word, tag in zip(words, tags, strict=True))


class Tagger(Predictor[Tagged]):
    """A trained model, ready to tag. Not for several threads at once.

    ::

        tagger = dragoman.Tagger(dragoman.Run.open("runs/wsj"))
        tagged = tagger("The cat sleeps .")
        print(tagged, tagged.tags, tagged.probabilities)
    """

    def __init__(self, run: Run, settings: EngineSettings | None = None) -> None:
        """Errors: ``RunError``, also for a run that does something else."""
        run.require_task("tagging", "which does not tag words")
        super().__init__(run, Engine.reading(run, settings or EngineSettings(precision="fp32")))
        self.network: Network = self.engine.network
        self.tags = Tags.of(run.forms.target)
        self.reading = reading_of(run.recipe, run.forms)
        self._cut = WordCutter(run.source)

    @property
    def longest(self) -> int:
        """Tokens that are read at once, a symbol before or behind them counted."""
        return self.reading.longest

    def each(self, given: Iterable[str]) -> Iterator[Tagged]:
        """Each sentence with a tag for each of its words, in their order; one without words has
        none. All are read before the first is answered."""
        sentences = [text.split() for text in given]
        parts = self.cut(sentences)
        found = [np.empty((len(words), self.tags.size), np.float32) for words in sentences]
        for number, first, scores in self.scored(parts):
            found[number][first : first + len(scores)] = scores
        names = self.tags.labels.names
        for words, scores, read in zip(sentences, found, parts, strict=True):
            yield Tagged(tuple(words), names, scores, len(read))

    def cut(self, sentences: Sequence[Sequence[str]]) -> list[list[Pieces]]:
        """The parts of each sentence that are read at once, each with the tokens of its words."""
        return [self._parts(pieces) for pieces in self._cut(sentences)]

    def tokens_read(self, sentences: Sequence[Sequence[Pieces]]) -> int:
        """Of sentences that were cut, a symbol before or behind each part counted."""
        return sum(_size(part) for parts in sentences for part in parts)

    def scored(
        self, sentences: Sequence[Sequence[Pieces]], together: int = _TOKENS_AT_ONCE
    ) -> Iterator[ScoredWords]:
        """The tags of sentences that were cut, part by part as they come, the shortest first; so
        many tokens are read at once."""
        flat: list[tuple[int, int, Pieces]] = []
        for number, parts in enumerate(sentences):
            first = 0
            for part in parts:
                flat.append((number, first, part))
                first += len(part)
        flat.sort(key=lambda one: _size(one[2]))
        for places in in_batches([_size(part) for _, _, part in flat], together):
            every = self._scores([flat[place][2] for place in places])
            for place, scores in zip(places, every, strict=True):
                yield ScoredWords(*flat[place][:2], scores)

    def _parts(self, pieces: Pieces) -> list[Pieces]:
        """A sentence in parts that are read at once; a word alone may be too long, and is then read
        from its beginning."""
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
        read = WordRows.of(parts, self.reading)
        with torch.inference_mode():
            logits = self.network.project(read.windows(self.network.encode(read.source).rows))
            every: LogProbabilities = torch.log_softmax(logits.double(), dim=-1).float().numpy()
        return np.split(every, np.cumsum(read.counts)[:-1])

    # ---- looking

    def shown(self, text: str, prefix: str = "") -> Shown:
        """Its tags. Errors: ``DragomanError`` for a prefix."""
        if prefix:
            raise DragomanError("tags are given no beginning: leave the prefix out")
        found = self(text)
        score = float(found.log_probabilities.max(axis=1).sum())
        return Shown(str(found), tuple(found.values), score)

    def source_ids(self, text: str) -> list[int]:
        """What the model reads of a text: the tokens of its words, up to what is read at once, and
        a symbol before or behind them."""
        (pieces,) = self._cut([text.split()])
        read: list[int] = WordRows.of([pieces], self.reading).source.values.tolist()
        return read

    def score_ids(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Hypothesis]:
        """log P of the tags of each sentence, given by their values."""
        return [
            hypothesis_of(
                target,
                [float(row[tag]) for row, tag in zip(one.log_probabilities, target, strict=True)],
                0.0,
                finished=False,
            )
            for one, target in zip(self(sources), targets, strict=True)
        ]

    @property
    def no_inside(self) -> str | None:
        return NO_ENCODER if self.reading.before else None


def _size(part: Pieces) -> int:
    """Tokens that are read, a symbol before or behind them counted."""
    return 1 + sum(map(len, part))
