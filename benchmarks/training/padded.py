"""What plain training loops share: padded batches, and Adam as the peer's users would call it."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from conversation import BOS, EOS, Sentences, peak_memory_mb
from torch import Tensor, nn
from torch.nn import functional as F

PAD = 0


def grid(sentences: Sentences) -> Tensor:
    """(B, L) token ids, filled up with PAD."""
    longest = max(map(len, sentences))
    return torch.tensor([s + [PAD] * (longest - len(s)) for s in sentences])


class PaddedTrainer:
    """A plain loop around ``logits(source, target_in)`` of shape (B, T, V)."""

    def __init__(self, model: nn.Module, plan: dict[str, Any], precision: str, tuned: bool) -> None:
        torch.manual_seed(plan["seed"])
        self.device = plan["device"]
        self.model = model.to(self.device).train()
        self.plan = plan
        self.low = precision == "bf16"
        more = {"fused": True} if tuned else {}
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9, **more
        )

    def logits(self, source: Tensor, target_in: Tensor) -> Tensor:
        raise NotImplementedError

    def _loss(self, sources: Sentences, targets: Sentences, smoothing: float) -> Any:
        source = grid([[*s, EOS] for s in sources])
        target_in = grid([[BOS, *t] for t in targets])
        target_out = grid([[*t, EOS] for t in targets])
        real = (
            torch.arange(target_out.shape[1]) < torch.tensor([len(t) + 1 for t in targets])[:, None]
        )
        target_out = target_out.masked_fill(~real, -100)
        source, target_in, target_out = (
            ids.to(self.device) for ids in (source, target_in, target_out)
        )
        kind = self.device.partition(":")[0]
        low = torch.autocast(kind, torch.bfloat16) if self.low else contextlib.nullcontext()
        with low:
            logits = self.logits(source, target_in)
        logits, wanted = logits.float().flatten(0, 1), target_out.flatten()
        return F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing)

    def update(self, sources: Sentences, targets: Sentences, rate: float) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        count = sum(len(t) + 1 for t in targets)
        self.optimizer.zero_grad()
        loss = self._loss(sources, targets, self.plan["smoothing"]) / count
        loss.backward()
        if self.plan["clip_norm"]:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.plan["clip_norm"])
        self.optimizer.step()
        return float(loss.detach()) * count

    def nll(self, sources: Sentences, targets: Sentences) -> float:
        self.model.eval()
        with torch.no_grad():
            found = float(self._loss(sources, targets, 0.0))
        self.model.train()
        return found

    def memory_mb(self) -> float:
        if self.device == "cpu":
            return peak_memory_mb()
        return float(torch.cuda.max_memory_allocated() / 2**20)
