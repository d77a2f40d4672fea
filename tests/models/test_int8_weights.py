"""What the int8 kernels are handed agrees with the model that torch makes of the same settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.int8_weights import PositionTable, in_order, shapes
from dragoman.models.transformer.model import Transformer
from dragoman.nn.layers import LayerNorm
from dragoman.nn.settings import NORM_EPSILON

SMALL = {"model_dim": 24, "ffn_dim": 20, "encoder_layers": 2, "decoder_layers": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "tie": "target"},
        {"tie": "none", "encoder_layers": 1, "decoder_layers": 3},
        {"attention": {"num_heads": 3, "key_width": 5, "value_width": 7}},
        {"attention": {"num_heads": 4, "whole_input": False}},
        {"positions": {"kind": "learned", "maximum": 11}},
        {"output_bias": True},
    ],
)
def test_every_weight_has_the_shape_that_the_settings_say(changes: dict[str, Any]) -> None:
    settings = TransformerSettings.model_validate(SMALL | {"attention": {"num_heads": 2}} | changes)
    target = 30 if settings.tie == "all" else 40
    model = Transformer(settings, 30, target)
    found = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    assert shapes(settings, 30, target) == found
    named = {name: value.numpy() for name, value in model.state_dict().items()}
    width = settings.model_dim
    for one in in_order(settings, named):
        assert one is None or (one.flags.c_contiguous and one.dtype == np.float32)
        assert one is None or one.ndim == 1 or width in one.shape
    bias = in_order(settings, named)[-1]
    assert (bias is not None) == settings.output_bias
    query = in_order(settings, named)[0]
    rows = torch.randn(3, width)
    expected = model.encoder[0].attention.query(rows) - model.encoder[0].attention.query.bias
    assert query is not None
    torch.testing.assert_close(rows @ torch.from_numpy(query).T, expected.detach())


@pytest.mark.parametrize("kind", ["sinusoidal", "marian", "binary", "index", "none", "learned"])
def test_positions_are_those_of_the_model(kind: str) -> None:
    settings = TransformerSettings.model_validate(
        SMALL | {"attention": {"num_heads": 2}, "positions": {"kind": kind, "maximum": 400}}
    )
    positions = Transformer(settings, 30, 30).source_positions
    learned = None if positions.table is None else positions.table.detach().numpy()
    rows, address, known = PositionTable(settings.positions, learned, 24, 32).reach(300)
    assert known >= 300 and rows.ctypes.data == address and not rows[:, 24:].any()
    expected = positions(torch.arange(300), None, torch.float32).detach()
    torch.testing.assert_close(torch.from_numpy(rows[:300, :24]), expected, atol=1e-7, rtol=1e-7)


def test_a_norm_adds_what_the_settings_say() -> None:
    assert LayerNorm(4).eps == NORM_EPSILON
