"""An update is the same work however many processes share it: tokens, masks, gradients."""

from __future__ import annotations

import json
import os
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from recipe_of_files import recipe_of
from tiny_recipe import TINY
from torch import Tensor
from training_toy import (
    Toy,
    as_rank,
    free_port,
    start,
    toy_batches,
    toy_objective,
    toy_trainer,
)

from dragoman.base.errors import TrainingError
from dragoman.data.plan import Plan, PlanSettings
from dragoman.data.store_writer import WeightedPairs, build_store
from dragoman.data.word_links import WordLinks
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.forms.subwords.text import TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.forms.text_form import TextForm
from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.model import Transformer
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.shared.examples import Pairs, TrainingBatches
from dragoman.tasks.training import train
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks, own_device
from dragoman.training.gradients import Splits
from dragoman.training.losses.objectives import GuidedAlignment, Objective
from dragoman.training.settings import TrainingSettings
from dragoman.training.update import Updater

PAIRS = [
    Pair(n, " ".join(["dog", "sees", "cats"][: n % 3 + 1] * (n % 4 + 1)), f"{n}. " * (n % 5 + 1))
    for n in range(120)
]


def batches_of(folder: Path, sampling: float, micro_batch: int) -> TrainingBatches:
    text = learn_vocabulary(
        (line for pair in PAIRS for line in (pair.source, pair.target)),
        TextSettings(vocabulary=290, sampling=sampling),
    )
    form = TextForm(text, "und")
    store = build_store(
        [WeightedPairs(PAIRS)], {"source": form, "target": form}, folder, f"{sampling}"
    )
    asked = PlanSettings(tokens_per_update=300, tokens_per_micro_batch=micro_batch)
    examples = Pairs(store, Recipe(seed=1), Forms(form, form))
    return TrainingBatches(Plan(examples, asked, 1), examples)


@pytest.mark.parametrize("micro_batch", [300, 100])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_processes_share_the_same_sentences(tmp_path: Path, ranks: int, micro_batch: int) -> None:
    """Also where each update cuts them anew (BPE-dropout)."""
    batches = batches_of(tmp_path, 0.3, micro_batch)

    def sentences(rank: int, ranks: int) -> list[tuple[int, list[int], list[int]]]:
        found = []
        for batch in (make() for make in batches(3, rank, ranks)):
            sides = [
                side.values.split(list(side.layout.lengths))
                for side in (batch.source, batch.target_in)
            ]
            found += [
                (number, source.tolist(), target.tolist())
                for number, source, target in zip(batch.ids, *sides, strict=True)
            ]
        return found

    shared = [sentences(rank, ranks) for rank in range(ranks)]
    assert sorted(chain.from_iterable(shared)) == sorted(sentences(0, 1))
    assert min(map(len, shared)) > 0


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kernels", ["auto", "plain"])
@pytest.mark.parametrize(
    ("micro_batch", "guided", "norm"),
    [(300, False, "post"), (100, False, "pre"), (100, True, "post")],
)
def test_processes_add_up_to_the_same_gradients(
    tmp_path: Path, precision: str, kernels: str, micro_batch: int, guided: bool, norm: str
) -> None:
    """With dropout wherever there can be any: one mask that differs would show."""
    torch.manual_seed(0)
    settings = TransformerSettings.model_validate(
        {
            "model_dim": 32, "ffn_dim": 48, "encoder_layers": 1, "decoder_layers": 1, "norm": norm,
            "attention": {"num_heads": 2, "dropout": 0.2}, "dropout": 0.3,
            "activation_dropout": 0.2,
        }
    )  # fmt: skip
    training = TrainingSettings.model_validate({"precision": precision, "kernels": kernels})
    model = Transformer(settings, 290, 290)
    objective: Objective = toy_objective(model, training.label_smoothing)
    if guided:
        objective = GuidedAlignment(
            objective,
            WordLinks.of(frozenset({(0, 0), (pair.line % 3, 1)}) for pair in PAIRS),
            (np.arange(290) % 2 == 0, np.arange(290) % 2 == 0),
            attention=model.attentions_of("cross")[0].name, head=1, weight=1.0,
        )  # fmt: skip
    updater = Updater(model, objective, training, lambda _: 0.1, Ranks())
    state = TrainingState()
    updater.repeat_choices(state)
    if kernels == "auto" and state.kernels == "plain":
        pytest.skip("this machine has no native kernels")
    model.train()
    gradients = updater.gradients(1, Splits(tmp_path / "splits"), lambda _: None)
    batches = batches_of(tmp_path, 0.0, micro_batch)

    def together(ranks: int, update: int = 3) -> tuple[Tensor, Tensor]:
        sums, total = torch.zeros(3, dtype=torch.float64), torch.zeros_like(gradients.buffer)
        for rank in range(ranks):
            sums += gradients.accumulate(update, batches(3, rank, ranks))
            total += gradients.buffer
        return total, sums

    alone, sums = together(1)
    rounding = 1e-5 if precision == "fp32" else 1e-2
    for ranks in (2, 3, 4, 200):
        shared, shared_sums = together(ranks)
        assert float((shared - alone).norm() / alone.norm()) < rounding
        torch.testing.assert_close(shared_sums, sums, rtol=rounding, atol=0)
    others, _ = together(1, update=4)  # the same examples with the masks of another update
    assert float((others - alone).norm() / alone.norm()) > 0.1


def train_as_rank(recipe: Recipe, folder: Path, rank: int, port: int, cache: str) -> None:
    """The target of one of two processes that begin a run together."""
    os.environ["DRAGOMAN_CACHE"] = cache
    as_rank(rank, 2, port)
    torch.set_num_threads(1)
    train(recipe, folder, minutes=0.03, say=lambda _: None, display=False)


@pytest.mark.system
def test_processes_begin_a_run_together(parallel_text: tuple[Path, Path], tmp_path: Path) -> None:
    """What each measured for itself may differ: the first one's sizes and updates count."""
    recipe, _ = recipe_of([*map(str, parallel_text)], changes=TINY)
    other = recipe.change(["model.model_dim=48"])
    port, cache = free_port(), os.environ["DRAGOMAN_CACHE"]
    ranks = [
        start(train_as_rank, asked, tmp_path / "run", rank, port, cache)
        for rank, asked in enumerate((recipe, other))
    ]
    for process in ranks:
        process.join(120)
        assert process.exitcode == 0
    run = Run.open(tmp_path / "run")
    assert run.model().settings.model_dim == 32
    lines = map(json.loads, (run.folder / "metrics.jsonl").read_text("utf-8").splitlines())
    updates = [line for line in lines if line["kind"] == "update"]
    assert [line["update"] for line in updates] == [*range(1, run.recipe.training.updates + 1)]
    assert min(line["tokens"] for line in updates) > 100  # of both, of at most 512


def test_more_processes_than_gpus_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    for local in ("0", "1"):
        monkeypatch.setenv("LOCAL_RANK", local)
        assert own_device() == f"cuda:{local}"
    assert chosen == [0, 1]
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(TrainingError, match="process 2 of this machine has no GPU: there are 2"):
        own_device()


class Second(Ranks):
    """A process that is told the states of the first one."""

    def __init__(self, *told: TrainingState) -> None:
        super().__init__(rank=1)
        self._told = iter(told)

    def broadcast_text(self, text: str) -> str:
        return next(self._told).to_json()


def test_all_processes_compute_as_the_first_does(tmp_path: Path) -> None:
    """Whose machine may be another, for which nothing was measured."""
    settings = TrainingSettings.model_validate(
        {"way": {"kernels": "plain", "precision": "bf16", "threads": 1, "machine": "of the first"}}
    )
    first = TrainingState(precision="bf16", kernels="plain", masks="pool", threads=1, cores=1)
    trainer = toy_trainer(
        Toy(), settings, seed=1, batches=toy_batches, schedule=lambda _: 0.1, folder=tmp_path,
        ranks=Second(TrainingState(), first),
    )  # fmt: skip
    trainer._restore()
    assert trainer._updater.way is not None and trainer._updater.way.precision == "bf16"
