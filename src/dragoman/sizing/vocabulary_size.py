"""The size of a vocabulary, if the user does not set it.

A table (``size.py``) gives a number of tokens that suits the model. The text has its own limits:
words to make tokens of, and characters; a character without a token of its own is written as its
bytes in UTF-8. If the characters leave too few tokens for words, as those of Chinese or Korean do
in a small vocabulary, only the frequent ones get a token; if even these are too many, the
vocabulary becomes larger than in the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, islice
from math import ceil, floor

from dragoman.base.errors import DataError
from dragoman.forms.subwords.sampling import SPACE
from dragoman.forms.subwords.text import LEAST_COVERAGE, TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary, normalise_all
from dragoman.runs.corpora import sides_of_vocabularies, training_lines
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.recipe_text import sets

_SHARE = 2 / 3
"""The largest share of the tokens for single characters, except in a vocabulary of characters."""


class _Counts:
    """Counts of the characters and words of the text that one vocabulary is learned from."""

    def __init__(self, lines: Iterable[str], settings: TextSettings) -> None:
        counts: Counter[str] = Counter(SPACE)
        words: set[str] = set()
        for line in normalise_all(islice(lines, settings.sample_sentences), settings):
            counts.update(line)
            if len(words) < 2 * settings.vocabulary:  # more words change nothing
                words.update(line.split(SPACE))
        self.characters = len(counts)
        """The number of different characters, including the space."""
        self.words = len(words - {""})
        self._reached = list(accumulate(sorted(counts.values(), reverse=True)))

    def coverage(self, characters: int) -> float:
        """The share of the running text that the ``characters`` most frequent characters cover."""
        if characters >= self.characters:
            return 1.0
        return self._reached[max(0, characters - 1)] / self._reached[-1]

    def characters_for(self, coverage: float) -> int:
        """The fewest characters that cover this share of the text."""
        return 1 + sum(reached < coverage * self._reached[-1] for reached in self._reached[:-1])


def fit_vocabulary(
    recipe: Recipe, changes: Sequence[str], say: Say, known: Collection[str] = ()
) -> Recipe:
    """The recipe with a vocabulary that the training text supports, and that its characters fit
    into. Settings in ``changes`` stay. ``say`` gets a message if the characters decide. ``known``:
    files of existing vocabularies.

    The training text is read; if that fails, the recipe does not change, and training reports the
    error.
    """
    try:
        return _fit(recipe, changes, say, known)
    except DataError:
        return recipe


def _fit(recipe: Recipe, changes: Sequence[str], say: Say, known: Collection[str]) -> Recipe:
    if sets(changes, "text.vocabulary"):
        return recipe
    settings, symbols = recipe.text, recipe.spec.symbols
    others = 3 + len(symbols) + len(settings.user_symbols) + 256 * settings.byte_fallback
    every = sides_of_vocabularies(recipe).items()
    parts = [sides for name, sides in every if name not in known]
    counts = [_Counts(training_lines(recipe, sides), settings) for sides in parts]
    if not counts:
        return recipe
    if not all(text.words for text in counts):
        return recipe  # no text is left to train on: training reports it
    # All characters and half of the words: a vocabulary with every word of a small text would learn
    # nothing about how words are formed.
    limit = min(others + text.characters + text.words // 2 for text in counts)
    size, coverage = min(settings.vocabulary, limit), settings.character_coverage
    as_bytes = settings.byte_fallback and not sets(changes, "text.character_coverage")
    if size < limit and settings.kind != "word":
        share = 1.0 if settings.kind == "char" else _SHARE
        if as_bytes:
            most = int(share * (size - others))
            coverage = min(coverage, *(max(LEAST_COVERAGE, text.coverage(most)) for text in counts))
        needed = max(text.characters_for(coverage) for text in counts)
        size = min(limit, max(size, others + ceil(needed / share)))
    if as_bytes:  # two vocabularies of one size may have different numbers of characters
        coverage = min(coverage, *(text.coverage(size - others) for text in counts))
    coverage = floor(1e4 * coverage) / 1e4
    if size == limit:
        asked = settings.model_copy(update={"vocabulary": size, "character_coverage": coverage})
        learned = (
            learn_vocabulary(
                training_lines(recipe, sides), asked, seed=recipe.seed, symbols=symbols, up_to=True
            )
            for sides in parts
        )
        size = min(text.size for text in learned)
    if size > settings.vocabulary or coverage < settings.character_coverage:
        say(_summary(size, coverage, settings, counts))
    return recipe.override(text={"vocabulary": size, "character_coverage": coverage})


def _summary(size: int, coverage: float, settings: TextSettings, counts: Sequence[_Counts]) -> str:
    """The message if the number of characters decides."""
    most = max(counts, key=lambda text: text.characters_for(coverage))
    words = f"the text has {most.characters:,} different characters: "
    if coverage < settings.character_coverage:
        words += (
            f"the {most.characters_for(coverage):,} most frequent, {coverage:.1%} of it, get a "
            "token each, and the others are written as bytes"
        )
    else:
        words += "each gets a token"
    if size > settings.vocabulary:
        words += f"; for this the vocabulary has {size:,} tokens, not {settings.vocabulary:,}"
    return words
