"""Sentences of the embedded corpus, drawn at random: the general ones and the two families.

The families are those whose translation needs attention: *pronouns*, where an adjective at the end
decides what "it" stands for, and *order*, where position alone tells who does it to whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal, NamedTuple

from dragoman.demo.clauses import (
    CAN,
    COULD,
    TENSES,
    draw_being,
    draw_clause,
    draw_doing,
    draw_noun,
    draw_phrase,
)
from dragoman.demo.grammar import (
    Clause,
    Determiner,
    GrammarWord,
    NounPhrase,
    Predicate,
    Tense,
)
from dragoman.demo.lexicon import (
    ADJECTIVES,
    ANIMAL_WORDS,
    EAT_OF_ANIMALS,
    EAT_OF_PEOPLE,
    KNOWING,
    ORDER_VERBS,
    PEOPLE_WORDS,
    PRONOUN_VERBS,
    TOO_OF_THE_ACTOR,
    TWO_WAYS,
    Kind,
    Noun,
    Verb,
)

Family = Literal["general", "pronoun", "order"]


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
