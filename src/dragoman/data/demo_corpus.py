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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Literal, NamedTuple

from dragoman.data.demo_grammar import (
    Clause,
    Determiner,
    Modal,
    Nominal,
    NounPhrase,
    Place,
    Predicate,
    Tense,
    Word,
)
from dragoman.data.demo_lexicon import (
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
    TOO_OF_A_HUNTER,
    TOO_OF_THE_ACTOR,
    TRANSITIVE,
    Kind,
    Noun,
    Verb,
)

NOTICE = (
    "The demo corpus is synthetic: a small grammar wrote it. Its scores say that the machinery "
    "works, nothing about real text."
)
LANGUAGES = ("en", "de")

Split = Literal["train", "dev", "test"]
Family = Literal["general", "pronoun", "order"]


class DemoPair(NamedTuple):
    """One English sentence, its German reference, and the family of sentences it belongs to."""

    source: str
    target: str
    family: Family


class DemoCorpus(NamedTuple):
    """The three parts; no English sentence stands in two of them, or twice in one."""

    train: tuple[DemoPair, ...]
    dev: tuple[DemoPair, ...]
    test: tuple[DemoPair, ...]


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
    """The adjective that tells."""


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


def demo_corpus(
    seed: int = 1, train_pairs: int = 36_000, dev_pairs: int = 500, test_pairs: int = 1_000
) -> DemoCorpus:
    """The corpus of the given size, the same for the same arguments on every machine.

    A larger ``train_pairs`` extends the same training sentences. Sizes up to 100,000 / 5,000 /
    10,000 are quick; there is no end to the sentences, but repetitions grow.
    """
    wanted: dict[Split, int] = {"train": train_pairs, "dev": dev_pairs, "test": test_pairs}
    parts: dict[Split, list[DemoPair]] = {"train": [], "dev": [], "test": []}
    seen: set[str] = set()
    for sentence in _sentences(Random(seed)):
        split = sentence.split()
        if split is None or len(parts[split]) >= wanted[split] or sentence.english in seen:
            continue
        seen.add(sentence.english)
        parts[split].append(DemoPair(sentence.english, sentence.german, sentence.family))
        if all(len(parts[name]) >= wanted[name] for name in parts):
            break
    return DemoCorpus(tuple(parts["train"]), tuple(parts["dev"]), tuple(parts["test"]))


# Sentences


class _Sentence(NamedTuple):
    english: str
    german: str
    combinations: tuple[str, ...]
    family: Family = "general"

    def split(self) -> Split | None:
        """The part it may enter; None if it mixes combinations of the dev and the test part."""
        keys = [key for key in self.combinations if key] or [self.english]
        held_out = {split_of(key) for key in keys} - {"train"}
        if len(held_out) > 1:
            return None
        return held_out.pop() if held_out else "train"


def _finish(
    english: str,
    german: str,
    clauses: Sequence[Clause],
    mark: Literal[".", "?"] = ".",
    family: Family = "general",
) -> _Sentence:
    return _Sentence(
        english[0].upper() + english[1:] + mark,
        german[0].upper() + german[1:] + mark,
        tuple(clause.combination() for clause in clauses),
        family,
    )


def _sentences(random: Random) -> Iterator[_Sentence]:
    makers = (
        (_statement, 20),
        (_question, 6),
        (_two_clauses, 12),
        (_that_clause, 10),
        (_relative_clause, 10),
        (_coordination, 4),
        (_pronoun, 28),
        (_order, 10),
    )
    functions = [maker for maker, _ in makers]
    weights = [weight for _, weight in makers]
    while True:
        for maker in random.choices(functions, weights, k=256):
            yield maker(random)


# Parts of clauses

_BY_KIND: dict[Kind, tuple[Noun, ...]] = {
    kind: tuple(noun for noun in NOUNS if noun.kind == kind) for kind in ATTRIBUTES
}
_PLACES = (("in", "in"), ("behind", "hinter"), ("in front of", "vor"))
_CAN = Modal("can", "can't", "kann", "können")
_COULD = Modal("could", "couldn't", "konnte", "konnten")
_MODALS: tuple[tuple[Tense, Modal], ...] = (
    ("present", _CAN),
    ("past", _COULD),
    ("present", Modal("will", "won't", "wird", "werden")),
    ("present", Modal("must", "", "muss", "müssen")),
)
_ADVERBS: dict[Tense, tuple[tuple[str, str], ...]] = {
    "present": (
        ("today", "heute"), ("now", "jetzt"), ("often", "oft"), ("sometimes", "manchmal"),
    ),
    "past": (
        ("yesterday", "gestern"), ("often", "oft"), ("sometimes", "manchmal"),
        ("in the morning", "am Morgen"),
    ),
}  # fmt: skip
_TENSES: tuple[Tense, ...] = ("present", "present", "past")


def _noun(random: Random, kinds: Sequence[Kind], *others: Noun) -> Noun:
    """A noun of one of the kinds, other than the given ones."""
    while True:
        noun = random.choice(_BY_KIND[random.choice(kinds)])
        if noun not in others:
            return noun


def _phrase(random: Random, noun: Noun, *, adjectives: float = 0.3) -> NounPhrase:
    plural = bool(noun.german_plural) and random.random() < 0.2
    determiners: tuple[Determiner, ...] = ("the", "two" if plural else "a", "this", "my")
    # "Meine Frau" is a wife, "mein Mann" a husband: no "my" with people.
    count = 3 if noun.kind == "person" else 4
    determiner = random.choices(determiners[:count], (55, 20, 13, 12)[:count])[0]
    adjective = None
    if random.random() < adjectives:
        adjective = ADJECTIVES[random.choice(ATTRIBUTES[noun.kind])]
    return NounPhrase(noun, determiner, adjective, plural)


def _object(random: Random, verb: Verb, negated: bool, *others: Noun) -> NounPhrase:
    phrase = _phrase(random, _noun(random, verb.objects, *others))
    # "Nicht auf einen Hund", "nicht zwei Hunde" would say something else than the English.
    if negated and (phrase.determiner == "two" or (verb.preposition and phrase.determiner == "a")):
        return replace(phrase, determiner="the")
    return phrase


def _place(random: Random, noun: Noun) -> Place:
    english, german = _PLACES[0]
    if noun.english in ("house", "school"):
        english, german = random.choice(_PLACES)
    return Place(english, german, "dative", NounPhrase(noun, random.choice(("the", "the", "my"))))


def _doing(random: Random, subject: Nominal | None = None, kind: Kind | None = None) -> Clause:
    """A clause with a full verb. A given ``subject`` is of the given kind."""
    subjects: tuple[Kind, ...] = (kind,) if kind else ("person", "animal")
    while True:
        (verbs,) = random.choices((TRANSITIVE, INTRANSITIVE, GIVING), (68, 22, 10))
        verb = random.choice(verbs)
        if any(each in verb.subjects for each in subjects):
            break
    allowed = tuple(each for each in subjects if each in verb.subjects)
    if subject is None:
        noun = _noun(random, allowed)
        subject = _phrase(random, noun)
    others = tuple(noun for noun in NOUNS if noun.english == subject.head)
    tense, modal = random.choice(_TENSES), None
    if random.random() < 0.2:
        tense, modal = random.choice(_MODALS)
    negated = random.random() < 0.2 and not (modal and not modal.english_negative)
    if not verb.objects:
        place = None
        if random.random() < 0.7 and verb not in MOTION:
            place = _place(random, _noun(random, ("place",)))
        return Clause(subject, verb, tense, place=place, modal=modal, negated=negated)
    if verb in GIVING:
        recipient = _phrase(random, _noun(random, ("person", "animal"), *others))
        thing = _object(random, verb, negated, recipient.noun, *others)
        return Clause(subject, verb, tense, thing, recipient, modal=modal, negated=negated)
    thing = _object(random, verb, negated, *others)
    return Clause(subject, verb, tense, thing, modal=modal, negated=negated)


def _being(random: Random, subject: Nominal | None = None) -> Clause:
    """A clause that says how a person or an animal is."""
    if subject is None:
        subject = _phrase(random, _noun(random, ("person", "animal")), adjectives=0.1)
    predicate = Predicate(ADJECTIVES[random.choice(STATES)], random.choice(("", "", "too", "very")))
    negated = not predicate.degree and random.random() < 0.2
    return Clause(subject, None, random.choice(_TENSES), predicate=predicate, negated=negated)


def _clause(random: Random) -> Clause:
    return _being(random) if random.random() < 0.15 else _doing(random)


# Sentences without a family


def _fronted(random: Random, clause: Clause) -> tuple[str, str]:
    """A main clause, with or without an adverb in front of the verb."""
    if random.random() < 0.6:
        return clause.english(), clause.german_verb_second()
    english, german = random.choice(_ADVERBS[clause.tense])
    if clause.modal and clause.modal.english == "will":
        english, german = "tomorrow", "morgen"
    return f"{english} {clause.english()}", clause.german_verb_second(german)


def _statement(random: Random) -> _Sentence:
    clause = _clause(random)
    return _finish(*_fronted(random, clause), [clause])


def _question(random: Random) -> _Sentence:
    if random.random() < 0.2:
        clause = _doing(random, Word("who", "wer"), "person")
        return _finish(clause.english(), clause.german_verb_second(), [clause], "?")
    clause = _clause(random)
    english, german = random.choice((("", ""), ("", ""), ("why ", "warum "), ("when ", "wann ")))
    return _finish(
        english + clause.english_question(), german + clause.german_verb_first(), [clause], "?"
    )


def _two_clauses(random: Random) -> _Sentence:
    """A main and a subordinate clause, in either order; a subordinate clause is a first place."""
    english, german = random.choice((("because", "weil"), ("although", "obwohl"), ("when", "")))
    while True:
        main = _clause(random)
        below = _being(random) if random.random() < 0.4 else _doing(random)
        # What happens "when" something else happens is in the same tense.
        if german or (main.tense == below.tense and not below.modal):
            break
    german = german or ("als" if below.tense == "past" else "wenn")
    first, second = main.english(), f"{english} {below.english()}"
    subordinate = f"{german} {below.german_verb_last()}"
    if random.random() < 0.6:
        return _finish(
            f"{first} {second}", f"{main.german_verb_second()}, {subordinate}", [main, below]
        )
    inverted = f"{subordinate}, {main.german_verb_first()}"
    return _finish(f"{second}, {first}", inverted, [main, below])


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
    """What a subordinate clause hangs on: "I think that", "the woman says that"."""
    if random.random() < 0.5:
        return *random.choice(openings), []
    verb = random.choice(KNOWING)
    subject = _phrase(random, _noun(random, verb.subjects), adjectives=0.15)
    clause = Clause(subject, verb, random.choice(_TENSES))
    return f"{clause.english()} that", f"{clause.german_verb_second()}, dass", [clause]


def _that_clause(random: Random) -> _Sentence:
    english, german, above = _opening(random, _OPENINGS)
    below = _clause(random)
    while above and above[0].tense == "past" and below.tense == "present":
        below = _clause(random)
    return _finish(
        f"{english} {below.english()}", f"{german} {below.german_verb_last()}", [*above, below]
    )


def _relative(random: Random, head: NounPhrase) -> tuple[str, str, Clause]:
    """A relative clause about the head, as subject ("that sees") or object ("that he sees")."""
    english = "who" if head.noun.kind == "person" else "that"
    if random.random() < 0.5:
        subject = Word(english, head.relative("nominative"), head.plural, head.head)
        clause = _doing(random, subject, head.noun.kind)
        return clause.english(), clause.german_verb_last(), clause
    while True:
        full = _doing(random)
        fits = full.verb and head.noun.kind in full.verb.objects and not full.verb.preposition
        if fits and not full.recipient and full.subject.head != head.head:
            break
    assert full.verb is not None
    clause = Clause(full.subject, full.verb, full.tense, modal=full.modal)
    pronoun = head.relative(full.verb.case)
    whole = Clause(full.subject, full.verb, full.tense, head)
    return f"that {clause.english()}", f"{pronoun} {clause.german_verb_last()}", whole


def _relative_clause(random: Random) -> _Sentence:
    """A relative clause on the subject, or on an object that ends the sentence."""
    if random.random() < 0.6:
        head = _phrase(random, _noun(random, ("person", "animal")))
        english, german, relative = _relative(random, head)
        subject = Word(
            f"{head.english()} {english}",
            f"{head.german('nominative')}, {german},",
            head.plural,
            head.head,
        )
        if random.random() < 0.4:
            main = _being(random, subject)
        else:
            main = _doing(random, subject, head.noun.kind)
        return _finish(main.english(), main.german_verb_second(), [main, relative])
    while True:
        main = _doing(random)
        if main.object and not main.negated and main.object.noun.kind in ("person", "animal"):
            break
    english, german, relative = _relative(random, main.object)
    return _finish(
        f"{main.english()} {english}", f"{main.german_verb_second()}, {german}", [main, relative]
    )


def _coordination(random: Random) -> _Sentence:
    first, second = _clause(random), _clause(random)
    english, german = random.choice((("and", " und"), ("but", ", aber")))
    return _finish(
        f"{first.english()} {english} {second.english()}",
        f"{first.german_verb_second()}{german} {second.german_verb_second()}",
        [first, second],
    )


# The two families


def _things(verb: Verb) -> tuple[Kind, ...]:
    """The kinds of what is acted upon in this family: to eat, food alone."""
    return ("food",) if verb.base == "eat" else verb.objects


def _too_of_actor(thing: Noun) -> tuple[str, ...]:
    """Adjectives that point at the actor; a caught animal might itself be too sick or sad."""
    return TOO_OF_A_HUNTER if thing.kind == "animal" else TOO_OF_THE_ACTOR


def _because_it(main: Clause, actor: NounPhrase, what: NounPhrase, adjective: str) -> Clause:
    """The clause whose pronoun stands for ``actor`` or ``what``: the adjective tells."""
    antecedent = actor if adjective in TOO_OF_THE_ACTOR else what
    pronoun = Word(
        antecedent.english_pronoun(), antecedent.german_pronoun(), plural=antecedent.plural
    )
    predicate = Predicate(ADJECTIVES[adjective], "too" if main.negated else "very")
    return Clause(pronoun, None, main.tense, predicate=predicate)


def _pronoun(random: Random) -> _Sentence:
    """ "The animal didn't cross the street because it was too …", in many forms."""
    verb = random.choice(PRONOUN_VERBS)
    kinds: tuple[Kind, ...] = ("animal", "animal", "animal", "person")
    while True:
        noun = _noun(random, tuple(kind for kind in kinds if kind in verb.subjects))
        thing = _noun(random, _things(verb), noun)
        # Two nouns of one gender share their pronoun and teach little: most are passed over.
        teaches = noun.gender != thing.gender or random.random() < 0.3
        if noun.pronoun and thing.too and teaches:
            break
    actor = _phrase(random, noun, adjectives=0.25)
    drawn = _phrase(random, thing, adjectives=0.25)
    # "A" under negation is "kein", and what does not exist has no pronoun.
    determiner: Determiner = "the" if drawn.determiner in ("a", "two") else drawn.determiner
    what = NounPhrase(thing, determiner, drawn.adjective, drawn.plural)
    adjective = random.choice(_too_of_actor(thing) if random.random() < 0.5 else thing.too)
    tense: Tense = random.choice(("past", "past", "present"))
    negated = random.random() < 0.8
    modal = None
    if negated and random.random() < 0.3:
        modal = _COULD if tense == "past" else _CAN
    main = Clause(actor, verb, tense, what, modal=modal, negated=negated)
    below = _because_it(main, actor, what, adjective)
    connective, conjunction = ("because", "weil") if negated else ("although", "obwohl")
    english = f"{connective} {below.english()}"
    german = f"{conjunction} {below.german_verb_last()}"
    if random.random() < 0.15:
        before, davor, above = _opening(random)
        return _finish(
            f"{before} {main.english()} {english}",
            f"{davor} {main.german_verb_last()}, {german}",
            [*above, main],
            family="pronoun",
        )
    first, erst = _fronted(random, main)
    return _finish(f"{first} {english}", f"{erst}, {german}", [main], family="pronoun")


def _exchange(verb: Verb, subject: Noun) -> Verb:
    """The verb as said of this subject: people *essen*, animals *fressen*."""
    return EAT_OF_PEOPLE if verb is EAT_OF_ANIMALS and subject.kind == "person" else verb


def _order(random: Random) -> _Sentence:
    """ "The small man eats the dinosaur", where position alone tells who eats."""
    while True:
        first, second = random.sample(PEOPLE_WORDS + ANIMAL_WORDS, 2)
        verb = _exchange(random.choice(ORDER_VERBS), first)
        if second.kind in verb.objects:
            break
    headline = random.random() < 0.15 and not second.oblique
    phrases: list[NounPhrase] = []
    where = random.choice(((True, False), (True, False), (False, True), (True, True)))
    for noun, described in zip((first, second), where, strict=True):
        adjective = None
        if described:
            adjective = ADJECTIVES[random.choice(("small", "big", "old", "young", "strong"))]
        determiner: Determiner = random.choice(("the", "the", "the", "a", "this"))
        phrases.append(NounPhrase(noun, "none" if headline else determiner, adjective))
    tense: Tense = "present" if headline else random.choice(_TENSES)
    clause = Clause(phrases[0], verb, tense, phrases[1])
    if headline or random.random() < 0.8:
        return _finish(clause.english(), clause.german_verb_second(), [clause], family="order")
    english, german, above = _opening(random)
    return _finish(
        f"{english} {clause.english()}",
        f"{german} {clause.german_verb_last()}",
        [*above, clause],
        family="order",
    )


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
        ("past", _COULD),
    )
    for verb, actor, thing in itertools.product(PRONOUN_VERBS, ANIMAL_WORDS, NOUNS):
        fits = thing.kind in _things(verb) and "animal" in verb.subjects
        # Two nouns of one gender would share the pronoun.
        if not fits or thing.gender == actor.gender:
            continue
        for tense, modal in forms:
            what = NounPhrase(thing)
            main = Clause(NounPhrase(actor), verb, tense, what, modal=modal, negated=True)
            if split_of(main.combination()) == "test":
                own = _too_of_actor(thing)
                pairs.append(
                    (
                        _pronoun_probe(main, actor, thing, own[len(pairs) % len(own)]),
                        _pronoun_probe(main, actor, thing, thing.too[0]),
                    )
                )
    famous = "The animal didn't cross the street"
    return tuple(sorted(pairs, key=lambda pair: not pair[0].source.startswith(famous)))


def _pronoun_probe(main: Clause, actor: Noun, thing: Noun, adjective: str) -> PronounProbe:
    below = _because_it(main, NounPhrase(actor), NounPhrase(thing), adjective)
    sentence = _finish(
        f"{main.english()} because {below.english()}",
        f"{main.german_verb_second()}, weil {below.german_verb_last()}",
        [main],
    )
    words, target = sentence.english.split(), sentence.german.split()
    places = [words.index(actor.english), words.index(thing.english)]
    if adjective not in TOO_OF_THE_ACTOR:
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
        for index, one in enumerate(nouns):
            for other in nouns[index + 1 :]:
                if verb is EAT_OF_ANIMALS and other.kind == "person":
                    continue
                clauses = [
                    Clause(
                        NounPhrase(subject, "the", ADJECTIVES["small"]),
                        _exchange(verb, subject),
                        "present",
                        NounPhrase(object_),
                    )
                    for subject, object_ in ((one, other), (other, one))
                ]
                if split_of(clauses[0].combination()) == "test":
                    made = [_finish(c.english(), c.german_verb_second(), [c]) for c in clauses]
                    first, second = (OrderProbe(each.english, each.german) for each in made)
                    pairs.append((first, second))
    famous = "The small man eats the dinosaur"
    return tuple(sorted(pairs, key=lambda pair: not pair[0].source.startswith(famous)))
