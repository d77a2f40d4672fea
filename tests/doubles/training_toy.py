"""A tiny encoder-decoder, its data, and whole training runs of it in processes of their own.

Not a test: ``test_training_*.py`` import it, and so do the processes that they start.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, distributed, nn

from dragoman.base.errors import DragomanError
from dragoman.data.batches import Batch, make_batch
from dragoman.models.interface import Memory
from dragoman.nn import dropout
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Embedding
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import Linear
from dragoman.runs.lock import lock_folder
from dragoman.training.checkpoint import Checkpoints
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import MakeBatch
from dragoman.training.losses.objectives import NextToken, next_token
from dragoman.training.records import Evaluation, Sample
from dragoman.training.schedule import ScheduleSettings, make_schedule
from dragoman.training.settings import TrainingSettings
from dragoman.training.trainer import Outcome, Trainer

VOCABULARY, WIDTH = 11, 8

dropout.POOL_ELEMENTS = 1 << 12  # the usual pool takes longer to draw than the rest of a toy update


class Toy(nn.Module):
    """The mean of the source and the last target token decide what follows."""

    def __init__(self, seed: int = 0, rate: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = Embedding(VOCABULARY, WIDTH)
        self.inner = Linear(WIDTH, 2 * WIDTH, hidden=True)
        self.outer = Linear(2 * WIDTH, WIDTH, hidden=True)
        self.dropout = Dropout(rate)
        self.output_bias = None

    def encode(self, source: Sequences) -> Memory:
        return Memory(self.embedding(source.values), source.layout)

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        lengths = memory.layout.mask.sum(1, keepdim=True)
        mean = memory.layout.pad(memory.rows).sum(1) / lengths  # (B, D)
        x = self.embedding(target_in.values) + mean[target_in.layout.sequence]  # (P, D)
        hidden: Tensor = self.outer(
            torch.tanh(self.inner(self.dropout(x, target_in.layout.row_keys)))
        )
        return hidden

    @property
    def output_layer(self) -> Embedding:
        return self.embedding

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        return self.embedding.project(hidden, ids)


def toy_batch(seed: int, sentences: int = 4) -> Batch:
    """Random pairs; the target is the source reversed."""
    draw = np.random.default_rng(seed)
    sources = [
        draw.integers(3, VOCABULARY, draw.integers(1, 7)).astype(np.int32) for _ in range(sentences)
    ]
    ids = range(100 * seed, 100 * seed + sentences)
    return make_batch(sources, [source[::-1] for source in sources], bos=1, eos=2, ids=ids)


def toy_batches(update: int, rank: int = 0, ranks: int = 1) -> Sequence[MakeBatch]:
    """Three micro-batches for every update, dealt out."""
    seeds = [1000 * update + number for number in range(rank, 3, ranks)]
    return [lambda seed=seed: toy_batch(seed) for seed in seeds]  # type: ignore[misc]


def toy_objective(model: Any, smoothing: float) -> NextToken:
    """Of a ``Toy``, which is no ``Writing``, or of a model made of one."""
    return next_token(model, smoothing)


def toy_trainer(model: Toy, settings: TrainingSettings, **rest: Any) -> Trainer:
    """A trainer of a ``Toy``."""
    objective = toy_objective(model, settings.label_smoothing)
    lower = settings.metric in ("loss", "perplexity", "wer")
    return Trainer(model, objective, settings, lower_is_better=lower, **rest)


def validation_loss(model: Toy) -> float:
    """Mean loss on sentences that are not trained on."""
    batch = toy_batch(10**9, 20)
    logits = model.project(model.decode(batch.target_in, model.encode(batch.source)))
    return float(nn.functional.cross_entropy(logits.float(), batch.target_out))


@dataclass(frozen=True)
class ToyRun:
    """Everything about one run; travels to another process."""

    folder: Path
    updates: int = 40
    settings: dict[str, Any] = field(default_factory=dict)
    slow_validation: float = 0.0
    """Seconds."""
    kill_at_sync: int = 0
    """Die at this call of fsync, which only checkpoints, snapshots and weights use; 0: never."""
    full_disk: Literal["", "always", "while saving"] = ""
    """When files can grow no more."""
    seconds_per_update: float = 0.0

    def train(self, ranks: Ranks | None = None) -> Outcome:
        model = Toy(rate=0.2)
        common: dict[str, Any] = {
            "updates": self.updates,
            "precision": "fp32",
            "clip_norm": 1.0,
            "validate_every": 10,
            "metric": "loss",
            "checkpoint_every": 4,
            "average_last": 2,
            "ema": 0.9,
        }
        settings = TrainingSettings.model_validate(common | self.settings)

        def evaluate(update: int) -> Evaluation:
            if self.slow_validation:
                (self.folder / "validating").touch()
                for _ in range(int(100 * self.slow_validation)):
                    signal.sigtimedwait([], 0.01)
            return Evaluation({"loss": validation_loss(model)}, (Sample("a", "b", str(update)),))

        def batches(update: int, rank: int, ranks: int) -> Sequence[MakeBatch]:
            if self.seconds_per_update:
                (self.folder / "updating").touch()
                signal.sigtimedwait([], self.seconds_per_update)
            return toy_batches(update, rank, ranks)

        self.folder.mkdir(parents=True, exist_ok=True)
        trainer = toy_trainer(
            model,
            settings,
            seed=3,
            batches=batches,
            schedule=make_schedule(
                ScheduleSettings(warmup=10, factor=0.5), model_dim=WIDTH, updates=self.updates
            ),
            folder=self.folder,
            evaluate=evaluate,
            ranks=ranks,
        )
        with lock_folder(self.folder) if trainer.ranks.first else nullcontext():
            return trainer.run()


def start(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Call ``target`` in a process of its own, forked from one that has torch imported already.

    So a start takes milliseconds, and yet what may be killed is a process of its own.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    paths = os.environ.get("PYTHONPATH")
    # Python before 3.13 does not hand its search path to the process that imports in advance.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *filter(None, [paths])])
    try:
        forkserver.ensure_running()
    finally:
        if paths is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = paths
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


def run_in_process(run: ToyRun) -> None:
    """The target of a child process; what it says goes to RUN/said, also an error."""
    run.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    with (run.folder / "said").open("a") as said:
        sys.stderr = said
        if run.kill_at_sync:
            os.fsync = _deadly(os.fsync, run.kill_at_sync)
        if run.full_disk == "always":
            _fill_disk(True)
        elif run.full_disk:
            Checkpoints.save = _on_full_disk(Checkpoints.save)  # type: ignore[method-assign]
        try:
            run.train()
        except DragomanError as error:
            print(error, file=said)
            sys.exit(error.exit_code)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def as_rank(rank: int, size: int, port: int) -> None:
    """What torchrun tells a process that it starts."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def run_as_rank(run: ToyRun, rank: int, size: int, port: int, limit: float = 0.0) -> None:
    """The target of one of several processes that train together.

    ``limit``: seconds that an exchange may take, in place of torch's half hour.
    """
    if limit:
        joining = distributed.init_process_group
        distributed.init_process_group = partial(joining, timeout=timedelta(seconds=limit))
    torch.set_num_threads(1)
    as_rank(rank, size, port)
    run.folder.mkdir(parents=True, exist_ok=True)
    with (run.folder / f"said-{rank}").open("a") as said, Ranks.join() as ranks:
        try:
            run.train(ranks)
        except DragomanError as error:
            print(error, file=said)
            sys.exit(error.exit_code)


def _fill_disk(full: bool) -> None:
    """Let no file grow beyond 100 bytes, or let them grow again."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 if full else most, most))


def _on_full_disk(save: Callable[..., None]) -> Callable[..., None]:
    def save_on_full_disk(*arguments: Any) -> None:
        _fill_disk(True)
        try:
            save(*arguments)
        finally:
            _fill_disk(False)

    return save_on_full_disk


def _deadly(sync: Callable[[Any], None], calls: int) -> Callable[[Any], None]:
    left = calls

    def deadly_sync(file: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        sync(file)

    return deadly_sync


if __name__ == "__main__":  # under torchrun
    with Ranks.join() as joined:
        ToyRun(Path(sys.argv[1]), 12).train(joined)
