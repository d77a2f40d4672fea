"""An ensemble: of one model with itself it is that model, of several their mixture, spelled out."""

from __future__ import annotations

import pytest
import torch
from implementations import decoder, recurrent, transformer
from searching import assert_force_decoding_agrees, search
from table_model import BOS, EOS, TableModel, same
from torch import Tensor

from dragoman.models.ensemble import Ensemble, mixture
from dragoman.models.interface import Memory, Model
from dragoman.nn.layout import Sequences
from dragoman.search.request import Request
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.search.textbook import textbook


class Mixture:
    """The mean of probabilities, by hand: what the textbook search is given in place of a model."""

    def __init__(self, *models: Model) -> None:
        self.models = models

    def encode(self, source: Sequences) -> Memory:
        self.source = source  # each model encodes it when it decodes
        return self.models[0].encode(source)

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        probabilities = [
            model.project(model.decode(target_in, model.encode(self.source))).double().softmax(-1)
            for model in self.models
        ]
        return torch.stack(probabilities).mean(0)

    def project(self, hidden: Tensor) -> Tensor:
        return hidden.log()


def asked() -> list[Request]:
    generator = torch.Generator().manual_seed(1)
    requests = []
    for i in range(9):
        source = torch.randint(3, 40, (1 + i * 5 % 7,), generator=generator)
        settings = SearchSettings(
            beam=1 + i % 4, n_best=1 + i % (1 + i % 4), max_length=3 + i % 4,
            no_repeat_ngram=(0, 2)[i % 2],
        )  # fmt: skip
        requests.append(Request(torch.cat([source, torch.tensor([EOS])]), settings, (5,) * (i % 3)))
    return requests


@pytest.fixture
def models() -> list[Model]:
    torch.manual_seed(2)
    made: list[Model] = [transformer(), recurrent(model_dim=24), decoder()]
    for model in made:
        assert isinstance(model, torch.nn.Module)
        for parameter in model.parameters():  # far from even distributions, where all agree
            torch.nn.init.normal_(parameter, std=0.5)
    return made


def test_of_one_model_with_itself_it_is_that_model(models: list[Model]) -> None:
    sampling = SearchSettings(n_best=3, max_length=5, sampling=SamplingSettings(seed=4))
    requests = [*asked(), Request(torch.tensor([7, 9, EOS]), sampling)]
    for model in models:
        alone = search(model, requests, bos=BOS, eos=EOS, capacity_rows=5)
        twice = search(Ensemble([model, model]), requests, bos=BOS, eos=EOS, capacity_rows=5)
        for one, other in zip(alone, twice, strict=True):
            assert same(other, one, within=1e-4)


@pytest.mark.parametrize("which", [(0, 1), (2, 0), (0, 1, 2)])
def test_of_several_it_is_their_mixture(models: list[Model], which: tuple[int, ...]) -> None:
    chosen = [models[number] for number in which]
    requests = asked()
    found = list(search(Ensemble(chosen), requests, bos=BOS, eos=EOS, capacity_rows=6))
    by_hand = Mixture(*chosen)
    for request, hypotheses in zip(requests, found, strict=True):
        assert same(hypotheses, textbook(by_hand, request, bos=BOS, eos=EOS), within=1e-4)
    alone = [h[0].tokens for h in search(chosen[0], requests, bos=BOS, eos=EOS)]
    assert alone != [h[0].tokens for h in found], "the others have a say"


def test_given_outputs_are_scored_by_the_mixture(models: list[Model]) -> None:
    assert_force_decoding_agrees(Ensemble(models[:2]), asked(), bos=BOS, eos=EOS)


def test_what_one_model_rules_out_another_may_still_say() -> None:
    certain = torch.tensor([[0.0, -torch.inf, -torch.inf]])
    other = torch.tensor([[-torch.inf, 0.0, -torch.inf]])
    found = mixture([certain, other]).exp()
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.5, 0.0]]))
    torch.testing.assert_close(found.sum(-1), torch.ones(1))


def test_each_model_reads_what_its_reader_gives_it() -> None:
    """The second model is asked about the same source, written in other numbers."""
    one, other = TableModel(9, seed=1), TableModel(9, seed=2)

    def turned(source: Sequences) -> Sequences:
        return Sequences(source.values.flip(0), source.layout)

    request = Request(torch.tensor([3, 4, 5, EOS]), SearchSettings(beam=3, n_best=3, max_length=4))
    read = Ensemble([one, other], [None, turned])
    (found,) = search(read, [request], bos=BOS, eos=EOS)

    class Turned(Mixture):
        def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
            sources = (self.source, turned(self.source))
            probabilities = [
                model.project(model.decode(target_in, model.encode(source))).softmax(-1)
                for model, source in zip(self.models, sources, strict=True)
            ]
            return torch.stack(probabilities).mean(0)

    assert same(found, textbook(Turned(one, other), request, bos=BOS, eos=EOS), within=1e-4)
