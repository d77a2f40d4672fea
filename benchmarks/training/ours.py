"""Ours, as ``dragoman train`` does it: the trainer's own update, with native kernels or without."""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from dragoman.native.allocator import keep_few_primitives, keep_memory
from dragoman.native.processor import wait_briefly

# Before torch, as the command line does.
keep_memory()
keep_few_primitives(os.environ)
wait_briefly(os.environ)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from conversation import BOS, EOS, Sentences, converse, peak_memory_mb  # noqa: E402

from dragoman.data.batches import Batch, make_batch  # noqa: E402
from dragoman.models.settings import TransformerSettings  # noqa: E402
from dragoman.models.transformer.model import Transformer  # noqa: E402
from dragoman.native import library  # noqa: E402
from dragoman.training.checkpoint import TrainingState  # noqa: E402
from dragoman.training.distributed import Ranks  # noqa: E402
from dragoman.training.fastest_way import fastest_way  # noqa: E402
from dragoman.training.gradients import Splits  # noqa: E402
from dragoman.training.losses.objectives import next_token  # noqa: E402
from dragoman.training.settings import TrainingSettings  # noqa: E402
from dragoman.training.update import Updater  # noqa: E402


class Ours:
    def __init__(self, folder: Path, precision: str, kernels: str) -> None:
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        torch.set_num_threads(plan["threads"])
        self.ranks = Ranks(device=plan["device"])
        settings = TransformerSettings.model_validate(plan["model"])
        self.model = Transformer(settings, plan["vocabulary"], plan["vocabulary"])
        weights = np.load(folder / "weights.npz")
        self.model.load_state_dict(
            {name: torch.from_numpy(weights[name]) for name in self.model.state_dict()}
        )
        self.model.train()
        training = TrainingSettings.model_validate(
            {
                "precision": precision,
                "kernels": kernels,
                "label_smoothing": plan["smoothing"],
                "clip_norm": plan["clip_norm"],
            }
        )
        self.rate = 0.0
        self.objective = next_token(self.model, plan["smoothing"])
        if kernels == "auto":  # as ``dragoman train`` does, with this precision
            first = json.loads((folder / "updates.json").read_text(encoding="utf-8"))[0]
            found = fastest_way(
                self.model, self.objective, training,
                lambda *_: [lambda: self._batch(*first)], ranks=self.ranks,
            )  # fmt: skip
            training = training.model_copy(update={"way": found.way})
        self.updater = Updater(
            self.model, self.objective, training, lambda step: self.rate, self.ranks
        )
        self.state = TrainingState()
        self.updater.restore(None, self.state)
        self.updater.repeat_choices(self.state)
        self.version = f"{metadata.version('dragoman')}, {self.state.kernels} kernels"
        if kernels == "auto" and self.ranks.device.type == "cpu" and self.state.kernels == "plain":
            print(
                f"dragoman trains on plain torch here: {library.status().reason}", file=sys.stderr
            )
        splits = Splits(folder / f"splits-{os.getpid()}")
        self.gradients = self.updater.gradients(plan["seed"], splits, print)

    def _batch(self, sources: Sentences, targets: Sentences) -> Batch:
        arrays = [[np.array(s, dtype=np.int32) for s in side] for side in (sources, targets)]
        return make_batch(*arrays, bos=BOS, eos=EOS)

    def update(self, sources: Sentences, targets: Sentences, rate: float) -> float:
        self.rate = rate
        batch = [lambda: self._batch(sources, targets)]
        record: Any = self.updater.update(self.state, lambda *_: batch, self.gradients)
        return float(record.loss) * record.tokens

    def nll(self, sources: Sentences, targets: Sentences) -> float:
        self.model.eval()
        with torch.no_grad():
            batch = self._batch(sources, targets).to(self.ranks.device)
            nll = self.objective(self.model, batch).nll
        self.model.train()
        return float(nll)

    def memory_mb(self) -> float:
        if self.ranks.device.type == "cpu":
            return peak_memory_mb()
        return float(torch.cuda.max_memory_allocated() / 2**20)


if __name__ == "__main__":
    where = Path(sys.argv[1])
    converse(Ours(where, sys.argv[2], sys.argv[3]), where)
