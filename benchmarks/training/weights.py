"""Our ids and weights for toolkits whose specials and names are others.

Theirs have a symbol for padding that ours has not, so their vocabulary is larger by one; its row of
the embedding is zero, which moves a loss by less than 0.0002 nats at 8,000 tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

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
def fill(model: nn.Module, weights: Weights, table: Mapping[str, str], rest: set[str]) -> None:
    """Copy our weights into ``model``; only parameters in ``rest`` may stay as they are.

    Tied parameters go by the name that ``named_parameters`` tells first.
    """
    own = dict(model.named_parameters())
    if odd := own.keys() ^ (table.keys() | rest):
        sys.exit(f"these weights have other names: {sorted(odd)}")
    for theirs, ours in table.items():
        own[theirs].copy_(weights[ours])
