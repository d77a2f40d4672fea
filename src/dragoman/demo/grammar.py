"""A small grammar of English and German side by side: what it says in one, it says in the other.

A ``Clause`` is a meaning (who does what to whom, when, whether, in which mood); its methods put it
into English order and into the three German orders: the verb second ("Heute macht der Mann die Tür
auf"), the verb last ("weil der Mann die Tür aufmacht") and the verb first ("Macht der Mann die Tür
auf?"). A ``NounPhrase`` inflects determiner, adjective and noun for gender, case and number.

German follows the descriptive grammar of the standard language (Duden, *Die Grammatik*): strong,
weak and mixed adjective endings; the sentence bracket of finite verb and particle or infinitive;
*nicht* after a definite object and before a prepositional phrase or predicate; *kein* in place of
*nicht ein*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from dragoman.demo.lexicon import Adjective, Case, Gender, Noun, Verb

Determiner = Literal["the", "a", "my", "this", "two", "none", "no"]
Tense = Literal["present", "past"]

_Slot = Gender | Literal["p"]
"""A gender, or "p": in the plural German has no genders."""

_ENDINGS: dict[Case, dict[_Slot, str]] = {
    "nominative": {"m": "er", "f": "e", "n": "es", "p": "e"},
    "accusative": {"m": "en", "f": "e", "n": "es", "p": "e"},
    "dative": {"m": "em", "f": "er", "n": "em", "p": "en"},
}
"""The endings of *dieser*, and of an adjective that no determiner precedes (strong)."""

_DEFINITE: dict[Case, dict[_Slot, str]] = {
    "nominative": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "accusative": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dative": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
}

_RELATIVE: dict[Case, dict[_Slot, str]] = {
    **_DEFINITE,
    "dative": {**_DEFINITE["dative"], "p": "denen"},
}

_EIN_STEMS: dict[Determiner, str] = {"a": "ein", "my": "mein", "no": "kein"}


def _is_bare(case: Case, slot: _Slot) -> bool:
    """True if *ein, mein, kein* have no ending in this place (ein Mann, ein Kind)."""
    return (case == "nominative" and slot in ("m", "n")) or (case == "accusative" and slot == "n")


def _weak_ending(case: Case, slot: _Slot) -> str:
    """The ending of an adjective whose determiner already shows gender and case."""
    if slot == "p" or case == "dative" or (case == "accusative" and slot == "m"):
        return "en"
    return "e"


class Nominal(Protocol):
    """The subject of a clause: a noun phrase, a pronoun, or a relative pronoun."""

    @property
    def plural(self) -> bool: ...

    @property
    def head(self) -> str:
        """The English noun it stands for; empty where it stands for none (who)."""
        ...

    def english(self) -> str: ...

    def german(self, case: Case) -> str: ...


@dataclass(frozen=True, slots=True)
class GrammarWord:
    """A subject whose words are given: a pronoun, or a noun phrase with its relative clause."""

    english_word: str
    german_word: str
    plural: bool = False
    head: str = ""

    def english(self) -> str:
        return self.english_word

    def german(self, case: Case) -> str:
        return self.german_word


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Determiner, adjective and noun: "the small man", "einen kleinen Mann"."""

    noun: Noun
    determiner: Determiner = "the"
    adjective: Adjective | None = None
    plural: bool = False

    @property
    def head(self) -> str:
        return self.noun.english

    @property
    def slot(self) -> _Slot:
        return "p" if self.plural else self.noun.gender

    def english(self) -> str:
        noun = self.noun.english_plural if self.plural else self.noun.english
        words = [self.adjective.english, noun] if self.adjective else [noun]
        if self.determiner == "this":
            words.insert(0, "these" if self.plural else "this")
        elif self.determiner == "a":
            words.insert(0, "an" if words[0][0] in "aeiou" else "a")
        elif self.determiner != "none":
            words.insert(0, self.determiner)
        return " ".join(words)

    def german(self, case: Case) -> str:
        """The phrase in the given case, article, adjective and noun agreeing."""
        slot = self.slot
        article, strong = "", False
        if self.determiner == "the":
            article = _DEFINITE[case][slot]
        elif self.determiner == "this":
            article = "dies" + _ENDINGS[case][slot]
        elif self.determiner in _EIN_STEMS:
            strong = _is_bare(case, slot)
            article = _EIN_STEMS[self.determiner] + ("" if strong else _ENDINGS[case][slot])
        else:
            strong = True
            article = "zwei" if self.determiner == "two" else ""
        words = [article] if article else []
        if self.adjective:
            ending = _ENDINGS[case][slot] if strong else _weak_ending(case, slot)
            words.append(self.adjective.stem + ending)
        words.append(self._german_noun(case))
        return " ".join(words)

    def _german_noun(self, case: Case) -> str:
        if not self.plural:
            return (case != "nominative" and self.noun.oblique) or self.noun.german
        plural = self.noun.german_plural
        return plural + "n" if case == "dative" and plural[-1] not in "ns" else plural

    def german_pronoun(self) -> str:
        """The nominative pronoun that takes up this phrase: er, sie, es; sie in the plural."""
        return {"m": "er", "f": "sie", "n": "es", "p": "sie"}[self.slot]

    def english_pronoun(self) -> str:
        return "they" if self.plural else self.noun.pronoun

    def relative(self, case: Case) -> str:
        """The German relative pronoun: der, den, dem, die, denen, das."""
        return _RELATIVE[case][self.slot]


@dataclass(frozen=True, slots=True)
class PlacePhrase:
    """A prepositional phrase of place or company, in the dative: "in the forest", "im Wald"."""

    english_preposition: str
    german_preposition: str
    phrase: NounPhrase

    def english(self) -> str:
        return f"{self.english_preposition} {self.phrase.english()}"

    def german(self) -> str:
        german = self.phrase.german("dative")
        if self.german_preposition == "in" and german.startswith("dem "):
            return "im " + german.removeprefix("dem ")
        return f"{self.german_preposition} {german}"


@dataclass(frozen=True, slots=True)
class Modal:
    """A modal verb; English forms are finite, German ones for singular and plural subject."""

    english: str
    english_negative: str
    singular: str
    plural: str


@dataclass(frozen=True, slots=True)
class Predicate:
    """The complement of "be": a degree ("", too, very) and an adjective."""

    adjective: Adjective
    degree: Literal["", "too", "very"] = ""

    def english(self) -> str:
        return f"{self.degree} {self.adjective.english}".lstrip()

    def german(self) -> str:
        degree = {"": "", "too": "zu ", "very": "sehr "}[self.degree]
        return degree + self.adjective.german


_BE: dict[Tense, tuple[str, str, str, str]] = {
    "present": ("is", "are", "ist", "sind"),
    "past": ("was", "were", "war", "waren"),
}
_DO: dict[Tense, tuple[str, str]] = {"present": ("does", "do"), "past": ("did", "did")}


@dataclass(frozen=True, slots=True)
class Clause:
    """One finite verb and what belongs to it. ``verb`` None means "be" with a predicate."""

    subject: Nominal
    verb: Verb | None
    tense: Tense
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    place: PlacePhrase | None = None
    predicate: Predicate | None = None
    modal: Modal | None = None
    negated: bool = False

    # English

    def _english_rest(self) -> list[str]:
        parts = (self.recipient, self.object, self.predicate, self.place)
        return [part.english() for part in parts if part is not None]

    def _english_auxiliary(self) -> str:
        """The auxiliary of questions and negations, "not" included where it is negated."""
        plural = self.subject.plural
        if self.modal:
            return self.modal.english_negative if self.negated else self.modal.english
        word = _BE[self.tense][plural] if self.verb is None else _DO[self.tense][plural]
        return word + "n't" if self.negated else word

    def english(self) -> str:
        """Subject, verb, objects: the order of statements and of all subordinate clauses."""
        subject, rest = self.subject.english(), self._english_rest()
        if self.verb is None:
            return " ".join([subject, self._english_auxiliary(), *rest])
        if self.modal or self.negated:
            return " ".join([subject, self._english_auxiliary(), self.verb.base, *rest])
        if self.tense == "past":
            return " ".join([subject, self.verb.past, *rest])
        return " ".join(
            [subject, self.verb.base if self.subject.plural else self.verb.third, *rest]
        )

    def english_question(self) -> str:
        """Return the question: auxiliary, subject, verb and objects."""
        verb = [self.verb.base] if self.verb else []
        return " ".join(
            [self._english_auxiliary(), self.subject.english(), *verb, *self._english_rest()]
        )

    # German

    def _german_finite(self) -> str:
        plural = self.subject.plural
        if self.modal:
            return self.modal.plural if plural else self.modal.singular
        if self.verb is None:
            return _BE[self.tense][2 + plural]
        if self.tense == "past":
            return self.verb.preterite_plural if plural else self.verb.preterite
        return self.verb.infinitive if plural else self.verb.present

    def _german_middle(self) -> list[str]:
        """Return the words inside the verbal bracket: objects, negation, place, predicate."""
        middle: list[str] = []
        negation = ["nicht"] if self.negated else []
        if self.recipient:
            middle.append(self.recipient.german("dative"))
        if self.object:
            assert self.verb is not None
            phrase = self.object
            if negation and phrase.determiner == "a":
                phrase, negation = NounPhrase(phrase.noun, "no", phrase.adjective), []
            german = phrase.german(self.verb.case)
            if self.verb.preposition:
                middle += [*negation, f"{self.verb.preposition} {german}"]
                negation = []
            else:
                middle.append(german)
        middle += negation
        if self.place:
            middle.append(self.place.german())
        if self.predicate:
            middle.append(self.predicate.german())
        return middle

    def german_verb_second(self, front: str = "") -> str:
        """A main clause. ``front`` takes the first place and sends the subject behind the verb."""
        subject = self.subject.german("nominative")
        first = (
            [front, self._german_finite(), subject] if front else [subject, self._german_finite()]
        )
        return " ".join([*first, *self._german_middle(), *self._german_bracket()])

    def german_verb_first(self) -> str:
        """A question that asks for yes or no."""
        return self.german_verb_second(front="-").removeprefix("- ")

    def german_verb_last(self) -> str:
        """A subordinate clause, without the word that introduces it."""
        words = [self.subject.german("nominative"), *self._german_middle()]
        if self.modal:
            words += [*self._german_bracket(), self._german_finite()]
        else:
            words.append((self.verb.particle if self.verb else "") + self._german_finite())
        return " ".join(word for word in words if word)

    def _german_bracket(self) -> list[str]:
        """The part of the verb that closes a main clause: particle or infinitive."""
        if self.verb is None:
            return []
        if self.modal:
            return [self.verb.particle + self.verb.infinitive]
        return [self.verb.particle] if self.verb.particle else []

    # Identity

    def combination(self) -> str:
        """The verb and the nouns it joins, in no order: the unit that is held out of training.

        Articles, adjectives, tense, number and negation do not count, and neither does who does
        it to whom: "the small man eats the dinosaur" and "two dinosaurs didn't eat my man" are one
        combination. Empty where there is nothing to join ("the dog sleeps", "the dog is tired").
        """
        phrases = (self.object, self.recipient, self.place.phrase if self.place else None)
        nouns = [phrase.head for phrase in phrases if phrase]
        if self.verb is None or not nouns:
            return ""
        subject = [self.subject.head] if self.subject.head else []
        return f"{self.verb.base}: {' + '.join(sorted(nouns + subject))}"
