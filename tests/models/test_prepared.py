"""A network laid out for translating computes what the network does, and leaves it alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from implementations import convolutional, recurrent
from torch import Tensor

from dragoman.models.catalogue.fastest import fastest
from dragoman.models.interface import Advancing, Model
from dragoman.models.prepared import PreparedNetwork, why_not_int8
from dragoman.native import processor
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import Precision, kernels_fit, use_precision

NETWORKS: dict[str, Callable[[], Advancing]] = {
    "recurrent": lambda: recurrent(model_dim=48),
    "GNMT, additive": lambda: recurrent(model_dim=48, attends="first", attention="additive"),
    "input feeding": lambda: recurrent(model_dim=48, input_feeding=True),
    "convolutional": lambda: convolutional(model_dim=48, channels=32),
}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> Advancing:
    torch.manual_seed(0)
    return NETWORKS[request.param]()


def logits(model: Model) -> Tensor:
    """(3, 4, V) while three sentences are read and three tokens written of each."""
    source = Sequences.of([torch.arange(3, 3 + length) for length in (5, 9, 2)])
    state, tokens = model.start(model.encode(source)), torch.tensor([[1, 7, 20, 11]] * 3)
    return torch.stack([model.step(column[:, None], state) for column in tokens.t()]).float()


@torch.no_grad()
def test_in_bf16_it_is_near(network: Advancing) -> None:
    plain, low = logits(network), logits(PreparedNetwork(network, torch.bfloat16))
    assert torch.cosine_similarity(plain.flatten(), low.flatten(), dim=0) > 0.999


@torch.no_grad()
def test_in_int8_it_is_near(network: Advancing) -> None:
    if missing := why_not_int8():
        pytest.skip(missing)
    plain, low = logits(network), logits(PreparedNetwork(network, torch.int8))
    assert torch.cosine_similarity(plain.flatten(), low.flatten(), dim=0) > 0.995


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_network_in_training_is_not_touched(network: Advancing, precision: Precision) -> None:
    """Validation prepares what training goes on with: by its kernels, or by bf16 copies."""
    use_precision(network, precision, by_kernels=kernels_fit(network, precision))
    before = logits(network)
    prepared = logits(PreparedNetwork(network, torch.float32))
    assert torch.equal(logits(network), before)
    use_precision(network, "fp32")
    torch.testing.assert_close(prepared, logits(network), atol=1e-4, rtol=1e-4)


def test_the_fastest_path_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    times = {"prepared int8": 4, "prepared bf16": 10, "prepared fp32": 30}

    def remembered(_: Path, trials: Mapping[str, object]) -> dict[str, int]:
        return {name: times[" ".join(name.split(",")[0].split()[:2])] for name in trials}

    monkeypatch.setattr("dragoman.models.catalogue.fastest.microseconds", remembered)
    monkeypatch.setattr(processor, "cpu_flags", lambda: {"avx512_bf16"})
    for network in (recurrent(), convolutional()):
        path = fastest(network, remembered=tmp_path)
        assert isinstance(path.model, PreparedNetwork)
        if why_not_int8() is None:
            assert path.precision == "int8" and "2 times as fast here as bf16" in path.reason
            assert path.rows == 256 and not path.whole_steps  # a server reckons with torch's steps
            times["prepared int8"] = 20
            path = fastest(network, remembered=tmp_path)
            assert path.precision == "bf16" and "measured faster here than int8" in path.reason
            assert fastest(network, "int8").precision == "int8"
            times["prepared int8"] = 4
        else:
            assert path.precision == "bf16" and "no int8, because" in path.reason
        assert fastest(network, "fp32").model is network
    monkeypatch.setattr(processor, "cpu_flags", set)
    assert fastest(recurrent(), remembered=tmp_path).precision in ("int8", "fp32")
    assert "as asked for" in fastest(recurrent(), "bf16").reason


def test_trials_run_here(tmp_path: Path) -> None:
    assert "\n" not in fastest(recurrent(), remembered=tmp_path).reason
