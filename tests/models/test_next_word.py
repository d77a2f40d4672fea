"""Which word a decoder is told of: by hand, and in a search as under teacher forcing
(``tests/contract`` holds every way to run a model to that)."""

from __future__ import annotations

import pytest
import torch
from memories import some_sources

from dragoman.models.interface import Memory
from dragoman.models.transformer.model import Following, NextWord
from dragoman.nn.layout import Layout, Sequences

pytestmark = pytest.mark.usefixtures("in_fp64")

WIDTH = 4
BOS, EOS, OPEN, CLOSE, NOUN, VERB = 1, 2, 3, 4, 5, 6
THE, CA, T, RUNS = 3, 4, 5, 6


@pytest.fixture
def next_word() -> NextWord:
    found = NextWord(7, 7, WIDTH)
    torch.nn.init.normal_(found.row.weight)
    begins = torch.tensor([False] * 7)
    begins[torch.tensor([THE, CA, RUNS, EOS])] = True
    found.tell(begins, (NOUN, VERB))
    return found.requires_grad_(False)


@pytest.fixture
def memory() -> Memory:
    """ "the ca+t runs", "t runs": a first token begins a word whatever it is."""
    tokens = torch.tensor([THE, CA, T, RUNS, EOS, T, RUNS, EOS])
    return Memory(torch.randn(8, WIDTH), Layout([5, 3]), tokens=tokens)


def test_a_decoder_is_told_of_the_first_word_that_is_left(
    next_word: NextWord, memory: Memory
) -> None:
    first = torch.tensor([BOS, OPEN, NOUN, NOUN, CLOSE, VERB, VERB])  # one word too many
    second = torch.tensor([BOS, NOUN, OPEN, VERB])
    told = next_word.next_word_rows(Sequences.of([first, second]), memory)
    expected = [0, 0, 1, 3, 3, 4, 4, 5, 6, 6, 7]  # rows of the memory
    assert torch.allclose(told, memory.rows[expected] @ next_word.row.weight.t())


def test_until_it_is_told_all_tokens_but_the_special_ones_stand_for_words() -> None:
    untold = NextWord(4, 6, WIDTH)
    assert untold.begins.all() and untold.stands.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_search_is_told_the_same_whatever_becomes_of_its_rows(
    next_word: NextWord, memory: Memory
) -> None:
    rows = memory.rows @ next_word.row.weight.t()
    following = Following(next_word)
    following.admit(some_sources(memory, [1]))
    # A product of three rows and one of eight may add in another order: equal to fp64's rounding.
    assert torch.allclose(following.next_word_rows(torch.tensor([[BOS, NOUN]])), rows[[5, 6]])
    following.admit(some_sources(memory, [0]))
    following.select(torch.tensor([0, 1, 1]))
    told = following.next_word_rows(torch.tensor([[OPEN, VERB], [BOS, OPEN], [BOS, NOUN]]))
    assert torch.allclose(told, rows[[6, 7, 0, 0, 0, 1]])
    following.select(torch.tensor([2, 1]))  # the shorter source is gone
    assert torch.allclose(following.next_word_rows(torch.tensor([[NOUN], [NOUN]])), rows[[3, 1]])
