"""One update, however it is cut and shared; lack of memory, bad numbers, which weights are kept."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import training_toy
from torch import Tensor
from training_toy import (
    WIDTH,
    Toy,
    ToyRun,
    free_port,
    run_as_rank,
    start,
    toy_batch,
    toy_batches,
    toy_objective,
    toy_trainer,
)

from dragoman.base.errors import RunError, TrainingError
from dragoman.data.batches import Batch
from dragoman.models.interface import Memory
from dragoman.nn.layout import Layout, Sequences
from dragoman.sources.frames.form import FramesSource
from dragoman.tasks.catalogue import TASKS
from dragoman.training.checkpoint import Checkpoints, TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.fastest_way import measure_throughput
from dragoman.training.gradients import Gradients, MakeBatch, Splits
from dragoman.training.losses.objectives import NextToken
from dragoman.training.records import Evaluation
from dragoman.training.settings import TrainingSettings
from dragoman.training.trainer import Trainer
from dragoman.training.update import Updater
from dragoman.training.validation import ERROR_RATES
from dragoman.training.weights import average_weights, load_weights, save_weights


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Toys lose time with more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def updater_of(model: Toy, **settings: Any) -> Updater:
    chosen = TrainingSettings.model_validate({"precision": "fp32"} | settings)
    objective = toy_objective(model, chosen.label_smoothing)
    updater = Updater(model, objective, chosen, lambda step: 0.1, Ranks())
    updater.repeat_choices(TrainingState())
    return updater


def gradients_of(updater: Updater, folder: Path, warnings: list[str] | None = None) -> Gradients:
    warn = (warnings if warnings is not None else []).append
    return updater.gradients(5, Splits(folder), warn)


def joined(update: int) -> Batch:
    """The micro-batches of ``toy_batches(update)`` as one."""
    parts = [make() for make in toy_batches(update)]

    def join(sides: Sequence[Sequences]) -> Sequences:
        names = [
            side.layout.first_row_keys for side in sides if side.layout.first_row_keys is not None
        ]
        layout = Layout([n for side in sides for n in side.layout.lengths], "cpu", torch.cat(names))
        return Sequences(torch.cat([side.values for side in sides]), layout)

    return Batch(
        join([part.source for part in parts]),
        join([part.target_in for part in parts]),
        torch.cat([part.target_out for part in parts]),
        tuple(range(sum(len(part) for part in parts))),
    )


@pytest.mark.parametrize("kind", ["adam", "muon"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_update_does_not_depend_on_how_it_is_cut(
    tmp_path: Path, precision: str, kind: str
) -> None:
    results = []
    for batches in (toy_batches, lambda update, *_: [lambda: joined(update)]):
        model = Toy(2, rate=0.3)
        settings = {"precision": precision, "clip_norm": 0.1, "optimizer": {"kind": kind}}
        updater, state = updater_of(model, **settings), TrainingState()
        gradients = gradients_of(updater, tmp_path)
        records = [updater.update(state, batches, gradients) for _ in range(5)]
        results.append((updater.flat.values, [(r.loss, r.nll, r.gradient_norm) for r in records]))
    # Adam divides by the root of the square: where a gradient is near 0 its rounding shows.
    rounding = 1e-4 if precision == "fp32" else 0.1
    torch.testing.assert_close(results[0][0], results[1][0], rtol=rounding, atol=rounding)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=rounding, atol=rounding)


def test_losses_and_norms_are_per_target_token(tmp_path: Path) -> None:
    model, reference = Toy(2), Toy(2)
    updater, state = updater_of(model, clip_norm=1e-3, label_smoothing=0.2), TrainingState()
    record = updater.update(state, toy_batches, gradients_of(updater, tmp_path))
    batch = joined(0)
    logits = reference.project(reference.decode(batch.target_in, reference.encode(batch.source)))
    loss = torch.nn.functional.cross_entropy(logits, batch.target_out, label_smoothing=0.2)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(reference.parameters(), 1e-3)
    nll = torch.nn.functional.cross_entropy(logits, batch.target_out)
    assert record.loss == pytest.approx(loss.item(), rel=1e-5)
    assert record.nll == pytest.approx(nll.item(), rel=1e-5)
    assert record.perplexity == pytest.approx(nll.exp().item(), rel=1e-5)
    assert record.gradient_norm == pytest.approx(norm.item(), rel=1e-4)
    assert record.tokens == batch.target_tokens
    for name, parameter in reference.named_parameters():
        gradient = updater.flat.views(updater.flat.gradients)[name]
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-2, atol=1e-9)


def test_dropout_belongs_to_the_examples_not_to_the_order(tmp_path: Path) -> None:
    updater = updater_of(Toy(rate=0.5))
    gradients = gradients_of(updater, tmp_path)
    first = gradients.accumulate(7, toy_batches(7))
    whole = gradients.buffer.clone()
    torch.manual_seed(99)
    parts = torch.zeros_like(whole)
    sums = torch.zeros(3, dtype=torch.float64)
    for rank in (1, 0):
        sums += gradients.accumulate(7, toy_batches(7, rank, 2))
        parts += gradients.buffer
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(sums, first)
    assert not torch.equal(gradients.accumulate(8, toy_batches(7)), first)


def test_a_process_without_work_adds_nothing(tmp_path: Path) -> None:
    updater = updater_of(Toy())
    gradients = gradients_of(updater, tmp_path)
    assert gradients.accumulate(0, []).tolist() == [0, 0, 0]
    assert gradients.buffer.count_nonzero() == 0


def test_an_update_without_tokens_is_an_error_in_words(tmp_path: Path) -> None:
    updater = updater_of(Toy())
    with pytest.raises(TrainingError, match="update 1 has no tokens"):
        updater.update(TrainingState(), lambda *_: [], gradients_of(updater, tmp_path))


# ---- lack of memory


class Hungry(Toy):
    """Cannot take more than a number of sentences at once."""

    def __init__(self, most: int, error: Callable[[], BaseException]) -> None:
        super().__init__(2)
        self.most = most
        self.error = error

    def encode(self, source: Sequences) -> Memory:
        if source.layout.batch > self.most:
            raise self.error()
        return super().encode(source)


def cpu_error() -> RuntimeError:
    """What torch itself says when a CPU has no more memory."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    return caught.value


OUT_OF_MEMORY: list[Callable[[], BaseException]] = [
    cpu_error,
    torch.cuda.OutOfMemoryError,
    partial(RuntimeError, "CUDA error: out of memory"),
    partial(RuntimeError, "CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
]


@pytest.mark.parametrize("error", OUT_OF_MEMORY)
def test_a_batch_that_is_too_large_is_halved_once(
    tmp_path: Path, error: Callable[[], BaseException]
) -> None:
    def batches(update: int, *_: int) -> Sequence[MakeBatch]:
        return [lambda: toy_batch(1, 3), lambda: toy_batch(2, 6), lambda: toy_batch(3, 2)]

    modest, hungry = updater_of(Toy(2)), updater_of(Hungry(4, error))
    warnings: list[str] = []
    records = [
        modest.update(TrainingState(), batches, gradients_of(modest, tmp_path / "none")),
        hungry.update(TrainingState(), batches, gradients_of(hungry, tmp_path, warnings)),
    ]
    assert len(warnings) == 1
    assert "micro-batch 2 of 3 (6 examples," in warnings[0]
    assert records[0].loss == pytest.approx(records[1].loss)
    torch.testing.assert_close(modest.flat.values, hungry.flat.values)

    # Resumed where memory would suffice, the same micro-batch is halved again, without a word.
    again, silent = updater_of(Toy(2)), list[str]()
    again.update(TrainingState(), batches, gradients_of(again, tmp_path, silent))
    assert silent == []
    assert torch.equal(again.flat.values, hungry.flat.values)


def test_a_batch_that_does_not_fit_halved_stops_training(tmp_path: Path) -> None:
    updater = updater_of(Hungry(1, torch.cuda.OutOfMemoryError))
    with pytest.raises(TrainingError, match=r"micro-batch 1 of 3 \(4 examples.*even halved"):
        updater.update(TrainingState(), toy_batches, gradients_of(updater, tmp_path))
    updater, warnings = updater_of(Hungry(0, torch.cuda.OutOfMemoryError)), list[str]()
    alone = gradients_of(updater, tmp_path, warnings)
    with pytest.raises(TrainingError, match=r"does not fit.*1 examples"):
        updater.update(TrainingState(), lambda *_: [lambda: toy_batch(1, 1)], alone)
    assert warnings == []  # one example has no halves that might be tried


def test_other_errors_are_not_taken_for_lack_of_memory(tmp_path: Path) -> None:
    updater = updater_of(Hungry(0, lambda: RuntimeError("shapes differ")))
    with pytest.raises(RuntimeError, match="shapes differ"):
        updater.update(TrainingState(), toy_batches, gradients_of(updater, tmp_path))


def test_splits_survive_a_death_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "splits.jsonl"
    Splits(tmp_path).add(3, 1)
    with path.open("a") as file:
        file.write('{"update": 4, "mic')
    splits = Splits(tmp_path)
    assert (3, 1) in splits and (4, 1) not in splits
    splits.add(5, 0)
    assert (5, 0) in Splits(tmp_path)
    path.write_text("[]\n")
    with pytest.raises(RunError, match="line 1 is damaged"):
        Splits(tmp_path)


def test_a_split_is_on_disk_before_it_is_used_and_is_its_process_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []
    monkeypatch.setattr(
        "os.fsync", lambda _: synced.append((tmp_path / "splits-1.jsonl").read_bytes())
    )
    Splits(tmp_path, 1).add(3, 0)
    assert synced == [b'{"update": 3, "micro_batch": 0}\n']
    assert (3, 0) in Splits(tmp_path, 1)
    assert (3, 0) not in Splits(tmp_path, 0) and (3, 0) not in Splits(tmp_path, 2)


# ---- numbers that are not finite


class Bad(Toy):
    """Gives NaN in the updates that are named."""

    def __init__(self, updates: set[int]) -> None:
        super().__init__()
        self.updates = updates
        self.calls = 0

    def encode(self, source: Sequences) -> Memory:
        update, self.calls = self.calls // 3, self.calls + 1
        memory = super().encode(source)
        return (
            Memory(memory.rows * float("nan"), source.layout) if update in self.updates else memory
        )


def bad_trainer(folder: Path, updates: set[int]) -> Trainer:
    settings = TrainingSettings(updates=12, precision="fp32", validate_every=0, max_bad_updates=3)
    folder.mkdir(exist_ok=True)
    return toy_trainer(
        Bad(updates), settings, seed=1, batches=toy_batches, schedule=lambda _: 0.01, folder=folder
    )


def records_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_bad_updates_are_skipped_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = bad_trainer(tmp_path, {2, 3, 7})
    assert trainer.run().reason == "finished"
    records = records_of(tmp_path)
    assert [r["update"] for r in records if r["skipped"]] == [3, 4, 8]
    assert all((r["loss"] is None) == r["skipped"] for r in records)
    assert trainer._state.steps == 9 and trainer._state.bad_in_all == 3
    weights = load_weights(tmp_path / "model.safetensors").tensors
    assert all(tensor.isfinite().all() for tensor in weights.values())
    assert "(2 of at most 3 in a row, 2 in all)" in capsys.readouterr().err


def test_too_many_bad_updates_stop_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"stopped at update 7: 3 updates in a row.*dragoman r"):
        bad_trainer(tmp_path, {4, 5, 6}).run()
    resumed = bad_trainer(tmp_path, set())
    assert resumed.run().update == 12
    assert [r["update"] for r in records_of(tmp_path)] == list(range(1, 13))


# ---- several processes


def assert_same_path(one: Path, other: Path) -> None:
    first, second = records_of(one), records_of(other)
    assert [(r["kind"], r["update"], r.get("tokens")) for r in first] == [
        (r["kind"], r["update"], r.get("tokens")) for r in second
    ]
    for mine, theirs in zip(first, second, strict=True):
        if mine["kind"] == "update":
            assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
            assert mine["gradient_norm"] == pytest.approx(theirs["gradient_norm"], rel=1e-3)
    weights, others = (load_weights(f / "model.safetensors").tensors for f in (one, other))
    torch.testing.assert_close(weights, others, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["adam", "muon"])
def test_two_processes_follow_the_path_of_one(tmp_path: Path, kind: str) -> None:
    settings = {"optimizer": {"kind": kind}}
    alone, together = (ToyRun(tmp_path / name, 12, settings) for name in ("one", "two"))
    alone.train()
    port = free_port()
    ranks = [start(run_as_rank, together, rank, 2, port) for rank in (0, 1)]
    for process in ranks:
        process.join(60)
        assert process.exitcode == 0
    assert_same_path(alone.folder, together.folder)


@pytest.mark.system
def test_processes_wait_for_the_first_for_as_long_as_it_takes(tmp_path: Path) -> None:
    """It validates for longer than an exchange may take."""
    settings = {"validate_every": 2, "average_last": 0}  # it validates once
    run = ToyRun(tmp_path, 2, settings, slow_validation=3.0)
    port = free_port()
    ranks = [start(run_as_rank, run, rank, 2, port, 2.0) for rank in (0, 1)]
    for number, process in enumerate(ranks):
        process.join(60)
        assert process.exitcode == 0, (tmp_path / f"said-{number}").read_text()


def test_a_process_that_ends_is_told_by_the_others(tmp_path: Path) -> None:
    run = ToyRun(tmp_path, seconds_per_update=0.01)
    port = free_port()
    first, second = [start(run_as_rank, run, rank, 2, port) for rank in (0, 1)]
    while not (tmp_path / "metrics.jsonl").exists():
        time.sleep(0.01)
    first.kill()
    second.join(60)
    assert second.exitcode == 1
    assert "another of the processes" in (tmp_path / "said-1").read_text()


@pytest.mark.slow  # processes that import torch
def test_torchrun_follows_the_path_of_one(tmp_path: Path) -> None:
    ToyRun(tmp_path / "one", 12).train()
    subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
            *(training_toy.__file__, str(tmp_path / "two")),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert_same_path(tmp_path / "one", tmp_path / "two")


# ---- the rest of a trainer's life


def test_the_toy_learns_in_both_precisions(tmp_path: Path) -> None:
    plain = {"ema": 0.0, "average_last": 0, "validate_every": 0, "checkpoint_every": 0}
    for precision in ("fp32", "bf16"):
        ToyRun(tmp_path / precision, 80, {"precision": precision} | plain).train()
        updates = [r for r in records_of(tmp_path / precision) if r["kind"] == "update"]
        assert sum(r["nll"] for r in updates[-5:]) < 0.9 * sum(r["nll"] for r in updates[:5])


def test_out_of_patience(tmp_path: Path) -> None:
    scores = iter([1.0, 3.0, 2.0, 3.0, 2.5, 9.0])
    trainer = toy_trainer(
        Toy(),
        TrainingSettings(updates=60, precision="fp32", validate_every=5, patience=3, metric="bleu"),
        seed=1,
        batches=toy_batches,
        schedule=lambda _: 0.01,
        folder=tmp_path,
        evaluate=lambda _: Evaluation({"bleu": next(scores)}),
    )
    outcome = trainer.run()
    assert (outcome.reason, outcome.update, outcome.best_update) == ("patience", 25, 10)
    saved = load_weights(tmp_path / "model.safetensors")
    assert saved.metadata == {"weights": "best", "update": "10", "metric": "bleu", "value": "3.0"}
    snapshot = load_weights(tmp_path / "training" / "snapshots" / "00000010.safetensors")
    assert all(torch.equal(snapshot.tensors[n], t) for n, t in saved.tensors.items())


@pytest.mark.parametrize(
    ("final", "average_score", "expected"),
    [
        ("better", 5.0, "average"),
        ("better", 1.0, "best"),
        ("best", 5.0, "best"),
        ("average", 1.0, "average"),
        ("last", 5.0, "last"),
    ],
)
def test_final_weights(tmp_path: Path, final: str, average_score: float, expected: str) -> None:
    scores = iter([3.0, 4.0, 2.0, average_score])
    settings = {
        "final_weights": final,
        "average_last": 2,
        "validate_every": 4,
        "updates": 12,
        "metric": "bleu",
    }
    trainer = toy_trainer(
        Toy(),
        TrainingSettings.model_validate(settings | {"precision": "fp32"}),
        seed=1,
        batches=toy_batches,
        schedule=lambda _: 0.01,
        folder=tmp_path,
        evaluate=lambda _: Evaluation({"bleu": next(scores)}),
    )
    trainer.run()
    saved = load_weights(tmp_path / "model.safetensors")
    assert saved.metadata["weights"] == expected
    snapshots = [
        load_weights(tmp_path / "training" / "snapshots" / f"{n:08d}.safetensors").tensors
        for n in (8, 12)
    ]
    mean = {name: (snapshots[0][name] + snapshots[1][name]) / 2 for name in snapshots[0]}
    wished = {"best": snapshots[0], "last": snapshots[1], "average": mean}[expected]
    torch.testing.assert_close(dict(saved.tensors), wished)


@pytest.mark.parametrize("final", ["better", "best"])
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_a_metric_that_is_never_finite_leaves_the_last_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], final: str, ema: float
) -> None:
    settings = {
        "final_weights": final,
        "average_last": 2,
        "validate_every": 4,
        "updates": 8,
        "metric": "bleu",
    }
    trainer = toy_trainer(
        Toy(),
        TrainingSettings.model_validate(settings | {"precision": "fp32", "ema": ema}),
        seed=1,
        batches=toy_batches,
        schedule=lambda _: 0.01,
        folder=tmp_path,
        evaluate=lambda _: Evaluation({"bleu": float("nan")}),
    )
    assert trainer.run().reason == "finished"
    saved = load_weights(tmp_path / "model.safetensors")
    assert saved.metadata == {"weights": "last", "update": "8"}
    checkpoint = Checkpoints(tmp_path / "training").latest()
    wished = checkpoint.moments["ema"] if ema else checkpoint.weights
    assert all(torch.equal(saved.tensors[name], wished[name]) for name in wished)
    assert "no validation gave a finite bleu" in capsys.readouterr().err


def test_loss_decides_between_weights_that_are_no_better_than_silence(tmp_path: Path) -> None:
    """The first ones write one letter and have 100 %; those that begin to write words have more."""
    scores = iter([(100.0, 5.0), (114.0, 2.0), (103.0, 3.0), (99.0, 4.0), (100.0, 1.0)])

    def evaluate(update: int) -> Evaluation:
        wer, loss = next(scores)
        return Evaluation({"wer": wer, "loss": loss})

    def best(updates: int) -> int:
        settings = {
            "validate_every": 4, "updates": updates, "precision": "fp32", "metric": "wer"
        }  # fmt: skip
        trainer = toy_trainer(
            Toy(), TrainingSettings.model_validate(settings), seed=1, batches=toy_batches,
            schedule=lambda _: 0.01, folder=tmp_path, evaluate=evaluate,
        )  # fmt: skip
        return trainer.run().best_update

    assert best(8) == 8
    assert best(12) == 8  # which is known after a resume, too
    assert best(20) == 16


def test_error_rates_are_named_as_tasks_name_their_scores() -> None:
    """They were in capitals once, so that no recipe's metric was among them."""
    measured = {name for task in TASKS.values() for name in task.of(FramesSource()).metrics}
    assert ERROR_RATES & measured == {"wer", "cer"}


@pytest.mark.parametrize("how", ["averaged", "removed", "cut short"])
def test_weights_that_were_not_measured_are_never_called_best(tmp_path: Path, how: str) -> None:
    """Somebody averages, removes or damages the weights of an interrupted run, which goes on."""
    scores = iter([5.0, 4.0, 2.0, 3.0])

    def trainer(updates: int) -> Trainer:
        settings = {
            "validate_every": 4, "updates": updates, "precision": "fp32", "metric": "bleu"
        }  # fmt: skip
        return toy_trainer(
            Toy(),
            TrainingSettings.model_validate(settings),
            seed=1,
            batches=toy_batches,
            schedule=lambda _: 0.01,
            folder=tmp_path,
            evaluate=lambda _: Evaluation({"bleu": next(scores)}),
        )

    assert trainer(8).run().best_update == 4
    path = tmp_path / "model.safetensors"
    if how == "averaged":
        files = [file for _, file in Checkpoints(tmp_path / "training").snapshots()]
        save_weights(path, average_weights(files), {"weights": "average", "updates": "4 8"})
    elif how == "removed":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-7])
    outcome = trainer(16).run()
    assert (outcome.best_value, outcome.best_update) == (3.0, 16)
    saved = load_weights(path)
    assert (saved.metadata["value"], saved.metadata["update"]) == ("3.0", "16")
    last = Checkpoints(tmp_path / "training").latest().weights
    assert all(torch.equal(saved.tensors[name], last[name]) for name in last)


def test_a_metric_that_validation_does_not_give(tmp_path: Path) -> None:
    trainer = toy_trainer(
        Toy(),
        TrainingSettings(updates=5, precision="fp32", validate_every=5, metric="chrf"),
        seed=1,
        batches=toy_batches,
        schedule=lambda _: 0.01,
        folder=tmp_path,
        evaluate=lambda _: Evaluation({"bleu": 1.0, "loss": 2.0}),
    )
    with pytest.raises(TrainingError, match="'chrf', but validation gives bleu, loss"):
        trainer.run()


def test_a_fused_loss_takes_the_place_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = Toy(), list[Tensor]()

    def fused(hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(hidden)
        return hidden.sum(), targets.sum()

    def project(hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        raise AssertionError("the fused loss has no need of logits")

    monkeypatch.setattr(model, "project", project)
    batch = toy_batch(1)
    loss, nll, tokens = NextToken(fused)(model, batch)
    (hidden,) = calls
    assert tokens == batch.target_tokens and hidden.shape == (tokens, WIDTH)
    assert torch.equal(loss, hidden.sum()) and torch.equal(nll, batch.target_out.sum())


def test_measuring_leaves_the_weights_alone() -> None:
    model = Toy(2, rate=0.1)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    settings = TrainingSettings(precision="fp32")
    speed = measure_throughput(
        model, toy_objective(model, 0.1), settings, toy_batches, seconds=0.05
    )
    assert speed.updates >= 1
    assert speed.tokens_per_second > 0 and speed.seconds_per_update > 0
    assert speed.peak_bytes > 10**7
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert (
        measure_throughput(
            model, toy_objective(model, 0.1), settings, toy_batches, seconds=60, most=3
        ).updates
        == 3
    )
