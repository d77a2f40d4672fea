"""What OpenNMT-py and its successor Eole share: a ``Trainer`` that is handed batches.

Both put norms before their sub-layers, as we do with ``norm = "pre"``, and have no other way: with
the same weights and fresh norms behind the stacks their losses are another model's.
"""

from __future__ import annotations

from typing import Any

import torch
from conversation import Sentences, peak_memory_mb
from weights import Grids, Specials

SPECIALS = Specials(unknown=0, padding=1, begin=2, end=3)
ATTENTION = {
    ".query": ".linear_query",
    ".key": ".linear_keys",
    ".value": ".linear_values",
    ".output": ".final_linear",
}
FINAL_NORMS = {
    f"{side}.layer_norm.{end}" for side in ("encoder", "decoder") for end in ("weight", "bias")
}


class FedTrainer:
    """A toolkit's ``Trainer`` and ``Optimizer``, fed one batch at a time."""

    def __init__(self, trainer: Any, optimizer: Any, plan: dict[str, Any]) -> None:
        self.trainer = trainer
        self.optimizer = optimizer
        self.grids = Grids(SPECIALS, plan["vocabulary"])
        trainer.valid_loss.criterion.label_smoothing = 0.0  # theirs smooth it too
        torch.manual_seed(plan["seed"])

    def batch(self, sources: Sentences, targets: Sentences) -> dict[str, Any]:
        raise NotImplementedError

    def update(self, sources: Sentences, targets: Sentences, rate: float) -> float:
        self.optimizer._learning_rate = rate
        fed = iter([(self.batch(sources, targets), 0)])
        return float(self.trainer.train(fed, train_steps=0, save_checkpoint_steps=0).loss)

    def nll(self, sources: Sentences, targets: Sentences) -> float:
        return float(self.trainer.validate([(self.batch(sources, targets), 0)]).loss)

    def memory_mb(self) -> float:
        return peak_memory_mb()
