"""Draws: the right distribution, from the seed alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from searching import search
from table_model import BOS, EOS, TableModel

from dragoman.search.beam_state import sampling_key
from dragoman.search.constraints import draw, draw_from_all, uniform
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.search.textbook import next_log_probabilities

DRAWS = 20_000


def shares(log_probabilities: torch.Tensor, settings: SamplingSettings) -> torch.Tensor:
    """How often each token is drawn, over an even spread of numbers."""
    numbers = (torch.arange(DRAWS, dtype=torch.float64) + 0.5) / DRAWS
    ids = draw(log_probabilities.expand(DRAWS, -1), settings, numbers)
    if not settings.top_k and settings.top_p == 1.0:  # without torch, it draws the same
        rows = log_probabilities.expand(DRAWS, -1).numpy()
        others = draw_from_all(rows, settings.temperature, numbers.numpy())
        assert (ids.numpy() != others).mean() <= 4 / DRAWS  # numbers at an edge
        ids = torch.from_numpy(others)
    return torch.bincount(ids, minlength=log_probabilities.shape[-1]) / DRAWS


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("top_k", [0, 1, 3, 100])
@pytest.mark.parametrize("top_p", [1.0, 0.7, 1e-6])
def test_shares_are_those_of_the_definition(temperature: float, top_k: int, top_p: float) -> None:
    logits = torch.tensor([0.3, -1.0, 2.0, 1.1, -3.0, 0.9, 0.0])
    expected = np.exp(logits.double().numpy() / temperature)
    order = np.argsort(-expected)
    expected[order[top_k or len(order) :]] = 0
    expected /= expected.sum()
    together = 0.0
    for token in order:
        if together >= top_p:
            expected[token] = 0
        together += expected[token]
    expected /= expected.sum()
    settings = SamplingSettings(temperature=temperature, top_k=top_k, top_p=top_p)
    found = shares(torch.log_softmax(logits, -1), settings)
    assert found.numpy() == pytest.approx(expected, abs=2 / DRAWS)


def test_top_p_stops_as_soon_as_it_has_enough() -> None:
    even = torch.log(torch.tensor([0.5, 0.5, 0.0]))
    assert sorted(shares(even, SamplingSettings(top_p=0.5)).tolist()) == [0, 0, 1]


def test_what_is_forbidden_is_never_drawn() -> None:
    log_probabilities = torch.tensor([-torch.inf, -0.5, -torch.inf, -1.0, -torch.inf])
    for settings in (SamplingSettings(), SamplingSettings(top_p=0.99), SamplingSettings(top_k=4)):
        found = shares(log_probabilities, settings)
        assert found[[0, 2, 4]].sum() == 0 and found[1] > found[3] > 0
        edges = torch.tensor([0.0, 1.0 - 2**-53], dtype=torch.float64)
        drawn = draw(log_probabilities.expand(2, -1), settings, edges).tolist()
        assert set(drawn) <= {1, 3}
    rows = log_probabilities.expand(2, -1).numpy()
    assert draw_from_all(rows, 1.0, edges.numpy()).tolist() == [1, 3]
    nothing = np.full((1, 5), -np.inf, np.float32)
    assert 0 <= draw_from_all(nothing, 1.0, np.array([0.5]))[0] < 5


def test_numbers_are_even_and_do_not_depend_on_each_other() -> None:
    keys = np.array([sampling_key(0, torch.tensor([s]), 0) for s in range(200)], dtype=np.uint64)
    numbers = np.stack([uniform(keys, np.full(200, place)) for place in range(100)])
    assert (numbers >= 0).all() and (numbers < 1).all()
    counts = np.histogram(numbers, bins=20, range=(0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 45  # chi-squared, 19 degrees: p < 0.001
    assert abs(np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.03


def test_a_key_depends_on_seed_source_and_sample() -> None:
    source = torch.tensor([1, 2])
    keys = {
        sampling_key(0, source, 0),
        sampling_key(1, source, 0),
        sampling_key(0, source, 1),
        sampling_key(0, torch.tensor([2, 1]), 0),
    }
    assert len(keys) == 4
    assert sampling_key(0, torch.tensor([1, 2]), 0) in keys


def sampled(seed: int, count: int = 1, **sampling: float) -> SearchSettings:
    return SearchSettings(
        n_best=count,
        max_length=10,
        sampling=SamplingSettings.model_validate({"seed": seed, **sampling}),
    )


def run(model: TableModel, requests: list[Request], rows: int = 64) -> list[list[Hypothesis]]:
    return list(search(model, requests, bos=BOS, eos=EOS, capacity_rows=rows))


def test_samples_depend_on_seed_and_source_alone() -> None:
    model = TableModel(30, 2, sharpness=0.7)
    source = torch.tensor([9, 4])
    ((alone),) = run(model, [Request(source, sampled(3, 5))])
    assert len(alone) == 5 and len({h.tokens for h in alone}) > 1
    others = [
        Request(torch.tensor([7]), SearchSettings(beam=3)),
        Request(torch.tensor([7, 1, 2, 2]), sampled(3, 2, temperature=0.5)),
        Request(source, sampled(3, 5)),
        Request(torch.tensor([7, 6, 2]), sampled(3, 1, top_k=3, top_p=0.8)),
        Request(source, sampled(4, 5)),
    ]
    for rows in (1, 4, 64):
        together = run(model, others, rows)
        assert together[2] == alone
        assert together[4] != alone


def test_log_probabilities_are_the_models_own() -> None:
    """Temperature and filters choose the token; they do not change what it costs."""
    model = TableModel(30, 2, sharpness=0.7)
    source = torch.tensor([9, 4])
    ((hypothesis, *_),) = run(model, [Request(source, sampled(1, 3, temperature=2.0, top_k=5))])
    for place, score in enumerate(hypothesis.token_log_probabilities):
        following = next_log_probabilities(model, source, hypothesis.tokens[:place], bos=BOS)
        token = (*hypothesis.tokens, EOS)[place]
        assert score == pytest.approx(following[token], abs=1e-5)
        assert sum(other > following[token] for other in following) < 5


def test_a_low_temperature_is_greedy() -> None:
    model = TableModel(30, 5)
    sources = [torch.tensor([9, i]) for i in range(5)]
    cold = run(model, [Request(s, sampled(1, 1, temperature=1e-4)) for s in sources])
    assert cold == run(model, [Request(s, SearchSettings(beam=1, max_length=10)) for s in sources])


@pytest.mark.parametrize(
    "wrong", [{"temperature": 0}, {"top_p": 0}, {"top_p": 1.1}, {"top_k": -1}, {"heat": 1}]
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        SamplingSettings.model_validate(wrong)
