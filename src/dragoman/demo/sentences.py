"""Clauses and sentences of the embedded corpus, drawn at random.

A clause says who does what, when and whether; ``grammar.py`` puts it into words. Sentences are the
general ones and two families whose translation needs attention: *pronouns*, where an adjective at
the end decides what "it" stands for, and *order*, where position alone tells who does it to whom.
Every function takes the generator that it draws from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Literal, NamedTuple

from dragoman.demo.grammar import (
    Clause,
    Determiner,
    GrammarWord,
    Modal,
    Nominal,
    NounPhrase,
    PlacePhrase,
    Predicate,
    Tense,
)
from dragoman.demo.lexicon import (
    ADJECTIVES,
    ANIMAL_WORDS,
    ATTRIBUTES,
    EAT_OF_ANIMALS,
    EAT_OF_PEOPLE,
    GIVING,
    INTRANSITIVE,
    KNOWING,
    MOTION,
    NOUNS,
    ORDER_VERBS,
    PEOPLE_WORDS,
    PRONOUN_VERBS,
    STATES,
    TOO_OF_THE_ACTOR,
    TRANSITIVE,
    TWO_WAYS,
    Kind,
    Noun,
    Verb,
)

Family = Literal["general", "pronoun", "order"]
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


class DemoSentence(NamedTuple):
    english: str
    german: str
    combinations: tuple[str, ...]
    family: Family = "general"


def finish(
    english: str,
    german: str,
    clauses: Sequence[Clause],
    mark: Literal[".", "?"] = ".",
    family: Family = "general",
) -> DemoSentence:
    return DemoSentence(
        english[0].upper() + english[1:] + mark,
        german[0].upper() + german[1:] + mark,
        tuple(clause.combination() for clause in clauses),
        family,
    )


def sentences(random: Random) -> Iterator[DemoSentence]:
    makers = (
        (_statement, 20),
        (_question, 6),
        (_two_clauses, 12),
        (_that_clause, 10),
        (_relative_clause, 10),
        (_coordination, 2),
        (_pronoun, 32),
        (_order, 8),
    )
    functions = [maker for maker, _ in makers]
    weights = [weight for _, weight in makers]
    while True:
        for maker in random.choices(functions, weights, k=256):
            yield maker(random)


# Sentences without a family

_ADVERBS: dict[Tense, tuple[tuple[str, str], ...]] = {
    "present": (
        ("today", "heute"), ("now", "jetzt"), ("often", "oft"), ("sometimes", "manchmal"),
    ),
    "past": (
        ("yesterday", "gestern"), ("often", "oft"), ("sometimes", "manchmal"),
        ("in the morning", "am Morgen"),
    ),
}  # fmt: skip


def _main_clause(random: Random, clause: Clause) -> tuple[str, str]:
    """A main clause, with or without an adverb in front of the verb."""
    if random.random() < 0.6:
        return clause.english(), clause.german_verb_second()
    english, german = random.choice(_ADVERBS[clause.tense])
    if clause.modal and clause.modal.english == "will":
        english, german = "tomorrow", "morgen"
    return f"{english} {clause.english()}", clause.german_verb_second(german)


def _statement(random: Random) -> DemoSentence:
    clause = draw_clause(random)
    return finish(*_main_clause(random, clause), [clause])


def _question(random: Random) -> DemoSentence:
    if random.random() < 0.2:
        clause = draw_doing(random, GrammarWord("who", "wer"), "person")
        return finish(clause.english(), clause.german_verb_second(), [clause], "?")
    clause = draw_clause(random)
    english, german = random.choice((("", ""), ("", ""), ("why ", "warum "), ("when ", "wann ")))
    return finish(
        english + clause.english_question(), german + clause.german_verb_first(), [clause], "?"
    )


def _two_clauses(random: Random) -> DemoSentence:
    """A main and a subordinate clause, in either order; a subordinate clause is a first place."""
    english, german = random.choice((("because", "weil"), ("although", "obwohl"), ("when", "")))
    while True:
        main = draw_clause(random)
        below = draw_being(random) if random.random() < 0.4 else draw_doing(random)
        # What happens "when" something else happens is in the same tense.
        if german or (main.tense == below.tense and not below.modal):
            break
    german = german or ("als" if below.tense == "past" else "wenn")
    first, second = main.english(), f"{english} {below.english()}"
    subordinate = f"{german} {below.german_verb_last()}"
    if random.random() < 0.6:
        return finish(
            f"{first} {second}", f"{main.german_verb_second()}, {subordinate}", [main, below]
        )
    inverted = f"{subordinate}, {main.german_verb_first()}"
    return finish(f"{second}, {first}", inverted, [main, below])


_THAT_OPENINGS = (
    ("I think that", "ich glaube, dass"),
    ("I know that", "ich weiß, dass"),
    ("we hope that", "wir hoffen, dass"),
)
_OPENINGS = (
    *_THAT_OPENINGS,
    ("I don't know whether", "ich weiß nicht, ob"),
    ("nobody knows why", "niemand weiß, warum"),
)


def _opening(
    random: Random, openings: Sequence[tuple[str, str]] = _THAT_OPENINGS
) -> tuple[str, str, list[Clause]]:
    """Draw the beginning of a sentence with a subordinate clause, such as "I think that" or "the
    woman says that"."""
    if random.random() < 0.5:
        return *random.choice(openings), []
    verb = random.choice(KNOWING)
    subject = draw_phrase(random, draw_noun(random, verb.subjects), adjectives=0.15)
    clause = Clause(subject, verb, random.choice(TENSES))
    return f"{clause.english()} that", f"{clause.german_verb_second()}, dass", [clause]


def _inside(random: Random, clause: Clause) -> tuple[str, str, list[Clause]]:
    """ "I know that the dog sleeps": a sentence that contains the clause."""
    english, german, above = _opening(random)
    english, german = f"{english} {clause.english()}", f"{german} {clause.german_verb_last()}"
    return english, german, [*above, clause]


def _that_clause(random: Random) -> DemoSentence:
    english, german, above = _opening(random, _OPENINGS)
    below = draw_clause(random)
    while above and above[0].tense == "past" and below.tense == "present":
        below = draw_clause(random)
    return finish(
        f"{english} {below.english()}", f"{german} {below.german_verb_last()}", [*above, below]
    )


def _relative(random: Random, head: NounPhrase) -> tuple[str, str, Clause]:
    """A relative clause about the head, as subject ("that sees") or object ("that he sees")."""
    english = "who" if head.noun.kind == "person" else "that"
    if random.random() < 0.5:
        subject = GrammarWord(english, head.relative("nominative"), head.plural, head.head)
        clause = draw_doing(random, subject, head.noun.kind)
        return clause.english(), clause.german_verb_last(), clause
    while True:
        full = draw_doing(random)
        fits = full.verb and head.noun.kind in full.verb.objects and not full.verb.preposition
        if fits and not full.recipient and full.subject.head != head.head:
            break
    assert full.verb is not None
    clause = Clause(full.subject, full.verb, full.tense, modal=full.modal)
    pronoun = head.relative(full.verb.case)
    whole = Clause(full.subject, full.verb, full.tense, head)
    return f"that {clause.english()}", f"{pronoun} {clause.german_verb_last()}", whole


def _relative_clause(random: Random) -> DemoSentence:
    """A relative clause on the subject, or on an object that ends the sentence."""
    if random.random() < 0.6:
        head = draw_phrase(random, draw_noun(random, ("person", "animal")))
        english, german, relative = _relative(random, head)
        subject = GrammarWord(
            f"{head.english()} {english}",
            f"{head.german('nominative')}, {german},",
            head.plural,
            head.head,
        )
        if random.random() < 0.4:
            main = draw_being(random, subject)
        else:
            main = draw_doing(random, subject, head.noun.kind)
        return finish(main.english(), main.german_verb_second(), [main, relative])
    while True:
        main = draw_doing(random)
        if main.object and not main.negated and main.object.noun.kind in ("person", "animal"):
            break
    english, german, relative = _relative(random, main.object)
    return finish(
        f"{main.english()} {english}", f"{main.german_verb_second()}, {german}", [main, relative]
    )


def _coordination(random: Random) -> DemoSentence:
    first, second = draw_clause(random), draw_clause(random)
    english, german = random.choice((("and", " und"), ("but", ", aber")))
    return finish(
        f"{first.english()} {english} {second.english()}",
        f"{first.german_verb_second()}{german} {second.german_verb_second()}",
        [first, second],
    )


# The two families


def verb_for(verb: Verb, subject: Noun) -> Verb:
    """The verb as said of this subject: people *essen*, animals *fressen*."""
    return EAT_OF_PEOPLE if verb is EAT_OF_ANIMALS and subject.kind == "person" else verb


def things_acted_upon(verb: Verb) -> tuple[Kind, ...]:
    """The kinds of what is acted upon in this family: to eat, food alone."""
    return ("food",) if verb.base == "eat" else verb.objects


def because_it(main: Clause, actor: NounPhrase, what: NounPhrase, adjective: str) -> Clause:
    """The clause whose pronoun stands for ``actor`` or ``what``: the adjective tells."""
    antecedent = actor if adjective in TOO_OF_THE_ACTOR[what.noun.kind] else what
    pronoun = GrammarWord(
        antecedent.english_pronoun(), antecedent.german_pronoun(), plural=antecedent.plural
    )
    predicate = Predicate(ADJECTIVES[adjective], "too" if main.negated else "very")
    return Clause(pronoun, None, main.tense, predicate=predicate)


def _pronoun(random: Random) -> DemoSentence:
    """ "The animal didn't cross the street because it was too …", in many forms."""
    verb = random.choice(PRONOUN_VERBS)
    # "He", "she" and "they" leave no doubt about what "it" is; a few are enough.
    kinds: tuple[Kind, ...] = ("person",) if random.random() < 0.15 else ("animal",)
    while True:
        noun = draw_noun(random, kinds)
        thing = draw_noun(random, things_acted_upon(verb), noun)
        # Two nouns of one gender share their pronoun and teach little: most are passed over.
        teaches = noun.gender != thing.gender or random.random() < 0.3
        if noun.pronoun and thing.too and teaches:
            break
    verb = verb_for(verb, noun)
    actor = draw_phrase(random, noun, adjectives=0.25, plurals=0.1)
    drawn = draw_phrase(random, thing, adjectives=0.25, plurals=0.1)
    # "A" under negation is "kein", and what does not exist has no pronoun.
    determiner: Determiner = "the" if drawn.determiner in ("a", "two") else drawn.determiner
    what = NounPhrase(thing, determiner, drawn.adjective, drawn.plural)
    deciders = TOO_OF_THE_ACTOR[thing.kind] if random.random() < 0.5 else thing.too
    if random.random() < 0.4:
        deciders = tuple(each for each in deciders if each in TWO_WAYS) or deciders
    adjective = random.choice(deciders)
    tense: Tense = random.choice(("past", "past", "present"))
    negated = random.random() < 0.8
    modal = None
    if negated and random.random() < 0.3:
        modal = COULD if tense == "past" else CAN
    main = Clause(actor, verb, tense, what, modal=modal, negated=negated)
    below = because_it(main, actor, what, adjective)
    connective, conjunction = ("because", "weil") if negated else ("although", "obwohl")
    english = f"{connective} {below.english()}"
    german = f"{conjunction} {below.german_verb_last()}"
    if random.random() < 0.15:
        first, erst, clauses = _inside(random, main)
    else:
        (first, erst), clauses = _main_clause(random, main), [main]
    return finish(f"{first} {english}", f"{erst}, {german}", clauses, family="pronoun")


def _order(random: Random) -> DemoSentence:
    """ "The small man eats the dinosaur", where position alone tells who eats."""
    while True:
        first, second = random.sample(PEOPLE_WORDS + ANIMAL_WORDS, 2)
        verb = verb_for(random.choice(ORDER_VERBS), first)
        if second.kind in verb.objects:
            break
    # "Small man eats dinosaur"; a dative without an article ("hilft Hund") would read badly.
    plain = verb.case == "accusative" and not second.oblique
    headline = plain and random.random() < 0.2
    phrases: list[NounPhrase] = []
    where = random.choice(((True, False), (True, False), (False, True), (True, True)))
    for noun, described in zip((first, second), where, strict=True):
        adjective = None
        if described:
            adjective = ADJECTIVES[random.choice(("small", "big", "old", "young", "strong"))]
        determiner: Determiner = random.choice(("the", "the", "the", "a", "this"))
        phrases.append(NounPhrase(noun, "none" if headline else determiner, adjective))
    tense: Tense = "present" if headline else random.choice(TENSES)
    clause = Clause(phrases[0], verb, tense, phrases[1])
    if headline or random.random() < 0.8:
        return finish(clause.english(), clause.german_verb_second(), [clause], family="order")
    return finish(*_inside(random, clause), family="order")
