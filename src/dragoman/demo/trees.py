"""The embedded corpus of trees: sentences of a small grammar, each with its constituency tree.

The grammar writes the brackets of the Penn Treebank (Bies et al., 1995): ``does n't`` is two words,
a stop is one. What a parser must know to bracket its sentences is not in their shape alone:

- *attachment*: in "watches the dog with the telescope" the phrase belongs to the verb, in "watches
  the dog with the crown" and in "likes the dog with the telescope" to the dog. Verb and last noun
  decide together: what one does with a thing is done with an instrument;
- *agreement*: in "the dog of the kings that sleeps" the dog sleeps, in "... that sleep" the kings;
- *nesting*: clauses within clauses, about a noun or told (that ..., because ...).

The corpus is synthetic, as that of pairs is (``corpus.NOTICE``). Training, development and test
sentences are parted as there: a keyed hash gives every *combination* (a verb with its nouns, two
nouns that a preposition joins) to one of the three, and a sentence with a held-out combination
never enters training. So each test sentence joins words that training never showed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from dragoman.demo.corpus import Parts, Split, fill_parts, split_of, split_of_all
from dragoman.demo.lexicon import ANIMAL_WORDS, PEOPLE_WORDS, third_person
from dragoman.forms.tree import Tree, read_trees


@dataclass(frozen=True, slots=True)
class TreeVerb:
    """A verb with all the forms that are used."""

    base: str
    past: str
    takes_instrument: bool = False
    """True if a phrase of "with" and an instrument belongs to the verb, not to its object."""

    @property
    def third(self) -> str:
        return third_person(self.base)


@dataclass(frozen=True, slots=True)
class TreeNoun:
    """A noun in singular and plural."""

    singular: str
    plural: str


WHO = tuple(TreeNoun(noun.english, noun.english_plural) for noun in PEOPLE_WORDS + ANIMAL_WORDS)
INSTRUMENTS = tuple(
    TreeNoun(word, f"{word}s")
    for word in ("telescope", "camera", "lamp", "net", "rope", "saw", "mirror", "hook")
)
WORN = tuple(
    TreeNoun(word, f"{word}s")
    for word in ("shawl", "hat", "crown", "ribbon", "coat", "bell", "collar", "mask")
)
"""The nouns for things that a person or an animal wears."""
_PLACES = ("garden", "forest", "house", "school", "city")
_SIZES = ("small", "big", "old", "young", "strong")
_STATES = ("tired", "sick", "lazy", "hungry", "nervous", "sad")

DOING = tuple(
    TreeVerb(*forms, takes_instrument=True)
    for forms in (
        ("see", "saw"), ("watch", "watched"), ("find", "found"),
        ("catch", "caught"), ("pull", "pulled"), ("draw", "drew"),
    )
)  # fmt: skip
FEELING = tuple(
    TreeVerb(*forms)
    for forms in (
        ("like", "liked"), ("love", "loved"), ("fear", "feared"),
        ("know", "knew"), ("miss", "missed"), ("trust", "trusted"),
    )
)  # fmt: skip
_RESTING = tuple(
    TreeVerb(*forms)
    for forms in (
        ("sleep", "slept"), ("wait", "waited"), ("sing", "sang"),
        ("work", "worked"), ("play", "played"), ("laugh", "laughed"),
    )
)  # fmt: skip
_TELLING = tuple(
    TreeVerb(*forms) for forms in (("say", "said"), ("think", "thought"), ("hope", "hoped"))
)
_MODALS = ("can", "will", "must")
_DEEPEST = 3
"""The most clauses that contain each other."""


@dataclass
class Draw:
    """The random numbers of a sentence, and the combinations that it contains."""

    random: Random
    combinations: list[str] = field(default_factory=list)
    """Each verb with its nouns, and each noun with another: what is held out of training."""

    def chance(self, share: float) -> bool:
        return self.random.random() < share


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase, with what a verb must know of it."""

    tree: Tree
    head: TreeNoun
    is_plural: bool


def sentence(draw: Draw) -> Tree:
    """A whole sentence, its first word with a capital and a stop at its end."""
    if draw.chance(0.12):
        first = _because(draw, draw.random.choice(("because", "when", "although")))
        children = (first, Tree(",", word=","), *_clause(draw, 2).children)
    else:
        clause = _clause(draw, 1)
        children = clause.children
        if draw.chance(0.12):
            subject, verb = children
            behind = _because(draw, "because")
            children = (subject, Tree("VP", (*verb.children, behind)))
    return _with_capital(Tree("S", (*children, Tree(".", word="."))))


def _because(draw: Draw, word: str) -> Tree:
    return Tree("SBAR", (Tree("IN", word=word), _clause(draw, _DEEPEST)))


def _clause(draw: Draw, depth: int) -> Tree:
    """Subject and verb phrase. ``depth``: so many clauses are around it, itself included."""
    subject = _noun_phrase(draw, depth)
    return Tree("S", (subject.tree, _verb_phrase(draw, subject, depth)))


def _verb_phrase(draw: Draw, subject: Phrase, depth: int) -> Tree:
    """Draw a verb phrase; the number of its verb is that of the subject."""
    kind = draw.random.random()
    if kind < 0.12:
        return _being(draw, subject)
    if kind < 0.27 and depth < _DEEPEST:
        clause = Tree("SBAR", (Tree("IN", word="that"), _clause(draw, depth + 1)))
        return _finite(draw, draw.random.choice(_TELLING), subject.is_plural, (clause,))
    if kind < 0.5:
        verb = draw.random.choice(_RESTING)
        behind: tuple[Tree, ...] = ()
        joined = [verb.base, subject.head.singular]
        if draw.chance(0.6):
            place = draw.random.choice(_PLACES)
            where = Tree("NP", (_leaf("DT", "the"), _leaf("NN", place)))
            behind = (_prepositional(_leaf("IN", "in"), where),)
            joined.append(place)
        draw.combinations.append(" ".join(joined))
        return _finite(draw, verb, subject.is_plural, behind)
    verb = draw.random.choice(DOING if draw.chance(0.6) else FEELING)
    other = _another(draw, subject.head)
    draw.combinations.append(f"{verb.base} {subject.head.singular} {other.singular}")
    if draw.chance(0.55):
        return _finite(draw, verb, subject.is_plural, _object_and_with(draw, verb, other))
    thing = _noun_phrase(draw, depth, other)
    return _finite(draw, verb, subject.is_plural, (thing.tree,))


def _being(draw: Draw, subject: Phrase) -> Tree:
    degree = (_leaf("RB", draw.random.choice(("very", "too"))),) if draw.chance(0.3) else ()
    state = Tree("ADJP", (*degree, _leaf("JJ", draw.random.choice(_STATES))))
    if draw.chance(0.3):
        return Tree("VP", (_leaf("VBD", "were" if subject.is_plural else "was"), state))
    verb = _leaf("VBP", "are") if subject.is_plural else _leaf("VBZ", "is")
    return Tree("VP", (verb, state))


def _finite(
    draw: Draw, verb: TreeVerb, is_plural: bool, behind: Sequence[Tree], *, is_present: bool = False
) -> Tree:
    """The verb in the number of its subject, or behind an auxiliary, with what stands behind it."""
    how = 0.0 if is_present else draw.random.random()
    present = ("VBP", verb.base) if is_plural else ("VBZ", verb.third)
    if how < 0.5:
        return Tree("VP", (_leaf(*present), *behind))
    if how < 0.75:
        return Tree("VP", (_leaf("VBD", verb.past), *behind))
    below = Tree("VP", (_leaf("VB", verb.base), *behind))
    if how < 0.9:
        return Tree("VP", (_leaf("MD", draw.random.choice(_MODALS)), below))
    do = _leaf("VBP", "do") if is_plural else _leaf("VBZ", "does")
    return Tree("VP", (do, _leaf("RB", "n't"), below))


def _object_and_with(draw: Draw, verb: TreeVerb, other: TreeNoun) -> tuple[Tree, ...]:
    """An object and a phrase of "with": both under the verb, or the phrase under the object."""
    thing = _plain(draw, other)
    held = draw.random.choice(INSTRUMENTS if draw.chance(0.6) else WORN)
    draw.combinations.append(f"{verb.base} {other.singular} with {held.singular}")
    phrase = _prepositional(_leaf("IN", "with"), _plain(draw, held))
    if verb.takes_instrument and held in INSTRUMENTS:
        return thing, phrase
    return (Tree("NP", (thing, phrase)),)


def _noun_phrase(draw: Draw, depth: int, head: TreeNoun | None = None) -> Phrase:
    """Alone, or with a phrase or a clause about it. ``head``: of an object, about which "with" says
    nothing here (``_object_and_with``)."""
    is_object, head = head is not None, head or draw.random.choice(WHO)
    is_plural = draw.chance(0.4)
    plain = Phrase(_plain(draw, head, is_plural), head, is_plural)
    kind = draw.random.random()
    if kind < 0.10 and not is_object:
        held = draw.random.choice(INSTRUMENTS + WORN)
        draw.combinations.append(f"{head.singular} with {held.singular}")
        phrase = _prepositional(_leaf("IN", "with"), _plain(draw, held))
        return Phrase(Tree("NP", (plain.tree, phrase)), head, is_plural)
    if kind < 0.30:
        return _of_another(draw, plain, depth)
    if kind < 0.42 and depth < _DEEPEST:
        return Phrase(Tree("NP", (plain.tree, _relative(draw, plain, depth + 1))), head, is_plural)
    return plain


def _of_another(draw: Draw, first: Phrase, depth: int) -> Phrase:
    """ "The dog of the kings", often with a clause about the one or the other: they differ in
    number, and the verb tells."""
    head = _another(draw, first.head)
    draw.combinations.append(f"{first.head.singular} of {head.singular}")
    has_clause = depth < _DEEPEST and draw.chance(0.5)
    is_plural = not first.is_plural if has_clause else draw.chance(0.4)
    second = Phrase(_plain(draw, head, is_plural), head, is_plural)
    of = _leaf("IN", "of")
    if not has_clause:
        whole = Tree("NP", (first.tree, _prepositional(of, second.tree)))
    elif draw.chance(0.5):
        inner = Tree("NP", (first.tree, _prepositional(of, second.tree)))
        whole = Tree("NP", (inner, _subject_relative(draw, first)))
    else:
        inner = Tree("NP", (second.tree, _subject_relative(draw, second)))
        whole = Tree("NP", (first.tree, _prepositional(of, inner)))
    return Phrase(whole, first.head, first.is_plural)


def _relative(draw: Draw, about: Phrase, depth: int) -> Tree:
    """ "... that sleeps in the garden", "... that the cat sees"."""
    if draw.chance(0.6):
        return _about(_verb_phrase(draw, about, depth))
    other = _another(draw, about.head)
    is_plural = draw.chance(0.4)
    verb = draw.random.choice(DOING + FEELING)
    draw.combinations.append(f"{verb.base} {other.singular} {about.head.singular}")
    return _about(_finite(draw, verb, is_plural, ()), _plain(draw, other, is_plural))


def _subject_relative(draw: Draw, about: Phrase) -> Tree:
    """In the present tense, whose verbs have a number."""
    if draw.chance(0.3):
        verb = _leaf("VBP", "are") if about.is_plural else _leaf("VBZ", "is")
        return _about(Tree("VP", (verb, Tree("ADJP", (_leaf("JJ", draw.random.choice(_STATES)),)))))
    verb_of = draw.random.choice(_RESTING)
    draw.combinations.append(f"{verb_of.base} {about.head.singular}")
    return _about(_finite(draw, verb_of, about.is_plural, (), is_present=True))


def _about(verb_phrase: Tree, subject: Tree | None = None) -> Tree:
    clause = Tree("S", (verb_phrase,) if subject is None else (subject, verb_phrase))
    return Tree("SBAR", (Tree("WHNP", (_leaf("WDT", "that"),)), clause))


def _plain(draw: Draw, noun: TreeNoun, is_plural: bool | None = None) -> Tree:
    """Draw a noun phrase of article, adjective and noun."""
    if is_plural is None:
        is_plural = draw.chance(0.2)
    articles = ("the", "the", "these", "two") if is_plural else ("the", "the", "a", "this")
    article = draw.random.choice(articles)
    adjectives = [_leaf("JJ", draw.random.choice(_SIZES))] if draw.chance(0.25) else []
    written = noun.plural if is_plural else noun.singular
    if article == "a" and (adjectives or [Tree("", word=written)])[0].words[0][0] in "aeiou":
        article = "an"
    tag = "CD" if article == "two" else "DT"
    last = _leaf("NNS" if is_plural else "NN", written)
    return Tree("NP", (_leaf(tag, article), *adjectives, last))


def _another(draw: Draw, noun: TreeNoun) -> TreeNoun:
    while (other := draw.random.choice(WHO)) is noun:
        pass
    return other


def _prepositional(preposition: Tree, phrase: Tree) -> Tree:
    return Tree("PP", (preposition, phrase))


def _leaf(tag: str, word: str) -> Tree:
    return Tree(tag, word=word)


def _with_capital(tree: Tree) -> Tree:
    """The tree with the first letter of its first word as a capital."""
    if tree.word is not None:
        return Tree(tree.label, word=tree.word[0].upper() + tree.word[1:])
    first, *others = tree.children
    return Tree(tree.label, (_with_capital(first), *others))


_MAN, _DOG, _CAT, _KINGS = (
    f"(NP (DT {article}) ({tag} {noun}))"
    for article, tag, noun in (
        ("The", "NN", "man"), ("the", "NN", "dog"), ("the", "NN", "cat"), ("the", "NNS", "kings"),
    )
)  # fmt: skip
_WATCHES = "(VBZ watches)"
_TELESCOPE, _CROWN = (
    f"(PP (IN with) (NP (DT the) (NN {noun})))" for noun in ("telescope", "crown")
)
_LIKES = f"(VP (VBZ likes) {_CAT}) (. .)"
_SLEEPS, _SLEEP = (
    f"(SBAR (WHNP (WDT that)) (S (VP ({verb}))))" for verb in ("VBZ sleeps", "VBP sleep")
)
_THE_DOG = "(NP (DT The) (NN dog))"
SHOWN = tuple(
    tree
    for _, tree in read_trees(
        (
            f"(S {_MAN} (VP {_WATCHES} {_DOG} {_TELESCOPE}) (. .))",
            f"(S {_MAN} (VP {_WATCHES} (NP {_DOG} {_CROWN})) (. .))",
            f"(S (NP (NP {_THE_DOG} (PP (IN of) {_KINGS})) {_SLEEPS}) {_LIKES})",
            f"(S (NP {_THE_DOG} (PP (IN of) (NP {_KINGS} {_SLEEP}))) {_LIKES})",
        )
    )
)
"""Pairs that one word parts: the last one of the first pair, the number of a verb in the second."""
_HELD_OUT = frozenset({"watch dog with telescope", "watch dog with crown", "dog of king"})
"""Combinations of ``SHOWN``, which training never shows."""


@lru_cache(maxsize=2)
def demo_trees(
    seed: int = 1, train_trees: int = 20_000, dev_trees: int = 300, test_trees: int = 600
) -> Parts[Tree]:
    """The corpus of the given size, the same for the same arguments on every machine.

    A larger ``train_trees`` extends the same training sentences.
    """
    wanted: dict[Split, int] = {"train": train_trees, "dev": dev_trees, "test": test_trees}
    return fill_parts(_draw_trees(Random(seed)), wanted)


def _draw_trees(random: Random) -> Iterator[tuple[Split | None, str, Tree]]:
    """Draw trees without end, each with its part, or None, and its sentence."""
    while True:
        draw = Draw(random)
        tree = sentence(draw)
        words = " ".join(tree.words)
        yield split_of_all(map(tree_split_of, draw.combinations or [words])), words, tree


def tree_split_of(combination: str) -> Split:
    """The part of the corpus that owns a combination: the same for every seed."""
    return "test" if combination in _HELD_OUT else split_of(combination)


def with_phrases(tree: Tree) -> list[tuple[int, int, str]]:
    """Each phrase that begins with "with": its first word, the word behind its last one, both
    counted from 0, and the label of the bracket that holds it."""
    return list(_phrases(tree, 0))


def _phrases(tree: Tree, first: int) -> Iterator[tuple[int, int, str]]:
    for child in tree.children:
        end = first + len(child.words)
        if child.label == "PP" and child.words[0] == "with":
            yield first, end, tree.label
        yield from _phrases(child, first)
        first = end
