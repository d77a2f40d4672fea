"""The embedded corpus: English-German pairs that a grammar makes, so that a demo needs no download.

It is **synthetic** (say so wherever its scores are shown, ``NOTICE``): about 300 written words a
side, correct German, little sense. What it is for: German needs here what attention is for. Verbs
wait at the end of subordinate clauses, particles leave their verbs, articles and adjectives agree,
and two families of sentences cannot be translated word by word:

- *pronouns* - "The animal didn't cross the street because it was too tired / too wide": ``es`` for
  the animal, ``sie`` for the street, and only the last word tells (the example of
  *Attention Is All You Need*, as the attention pictures of its authors show it);
- *order* - "The small man eats the dinosaur / The small dinosaur eats the man": the same words, and
  only their positions tell who eats.

Training, development and test sentences are disjoint by construction: a keyed hash gives every
*combination* (a verb with the nouns it joins, ``Clause.combination``) to one of the three, and a
sentence with a held-out combination never enters training, whatever its articles, adjectives,
tense or order. So the test measures combinations that training never showed.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from random import Random
from typing import Generic, Literal, NamedTuple, TypeVar

from dragoman.demo.grammar import Clause, Modal, NounPhrase, Tense
from dragoman.demo.lexicon import (
    ADJECTIVES,
    ANIMAL_WORDS,
    EAT_OF_ANIMALS,
    NOUNS,
    ORDER_VERBS,
    PEOPLE_WORDS,
    PRONOUN_VERBS,
    TOO_OF_THE_ACTOR,
    Noun,
)
from dragoman.demo.sentences import (
    COULD,
    DemoSentence,
    Family,
    because_it,
    finish,
    sentences,
    things_acted_upon,
    verb_for,
)

NOTICE = (
    "The demo corpus is synthetic: a small grammar generated it. High scores only show that the "
    "program works; they say nothing about real text."
)

Split = Literal["train", "dev", "test"]
Example = TypeVar("Example")


class DemoPair(NamedTuple):
    """One English sentence, its German reference, and the family of sentences it belongs to."""

    source: str
    target: str
    family: Family


class Parts(NamedTuple, Generic[Example]):
    """The three parts of a corpus; no sentence, of pairs no English one, stands in two of them, or
    twice in one."""

    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class PronounProbe:
    """A sentence whose German pronoun depends on what "it" stands for.

    Word numbers count ``str.split()`` from 0; punctuation belongs to the word before it.
    """

    source: str
    reference: str
    pronoun: str
    """The German pronoun: er, sie or es."""
    pronoun_word: int
    """Its place among the words of the reference."""
    it: int
    """The place of "it" among the words of the source, as the following three."""
    antecedent: int
    rival: int
    """The noun that "it" does not stand for."""
    decider: int
    """The place of the adjective that decides the meaning of "it"."""


@dataclass(frozen=True, slots=True)
class OrderProbe:
    """A sentence whose meaning hangs on the order of its words alone."""

    source: str
    reference: str


_FAMOUS = ("cross: animal + street", "eat: dinosaur + man")
_TEST_PERCENT, _DEV_PERCENT = 4, 2


@cache
def split_of(combination: str) -> Split:
    """The part of the corpus that owns a combination: a fixed hash, the same for every seed."""
    if combination in _FAMOUS:
        return "test"
    digest = hashlib.blake2b(combination.encode(), digest_size=8, key=b"dragoman demo").digest()
    percent = int.from_bytes(digest, "big") % 100
    if percent < _TEST_PERCENT:
        return "test"
    return "dev" if percent < _TEST_PERCENT + _DEV_PERCENT else "train"


@lru_cache(maxsize=8)
def demo_corpus(
    seed: int = 1, train_pairs: int = 36_000, dev_pairs: int = 500, test_pairs: int = 1_000
) -> Parts[DemoPair]:
    """The corpus of the given size, the same for the same arguments on every machine.

    A larger ``train_pairs`` extends the same training sentences. The standard sizes take about a
    second; a second call with the same arguments takes none.
    """
    wanted: dict[Split, int] = {"train": train_pairs, "dev": dev_pairs, "test": test_pairs}
    drawn = (
        (_split_of_sentence(pair), pair.english, DemoPair(pair.english, pair.german, pair.family))
        for pair in sentences(Random(seed))
    )
    return fill_parts(drawn, wanted)


def _split_of_sentence(sentence: DemoSentence) -> Split | None:
    """The part it may enter; None if it mixes combinations of the dev and the test part."""
    keys = [key for key in sentence.combinations if key] or [sentence.english]
    return split_of_all(map(split_of, keys))


def split_of_all(splits: Iterable[Split]) -> Split | None:
    """The part that an example may enter, by those that own its combinations; None if it mixes dev
    and test."""
    held_out = set(splits) - {"train"}
    if len(held_out) > 1:
        return None
    return held_out.pop() if held_out else "train"


def fill_parts(
    drawn: Iterable[tuple[Split | None, str, Example]], wanted: Mapping[Split, int]
) -> Parts[Example]:
    """Fill each part with as many examples as are ``wanted``, in the order in which they are drawn:
    each with its part, or None, and a text by which no example is taken twice."""
    parts: dict[Split, list[Example]] = {name: [] for name in wanted}
    seen: set[str] = set()
    for split, text, example in drawn:
        if split is not None and len(parts[split]) < wanted[split] and text not in seen:
            seen.add(text)
            parts[split].append(example)
        if all(len(parts[name]) >= wanted[name] for name in wanted):
            break
    return Parts(**{name: tuple(part) for name, part in parts.items()})


# Probes


def pronoun_probes() -> tuple[tuple[PronounProbe, PronounProbe], ...]:
    """Pairs of sentences that differ in the last word alone, and so in the German pronoun.

    In the first of each pair "it" is the one that acts, in the second what is acted upon. None of
    the combinations occurs in training. The famous street comes first.
    """
    pairs: list[tuple[PronounProbe, PronounProbe]] = []
    forms: tuple[tuple[Tense, Modal | None], ...] = (
        ("past", None),
        ("present", None),
        ("past", COULD),
    )
    for verb, actor, thing in itertools.product(PRONOUN_VERBS, ANIMAL_WORDS, NOUNS):
        fits = thing.kind in things_acted_upon(verb)
        # Two nouns of one gender would share the pronoun.
        if not fits or thing.gender == actor.gender:
            continue
        for tense, modal in forms:
            what = NounPhrase(thing)
            main = Clause(NounPhrase(actor), verb, tense, what, modal=modal, negated=True)
            if split_of(main.combination()) == "test":
                own = TOO_OF_THE_ACTOR[thing.kind]
                pairs.append(
                    (
                        _pronoun_probe(main, actor, thing, own[len(pairs) % len(own)]),
                        _pronoun_probe(main, actor, thing, thing.too[0]),
                    )
                )
    famous = "The animal didn't cross the street"
    return tuple(sorted(pairs, key=lambda pair: not pair[0].source.startswith(famous)))


def _pronoun_probe(main: Clause, actor: Noun, thing: Noun, adjective: str) -> PronounProbe:
    below = because_it(main, NounPhrase(actor), NounPhrase(thing), adjective)
    sentence = finish(
        f"{main.english()} because {below.english()}",
        f"{main.german_verb_second()}, weil {below.german_verb_last()}",
        [main],
    )
    words, target = sentence.english.split(), sentence.german.split()
    places = [words.index(actor.english), words.index(thing.english)]
    if adjective not in TOO_OF_THE_ACTOR[thing.kind]:
        places.reverse()
    return PronounProbe(
        source=sentence.english,
        reference=sentence.german,
        pronoun=below.subject.german("nominative"),
        pronoun_word=target.index("weil") + 1,
        it=words.index("it"),
        antecedent=places[0],
        rival=places[1],
        decider=len(words) - 1,
    )


def order_probes() -> tuple[tuple[OrderProbe, OrderProbe], ...]:
    """Pairs of sentences made of the same English words; their combinations are not in training.

    The man and the dinosaur come first.
    """
    pairs: list[tuple[OrderProbe, OrderProbe]] = []
    nouns = PEOPLE_WORDS + ANIMAL_WORDS
    for verb in ORDER_VERBS:
        for index, noun in enumerate(nouns):
            for partner in nouns[index + 1 :]:
                if verb is EAT_OF_ANIMALS and partner.kind == "person":
                    continue
                clauses = [
                    Clause(
                        NounPhrase(subject, "the", ADJECTIVES["small"]),
                        verb_for(verb, subject),
                        "present",
                        NounPhrase(object_),
                    )
                    for subject, object_ in ((noun, partner), (partner, noun))
                ]
                if split_of(clauses[0].combination()) == "test":
                    made = [finish(c.english(), c.german_verb_second(), [c]) for c in clauses]
                    first, second = (OrderProbe(each.english, each.german) for each in made)
                    pairs.append((first, second))
    famous = "The small man eats the dinosaur"
    return tuple(sorted(pairs, key=lambda pair: not pair[0].source.startswith(famous)))


_ENGLISH = re.compile(r"\b(?:because|although) it (?:was|is) \w+ \w+\.$")
_GERMAN = re.compile(r"\b(?:weil|obwohl) (er|sie|es) \w+ \w+ (?:war|ist)\.$")


def label_of(pair: DemoPair) -> str | None:
    """The German pronoun that an English "it" becomes, as the label of the sentence; None for one
    without an "it" whose meaning decides. No German word stands in the text: it takes the gender of
    every noun, and the last word to know which of two nouns is meant."""
    match = _GERMAN.search(pair.target)
    if pair.family != "pronoun" or match is None or not _ENGLISH.search(pair.source):
        return None
    return match[1]
