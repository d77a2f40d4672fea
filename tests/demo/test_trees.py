"""The embedded corpus of trees: each follows from its words, and nothing held out is trained on."""

from __future__ import annotations

from random import Random

from dragoman.demo.corpus import Parts
from dragoman.demo.trees import (
    DOING,
    INSTRUMENTS,
    SHOWN,
    WHO,
    Draw,
    demo_trees,
    sentence,
    tree_split_of,
    with_phrases,
)
from dragoman.forms.tree import Tree
from dragoman.forms.tree_form import tree_of

SMALL = {"train_trees": 1500, "dev_trees": 40, "test_trees": 80}

SINGULAR = {"sleeps", "waits", "sings", "works", "plays", "laughs", "is"}


def small(seed: int = 1) -> Parts[Tree]:
    return demo_trees(seed, **SMALL)


def test_it_is_the_same_for_the_same_seed_and_longer_means_more() -> None:
    again = demo_trees.__wrapped__(1, **SMALL)
    assert again == small() and small(2) != small()
    assert [len(part) for part in again] == list(SMALL.values())
    longer = demo_trees(1, 1800, 40, 80)
    assert longer.train[:1500] == again.train


def test_no_sentence_stands_twice_and_each_tree_can_be_read_again() -> None:
    every = [tree for part in small() for tree in part]
    assert len({" ".join(tree.words) for tree in every}) == len(every)
    for tree in every:
        assert tree_of(str(tree)) == tree
        assert tree.words[0][0].isupper() and tree.words[-1] == "."


def test_words_have_one_tree_alone() -> None:
    """Else no parser could be right."""
    known: dict[str, Tree] = {}
    random = Random(3)
    for _ in range(3000):
        tree = sentence(Draw(random))
        assert known.setdefault(" ".join(tree.words), tree) == tree
    assert len(known) > 2000


def test_training_shows_no_combination_that_is_held_out() -> None:
    random, held = Random(5), 0
    train = {" ".join(tree.words) for tree in small().train}
    for _ in range(3000):
        draw = Draw(random)
        words = " ".join(sentence(draw).words)
        if {tree_split_of(one) for one in draw.combinations} - {"train"}:
            held += 1
            assert words not in train
    assert held > 300
    for shown in ("watch dog with telescope", "watch dog with crown", "dog of king"):
        assert tree_split_of(shown) == "test"
    # What is shown at the end: neither these pairs of words nor another number of them.
    for tree in small().train:
        text = " ".join(tree.words).lower()
        assert "dog of the king" not in text and "dogs of the king" not in text
    assert not {" ".join(tree.words) for tree in SHOWN} & train


def test_what_is_shown_is_of_the_grammar() -> None:
    """Each of them is what it writes for these words, where it writes them."""
    assert len({str(tree) for tree in SHOWN}) == 4
    (high, low), (of_dog, of_kings) = SHOWN[:2], SHOWN[2:]
    assert with_phrases(high) == [(5, 8, "VP")] and with_phrases(low) == [(5, 8, "NP")]
    random = Random(9)
    shapes = {_shape(sentence(Draw(random))) for _ in range(8000)}
    assert {_shape(tree) for tree in (high, low, of_dog, of_kings)} <= shapes


def _shape(tree: Tree) -> str:
    """Without words, and the number of a verb or noun."""
    if tree.is_leaf:
        return tree.label[:2]
    return f"({tree.label} {' '.join(map(_shape, tree.children))})"


def test_verb_and_noun_decide_what_a_phrase_belongs_to() -> None:
    doing = {form for verb in DOING for form in (verb.base, verb.third, verb.past)}
    tools = {form for noun in INSTRUMENTS for form in (noun.singular, noun.plural)}
    found = {"VP": 0, "NP": 0}
    for tree in small().train:
        for node in tree.brackets():
            labels = [child.label for child in node.children]
            if labels[-2:] != ["NP", "PP"] or node.children[-1].words[0] != "with":
                continue
            verb, noun = node.words[0], node.words[-1]
            found[node.label] += 1
            if node.label == "VP":
                assert verb in doing and noun in tools, str(node)
        # And the other way round: an object that holds such a phrase is not of such a verb.
        for node in tree.brackets():
            if node.label != "VP" or len(node.children) < 2 or node.children[0].word not in doing:
                continue
            thing = node.children[1]
            if thing.label == "NP" and thing.children[-1].label == "PP":
                words = thing.children[-1].words
                assert words[0] != "with" or words[-1] not in tools, str(node)
    assert min(found.values()) > 100
    tree = next(tree for tree in small().train if with_phrases(tree))
    first, behind, label = with_phrases(tree)[0]
    assert tree.words[first] == "with" and behind <= len(tree.words) and label in found


def test_a_clause_is_about_the_noun_whose_number_its_verb_has() -> None:
    plural = {noun.plural for noun in WHO}
    checked = 0
    for tree in small().train:
        for node in tree.brackets():
            labels = [child.label for child in node.children]
            if node.label != "NP" or labels != ["NP", "SBAR"]:
                continue
            noun, clause = node.children
            verb = clause.words[1]
            if verb not in SINGULAR | {"are"}:
                continue
            # The head of "the dog of the kings" is what stands before "of".
            words = noun.words
            head = words[words.index("of") - 1] if "of" in words else words[-1]
            assert (head.lower() in plural) == (verb == "are"), str(node)
            checked += 1
    assert checked > 50


def test_of_two_nouns_that_a_clause_may_be_about_one_is_plural() -> None:
    """Else its verb would not tell which."""
    plural = {noun.plural for noun in WHO}
    nouns = plural | {noun.singular for noun in WHO}
    checked = 0
    for tree in small().train:
        words = [word.lower() for word in tree.words]
        for place, word in enumerate(words[:-2]):
            # "the dog of the old kings that sleep": no verb between the nouns and "that".
            behind = words[place + 1 : place + 5]
            if word != "of" or "that" not in behind:
                continue
            second = words[place + behind.index("that")]
            if second not in nouns:  # "the dog of the king said that ..."
                continue
            assert (words[place - 1] in plural) != (second in plural), " ".join(words)
            checked += 1
    assert checked > 50
