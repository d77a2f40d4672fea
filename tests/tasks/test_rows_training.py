"""Training on rows: shared by processes, cut in two, killed and resumed, it is the same work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tiny_cells import tiny_cell
from torch import Tensor
from training_toy import as_rank, free_port, start

from dragoman.data.plan import Plan
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.files import read_metrics
from dragoman.runs.model import build_model
from dragoman.runs.prepare import Prepared, prepare
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import METRICS, RECIPE
from dragoman.tasks.catalogue import Run, runtime_of
from dragoman.tasks.classification.evaluation import ClassificationValidation
from dragoman.tasks.shared.examples import TrainingBatches
from dragoman.tasks.training import resume, train
from dragoman.tasks.translation.validation import TranslationValidation
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import Splits
from dragoman.training.update import Updater

CELLS = [
    ("classification", "encoder", "frames"),
    ("classification", "encoder", "picture"),
    ("translation", "transformer", "frames"),
    ("translation", "convolutional", "picture"),
    ("translation", "transformer", "line"),
]
cells = pytest.mark.parametrize(("task", "kind", "source"), CELLS, ids=map("-".join, CELLS))


def prepared(recipe: Recipe, folder: Path) -> Prepared:
    folder.mkdir()
    learn_vocabularies(recipe, folder, lambda _: None)
    return prepare(recipe, folder, lambda _: None)


def batches_of(recipe: Recipe, found: Prepared) -> TrainingBatches:
    examples = runtime_of(recipe.spec).parts().examples(found.train, recipe, found.forms)
    return TrainingBatches(Plan(examples, recipe.bounded_plan, recipe.seed), examples)


@cells
def test_processes_add_up_to_the_same_gradients(
    task: str, kind: str, source: str, tmp_path: Path
) -> None:
    recipe = tiny_cell(task, kind, source, tmp_path / "files").change(["model.dropout=0.3"])
    found = prepared(recipe, tmp_path / "run")
    torch.manual_seed(0)
    model = build_model(recipe, *found.forms)
    objective = runtime_of(recipe.spec).parts().objective(model, 0.0)
    updater = Updater(model, objective, recipe.training, lambda _: 0.1, Ranks())
    updater.repeat_choices(TrainingState())
    model.train()
    gradients = updater.gradients(1, Splits(tmp_path / "splits"), lambda _: None)
    batches = batches_of(recipe, found)

    def together(ranks: int) -> Tensor:
        total = torch.zeros_like(gradients.buffer)
        for rank in range(ranks):
            gradients.accumulate(3, batches(3, rank, ranks))
            total += gradients.buffer
        return total

    alone = together(1)
    for ranks in (2, 3):
        assert float((together(ranks) - alone).norm() / alone.norm()) < 1e-5
    (make, *_) = batches(3)
    halves = make().split()
    gradients.accumulate(3, [make])
    whole = gradients.buffer.clone()
    parts = torch.zeros_like(whole)
    for half in halves:
        gradients.accumulate(3, [lambda half=half: half])  # type: ignore[misc]
        parts += gradients.buffer
    assert float((parts - whole).norm() / whole.norm()) < 1e-5


def test_a_plan_counts_rows_and_no_end_symbol(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path / "files")
    found = prepared(recipe, tmp_path / "run")
    lengths = found.train.lengths["source"]
    longest = int(lengths.max())
    examples = runtime_of(recipe.spec).parts().examples(found.train, recipe, found.forms)
    for limit, left_out in ((longest, 0), (longest - 1, int((lengths == longest).sum()))):
        plan = Plan(examples, recipe.plan.model_copy(update={"max_source": limit}), 1)
        assert plan.left_out.examples == left_out
    rows = np.concatenate([found.train.values("source", n) for n in range(3)])
    assert rows.dtype == np.float16 and rows.shape == (int(lengths[:3].sum()), 20)


def train_and_die(recipe: Recipe, folder: Path, cache: str) -> None:
    """The target of a process that is gone at its second validation."""
    os.environ["DRAGOMAN_CACHE"] = cache
    by_task = {"classification": ClassificationValidation, "translation": TranslationValidation}
    kind: Any = by_task[recipe.task]
    validate = kind.__call__

    def dying(self: Any, update: int) -> Any:
        if update == 20:
            os._exit(9)
        return validate(self, update)

    kind.__call__ = dying
    train(recipe, folder, say=lambda _: None, display=False, measure=False)


HEARD = (
    "training.ctc_weight=0.3", "training.spec_augment.time_masks=2",
    "training.spec_augment.band_masks=2",
)  # fmt: skip


@pytest.mark.system
@pytest.mark.parametrize(
    ("cell", "changes"),
    [
        pytest.param(CELLS[0], (), id="frames", marks=pytest.mark.slow),  # the third has frames too
        pytest.param(CELLS[1], (), id="picture", marks=pytest.mark.slow),
        pytest.param(CELLS[2], HEARD, id="heard with CTC and parts hidden"),
    ],
)  # fmt: skip
def test_killed_and_gone_on_with_it_ends_as_if_it_had_not_been(
    cell: tuple[str, str, str], changes: tuple[str, ...], tmp_path: Path
) -> None:
    recipe = tiny_cell(*cell, tmp_path / "files").change(
        ["model.dropout=0.3", "training.checkpoint_every=8", *changes]
    )
    train(recipe, tmp_path / "whole", say=lambda _: None, display=False, measure=False)
    process = start(train_and_die, recipe, tmp_path / "killed", os.environ["DRAGOMAN_CACHE"])
    process.join(120)
    assert process.exitcode == 9
    resume(tmp_path / "killed", say=lambda _: None, display=False)
    whole, killed = (
        load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed")
    )
    assert whole.keys() == killed.keys()
    assert all(np.array_equal(whole[name], killed[name]) for name in whole)
    # The best weights may be older than the kill: what each update has learned is compared too.
    whole_losses, killed_losses = (losses(tmp_path / name) for name in ("whole", "killed"))
    assert len(whole_losses) == 30 and whole_losses == killed_losses


def losses(run: Path) -> list[tuple[int, float]]:
    return [
        (line["update"], line["nll"])
        for line in read_metrics(run / METRICS)
        if line["kind"] == "update"
    ]


def train_as_rank(recipe: Recipe, folder: Path, rank: int, port: int, cache: str) -> None:
    """The target of one of two processes."""
    os.environ["DRAGOMAN_CACHE"] = cache
    as_rank(rank, 2, port)
    torch.set_num_threads(1)
    train(recipe, folder, say=lambda _: None, display=False, measure=False)


@pytest.mark.system
def test_two_processes_train_together(tmp_path: Path) -> None:
    recipe = tiny_cell("classification", "encoder", "frames", tmp_path / "files")
    train(recipe, tmp_path / "one", say=lambda _: None, display=False, measure=False)
    port, cache = free_port(), os.environ["DRAGOMAN_CACHE"]
    for process in [
        start(train_as_rank, recipe, tmp_path / "two", rank, port, cache) for rank in range(2)
    ]:
        process.join(120)
        assert process.exitcode == 0
    one, two = ([nll for _, nll in losses(tmp_path / name)] for name in ("one", "two"))
    assert len(one) == len(two) == 30
    assert np.allclose(one[:5], two[:5], rtol=1e-3)  # later on, rounding has grown
    assert two[-1] < two[0]


@pytest.mark.parametrize(
    ("cell", "files"),
    [
        (CELLS[0], ["test/"]),
        (CELLS[1], ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]),
        (CELLS[2], ["test.tsv"]),
    ],
)
def test_what_a_run_may_be_measured_on_is_laid_out_as_its_files(
    cell: tuple[str, str, str], files: list[str], tmp_path: Path
) -> None:
    recipe = tiny_cell(*cell, tmp_path)
    assert runtime_of(recipe.spec).test_files(recipe) == files


def test_a_run_is_opened_and_says_what_it_reads(tmp_path: Path) -> None:
    recipe = tiny_cell("classification", "encoder", "frames", tmp_path / "files")
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    run = Run.open(tmp_path / "run")
    assert (run.folder / RECIPE).read_text("utf-8").count('kind = "frames"') == 1
    assert run.recipe.source == recipe.source
    assert run.task.noun == "recordings" and run.task.texts == () and run.languages == ()
