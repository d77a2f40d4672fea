"""A search whose outputs have rules: whatever the scores, each is a tree over exactly its words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from random_trees import random_tree
from searching import search
from table_model import BOS, EOS, TableModel, same

from dragoman.base.errors import DataError, SearchError
from dragoman.forms.tree_form import TreeForm, TreeRules, TreeSettings, TreeSymbols
from dragoman.search.request import Request
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.search.textbook import textbook

SYMBOLS = TreeSymbols.learn(
    [random_tree(random.Random(n), 5) for n in range(40)],
    TreeSettings.model_validate({"tags": "kept", "chain": 2}),
)
assert (SYMBOLS.bos, SYMBOLS.eos) == (BOS, EOS)


def is_tree(tokens: Sequence[int], words: int) -> bool:
    """Whether some symbols make a tree over so many words."""
    try:
        TreeForm(SYMBOLS).tree(tokens, "w " * words)
    except DataError:
        return False
    return True


def request(words: int, settings: SearchSettings, longest: int | None = None) -> Request:
    source = torch.tensor([words % 7 + 3] * (words % 5 + 1))
    return Request(source, settings, rules=TreeRules(SYMBOLS, words, longest))


@pytest.mark.parametrize("ending", [-9.0, 0.0, 9.0])
@pytest.mark.parametrize("seed", range(3))
def test_what_comes_out_is_a_tree_whatever_the_scores(seed: int, ending: float) -> None:
    model = TableModel(SYMBOLS.size, seed, sharpness=5.0, ending=ending)
    settings = [
        SearchSettings(beam=1),
        SearchSettings(beam=5, n_best=5),
        SearchSettings(beam=4, max_length=1, stop="full"),
        SearchSettings(beam=30, n_best=3, length_penalty=0.0),
        SearchSettings(sampling=SamplingSettings(seed=seed), n_best=4),
        SearchSettings(beam=2, n_best=3, alternatives=True),
    ]
    asked = [
        request(words, how, longest)
        for words, longest in ((1, None), (2, 4), (3, None), (9, 12), (12, None))
        for how in settings
    ]
    # Searches without rules share the batch, and are not held to them.
    free = [Request(torch.tensor([n]), SearchSettings(beam=3, max_length=9)) for n in range(3, 9)]
    forbidden = (BOS, SYMBOLS.unknown)
    found = list(search(model, asked + free, bos=BOS, eos=EOS, forbidden=forbidden))
    for one, hypotheses in zip(asked, found, strict=False):
        assert hypotheses
        for hypothesis in hypotheses:
            assert hypothesis.finished
            assert one.rules is not None and len(hypothesis.tokens) <= one.rules.longest
            words = sum(token in SYMBOLS.words for token in hypothesis.tokens)
            assert is_tree(hypothesis.tokens, words)
            assert one.rules.allows(np.array([hypothesis.tokens], np.int32))[0, EOS]
    wild = [h.tokens for hypotheses in found[len(asked) :] for h in hypotheses]
    assert not all(is_tree(tokens, len(tokens)) for tokens in wild)


@pytest.mark.parametrize("seed", range(4))
def test_a_shared_batch_is_searched_as_in_the_textbook(seed: int) -> None:
    model = TableModel(SYMBOLS.size, seed)
    asked = [
        request(words, SearchSettings(beam=beam, n_best=n_best))
        for words in (1, 2, 4)
        for beam, n_best in ((1, 1), (3, 3), (4, 1))
    ]
    asked.append(Request(torch.tensor([3, 4]), SearchSettings(beam=2, max_length=4)))
    forbidden = (BOS, SYMBOLS.unknown)
    found = search(model, asked, bos=BOS, eos=EOS, forbidden=forbidden, capacity_rows=8)
    for one, hypotheses in zip(asked, found, strict=True):
        assert same(hypotheses, textbook(model, one, bos=BOS, eos=EOS, forbidden=forbidden))


def test_a_wide_beam_finds_what_a_reference_scores() -> None:
    """Every tree can come out: the best of all beams is at least as good as any tree."""
    model = TableModel(SYMBOLS.size, 9)
    one = request(2, SearchSettings(beam=200, n_best=200, length_penalty=0.0), 6)
    (found,) = search(model, [one], bos=BOS, eos=EOS, forbidden=(BOS, SYMBOLS.unknown))
    seen = {hypothesis.tokens for hypothesis in found}
    labels = len(SYMBOLS.labels)
    tags = len(SYMBOLS.tags)
    # (A w w), (A (B w w)), (A w (B w)), (A (B w) w)
    assert len(seen) == 200 < tags**2 * (labels + 3 * labels**2)
    assert all(before.score >= after.score for before, after in pairwise(found))
    small = TreeSymbols(["T"], ["A", "B"], 2)
    model = TableModel(small.size, 9)
    every = Request(
        torch.tensor([3]), SearchSettings(beam=50, n_best=50), rules=TreeRules(small, 2, 6)
    )
    (found,) = search(model, [every], bos=BOS, eos=EOS, forbidden=(BOS, small.unknown))
    assert len({hypothesis.tokens for hypothesis in found}) == 2 + 3 * 4


def test_what_would_contradict_the_rules_is_refused() -> None:
    for settings in (SearchSettings(min_length=3), SearchSettings(no_repeat_ngram=2)):
        with pytest.raises(SearchError, match=r"Set both of them to 0"):
            request(3, settings).check(EOS)
    opening = SYMBOLS.opening[0]
    rules, settings = TreeRules(SYMBOLS, 2), SearchSettings(beam=2)
    Request(torch.tensor([3]), settings, (opening, 3), rules=rules).check(EOS)
    for prefix in ((3,), (opening, opening + 1), (opening, 3, 3, 3), (opening, 9999)):
        with pytest.raises(SearchError, match="cannot follow there"):
            Request(torch.tensor([3]), settings, prefix, rules=rules).check(EOS)


def test_a_prefix_is_gone_on_with_by_the_rules() -> None:
    model = TableModel(SYMBOLS.size, 2)
    prefix = (SYMBOLS.opening[1], SYMBOLS.opening[0], 3)
    one = Request(torch.tensor([4]), SearchSettings(beam=3), prefix, rules=TreeRules(SYMBOLS, 4))
    ((best, *_),) = search(model, [one], bos=BOS, eos=EOS, forbidden=(BOS, SYMBOLS.unknown))
    assert best.tokens[:3] == prefix and is_tree(best.tokens, 4)
