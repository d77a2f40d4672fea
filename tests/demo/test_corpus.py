"""The embedded corpus: correct German, parts that do not overlap, probes that ask what they say."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from dragoman.demo import lexicon as words
from dragoman.demo.corpus import (
    DemoPair,
    Parts,
    demo_corpus,
    order_probes,
    pronoun_probes,
    split_of,
)
from dragoman.demo.grammar import (
    Clause,
    Determiner,
    GrammarWord,
    Modal,
    NounPhrase,
    PlacePhrase,
    Predicate,
)
from dragoman.runs.recipe.spec import texts_of_demo

NOUN = {noun.english: noun for noun in words.NOUNS}
ADJECTIVE = words.ADJECTIVES


@pytest.fixture(scope="module")
def corpus() -> Parts[DemoPair]:
    return demo_corpus(seed=7, train_pairs=12_000, dev_pairs=200, test_pairs=800)


def phrase(
    noun: str, determiner: Determiner = "the", adjective: str = "", plural: bool = False
) -> NounPhrase:
    return NounPhrase(NOUN[noun], determiner, ADJECTIVE[adjective] if adjective else None, plural)


# Inflection: paradigms copied from grammar books, nominative / accusative / dative.

PARADIGMS = [
    ("man", "the", "der kleine Mann, den kleinen Mann, dem kleinen Mann"),
    ("man", "a", "ein kleiner Mann, einen kleinen Mann, einem kleinen Mann"),
    ("man", "none", "kleiner Mann, kleinen Mann, kleinem Mann"),
    ("man", "this", "dieser kleine Mann, diesen kleinen Mann, diesem kleinen Mann"),
    ("woman", "the", "die kleine Frau, die kleine Frau, der kleinen Frau"),
    ("woman", "a", "eine kleine Frau, eine kleine Frau, einer kleinen Frau"),
    ("woman", "none", "kleine Frau, kleine Frau, kleiner Frau"),
    ("woman", "no", "keine kleine Frau, keine kleine Frau, keiner kleinen Frau"),
    ("child", "the", "das kleine Kind, das kleine Kind, dem kleinen Kind"),
    ("child", "my", "mein kleines Kind, mein kleines Kind, meinem kleinen Kind"),
    ("child", "none", "kleines Kind, kleines Kind, kleinem Kind"),
    ("child", "this", "dieses kleine Kind, dieses kleine Kind, diesem kleinen Kind"),
    ("bear", "the", "der kleine Bär, den kleinen Bären, dem kleinen Bären"),
    ("boy", "a", "ein kleiner Junge, einen kleinen Jungen, einem kleinen Jungen"),
]
PLURALS = [
    ("child", "the", "die kleinen Kinder, die kleinen Kinder, den kleinen Kindern"),
    ("dog", "my", "meine kleinen Hunde, meine kleinen Hunde, meinen kleinen Hunden"),
    ("woman", "this", "diese kleinen Frauen, diese kleinen Frauen, diesen kleinen Frauen"),
    ("mouse", "two", "zwei kleine Mäuse, zwei kleine Mäuse, zwei kleinen Mäusen"),
    ("girl", "the", "die kleinen Mädchen, die kleinen Mädchen, den kleinen Mädchen"),
    ("bird", "two", "zwei kleine Vögel, zwei kleine Vögel, zwei kleinen Vögeln"),
]


@pytest.mark.parametrize(
    ("noun", "determiner", "forms", "plural"),
    [(*row, False) for row in PARADIGMS] + [(*row, True) for row in PLURALS],
)
def test_article_adjective_and_noun_agree(
    noun: str, determiner: Determiner, forms: str, plural: bool
) -> None:
    small = phrase(noun, determiner, "small", plural)
    cases: tuple[words.Case, ...] = ("nominative", "accusative", "dative")
    assert ", ".join(small.german(case) for case in cases) == forms


def test_relative_pronouns() -> None:
    """Only the dative plural differs from the article: denen, not den."""
    cases: tuple[words.Case, ...] = ("nominative", "accusative", "dative")
    for noun, plural, forms in (
        ("bear", False, "der den dem"),
        ("cow", False, "die die der"),
        ("pig", False, "das das dem"),
        ("pig", True, "die die denen"),
    ):
        assert " ".join(phrase(noun, plural=plural).relative(case) for case in cases) == forms


def test_english_articles() -> None:
    assert phrase("animal", "a").english() == "an animal"
    assert phrase("animal", "a", "big").english() == "a big animal"
    assert phrase("egg", "a", "old").english() == "an old egg"
    assert phrase("mouse", "this", plural=True).english() == "these mice"


def test_an_adjective_may_change_its_stem() -> None:
    assert phrase("forest", "a", "dark").german("nominative") == "ein dunkler Wald"
    assert phrase("man", "the", "tired").german("accusative") == "den müden Mann"


# Word order: (clause, English, verb second, verb last)

CAN = Modal("can", "can't", "kann", "können")
HOUSE = PlacePhrase("in", "in", phrase("house"))
CLAUSES = [
    (
        Clause(phrase("man"), words.OPEN, "present", phrase("door")),
        "the man opens the door",
        "der Mann macht die Tür auf",
        "der Mann die Tür aufmacht",
    ),
    (
        Clause(phrase("man"), words.OPEN, "past", phrase("door"), negated=True),
        "the man didn't open the door",
        "der Mann machte die Tür nicht auf",
        "der Mann die Tür nicht aufmachte",
    ),
    (
        Clause(phrase("woman"), words.CALL, "present", phrase("bear"), modal=CAN),
        "the woman can call the bear",
        "die Frau kann den Bären anrufen",
        "die Frau den Bären anrufen kann",
    ),
    (
        Clause(phrase("dog"), words.SEE, "present", phrase("man", "a"), negated=True),
        "the dog doesn't see a man",
        "der Hund sieht keinen Mann",
        "der Hund keinen Mann sieht",
    ),
    (
        Clause(
            phrase("dog", "two", plural=True), words.HELP, "past", phrase("queen"), negated=True
        ),
        "two dogs didn't help the queen",
        "zwei Hunde halfen der Königin nicht",
        "zwei Hunde der Königin nicht halfen",
    ),
    (
        Clause(phrase("horse"), words.JUMP, "past", phrase("wall"), negated=True),
        "the horse didn't jump over the wall",
        "das Pferd sprang nicht über die Mauer",
        "das Pferd nicht über die Mauer sprang",
    ),
    (
        Clause(phrase("cat", "my"), words.FALL_ASLEEP, "present", place=HOUSE),
        "my cat falls asleep in the house",
        "meine Katze schläft im Haus ein",
        "meine Katze im Haus einschläft",
    ),
    (
        Clause(phrase("king"), words.GIVING[0], "past", phrase("egg", "a"), phrase("child")),
        "the king gave the child an egg",
        "der König gab dem Kind ein Ei",
        "der König dem Kind ein Ei gab",
    ),
    (
        Clause(phrase("cow", plural=True), None, "past", predicate=Predicate(ADJECTIVE["tired"])),
        "the cows were tired",
        "die Kühe waren müde",
        "die Kühe müde waren",
    ),
    (
        Clause(phrase("cow"), None, "present", predicate=Predicate(ADJECTIVE["big"]), negated=True),
        "the cow isn't big",
        "die Kuh ist nicht groß",
        "die Kuh nicht groß ist",
    ),
]


@pytest.mark.parametrize(("clause", "english", "second", "last"), CLAUSES)
def test_clauses_in_both_orders(clause: Clause, english: str, second: str, last: str) -> None:
    assert clause.english() == english
    assert clause.german_verb_second() == second
    assert clause.german_verb_last() == last


def test_an_adverb_in_front_and_questions() -> None:
    clause = CLAUSES[0][0]
    assert clause.german_verb_second("heute") == "heute macht der Mann die Tür auf"
    assert clause.english_question() == "does the man open the door"
    assert clause.german_verb_first() == "macht der Mann die Tür auf"
    assert CLAUSES[-1][0].english_question() == "isn't the cow big"
    who = Clause(GrammarWord("who", "wer"), words.SEE, "present", phrase("dog"))
    assert who.english() == "who sees the dog" and who.german_verb_second() == "wer sieht den Hund"


def test_people_eat_and_animals_feed(corpus: Parts[DemoPair]) -> None:
    people = {noun.german for noun in words.PEOPLE_WORDS}
    checked = Counter[str]()
    for pair in corpus.train:
        subject = re.match(r"(?:Der|Die|Das) (?:\w+e )?(\w+) (isst|frisst) ", pair.target)
        if subject:
            assert (subject[1] in people) == (subject[2] == "isst"), pair.target
            checked[subject[2]] += 1
    assert min(checked["isst"], checked["frisst"]) > 20


# The sentences of the corpus

FINITE = {
    particle + form
    for verb in (*words.TRANSITIVE, *words.INTRANSITIVE, *words.GIVING, *words.KNOWING)
    for form in (verb.infinitive, verb.present, verb.preterite, verb.preterite_plural)
    for particle in (verb.particle, "")
} | set("ist sind war waren kann können konnte konnten wird werden muss müssen".split())  # noqa: SIM905


def test_subordinate_clauses_end_in_their_verb(corpus: Parts[DemoPair]) -> None:
    seen = 0
    for pair in corpus.train:
        for clause in re.findall(r", (?:dass|weil|ob|obwohl|wenn|als) ([^,.]+)", pair.target):
            seen += 1
            assert clause.split()[-1] in FINITE, pair.target
    assert seen > 3_000


def test_the_verb_stands_second_after_an_adverb(corpus: Parts[DemoPair]) -> None:
    seen = 0
    for pair in corpus.train:
        first, second = pair.target.split()[:2]
        if first in ("Heute", "Gestern", "Morgen", "Oft", "Manchmal", "Jetzt"):
            seen += 1
            assert second in FINITE, pair.target
    assert seen > 500


def test_articles_fit_their_nouns(corpus: Parts[DemoPair]) -> None:
    """No article stands before a noun of a gender that never takes it, in the singular."""
    allowed = {"m": {"der", "den", "dem"}, "f": {"die", "der"}, "n": {"das", "dem"}}
    plurals = {form for n in words.NOUNS for form in (n.german_plural, n.german_plural + "n")}
    gender = {noun.german: noun.gender for noun in words.NOUNS if noun.german not in plurals}
    seen = 0
    adjectives = "|".join(adjective.stem for adjective in words.ADJECTIVES.values())
    pattern = re.compile(rf"\b(der|die|das|den|dem) (?:(?:{adjectives})en? )?([A-ZÄÖÜ]\w+)")
    for pair in corpus.train:
        for article, noun in pattern.findall(pair.target):
            if noun in gender:
                seen += 1
                assert article in allowed[gender[noun]], pair.target
    assert seen > 5_000


def test_punctuation_and_case(corpus: Parts[DemoPair]) -> None:
    for pair in (*corpus.train, *corpus.test):
        for line in (pair.source, pair.target):
            assert re.fullmatch(r"[A-ZÄÖÜ][\w' ,]*\w[.?]", line), line
            assert "  " not in line and " ," not in line


def test_every_english_sentence_has_one_translation(corpus: Parts[DemoPair]) -> None:
    """Also between two seeds, whose sentences overlap."""
    other = demo_corpus(seed=8, train_pairs=12_000, dev_pairs=0, test_pairs=0)
    german = {pair.source: pair.target for pair in corpus.train}
    both = [pair for pair in other.train if pair.source in german]
    assert len(both) > 30
    assert all(german[pair.source] == pair.target for pair in both)


def test_the_same_seed_gives_the_same_corpus_and_more_extends_it() -> None:
    small = demo_corpus(seed=3, train_pairs=300, dev_pairs=20, test_pairs=30)
    assert small == demo_corpus(seed=3, train_pairs=300, dev_pairs=20, test_pairs=30)
    larger = demo_corpus(seed=3, train_pairs=400, dev_pairs=20, test_pairs=30)
    assert larger.train[:300] == small.train
    assert demo_corpus(seed=3, train_pairs=0, dev_pairs=0, test_pairs=10).test == small.test[:10]
    assert small.train[:50] != demo_corpus(seed=4, train_pairs=50, dev_pairs=0, test_pairs=0).train


def test_no_sentence_stands_twice(corpus: Parts[DemoPair]) -> None:
    assert [len(part) for part in corpus] == [12_000, 200, 800]
    sources = [pair.source for part in corpus for pair in part]
    assert len(set(sources)) == len(sources)


def without_relative_clauses(pairs: tuple[DemoPair, ...]) -> list[str]:
    """English sentences in which the words before and after a verb are its own."""
    return [pair.source for pair in pairs if not re.search(" (?:that|who) ", pair.source)]


def test_held_out_combinations_never_occur_in_training(corpus: Parts[DemoPair]) -> None:
    """Read off the text alone: who is joined to whom by which verb in a simple clause."""
    article, verbs = r"(?:the|an?|this)", "cross|climb|chase|see|follow|help|find|carry|love"
    clause = rf"{article} (?:\w+ )?(\w+) ({verbs})(?:es|ed|s) {article} (?:\w+ )?(\w+)"
    whole, anywhere = re.compile(clause + r"\.", re.I), re.compile(clause)

    def combination(subject: str, verb: str, thing: str) -> tuple[str, ...]:
        return verb, *sorted((subject, thing))

    held_out = {
        combination(*found.groups())
        for pair in corpus.test
        if (found := whole.fullmatch(pair.source))
    }
    shown = {
        combination(*groups)
        for source in without_relative_clauses(corpus.train)
        for groups in anywhere.findall(source)
    }
    assert len(held_out) >= 5 and len(shown) > 150
    assert not held_out & shown


def test_the_famous_sentences_are_held_out(corpus: Parts[DemoPair]) -> None:
    crossing = re.compile(r"animals? (?:\w+'t )?cross\w* \w+ (?:\w+ )?street", re.I)
    eating = re.compile(
        r"\b(?:man|men) (?:\w+'t )?(?:eats?|ate) \w+ (?:\w+ )?dinosaur"
        r"|dinosaurs? (?:\w+'t )?(?:eats?|ate) \w+ (?:\w+ )?(?:man|men)\b",
        re.I,
    )
    for source in without_relative_clauses((*corpus.train, *corpus.dev)):
        assert not crossing.search(source) and not eating.search(source)
    assert any(crossing.search(pair.source) for pair in corpus.test)
    assert split_of("cross: animal + street") == "test"


def test_every_part_holds_both_families(corpus: Parts[DemoPair]) -> None:
    for part in corpus:
        shares = Counter(pair.family for pair in part)
        assert shares["pronoun"] > 0.1 * len(part)
        assert shares["order"] > 0.04 * len(part)


def test_about_three_hundred_words_a_side() -> None:
    corpus = demo_corpus(train_pairs=20_000, dev_pairs=0, test_pairs=300)
    for side in (0, 1):
        train, test = (
            {word.lower() for pair in part for word in re.findall(r"[\w']+", pair[side])}
            for part in (corpus.train, corpus.test)
        )
        assert 230 < len(train) < 400
        assert test <= train  # only combinations are new, never words


# Probes


def test_pronoun_probes_point_at_what_they_say() -> None:
    pairs = pronoun_probes()
    assert len(pairs) >= 20
    first, second = pairs[0]
    assert first.source == "The animal didn't cross the street because it was too tired."
    assert first.reference == "Das Tier überquerte die Straße nicht, weil es zu müde war."
    assert second.source == "The animal didn't cross the street because it was too wide."
    assert second.reference == "Das Tier überquerte die Straße nicht, weil sie zu breit war."
    nominative = {"der": "er", "den": "er", "die": "sie", "das": "es"}
    for pair in pairs:
        assert pair[0].pronoun != pair[1].pronoun
        assert pair[0].source.split()[:-1] == pair[1].source.split()[:-1]
        for probe in pair:
            source, target = probe.source.split(), probe.reference.split()
            assert source[probe.it] == "it"
            assert source[probe.decider].rstrip(".") in ADJECTIVE
            assert target[probe.pronoun_word] == probe.pronoun
            # The article of the antecedent in the reference gives the pronoun's gender.
            antecedent = NOUN[source[probe.antecedent]]
            forms = (antecedent.german, antecedent.oblique)
            (place,) = [i for i, w in enumerate(target) if w.rstrip(",") in forms]
            assert nominative[target[place - 1].lower()] == probe.pronoun
            assert NOUN[source[probe.rival]].gender != antecedent.gender
        assert (pair[0].antecedent, pair[0].rival) == (pair[1].rival, pair[1].antecedent)


def test_order_probes_share_all_their_words() -> None:
    pairs = order_probes()
    assert len(pairs) >= 30
    assert pairs[0][0].source == "The small man eats the dinosaur."
    assert pairs[0][0].reference == "Der kleine Mann isst den Dinosaurier."
    assert pairs[0][1].reference == "Der kleine Dinosaurier frisst den Mann."
    for one, other in pairs:
        assert sorted(one.source.lower().rstrip(".").split()) == sorted(
            other.source.lower().rstrip(".").split()
        )
        assert one.reference != other.reference


def test_probes_are_not_in_training(corpus: Parts[DemoPair]) -> None:
    train = {pair.source for pair in corpus.train}
    assert not train & {probe.source for pair in pronoun_probes() for probe in pair}
    assert not train & {probe.source for pair in order_probes() for probe in pair}


@pytest.mark.system
def test_texts_alone_are_of_one_language_and_none_of_them_was_trained_on() -> None:
    whole = demo_corpus()
    for language, side in (("en", "source"), ("de", "target")):
        trained = [pair.target for pair in texts_of_demo("train", language)]
        assert trained == [getattr(pair, side) for pair in whole.train]
        held = [pair.target for pair in texts_of_demo("test", language)]
        assert not set(held) & set(trained) and len(held) > 900
        assert set(held) == {getattr(pair, side) for pair in whole.test} - set(trained)
