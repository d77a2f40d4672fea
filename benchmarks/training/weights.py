"""The work as peers read it: its plan, and our ids and weights under their names.

Toolkits have a symbol for padding that ours has not, so their vocabulary is larger by one; its row
of the embedding is zero, which moves a loss by less than 0.0002 nats at 8,000 tokens.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from conversation import Sentences
from torch import Tensor, nn

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Specials:
    """A toolkit's first four ids, in whichever order; all others are ours plus one."""

    unknown: int
    padding: int
    begin: int
    end: int

    def table(self, vocabulary: int) -> Tensor:
        """(V + 1,) their id of each of ours, and that of padding behind them."""
        ids = torch.arange(1, vocabulary + 2)
        ids[:3] = torch.tensor([self.unknown, self.begin, self.end])
        ids[vocabulary] = self.padding
        return ids

    def embedding(self, rows: Tensor) -> Tensor:
        """(V, D) our rows -> (V + 1, D) in their order."""
        found = rows.new_zeros(len(rows) + 1, rows.shape[1])
        found[self.table(len(rows))[:-1]] = rows
        return found


def read_work(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The plan of a work and our weights; takes the plan's number of threads."""
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    torch.set_num_threads(plan["threads"])
    return plan, {k: torch.from_numpy(v) for k, v in np.load(folder / "weights.npz").items()}


class Grids:
    """Lists of our ids -> padded tensors of theirs."""

    def __init__(self, specials: Specials, vocabulary: int) -> None:
        self.table = specials.table(vocabulary)
        self.padding = vocabulary

    def grid(self, sentences: Sentences) -> Tensor:
        """(B, L) their ids, padded at the end."""
        longest = max(map(len, sentences))
        return self.table[
            torch.tensor([s + [self.padding] * (longest - len(s)) for s in sentences])
        ]


def names(
    layers: int, ours: str, theirs: str, parts: Mapping[str, str], attention: Mapping[str, str]
) -> dict[str, str]:
    """Their name -> ours, of all weights and biases of a stack of layers.

    ``ours`` and ``theirs`` come before the number of a layer; ``parts`` and, within attention,
    ``attention`` pair our names with theirs.
    """
    found = {}
    for i in range(layers):
        for mine, other in parts.items():
            inner = attention if mine.endswith("attention") else {"": ""}
            for a, b in inner.items():
                for end in ("weight", "bias"):
                    found[f"{theirs}.{i}.{other}{b}.{end}"] = f"{ours}.{i}.{mine}{a}.{end}"
    return found


@torch.no_grad()
def fill(
    model: nn.Module,
    weights: Weights,
    specials: Specials,
    table: Mapping[str, str],
    rest: Set[str] = frozenset(),
) -> None:
    """Copy our weights into ``model``; only parameters in ``rest`` may stay as they are.

    "embedding" in ``table`` is ours in the order of their specials. Tied parameters go by the name
    that ``named_parameters`` tells first.
    """
    embedding = specials.embedding(weights["source_embedding.weight"])
    own = dict(model.named_parameters())
    if odd := own.keys() ^ (table.keys() | rest):
        sys.exit(f"these weights have other names: {sorted(odd)}")
    for theirs, ours in table.items():
        own[theirs].copy_(embedding if ours == "embedding" else weights[ours])
