"""What a tagger is measured beside: the averaged perceptron of Collins (2002), which tags from left
to right, greedily, with the features of Honnibal's tagger (2013; NLTK and TextBlob have it too).

It is here and not in the program, which trains networks. Trains on tagged words of any layout that
``dragoman train --task tagging`` reads, and says the same accuracies as ``dragoman evaluate``:

    python benchmarks/perceptron.py train.mrg test.mrg
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from dragoman.base.measure import percent
from dragoman.data.files.corpora import read_pairs
from dragoman.forms.form import Pair
from dragoman.tasks.tagging.form import Tags, words_and_tags
from dragoman.tasks.tagging.metrics import TagScores, has_spans
from dragoman.tasks.tagging.sizes import corpus_of_tags

_BEFORE = ("-START2-", "-START-")
_BEHIND = ("-END-", "-END2-")
_OFTEN = 20
"""Words that are so frequent in training ..."""
_ALWAYS = 0.97
"""... and nearly always have one tag get it without being asked."""

Sentence = tuple[Sequence[str], Sequence[str]]


class Perceptron:
    """One weight for each feature and tag, averaged over all that it has seen. Use ``train``."""

    def __init__(self, tags: Sequence[str], always: dict[str, str]) -> None:
        self.tags = sorted(tags)
        self._always = always
        self._weights: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._totals: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._changed: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._seen = 0

    @classmethod
    def train(cls, sentences: Sequence[Sentence], epochs: int, seed: int) -> Perceptron:
        """So many times over all sentences, in an order drawn anew each time."""
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for words, tags in sentences:
            for word, tag in zip(words, tags, strict=True):
                counts[word][tag] += 1
        always = {
            word: tag
            for word, of in counts.items()
            for tag, often in of.most_common(1)
            if of.total() >= _OFTEN and often >= _ALWAYS * of.total()
        }
        made = cls(list({tag for _, tags in sentences for tag in tags}), always)
        order, draw = list(sentences), random.Random(seed)
        for _ in range(epochs):
            draw.shuffle(order)
            for words, tags in order:
                made._learn(words, tags)
        made._average()
        return made

    def tag(self, words: Sequence[str]) -> list[str]:
        """The tags of a sentence."""
        before, last = _BEFORE
        context = [*_BEFORE, *map(normal, words), *_BEHIND]
        found = []
        for place, word in enumerate(words):
            tag = self._always.get(word) or self._best(
                list(features(place, word, context, last, before))
            )
            found.append(tag)
            before, last = last, tag
        return found

    def _learn(self, words: Sequence[str], tags: Sequence[str]) -> None:
        before, last = _BEFORE
        context = [*_BEFORE, *map(normal, words), *_BEHIND]
        for place, (word, true) in enumerate(zip(words, tags, strict=True)):
            guess = self._always.get(word)
            if guess is None:
                named = list(features(place, word, context, last, before))
                guess = self._best(named)
                self._seen += 1
                if guess != true:
                    for name in named:
                        self._change(name, true, 1.0)
                        self._change(name, guess, -1.0)
            before, last = last, guess  # as it will be when nobody knows the tags

    def _best(self, named: Sequence[str]) -> str:
        scores = dict.fromkeys(self.tags, 0.0)
        for name in named:
            for tag, weight in self._weights.get(name, {}).items():
                scores[tag] += weight
        return max(self.tags, key=lambda tag: (scores[tag], tag))

    def _change(self, name: str, tag: str, by: float) -> None:
        weights, place = self._weights[name], (name, tag)
        weight = weights.get(tag, 0.0)
        self._totals[place] += (self._seen - self._changed[place]) * weight
        self._changed[place] = self._seen
        weights[tag] = weight + by

    def _average(self) -> None:
        for name, weights in self._weights.items():
            for tag, weight in weights.items():
                place = name, tag
                total = self._totals[place] + (self._seen - self._changed[place]) * weight
                weights[tag] = total / max(1, self._seen)


def normal(word: str) -> str:
    """A word as its neighbours see it: in lower case, numbers and compounds by their kind."""
    if "-" in word and word[0] != "-":
        return "!HYPHEN"
    if word.isdigit():
        return "!YEAR" if len(word) == 4 else "!DIGITS"
    return "!DIGITS" if word[0].isdigit() else word.lower()


def features(
    place: int, word: str, context: Sequence[str], last: str, before: str
) -> Iterator[str]:
    """What is known of a word; ``last`` and ``before``: the tags of the two before it."""
    place += len(_BEFORE)
    yield "bias"
    yield f"suffix {word[-3:]}"
    yield f"first {word[0]}"
    yield f"tag-1 {last}"
    yield f"tag-2 {before}"
    yield f"tags {last} {before}"
    yield f"word {context[place]}"
    yield f"tag-1 word {last} {context[place]}"
    yield f"word-1 {context[place - 1]}"
    yield f"suffix-1 {context[place - 1][-3:]}"
    yield f"word-2 {context[place - 2]}"
    yield f"word+1 {context[place + 1]}"
    yield f"suffix+1 {context[place + 1][-3:]}"
    yield f"word+2 {context[place + 2]}"


def read(path: Path, columns: str | None) -> list[Pair]:
    """The sentences of a file of tagged words."""
    return list(read_pairs(corpus_of_tags(str(path), columns, None)))


def main() -> None:
    """Train on one file, measure on another."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--columns", help="of words and tags, as dragoman train takes them")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sentences = [
        words_and_tags(pair, given.train.name) for pair in read(given.train, given.columns)
    ]
    test = [words_and_tags(pair, given.test.name) for pair in read(given.test, given.columns)]
    began = time.process_time()
    perceptron = Perceptron.train(sentences, given.epochs, given.seed)
    trained = time.process_time() - began
    tags = Tags.learn(sentences)
    known = [[tags.knows(word) for word in words] for words, _ in test]
    true, iob = [own for _, own in test], has_spans(tags.counts)
    systems = {
        "most frequent tag of each word": [tags.usual(words) for words, _ in test],
        f"averaged perceptron, {given.epochs} epochs": [perceptron.tag(words) for words, _ in test],
    }
    print(f"{len(sentences):,} sentences to learn from, {len(test):,} to test")
    for name, chosen in systems.items():
        figures = TagScores.of(true, chosen, known, iob).figures()
        shown = (f"{one} {percent(one).text(value)}" for one, value in figures.items())
        print(f"{name}: {', '.join(shown)}")
    print(f"{trained:.0f} s of one core to train")


if __name__ == "__main__":
    main()
