"""Clauses of the embedded corpus, drawn at random: who, what, when and whether.

Every function takes the generator that it draws from. ``demo_grammar`` puts a clause into words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from dragoman.demo.grammar import (
    Clause,
    Determiner,
    Modal,
    Nominal,
    NounPhrase,
    PlacePhrase,
    Predicate,
    Tense,
)
from dragoman.demo.lexicon import (
    ADJECTIVES,
    ATTRIBUTES,
    GIVING,
    INTRANSITIVE,
    MOTION,
    NOUNS,
    STATES,
    TRANSITIVE,
    Kind,
    Noun,
    Verb,
)

_BY_KIND: dict[Kind, tuple[Noun, ...]] = {
    kind: tuple(noun for noun in NOUNS if noun.kind == kind) for kind in ATTRIBUTES
}
_PLACES = (("in", "in"), ("behind", "hinter"), ("in front of", "vor"))
CAN = Modal("can", "can't", "kann", "können")
COULD = Modal("could", "couldn't", "konnte", "konnten")
_MODALS: tuple[tuple[Tense, Modal], ...] = (
    ("present", CAN),
    ("past", COULD),
    ("present", Modal("will", "won't", "wird", "werden")),
    ("present", Modal("must", "", "muss", "müssen")),
)
TENSES: tuple[Tense, ...] = ("present", "present", "past")


def draw_noun(random: Random, kinds: Sequence[Kind], *others: Noun) -> Noun:
    """A noun of one of the kinds, other than the given ones."""
    while True:
        noun = random.choice(_BY_KIND[random.choice(kinds)])
        if noun not in others:
            return noun


def draw_phrase(
    random: Random, noun: Noun, *, adjectives: float = 0.3, plurals: float = 0.2
) -> NounPhrase:
    plural = bool(noun.german_plural) and random.random() < plurals
    determiners: tuple[Determiner, ...] = ("the", "two" if plural else "a", "this", "my")
    # "Meine Frau" is a wife, "mein Mann" a husband: no "my" with people.
    count = 3 if noun.kind == "person" else 4
    determiner = random.choices(determiners[:count], (55, 20, 13, 12)[:count])[0]
    adjective = None
    if random.random() < adjectives:
        adjective = ADJECTIVES[random.choice(ATTRIBUTES[noun.kind])]
    return NounPhrase(noun, determiner, adjective, plural)


def _object(random: Random, verb: Verb, negated: bool, *others: Noun) -> NounPhrase:
    phrase = draw_phrase(random, draw_noun(random, verb.objects, *others))
    # "Nicht auf einen Hund", "nicht zwei Hunde" would say something else than the English.
    if negated and (phrase.determiner == "two" or (verb.preposition and phrase.determiner == "a")):
        return replace(phrase, determiner="the")
    return phrase


def _place(random: Random, noun: Noun) -> PlacePhrase:
    english, german = _PLACES[0]
    if noun.english in ("house", "school"):
        english, german = random.choice(_PLACES)
    return PlacePhrase(english, german, NounPhrase(noun, random.choice(("the", "the", "my"))))


def draw_doing(random: Random, subject: Nominal | None = None, kind: Kind | None = None) -> Clause:
    """A clause with a full verb. A given ``subject`` is of the given kind."""
    subjects: tuple[Kind, ...] = (kind,) if kind else ("person", "animal")
    while True:
        (verbs,) = random.choices((TRANSITIVE, INTRANSITIVE, GIVING), (68, 22, 10))
        verb = random.choice(verbs)
        if any(each in verb.subjects for each in subjects):
            break
    allowed = tuple(each for each in subjects if each in verb.subjects)
    if subject is None:
        noun = draw_noun(random, allowed)
        subject = draw_phrase(random, noun)
    others = tuple(noun for noun in NOUNS if noun.english == subject.head)
    tense, modal = random.choice(TENSES), None
    if random.random() < 0.2:
        tense, modal = random.choice(_MODALS)
    negated = random.random() < 0.2 and not (modal and not modal.english_negative)
    if not verb.objects:
        place = None
        if random.random() < 0.7 and verb not in MOTION:
            place = _place(random, draw_noun(random, ("place",)))
        return Clause(subject, verb, tense, place=place, modal=modal, negated=negated)
    if verb in GIVING:
        recipient = draw_phrase(random, draw_noun(random, ("person", "animal"), *others))
        thing = _object(random, verb, negated, recipient.noun, *others)
        return Clause(subject, verb, tense, thing, recipient, modal=modal, negated=negated)
    thing = _object(random, verb, negated, *others)
    return Clause(subject, verb, tense, thing, modal=modal, negated=negated)


def draw_being(random: Random, subject: Nominal | None = None) -> Clause:
    """A clause that says how a person or an animal is."""
    if subject is None:
        subject = draw_phrase(random, draw_noun(random, ("person", "animal")), adjectives=0.1)
    predicate = Predicate(ADJECTIVES[random.choice(STATES)], random.choice(("", "", "too", "very")))
    negated = not predicate.degree and random.random() < 0.2
    return Clause(subject, None, random.choice(TENSES), predicate=predicate, negated=negated)


def draw_clause(random: Random) -> Clause:
    return draw_being(random) if random.random() < 0.15 else draw_doing(random)
