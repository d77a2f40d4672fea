"""Discriminative rates and gradual unfreezing (ULMFiT), by what moves and by how much."""

from __future__ import annotations

import pytest
import torch

from dragoman.models.catalogue.classifier import new_classifier
from dragoman.models.settings import DecoderSettings
from dragoman.nn.settings import AttentionSettings
from dragoman.training.optimizer import Adam, FlatParameters, LayerRates, depths
from dragoman.training.settings import LayerSettings, OptimizerSettings

SHAPE = DecoderSettings(model_dim=8, ffn_dim=8, layers=2, attention=AttentionSettings(num_heads=2))


def model_and_flat() -> tuple[torch.nn.Module, FlatParameters]:
    torch.manual_seed(1)
    model = new_classifier(SHAPE, 12, 3)
    return model, FlatParameters(model.named_parameters())


def test_depths_go_from_the_embedding_to_the_head() -> None:
    model, _ = model_and_flat()
    found = depths(model)
    assert set(found) == {name for name, _ in model.named_parameters()}
    assert found["body.embedding.weight"] == 0 and found["head.weight"] == 3
    for name, depth in found.items():
        if name.startswith("body.layers."):
            assert depth == 1 + int(name.split(".")[2])
    assert found["body.norm.weight"] == 2


def moved(settings: LayerSettings, update: int) -> dict[int, float]:
    """How far the parameters of each depth go in one update with gradients of 1."""
    model, flat = model_and_flat()
    adam = Adam(flat, OptimizerSettings())
    before = flat.values.clone()
    for view in flat.views(flat.gradients).values():
        view.fill_(1.0)
    shares = LayerRates(model, flat, settings).at(update)
    adam.step(0.1, shares=shares)
    ways: dict[int, float] = {}
    for name, way in flat.views(flat.values - before).items():
        depth = depths(model)[name]
        assert way.max() == pytest.approx(float(way.min()), abs=1e-6)
        assert ways.setdefault(depth, float(-way.mean())) == pytest.approx(
            float(-way.mean()), abs=1e-6
        )
    return ways


def test_each_layer_moves_a_part_of_the_one_above() -> None:
    ways = moved(LayerSettings(decay=0.5), 1)
    assert ways == pytest.approx({0: 0.0125, 1: 0.025, 2: 0.05, 3: 0.1}, rel=1e-3)
    alike = moved(LayerSettings(), 1)
    assert set(alike) == {0, 1, 2, 3} and alike == pytest.approx(dict.fromkeys(alike, 0.1))


@pytest.mark.parametrize(("update", "free"), [(1, 1), (10, 1), (11, 2), (21, 3), (31, 4), (99, 4)])
def test_layers_thaw_from_the_top(update: int, free: int) -> None:
    ways = moved(LayerSettings(thaw=10), update)
    assert [ways[depth] > 0 for depth in (3, 2, 1, 0)] == [True] * free + [False] * (4 - free)


def test_what_is_frozen_has_no_moments() -> None:
    model, flat = model_and_flat()
    adam = Adam(flat, OptimizerSettings(weight_decay=0.1))
    flat.gradients.fill_(1.0)
    adam.step(0.1, shares=LayerRates(model, flat, LayerSettings(thaw=5)).at(1))
    first = flat.views(adam.first)
    assert not first["body.embedding.weight"].any() and first["head.weight"].all()
