"""A tag for each word, by any stack of layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from implementations import STACKS

from dragoman.data.labelled import TextLayout, WordRows, tagged_batch
from dragoman.models.catalogue.classifier import Classifier, WordTagger, new_classifier
from dragoman.models.interface import writing
from dragoman.models.settings import ModelSettings
from dragoman.nn.layout import Sequences
from dragoman.training.losses.objectives import TagOfEachWord

SENTENCES = [[[5, 6], [7]], [[8]], [], [[9], [10, 11, 12], [13, 5]]]
"""Words, each of its tokens."""
TAGS = [[0, 2], [1], [], [2, 1, 0]]


def reading(settings: ModelSettings, longest: int = 100) -> TextLayout:
    return TextLayout(2 if settings.reads else 1, before=not settings.reads, longest=longest)


def made(settings: ModelSettings) -> Classifier:
    torch.manual_seed(3)
    return new_classifier(settings, 20, 3, WordTagger).eval()


def logits(model: Classifier, sentences: list[list[list[int]]]) -> torch.Tensor:
    read = WordRows.of(sentences, reading(model.settings))
    return model.project(read.windows(model.encode(read.source).rows))


@pytest.mark.parametrize("settings", STACKS, ids=lambda one: one.kind)
def test_words_get_the_same_in_any_company(settings: ModelSettings) -> None:
    model = made(settings)
    together = logits(model, SENTENCES)
    assert together.shape == (6, 3)
    alone = torch.cat([logits(model, [one]) for one in SENTENCES])
    assert torch.allclose(alone, together, atol=1e-6)


@pytest.mark.parametrize("settings", STACKS, ids=lambda one: one.kind)
def test_what_is_tagged_is_a_word_between_its_neighbours(settings: ModelSettings) -> None:
    model = made(settings)
    tokens = [token for word in SENTENCES[3] for token in word]
    ids = [*tokens, 2] if settings.reads else [1, *tokens]
    source = Sequences.of([torch.tensor(ids)])
    memory = model.body.encode(source)
    rows = memory.rows if settings.reads else writing(model.body).decode(source, memory)
    begin = 0 if settings.reads else 1
    words = [rows[begin : begin + 1], rows[begin + 1 : begin + 4], rows[begin + 4 : begin + 6]]
    means = [torch.zeros(16), *(one.mean(dim=0) for one in words), torch.zeros(16)]
    around = torch.stack([torch.cat(means[n : n + 3]) for n in range(3)])
    expected = around @ model.head.weight.T + model.head.bias
    assert torch.allclose(logits(model, [SENTENCES[3]]), expected, atol=1e-6)


@pytest.mark.parametrize("settings", STACKS, ids=lambda one: one.kind)
def test_the_objective_is_cross_entropy_over_words(settings: ModelSettings) -> None:
    model = made(settings)
    batch = tagged_batch(SENTENCES, TAGS, reading(settings), ids=[4, 5, 6, 7])
    loss, nll, count = TagOfEachWord(model, 0.1)(model, batch)
    found, true = logits(model, SENTENCES), torch.tensor([tag for one in TAGS for tag in one])
    plain = torch.nn.functional.cross_entropy(found, true, reduction="sum")
    smooth = torch.nn.functional.cross_entropy(found, true, reduction="sum", label_smoothing=0.1)
    assert count == 6 and torch.isclose(nll, plain) and torch.isclose(loss, smooth)
    loss.backward()
    assert model.head.weight.grad is not None
    assert all(p.grad is not None for name, p in model.named_parameters() if "output" not in name)


@pytest.mark.parametrize("settings", STACKS[:2], ids=lambda one: one.kind)
def test_the_halves_of_a_batch_are_the_batch(settings: ModelSettings) -> None:
    model, read = made(settings), reading(settings)
    batch = tagged_batch(SENTENCES, TAGS, read, ids=[4, 5, 6, 7])
    halves = batch.split()
    assert halves[0].ids + halves[1].ids == (4, 5, 6, 7)
    assert torch.cat([half.tags for half in halves]).equal(batch.tags)
    whole = TagOfEachWord(model, 0.0)(model, batch)
    parts = [TagOfEachWord(model, 0.0)(model, half) for half in halves]
    assert sum(part.tokens for part in parts) == whole.tokens
    assert sum(part.nll.item() for part in parts) == pytest.approx(whole.nll.item())
    with pytest.raises(ValueError, match="cannot be split"):
        tagged_batch(SENTENCES[:1], TAGS[:1], read).split()


@pytest.mark.parametrize("settings", STACKS[:2], ids=lambda one: one.kind)
def test_what_lies_behind_is_neither_read_nor_learned(settings: ModelSettings) -> None:
    batch = tagged_batch([SENTENCES[3]], [TAGS[3]], reading(settings, longest=4))
    assert batch.tags.tolist() == [2, 1] and batch.read.source.layout.lengths == (4,)
    values = batch.read.words.values.tolist()
    assert values == ([0, 1, 1, -1] if settings.reads else [-1, 0, 1, 1])
    assert np.array_equal(batch.read.counts, [2])
