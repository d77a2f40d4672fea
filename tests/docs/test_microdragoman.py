"""docs/microdragoman.py computes what the package computes, and learns."""

from __future__ import annotations

import random
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.model import Transformer
from dragoman.nn.layout import Sequences

PAGE = Path(__file__).parents[2] / "docs" / "microdragoman.py"
SIZES = {"model_dim": 16, "ffn_dim": 24, "encoder_layers": 2, "decoder_layers": 2}
VOCABULARY = 23


@pytest.fixture(scope="module")
def micro() -> dict[str, Any]:
    return runpy.run_path(str(PAGE))


@pytest.fixture
def both(micro: dict[str, Any]) -> tuple[Any, Transformer]:
    """The same parameters in both, in fp64, none of which is a round number."""
    draw = np.random.default_rng(3)
    made = micro["make_parameters"](VOCABULARY, 16, 24, 2)
    made = {name: value + draw.normal(0, 0.3, value.shape) for name, value in made.items()}
    settings = TransformerSettings.model_validate(
        {**SIZES, "attention": {"num_heads": 4}, "dropout": 0.0}
    )
    model = Transformer(settings, VOCABULARY, VOCABULARY).double()
    model.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in made.items()})
    return micro["Transformer"](made), model


PAIRS = [([5, 9, 4], [7, 8, 8, 20, 6]), ([22], [4]), ([6, 6, 10, 11, 19, 3], [12, 9])]


def padded(rows: list[list[int]]) -> np.ndarray:
    """Ids as the page has them: an end symbol, then padding."""
    longest = 1 + max(map(len, rows))
    return np.array([[*row, 2] + [0] * (longest - len(row) - 1) for row in rows])


def test_logits_are_those_of_the_package(both: tuple[Any, Transformer]) -> None:
    mine, model = both
    sources, targets = (padded([list(pair[side]) for pair in PAIRS]) for side in (0, 1))
    written = np.concatenate([np.ones((3, 1), int), targets[:, :-1]], 1)
    logits = mine.decode(written, mine.encode(sources), sources)
    for number, (source, target) in enumerate(PAIRS):
        memory = model.encode(Sequences.of([torch.tensor([*source, 2])]))
        one = model.project(model.decode(Sequences.of([torch.tensor([1, *target])]), memory))
        assert np.abs(logits[number, : len(target) + 1] - one.detach().numpy()).max() < 1e-9


def test_loss_and_gradients_are_those_of_the_package(both: tuple[Any, Transformer]) -> None:
    mine, model = both
    sources, targets = (padded([list(pair[side]) for pair in PAIRS]) for side in (0, 1))
    loss = mine.learn(sources, targets)
    tensors = [[torch.tensor(one) for one in side] for side in zip(*PAIRS, strict=True)]
    memory = model.encode(Sequences.of([torch.cat([one, torch.tensor([2])]) for one in tensors[0]]))
    begun = [torch.cat([torch.tensor([1]), one]) for one in tensors[1]]
    wanted = torch.cat([torch.cat([one, torch.tensor([2])]) for one in tensors[1]])
    logits = model.project(model.decode(Sequences.of(begun), memory))
    right = cross_entropy(logits, wanted, label_smoothing=0.1)
    right.backward()
    assert abs(loss - right.item()) < 1e-9
    for name, value in model.named_parameters():
        assert value.grad is not None
        assert np.abs(mine.g[name] - value.grad.numpy()).max() < 1e-9, name
        assert np.abs(mine.g[name]).max() > 0 or name.endswith("key.bias")


def test_a_sentence_is_drawn_with_its_translation(micro: dict[str, Any]) -> None:
    draw = random.Random(0)
    made = {micro["make_pair"](draw) for _ in range(2000)}
    assert len(made) > 1800 and 0.1 < sum(one[2] for one in made) / len(made) < 0.25
    for english, german, _ in made:
        reason = english.split()[-2]
        noun = german.split()[2 if reason in ("tired", "hungry", "weak") else 6]
        gender = {"er": "Hund Bär Fluss See", "sie": "Katze Kuh Straße Brücke",
                  "es": "Pferd Schaf Feld"}  # fmt: skip
        assert noun in gender[german.split("weil ")[1].split()[0]].split()


def test_it_learns_the_pairs_of_a_file(
    micro: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(0)
    pairs = [micro["make_pair"](draw)[:2] for _ in range(600)]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    train = micro["train"]
    micro["main"].__globals__["train"] = lambda *given: train(*given, updates=40, sentences=16)
    micro["main"](str(path))
    said = capsys.readouterr().out
    assert said.startswith("588 pairs, ") and "of 12 unseen sentences" in said
    assert pairs[0][0] in said


@pytest.mark.slow
def test_it_translates_sentences_that_it_has_not_seen(
    micro: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    micro["main"]()
    said = capsys.readouterr().out
    assert int(said.split(" of 500 unseen")[0].split()[-1]) >= 475
