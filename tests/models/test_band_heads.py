"""Heads over slices of a filter bank, against a computation of their own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from dragoman.models.encoding import front_end
from dragoman.models.front_ends import BAND_WEIGHTS, BandHeads
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.sources.frames.form import FramesSource

LENGTHS = (5, 9, 1)
BANDS, HEADS = 12, 3


@pytest.fixture
def heads() -> BandHeads:
    torch.manual_seed(1)
    made = BandHeads(BANDS, HEADS).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


def by_hand(heads: BandHeads, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """(T, F) -> what comes out, and each head's weights (T, T), head by head, slice by slice."""
    each, outs, weights = BANDS // HEADS, [], []

    def of(part: torch.nn.Module, head: int) -> np.ndarray:
        weight, bias = (value.detach().numpy() for value in (part.weight, part.bias))
        own = slice(head * each, (head + 1) * each)
        found: np.ndarray = x[:, own] @ weight[head].T + bias[own]
        return found

    for head in range(HEADS):
        query, key, value = (of(part, head) for part in (heads.query, heads.key, heads.value))
        scores = np.exp(query @ key.T / np.sqrt(each))
        weights.append(scores / scores.sum(axis=1, keepdims=True))
        outs.append(weights[-1] @ value)
    output = heads.output
    joined = np.concatenate(outs, axis=1) @ output.weight.detach().numpy().T
    return x + joined + output.bias.detach().numpy(), weights


def test_it_is_what_the_equations_say_recording_by_recording(heads: BandHeads) -> None:
    recordings = [torch.randn(length, BANDS, dtype=torch.float64) for length in LENGTHS]
    with Probe() as probe:
        found = heads.add_heads(Sequences.of(recordings)).values.detach().split(LENGTHS)
    for number, (recording, one) in enumerate(zip(recordings, found, strict=True)):
        expected, weights = by_hand(heads, recording.numpy())
        np.testing.assert_allclose(one.numpy(), expected, atol=1e-12)
        seen = probe.attention[BAND_WEIGHTS][number, :, : len(one), : len(one)]
        np.testing.assert_allclose(seen.numpy(), np.stack(weights), atol=1e-12)


def test_a_head_attends_by_its_own_bands_alone(heads: BandHeads) -> None:
    frames = torch.randn(6, BANDS, dtype=torch.float64)
    other = frames.clone()
    other[:, :4] = torch.randn(6, 4, dtype=torch.float64)
    weights = []
    for given in (frames, other):
        with Probe() as probe:
            heads.add_heads(Sequences.of([given]))
        weights.append(probe.attention[BAND_WEIGHTS][0].detach())
    assert not torch.allclose(weights[0][0], weights[1][0])
    torch.testing.assert_close(weights[0][1:], weights[1][1:], rtol=0, atol=0)


def test_there_is_none_unless_it_is_asked_for() -> None:
    plain, heads = (front_end(FramesSource(band_heads=count), 16) for count in (0, 4))
    assert plain is not None and not plain.attention_names
    assert heads is not None and heads.attention_names


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"bands": 80, "band_heads": 3}, "80 bands cannot be divided among 3 heads"),
        ({"features": "mfcc", "band_heads": 1}, 'features = "mfcc" does not have'),
    ],
)
def test_bands_that_cannot_be_divided_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        FramesSource.model_validate(settings)
