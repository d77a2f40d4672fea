"""Hugging Face's Marian model in a plain loop, from our weights; tuned: eager attention."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from conversation import converse
from padded import PAD, PaddedTrainer
from torch import Tensor
from transformers import MarianConfig, MarianMTModel
from weights import read_work

ATTENTION = (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"), ("output", "out_proj"))
LAYER = (
    ("feed_forward.inner", "fc1"),
    ("feed_forward.outer", "fc2"),
    ("feed_forward_norm", "final_layer_norm"),
)


def names(settings: dict[str, Any]) -> dict[str, str]:
    """Marian's name of each of our weights within the layers."""
    table: dict[str, str] = {}
    for side in ("encoder", "decoder"):
        for i in range(settings[f"{side}_layers"]):
            pairs = list(LAYER)
            kinds = {"attention": "self_attn"}
            if side == "decoder":
                kinds = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
            for ours, theirs in kinds.items():
                pairs.append((f"{ours}_norm", f"{theirs}_layer_norm"))
                pairs += [(f"{ours}.{a}", f"{theirs}.{b}") for a, b in ATTENTION]
            for ours, theirs in pairs:
                for end in ("weight", "bias"):
                    table[f"{side}.{i}.{ours}.{end}"] = f"model.{side}.layers.{i}.{theirs}.{end}"
    return table


def marian(plan: dict[str, Any], weights: dict[str, Tensor], attention: str) -> MarianMTModel:
    """The model with our weights and our table of positions."""
    model = plan["model"]
    heads, positions = model["attention"]["num_heads"], weights["positions"]
    config = MarianConfig(
        vocab_size=plan["vocabulary"], d_model=model["model_dim"],
        max_position_embeddings=len(positions), encoder_layers=model["encoder_layers"],
        decoder_layers=model["decoder_layers"], encoder_ffn_dim=model["ffn_dim"],
        decoder_ffn_dim=model["ffn_dim"], encoder_attention_heads=heads,
        decoder_attention_heads=heads, activation_function="relu", scale_embedding=True,
        dropout=model["dropout"], attention_dropout=0.0, activation_dropout=0.0,
        pad_token_id=PAD, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        use_cache=False, attn_implementation=attention,
    )  # fmt: skip
    made = MarianMTModel(config)
    state = made.state_dict()
    for ours, theirs in names(model).items():
        state[theirs].copy_(weights[ours])
    made.model.shared.weight.data.copy_(weights["source_embedding.weight"])
    made.model.encoder.embed_positions.weight.data.copy_(positions)
    made.model.decoder.embed_positions.weight.data.copy_(positions)
    return made


class MarianTrainer(PaddedTrainer):
    version = transformers.__version__

    def save(self, path: Path) -> None:
        """The weights, as ours are named."""
        state = self.model.state_dict()
        found = {ours: state[theirs] for ours, theirs in names(self.plan["model"]).items()}
        found["source_embedding.weight"] = state["model.shared.weight"]
        np.savez(path, **{name: value.float().numpy() for name, value in found.items()})

    def logits(self, source: Tensor, target_in: Tensor) -> Tensor:
        out = self.model(
            input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target_in
        )
        found: Tensor = out.logits
        return found


if __name__ == "__main__":
    where, precision, tuned = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "tuned"
    plan, weights = read_work(where)
    model = marian(plan, weights, "eager" if tuned else "sdpa")
    converse(MarianTrainer(model, plan, precision, tuned), where)
