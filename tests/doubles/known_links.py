"""Sentences of the demo's grammar whose links are known by construction. Not a test.

A noun phrase is written word by word alike in both languages, and so are adverbs and conjunctions:
those links are sure. What remains (verbs, their particles, negation) may be linked in any way.
"""

from __future__ import annotations

from random import Random

from dragoman.demo.grammar import Clause
from dragoman.demo.sentences import _ADVERBS, draw_clause
from dragoman.metrics.alignment import Gold

Known = tuple[str, str, Gold]


def known_links(count: int, seed: int) -> list[Known]:
    """So many sentences, their translations and their links."""
    random = Random(seed)
    found: list[Known] = []
    while len(found) < count:
        made = _drawn(random)
        if made is not None:
            found.append(made)
    return found


def _drawn(random: Random) -> Known | None:
    """None where a phrase stands twice, so that its place is not known."""
    first, second = draw_clause(random), draw_clause(random)
    english, german = random.choice(_ADVERBS[first.tense])
    if first.modal and first.modal.english == "will":
        english, german = "tomorrow", "morgen"
    match random.choice(("plain", "adverb", "because", "and")):
        case "plain":
            source, target = first.english(), first.german_verb_second()
            return _linked(source, target, _phrases(first))
        case "adverb":
            source, target = f"{english} {first.english()}", first.german_verb_second(german)
            return _linked(source, target, [(english, german), *_phrases(first)])
        case "because":
            source = f"{first.english()} because {second.english()}"
            target = f"{first.german_verb_second()}, weil {second.german_verb_last()}"
            joined = ("because", "weil")
        case _:
            source = f"{first.english()} and {second.english()}"
            target = f"{first.german_verb_second()} und {second.german_verb_second()}"
            joined = ("and", "und")
    return _linked(source, target, [joined, *_phrases(first), *_phrases(second)])


def _phrases(clause: Clause) -> list[tuple[str, str]]:
    """The noun phrases of a clause in both languages."""
    found = [(clause.subject.english(), clause.subject.german("nominative"))]
    if clause.object is not None:
        assert clause.verb is not None
        found.append((clause.object.english(), clause.object.german(clause.verb.case)))
    if clause.recipient is not None:
        found.append((clause.recipient.english(), clause.recipient.german("dative")))
    return found


def _linked(source: str, target: str, same: list[tuple[str, str]]) -> Known | None:
    words = [[word.strip(".,").lower() for word in text.split()] for text in (source, target)]
    sure: set[tuple[int, int]] = set()
    taken: tuple[set[int], set[int]] = set(), set()
    for phrases in same:
        places = [
            _place(side, phrase.lower().split())
            for side, phrase in zip(words, phrases, strict=True)
        ]
        if places[0] is None or places[1] is None:
            return None
        if len(places[0]) == len(places[1]):
            sure |= set(zip(*places, strict=True))
        for side, place in zip(taken, places, strict=True):
            side.update(place)
    free = [set(range(len(side))) - gone for side, gone in zip(words, taken, strict=True)]
    possible = sure | {(s, t) for s in free[0] for t in free[1]}
    sentences = [f"{text[0].upper()}{text[1:]}." for text in (source, target)]
    return sentences[0], sentences[1], Gold(frozenset(sure), frozenset(possible))


def _place(words: list[str], phrase: list[str]) -> range | None:
    """Where a phrase stands, if it stands once."""
    size = len(phrase)
    found = [n for n in range(len(words) - size + 1) if words[n : n + size] == phrase]
    return range(found[0], found[0] + size) if len(found) == 1 else None
