"""The statistical aligner: its sums against all alignments spelled out, and text whose links are
known by construction."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dragoman import alignment
from dragoman.alignment import (
    Hmm,
    StatisticalAligner,
    TokenPair,
    _by_shape,
    grow_diag_final_and,
)
from dragoman.base.errors import RunError
from dragoman.metrics.alignment import Links

WORDS = 30
TURNED = 25
"""Source words from here on are verbs: they go to the end of a translation."""


def corpus(count: int, seed: int, particle: int = 0) -> tuple[list[TokenPair], list[Links]]:
    """Each source word has one translation; verbs go last; now and then one comes from nothing.

    ``particle``: each verb has one behind it, of its number and so much, and both together are one
    word of the target.
    """
    draw = random.Random(seed)
    pairs, links = [], []
    for _ in range(count):
        source = draw.sample(range(TURNED), draw.randint(1, 6))
        verb, place = draw.randint(TURNED, WORDS - 1), draw.randint(0, len(source))
        target = [word + 100 for word in [*source, verb]]
        of_verb = [verb, verb + particle] if particle else [verb]
        known = {(n + len(of_verb) * (n >= place), n) for n in range(len(source))}
        known |= {(place + n, len(source)) for n in range(len(of_verb))}
        source[place:place] = of_verb
        if draw.random() < 0.3:
            target.append(199)
        pairs.append((np.array(source), np.array(target)))
        links.append(frozenset(known))
    return pairs, links


def test_words_that_are_always_each_others_translation_are_linked() -> None:
    pairs, links = corpus(600, 1)
    aligner = StatisticalAligner.learn(pairs, WORDS, 200)
    unseen, wanted = corpus(100, 2)
    assert sum(a == b for a, b in zip(aligner.align(unseen), wanted, strict=True)) >= 97
    assert sum(a == b for a, b in zip(aligner.align(pairs), links, strict=True)) >= 585


def test_two_words_that_are_one_in_the_target_are_both_linked() -> None:
    """The direction in which a target word comes from one place alone cannot say so. The other is
    sure of most of them: to agree costs some."""
    aligner = StatisticalAligner.learn(corpus(600, 1, 10)[0], WORDS + 10, 200)
    unseen, wanted = corpus(100, 2, 10)
    assert sum(a == b for a, b in zip(aligner.align(unseen), wanted, strict=True)) >= 60


def test_every_round_makes_each_direction_by_itself_no_less_probable() -> None:
    """Expectation maximisation: of one direction alone, since to agree is to leave its top."""
    pairs, _ = corpus(80, 3)
    model = Hmm.begin(pairs, WORDS, 200, rounds=1)
    groups = [model.cells(source, target) for _, source, target in _by_shape(pairs)]
    known = []
    for _ in range(6):
        (lexicon, jumps), total = model.no_counts(), 0.0
        for cells in groups:
            expected = model.expect(cells)
            lexicon += model.count_cells(cells, expected.places)
            jumps += model.count_jumps(expected.followed)
            total += expected.known
        model.improve(lexicon, jumps)
        known.append(total)
    # Jumps are mixed with a constant, which is no step of EM: by and large, not to the last digit.
    assert all(after > before - 0.5 for before, after in itertools.pairwise(known))
    assert known[-1] > known[0] + 50


def by_hand(model: Hmm, source: list[int], target: list[int]) -> tuple[np.ndarray, float]:
    """Posteriors (J, I + 1) and log P, over every alignment: of each target token a source place,
    or nothing, which remembers the place before it."""
    cells = model.cells(np.array([source]), np.array([target]))[0]
    emitted = model._lexicon[cells].clip(alignment._UNSEEN)
    moves, size = model._transitions(len(source)), len(source)
    posterior, total = np.zeros((len(target), size + 1)), 0.0
    states = list(range(size)) + [("nothing", n) for n in range(size)]
    for path in itertools.product(states, repeat=len(target)):
        probability = 1.0
        last: int | None = None
        for place, state in enumerate(path):
            if isinstance(state, tuple):
                if last is not None and state[1] != last:
                    probability = 0.0
                probability *= (
                    alignment._NOTHING / (size if last is None else 1) * emitted[place, -1]
                )
                last = state[1]
            else:
                probability *= moves[-1 if last is None else last, state] * emitted[place, state]
                last = state
        total += probability
        for place, state in enumerate(path):
            posterior[place, size if isinstance(state, tuple) else state] += probability
    return posterior / total, float(np.log(total))


def test_forward_and_backward_are_the_sum_over_all_alignments() -> None:
    pairs, _ = corpus(60, 4)
    model = Hmm.begin(pairs, WORDS, 200, rounds=2)
    model._jumps = np.random.default_rng(1).random(len(model._jumps)) + 0.1
    together: list[tuple[list[int], list[int]]] = [
        ([3, 26, 7], [103, 107, 126]),
        ([1, 2, 29], [101, 5, 102]),
    ]
    expected = model.expect(
        model.cells(np.array([s for s, _ in together]), np.array([t for _, t in together]))
    )
    known = 0.0
    for row, (source, target) in enumerate(together):
        posterior, log_probability = by_hand(model, source, target)
        np.testing.assert_allclose(expected.places[row], posterior, atol=1e-12)
        known += log_probability
    assert expected.known == pytest.approx(known)
    np.testing.assert_allclose(expected.places.sum(-1), 1)
    # Moves into real places: one for each target token that comes from one.
    assert expected.followed.sum() == pytest.approx(float(expected.places[:, :, :-1].sum()))


def test_empty_sides_and_unknown_tokens_are_no_error() -> None:
    pairs, _ = corpus(50, 5)
    nothing = np.zeros(0, np.int64)
    aligner = StatisticalAligner.learn(
        [*pairs, (nothing, pairs[0][1]), (nothing, nothing)], 50, 210
    )
    found = aligner.align([(nothing, pairs[0][1]), (np.array([45]), np.array([205])), pairs[0]])
    assert found[0] == frozenset() and len(found[2]) >= 1
    without = StatisticalAligner.learn(pairs, 50, 210)
    np.testing.assert_array_equal(aligner._forward._lexicon, without._forward._lexicon)
    assert len(StatisticalAligner.learn([], 5, 5).align([pairs[0]])) == 1


def test_what_is_beyond_the_most_is_not_read() -> None:
    pairs, _ = corpus(20, 6)
    read = Counter[str]()

    def counted() -> object:
        for pair in pairs:
            read["pairs"] += 1
            yield pair

    cells = [(len(s) + 1) * (len(t) + 1) for s, t in pairs]
    StatisticalAligner.learn(counted(), WORDS, 200, most=sum(cells[:7]))  # type: ignore[arg-type]
    assert read["pairs"] == 8


def test_what_was_learned_aligns_alike_when_it_is_read_again(tmp_path: Path) -> None:
    aligner = StatisticalAligner.learn(corpus(300, 8)[0], WORDS, 200)
    aligner.save(tmp_path / "hmm")
    unseen, _ = corpus(100, 9)
    again = StatisticalAligner.load(tmp_path / "hmm", WORDS, 200)
    assert again.directions(unseen) == aligner.directions(unseen)
    for sizes in ((WORDS, 150), (20, 200)):
        with pytest.raises(RunError, match="is damaged"):
            StatisticalAligner.load(tmp_path / "hmm", *sizes)


def by_the_book(forward: Links, backward: Links) -> set[tuple[int, int]]:
    """grow-diag-final-and as Koehn, Och and Marcu write it down."""
    links = set(forward & backward)

    def lonely(link: tuple[int, int]) -> tuple[bool, bool]:
        return (
            all(link[0] != source for source, _ in links),
            all(link[1] != target for _, target in links),
        )

    grew = True
    while grew:
        grew = False
        for source, target in sorted(links):
            for down, right in itertools.product((-1, 0, 1), repeat=2):
                new = (source + down, target + right)
                if new in forward | backward and new not in links and any(lonely(new)):
                    links.add(new)
                    grew = True
    for one in (forward, backward):
        for link in sorted(one):
            if all(lonely(link)):
                links.add(link)
    return links


def test_two_directions_are_joined_as_the_book_says() -> None:
    draw = random.Random(7)
    for _ in range(300):
        forward, backward = (
            frozenset((draw.randrange(5), draw.randrange(5)) for _ in range(draw.randint(0, 6)))
            for _ in range(2)
        )
        found = grow_diag_final_and(forward, backward)
        assert forward & backward <= found <= forward | backward
        # Where several may grow, which comes first is free: both end with the same words linked.
        expected = by_the_book(forward, backward)
        for side in (0, 1):
            assert {link[side] for link in found} == {link[side] for link in expected}
    assert grow_diag_final_and(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (2, 2)})) == {
        (0, 0), (1, 1), (2, 2)
    }  # fmt: skip
