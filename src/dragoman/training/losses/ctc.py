"""Connectionist temporal classification (Graves et al., 2006), as a second loss for models that
read recordings: each row of the encoder predicts the token that is spoken there, or the blank.

    P(y | x) = Σ over all ways to spread y over the rows of Π_t P(token_t | x)

A way assigns each token of y to one row or to several consecutive rows. The blank may stand between
any two tokens; between two equal tokens it is required. In this way, the encoder learns the order
of the words, which attention alone does not learn from little data. The loss is

    (1 - λ) · cross-entropy of the decoder - λ · log P(y | x)

(Watanabe et al., 2017, "Hybrid CTC/Attention Architecture"). If a recording has fewer rows than its
text needs, there is no way at all. Such a recording is left out of this loss, which would be
infinite otherwise.

Shapes: B recordings, P rows of the encoder in all, T rows of the longest recording, D width, V
outputs of the decoder. The blank is output V, after those of the decoder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.base.wording import plural
from dragoman.data.batches import Batch
from dragoman.data.store import TokenStore
from dragoman.models.interface import Memory, Network, Scores
from dragoman.nn.layout import Sequences
from dragoman.sources.shared.rows import SourceSettings
from dragoman.training.losses.objectives import Objective, Sums

_NAMED = 3
"""The number of sources that a message names, if more are too short for their texts."""


class _Remembering:
    """A model that keeps the most recent output of its encoder."""

    memory: Memory

    def __init__(self, model: Scores) -> None:
        self._model = model

    def encode(self, source: Sequences) -> Memory:
        self.memory = self._model.encode(source)
        return self.memory

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        return self._model.decode(target_in, memory)


class JointCtc:
    """The weighted sum of an objective and of CTC on the rows that the encoder makes."""

    def __init__(self, objective: Objective, weight: float) -> None:
        """``objective`` must call only ``encode`` and ``decode`` of the model. ``weight``: the
        weight of CTC (λ)."""
        self._objective = objective
        self._weight = weight

    def __call__(self, model: Any, batch: Batch) -> Sums:
        remembering = _Remembering(model)
        sums = self._objective(remembering, batch)
        loss = ctc_loss(model, remembering.memory, targets_of(batch))
        return Sums((1 - self._weight) * sums.loss + self._weight * loss, sums.nll, sums.tokens)


def targets_of(batch: Batch) -> list[Tensor]:
    """Return the tokens of each text, without begin and end symbols."""
    parts = batch.target_in.values.split(list(batch.target_in.layout.lengths))
    return [part[1:] for part in parts]


def ctc_loss(model: Network, memory: Memory, targets: list[Tensor]) -> Tensor:
    """Return the sum, in nats, of -log P over all texts whose recording has enough encoder rows
    for them. The other texts are left out."""
    head = model.ctc
    assert head is not None, "the recipe has training.ctc_weight"
    logits: Tensor = head(memory.rows).float()  # (P, V + 1)
    lengths = memory.layout.lengths
    room = [
        place
        for place, (rows, target) in enumerate(zip(lengths, targets, strict=True))
        if rows >= rows_needed(target.cpu().numpy())
    ]
    if not room:
        return logits.sum() * 0
    grid = memory.layout.pad(torch.log_softmax(logits, dim=-1))  # (B, T, V + 1)
    loss: Tensor = F.ctc_loss(
        grid[room].transpose(0, 1),
        torch.cat([targets[place] for place in room]),
        torch.tensor([lengths[place] for place in room]),
        torch.tensor([len(targets[place]) for place in room]),
        blank=logits.shape[-1] - 1,
        reduction="sum",
    )
    return loss.double()


def rows_needed(target: npt.NDArray[Any]) -> int:
    """Return the number of rows that a text needs: one for each token, and one for the blank
    between two equal tokens."""
    return len(target) + int((target[1:] == target[:-1]).sum())


def without_room(store: TokenStore, model: Network, read: SourceSettings) -> str | None:
    """Return a message that describes the sources with fewer rows than their text needs, or None
    if there are no such sources. ``read``: the settings of the sources, which tell their kind and
    how many rows are merged into one."""
    source, target = store.lengths["source"], store.lengths["target"]
    different = {int(length): model.memory_length(int(length)) for length in np.unique(source)}
    rows = np.array([different[length] for length in source.tolist()])
    short = [
        int(example)
        for example in np.flatnonzero(rows < 2 * target)  # the most that can be needed
        if rows[example] < rows_needed(store.tokens("target", int(example)))
    ]
    if not short:
        return None
    names = ", ".join(store.text("source", example) for example in short[:_NAMED])
    more = ", ..." if len(short) > _NAMED else ""
    noun, fewer = read.raws.removesuffix("s"), read.shortens // 2
    set_ = f"set source.subsample = {fewer}, or use tokens" if fewer > 1 else "use tokens"
    return (
        f"{plural(len(short), f'{noun} is', f'{noun}s are')} too short for CTC, which needs a "
        f"row for each token ({names}{more}). There, only the decoder learns. If there are many: "
        f"{set_} with longer pieces"
    )
