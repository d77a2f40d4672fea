"""The words of the embedded corpus: nouns, adjectives and verbs of English with their German.

Tables only; ``demo_grammar`` knows how to inflect and to order them. Every word has exactly one
translation in its place, so that each English sentence of the corpus has one German reference.
The tables are small on purpose: about 300 written words a side, so that a network of modest size
meets each of them often within two minutes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Gender = Literal["m", "f", "n"]
Case = Literal["nominative", "accusative", "dative"]
Kind = Literal[
    "person", "animal", "crossing", "summit", "hurdle", "load", "food", "opening", "thing", "place"
]


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun. Only persons and animals have a plural here."""

    english: str
    german: str
    gender: Gender
    kind: Kind
    too: tuple[str, ...] = ()
    """Adjectives (English) that, said as "because it was too …", point at this noun as the thing
    acted upon: a street is too wide, a soup too salty, a mouse too fast."""
    english_plural: str = ""
    german_plural: str = ""
    oblique: str = ""
    """Singular other than nominative, for nouns of the weak declension (der Bär, den Bären)."""
    pronoun: str = "it"
    """The English pronoun; empty where usage wavers (the child, the girl), so none is made."""


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective: as a predicate (dunkel) and the stem that takes endings (dunkl-)."""

    english: str
    german: str
    stem: str


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with its forms. German forms are those of the stem, without the particle.

    ``heben`` with the particle ``auf`` gives "hebt … auf" in a main clause, "aufhebt" at the end
    of a subordinate clause and "aufheben" after a modal verb.
    """

    base: str
    past: str
    infinitive: str
    present: str
    preterite: str
    subjects: tuple[Kind, ...]
    objects: tuple[Kind, ...] = ()
    particle: str = ""
    case: Case = "accusative"
    preposition: str = ""
    """The German preposition that introduces the object (warten *auf*); English has its own
    within ``base``."""

    @property
    def third(self) -> str:
        return third_person(self.base)

    @property
    def preterite_plural(self) -> str:
        return self.preterite + ("n" if self.preterite.endswith("e") else "en")


def third_person(base: str) -> str:
    """The third person of an English verb, which may have a particle: "carries", "picks up"."""
    verb, space, particle = base.partition(" ")
    verb = re.sub("(?<![aeiou])y$", "ie", verb)
    return verb + ("es" if verb.endswith(("ch", "ss")) else "s") + space + particle


PEOPLE_WORDS: tuple[Noun, ...] = (
    Noun("man", "Mann", "m", "person", (), "men", "Männer", pronoun="he"),
    Noun("woman", "Frau", "f", "person", (), "women", "Frauen", pronoun="she"),
    Noun("child", "Kind", "n", "person", (), "children", "Kinder", pronoun=""),
    Noun("boy", "Junge", "m", "person", (), "boys", "Jungen", "Jungen", pronoun="he"),
    Noun("girl", "Mädchen", "n", "person", (), "girls", "Mädchen", pronoun=""),
    Noun("king", "König", "m", "person", (), "kings", "Könige", pronoun="he"),
    Noun("queen", "Königin", "f", "person", (), "queens", "Königinnen", pronoun="she"),
)

_QUARRY = ("fast", "clever", "strong")

ANIMAL_WORDS: tuple[Noun, ...] = (
    Noun("animal", "Tier", "n", "animal", _QUARRY, "animals", "Tiere"),
    Noun("dinosaur", "Dinosaurier", "m", "animal", _QUARRY, "dinosaurs", "Dinosaurier"),
    Noun("dog", "Hund", "m", "animal", _QUARRY, "dogs", "Hunde"),
    Noun("cat", "Katze", "f", "animal", _QUARRY, "cats", "Katzen"),
    Noun("horse", "Pferd", "n", "animal", _QUARRY, "horses", "Pferde"),
    Noun("bear", "Bär", "m", "animal", _QUARRY, "bears", "Bären", "Bären"),
    Noun("lion", "Löwe", "m", "animal", _QUARRY, "lions", "Löwen", "Löwen"),
    Noun("mouse", "Maus", "f", "animal", _QUARRY, "mice", "Mäuse"),
    Noun("bird", "Vogel", "m", "animal", _QUARRY, "birds", "Vögel"),
    Noun("cow", "Kuh", "f", "animal", _QUARRY, "cows", "Kühe"),
    Noun("pig", "Schwein", "n", "animal", _QUARRY, "pigs", "Schweine"),
    Noun("goat", "Ziege", "f", "animal", _QUARRY, "goats", "Ziegen"),
    Noun("camel", "Kamel", "n", "animal", _QUARRY, "camels", "Kamele"),
    Noun("snake", "Schlange", "f", "animal", _QUARRY, "snakes", "Schlangen"),
)

OTHER_WORDS: tuple[Noun, ...] = (
    # What one crosses, climbs, jumps over, pulls.
    Noun("street", "Straße", "f", "crossing", ("wide", "long", "icy")),
    Noun("river", "Fluss", "m", "crossing", ("wide", "deep")),
    Noun("bridge", "Brücke", "f", "crossing", ("narrow", "long", "icy")),
    Noun("field", "Feld", "n", "crossing", ("wide", "muddy")),
    Noun("canal", "Kanal", "m", "crossing", ("wide", "deep")),
    Noun("valley", "Tal", "n", "crossing", ("wide", "deep")),
    Noun("meadow", "Wiese", "f", "crossing", ("wide", "muddy")),
    Noun("mountain", "Berg", "m", "summit", ("high", "steep")),
    Noun("hill", "Hügel", "m", "summit", ("steep", "muddy")),
    Noun("roof", "Dach", "n", "summit", ("high", "steep", "icy")),
    Noun("pyramid", "Pyramide", "f", "summit", ("high", "steep")),
    Noun("wall", "Mauer", "f", "hurdle", ("high", "wide")),
    Noun("fence", "Zaun", "m", "hurdle", ("high",)),
    Noun("gate", "Tor", "n", "hurdle", ("high",)),
    Noun("ditch", "Graben", "m", "hurdle", ("wide", "deep")),
    Noun("wagon", "Wagen", "m", "load", ("heavy", "full")),
    Noun("boat", "Boot", "n", "load", ("heavy", "full")),
    Noun("box", "Kiste", "f", "load", ("heavy", "full")),
    # What one eats.
    Noun("apple", "Apfel", "m", "food", ("sour", "hard", "old", "small")),
    Noun("soup", "Suppe", "f", "food", ("salty", "bitter", "old", "small")),
    Noun("bread", "Brot", "n", "food", ("salty", "hard", "old", "small")),
    Noun("cake", "Kuchen", "m", "food", ("bitter", "hard", "old", "small")),
    Noun("pear", "Birne", "f", "food", ("sour", "hard", "old", "small")),
    Noun("egg", "Ei", "n", "food", ("salty", "hard", "old", "small")),
    # What one opens and closes, takes and gives.
    Noun("window", "Fenster", "n", "opening"),
    Noun("door", "Tür", "f", "opening"),
    Noun("bag", "Tasche", "f", "opening"),
    Noun("letter", "Brief", "m", "opening"),
    Noun("book", "Buch", "n", "thing"),
    Noun("ball", "Ball", "m", "thing"),
    Noun("flower", "Blume", "f", "thing"),
    Noun("lamp", "Lampe", "f", "thing"),
    # Where one is.
    Noun("house", "Haus", "n", "place"),
    Noun("garden", "Garten", "m", "place"),
    Noun("forest", "Wald", "m", "place"),
    Noun("school", "Schule", "f", "place"),
    Noun("city", "Stadt", "f", "place"),
)

NOUNS: tuple[Noun, ...] = PEOPLE_WORDS + ANIMAL_WORDS + OTHER_WORDS

_ADJECTIVES: tuple[tuple[str, str] | tuple[str, str, str], ...] = (
    ("small", "klein"),
    ("big", "groß"),
    ("old", "alt"),
    ("young", "jung"),
    ("new", "neu"),
    ("black", "schwarz"),
    ("strong", "stark"),
    ("hungry", "hungrig"),
    ("fresh", "frisch"),
    ("dark", "dunkel", "dunkl"),
    # Said of the one that acts, in "because it was too …".
    ("tired", "müde", "müd"),
    ("sick", "krank"),
    ("weak", "schwach"),
    ("lazy", "faul"),
    ("sleepy", "schläfrig"),
    ("nervous", "nervös"),
    ("sad", "traurig"),
    # Said of what is acted upon.
    ("wide", "breit"),
    ("long", "lang"),
    ("icy", "eisig"),
    ("deep", "tief"),
    ("narrow", "schmal"),
    ("muddy", "schlammig"),
    ("high", "hoch", "hoh"),
    ("steep", "steil"),
    ("heavy", "schwer"),
    ("full", "voll"),
    ("sour", "sauer", "saur"),
    ("salty", "salzig"),
    ("bitter", "bitter"),
    ("hard", "hart"),
    ("fast", "schnell"),
    ("slow", "langsam"),
    ("clever", "schlau"),
)

ADJECTIVES: dict[str, Adjective] = {
    row[0]: Adjective(row[0], row[1], row[2] if len(row) == 3 else row[1]) for row in _ADJECTIVES
}

WEARY: tuple[str, ...] = ("tired", "sick", "weak", "lazy", "sleepy", "nervous", "sad")

TOO_OF_THE_ACTOR: dict[Kind, tuple[str, ...]] = {
    "crossing": (*WEARY, "heavy"),
    "summit": (*WEARY, "heavy"),
    "hurdle": (*WEARY, "heavy", "small"),
    "load": (*WEARY, "small"),
    "food": WEARY,
    "animal": ("tired", "lazy", "sleepy", "nervous", "old", "slow"),
}
"""Adjectives that, said as "because it was too …", point at the one that acts, by the kind of what
is acted upon. Not the adjective alone decides: one is too heavy to climb, a box too heavy to be
pulled (``Noun.too``)."""

TWO_WAYS: frozenset[str] = frozenset({"heavy", "small", "old"})
"""Adjectives that point at the one that acts after some verbs and not after others."""

ATTRIBUTES: dict[Kind, tuple[str, ...]] = {
    "person": ("small", "big", "old", "young", "strong", "tired"),
    "animal": ("small", "big", "old", "young", "strong", "tired", "black"),
    "crossing": ("big", "old", "wide"),
    "summit": ("big", "old", "dark"),
    "hurdle": ("big", "old", "new"),
    "load": ("small", "big", "old", "new"),
    "food": ("small", "big", "fresh"),
    "opening": ("small", "big", "old", "new", "black"),
    "thing": ("small", "big", "old", "new", "black"),
    "place": ("small", "big", "old", "dark"),
}
"""Adjectives that may stand before a noun of each kind."""

STATES: tuple[str, ...] = ("hungry", "small", "big", "old", "young", "strong", *WEARY)
"""Adjectives that may be said of persons and animals ("the dog is hungry")."""

_LIVING: tuple[Kind, ...] = ("person", "animal")
_PEOPLE: tuple[Kind, ...] = ("person",)
_ANIMALS: tuple[Kind, ...] = ("animal",)

# base, past; infinitive, present, preterite; subjects; objects
SEE = Verb("see", "saw", "sehen", "sieht", "sah", _LIVING, (*_LIVING, "thing"))
FIND = Verb("find", "found", "finden", "findet", "fand", _LIVING, (*_LIVING, "thing"))
LOVE = Verb("love", "loved", "lieben", "liebt", "liebte", _LIVING, (*_LIVING, "food"))
CHASE = Verb("chase", "chased", "jagen", "jagt", "jagte", _LIVING, _LIVING)
CATCH = Verb("catch", "caught", "fangen", "fängt", "fing", _LIVING, _ANIMALS)
CARRY = Verb("carry", "carried", "tragen", "trägt", "trug", _LIVING, (*_LIVING, "load"))
HELP = Verb("help", "helped", "helfen", "hilft", "half", _LIVING, _LIVING, case="dative")
FOLLOW = Verb("follow", "followed", "folgen", "folgt", "folgte", _LIVING, _LIVING, case="dative")
WAIT = Verb(
    "wait for", "waited for", "warten", "wartet", "wartete", _LIVING, _LIVING, preposition="auf"
)
EAT_OF_PEOPLE = Verb("eat", "ate", "essen", "isst", "aß", _PEOPLE, ("food", "animal"))
EAT_OF_ANIMALS = Verb("eat", "ate", "fressen", "frisst", "fraß", _ANIMALS, ("food", *_LIVING))
CROSS = Verb("cross", "crossed", "überqueren", "überquert", "überquerte", _LIVING, ("crossing",))
CLIMB = Verb("climb", "climbed", "erklimmen", "erklimmt", "erklomm", _LIVING, ("summit",))
JUMP = Verb(
    "jump over", "jumped over", "springen", "springt", "sprang", _LIVING, ("hurdle",),
    preposition="über",
)  # fmt: skip
PULL = Verb("pull", "pulled", "ziehen", "zieht", "zog", _LIVING, ("load",))
BUY = Verb(
    "buy", "bought", "kaufen", "kauft", "kaufte", _PEOPLE, ("animal", "food", "thing", "load")
)
CALL = Verb("call", "called", "rufen", "ruft", "rief", _PEOPLE, _PEOPLE, particle="an")
INVITE = Verb("invite", "invited", "laden", "lädt", "lud", _PEOPLE, _LIVING, particle="ein")
PICK_UP = Verb(
    "pick up", "picked up", "heben", "hebt", "hob", _LIVING, ("thing", "food"), particle="auf"
)
OPEN = Verb("open", "opened", "machen", "macht", "machte", _LIVING, ("opening",), particle="auf")
CLOSE = Verb("close", "closed", "machen", "macht", "machte", _LIVING, ("opening",), particle="zu")

TRANSITIVE: tuple[Verb, ...] = (
    SEE, FIND, LOVE, CHASE, CATCH, CARRY, HELP, FOLLOW, WAIT, EAT_OF_PEOPLE, EAT_OF_ANIMALS, CROSS,
    CLIMB, JUMP, PULL, BUY, CALL, INVITE, PICK_UP, OPEN, CLOSE,
)  # fmt: skip

COME_BACK = Verb("come back", "came back", "kommen", "kommt", "kam", _LIVING, particle="zurück")
GET_UP = Verb("get up", "got up", "stehen", "steht", "stand", _LIVING, particle="auf")
FALL_ASLEEP = Verb(
    "fall asleep", "fell asleep", "schlafen", "schläft", "schlief", _LIVING, particle="ein"
)
SLEEP = Verb("sleep", "slept", "schlafen", "schläft", "schlief", _LIVING)
DANCE = Verb("dance", "danced", "tanzen", "tanzt", "tanzte", _LIVING)

INTRANSITIVE: tuple[Verb, ...] = (SLEEP, DANCE, GET_UP, FALL_ASLEEP, COME_BACK)

MOTION: tuple[Verb, ...] = (COME_BACK, GET_UP)
"""Verbs that take no place here: German would want a direction."""

GIVING: tuple[Verb, ...] = (
    Verb("give", "gave", "geben", "gibt", "gab", _PEOPLE, ("food", "thing")),
    Verb("show", "showed", "zeigen", "zeigt", "zeigte", _PEOPLE, ("animal", "thing", "opening")),
)
"""Verbs with two objects: "gives the child an apple", "gibt dem Kind einen Apfel"."""

KNOWING: tuple[Verb, ...] = (
    Verb("know", "knew", "wissen", "weiß", "wusste", _PEOPLE),
    Verb("say", "said", "sagen", "sagt", "sagte", _PEOPLE),
    SEE,
)
"""Verbs followed by "that …", "dass …"."""

ORDER_VERBS: tuple[Verb, ...] = (EAT_OF_ANIMALS, SEE, CHASE, FOLLOW, HELP, CARRY, FIND, LOVE)
"""Verbs that two living beings can exchange: "the small man eats the dinosaur" and back."""

PRONOUN_VERBS: tuple[Verb, ...] = (CROSS, CLIMB, JUMP, PULL, CATCH, EAT_OF_ANIMALS)
"""Verbs whose two sides can both be the "it" of "because it was too …"."""
