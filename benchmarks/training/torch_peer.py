"""``torch.nn.Transformer`` in a plain loop, from our weights."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch
from conversation import converse
from padded import PAD, PaddedTrainer
from torch import Tensor, nn
from torch.nn import functional as F
from weights import read_work


class Translator(nn.Module):
    """Embeddings, sinusoidal positions, ``nn.Transformer``, one matrix for all three."""

    def __init__(self, plan: dict[str, Any], weights: dict[str, Tensor]) -> None:
        super().__init__()
        model = plan["model"]
        self.width = model["model_dim"]
        self.embedding = nn.Embedding(plan["vocabulary"], self.width)
        self.register_buffer("positions", weights["positions"])
        self.dropout = nn.Dropout(model["dropout"])
        self.body = nn.Transformer(
            self.width, model["attention"]["num_heads"], model["encoder_layers"],
            model["decoder_layers"], model["ffn_dim"], model["dropout"], batch_first=True,
        )  # fmt: skip
        # The paper has no norm behind the stacks; nn.Transformer adds one.
        self.body.encoder.norm = None
        self.body.decoder.norm = None
        for layer in [*self.body.encoder.layers, *self.body.decoder.layers]:
            # The paper drops neither attention weights nor hidden units.
            layer.dropout.p = 0.0
            layer.self_attn.dropout = 0.0
        for layer in self.body.decoder.layers:
            layer.multihead_attn.dropout = 0.0
        with torch.no_grad():
            self.embedding.weight.copy_(weights["source_embedding.weight"])
            for name, own in self.body.named_parameters():
                own.copy_(ours(name, weights))

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V)."""
        hidden = source == PAD
        ahead = torch.ones(
            target_in.shape[1], target_in.shape[1], dtype=torch.bool, device=source.device
        ).triu(1)
        out = self.body(
            self._embed(source), self._embed(target_in), tgt_mask=ahead,
            src_key_padding_mask=hidden, memory_key_padding_mask=hidden, tgt_is_causal=True,
        )  # fmt: skip
        return F.linear(out, self.embedding.weight)

    def _embed(self, ids: Tensor) -> Tensor:
        places = self.positions[: ids.shape[1]]
        return self.dropout(self.embedding(ids) * math.sqrt(self.width) + places)


def ours(name: str, weights: dict[str, Tensor]) -> Tensor:
    """Our weights under nn.Transformer's name of them."""
    side, _, layer, *rest = name.split(".")
    place, kind = ".".join(rest[:-1]), rest[-1]
    decoder = side == "decoder"
    attention = {"self_attn": "self_attention" if decoder else "attention",
                 "multihead_attn": "cross_attention"}  # fmt: skip
    norms = (
        ("self_attention_norm", "cross_attention_norm", "feed_forward_norm")
        if decoder
        else ("attention_norm", "feed_forward_norm")
    )
    if kind.startswith("in_proj_"):
        parts = [
            weights[f"{side}.{layer}.{attention[place]}.{part}.{kind.removeprefix('in_proj_')}"]
            for part in ("query", "key", "value")
        ]
        return torch.cat(parts)
    if place.endswith(".out_proj"):
        return weights[f"{side}.{layer}.{attention[place.split('.')[0]]}.output.{kind}"]
    if place.startswith("linear"):
        part = "inner" if place == "linear1" else "outer"
        return weights[f"{side}.{layer}.feed_forward.{part}.{kind}"]
    return weights[f"{side}.{layer}.{norms[int(place[-1]) - 1]}.{kind}"]


class TorchTrainer(PaddedTrainer):
    version = torch.__version__.split("+")[0]

    def logits(self, source: Tensor, target_in: Tensor) -> Tensor:
        found: Tensor = self.model(source, target_in)
        return found


if __name__ == "__main__":
    where, precision, tuned = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "tuned"
    plan, weights = read_work(where)
    torch.backends.mha.set_fastpath_enabled(False)  # it fails in evaluation under autocast
    converse(TorchTrainer(Translator(plan, weights), plan, precision, tuned), where)
