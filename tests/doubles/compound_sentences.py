"""Sentences that are longer than any of the embedded demo corpus, by its grammar, with their
translations: two or three of its sentences joined by "and" or "but".

A run of the demo has read nothing of this length, and loses clauses.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from dragoman.demo import sentences as grammar
from dragoman.demo.sentences import DemoSentence

_MAKERS: tuple[Callable[[Random], DemoSentence], ...] = (
    grammar._statement,
    grammar._two_clauses,
    grammar._that_clause,
    grammar._relative_clause,
    grammar._pronoun,
    grammar._order,
)
_JOINED = ((", and", "und"), (", but", "aber"), (" and", "und"), (" but", "aber"))
_KEPT = 1 / 3
"""Of the words of a clause's translation: what has fewer of them has lost it."""


class Compound(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str
    parts: tuple[str, ...]
    """The translations of the sentences that it was joined of."""


def compound(random: Random, parts: int) -> Compound:
    """One of so many sentences."""
    sources, targets = [], []
    for _ in range(parts):
        made = random.choice(_MAKERS)(random)
        sources.append(made.english.rstrip(".?"))
        targets.append(made.german.rstrip(".?"))
    source, target = sources[0], targets[0]
    for english, german in zip(sources[1:], targets[1:], strict=True):
        link, verbindung = random.choice(_JOINED)
        proper = english.startswith("I ")
        source += f"{link} {english if proper else english[0].lower() + english[1:]}"
        target += f", {verbindung} {german[0].lower() + german[1:]}"
    return Compound(f"{source}.", f"{target}.", tuple(targets))


def loses_a_part(output: str, parts: tuple[str, ...]) -> bool:
    """Whether a translation lacks most words of one of the sentences that it should be made of:
    each of its words stands for one word of them."""
    left = [word.strip(".,").lower() for word in output.split()]
    for part in parts:
        words = [word.strip(".,").lower() for word in part.split()]
        kept = 0
        for word in words:
            if word in left:
                left.remove(word)
                kept += 1
        if kept < _KEPT * len(words):
            return True
    return False
