"""A label for a text, by any stack of layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from implementations import STACKS

from dragoman.data.labelled import TextLayout, labelled_batch
from dragoman.models.catalogue.classifier import Classifier, new_classifier
from dragoman.models.interface import writing
from dragoman.models.settings import ModelSettings
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import kernels_fit, use_precision
from dragoman.training.losses.objectives import LabelObjective

TEXTS = [np.array(text, np.int32) for text in ([5, 6, 7], [8], [9, 10, 11, 12, 13], [5])]


def reading(settings: ModelSettings, longest: int = 100) -> TextLayout:
    return TextLayout(2 if settings.reads else 1, before=not settings.reads, longest=longest)


def made(settings: ModelSettings) -> Classifier:
    torch.manual_seed(3)
    return new_classifier(settings, 20, 3).eval()


@pytest.mark.parametrize("settings", STACKS, ids=lambda one: one.kind)
def test_a_text_gets_the_same_in_any_company(settings: ModelSettings) -> None:
    model, read = made(settings), reading(settings)
    together = model.project(model.encode(read.texts(TEXTS)).rows)
    assert together.shape == (4, 3)
    for row, text in zip(together, TEXTS, strict=True):
        alone = model.project(model.encode(read.texts([text])).rows)
        assert torch.allclose(alone[0], row, atol=1e-6)


@pytest.mark.parametrize("settings", STACKS, ids=lambda one: one.kind)
def test_what_is_labelled_is_the_mean_of_the_last_rows(settings: ModelSettings) -> None:
    model = made(settings)
    symbol, before = (2, False) if settings.reads else (1, True)
    ids = [symbol, 5, 6, 7] if before else [5, 6, 7, symbol]
    source = Sequences.of([torch.tensor(ids)])
    memory = model.body.encode(source)
    rows = memory.rows if settings.reads else writing(model.body).decode(source, memory)
    expected = rows.mean(dim=0) @ model.head.weight.T + model.head.bias
    found = model.project(model.encode(reading(settings).texts(TEXTS[:1])).rows)[0]
    assert torch.allclose(found, expected, atol=1e-6)


def test_a_long_text_is_read_from_its_beginning() -> None:
    for settings in STACKS:
        model = made(settings)
        short = model.encode(reading(settings).texts([TEXTS[2][:3]])).rows
        cut = model.encode(reading(settings, longest=4).texts([TEXTS[2]])).rows
        assert torch.equal(short, cut)


@pytest.mark.parametrize("settings", STACKS, ids=lambda one: one.kind)
def test_the_objective_is_cross_entropy_over_labels(settings: ModelSettings) -> None:
    model = made(settings)
    batch = labelled_batch(TEXTS, [0, 2, 1, 1], reading(settings), ids=[4, 5, 6, 7])
    loss, nll, count = LabelObjective(model, 0.1)(model, batch)
    logits = model.project(model.encode(batch.source).rows)
    plain = torch.nn.functional.cross_entropy(logits, batch.labels, reduction="sum")
    smooth = torch.nn.functional.cross_entropy(
        logits, batch.labels, reduction="sum", label_smoothing=0.1
    )
    assert count == 4 and torch.isclose(nll, plain) and torch.isclose(loss, smooth)
    loss.backward()
    assert model.head.weight.grad is not None
    assert all(p.grad is not None for name, p in model.named_parameters() if "output" not in name)


def test_the_halves_of_a_batch_are_the_batch() -> None:
    read = reading(STACKS[0])
    batch = labelled_batch(TEXTS, [0, 2, 1, 1], read, ids=[4, 5, 6, 7])
    halves = batch.split()
    assert [len(half) for half in halves] == [3, 1] or len(halves[0]) + len(halves[1]) == 4
    assert torch.cat([half.source.values for half in halves]).equal(batch.source.values)
    assert torch.cat([half.labels for half in halves]).equal(batch.labels)
    assert halves[0].ids + halves[1].ids == (4, 5, 6, 7)
    with pytest.raises(ValueError, match="cannot be split"):
        labelled_batch(TEXTS[:1], [0], read).split()


def test_any_number_of_labels_leaves_the_kernels_to_the_body() -> None:
    model = made(STACKS[0])
    if not kernels_fit(model.body, "bf16"):
        pytest.skip("this machine has no native kernels for bf16")
    assert kernels_fit(model, "bf16")  # three labels, an odd number
    before = model.project(model.encode(reading(STACKS[0]).texts(TEXTS)).rows)
    use_precision(model, "bf16", by_kernels=True)
    after = model.project(model.encode(reading(STACKS[0]).texts(TEXTS)).rows)
    assert after.dtype == torch.float32 and torch.allclose(before, after, atol=0.05)
