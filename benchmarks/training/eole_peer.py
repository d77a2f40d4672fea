"""Eole, from our weights: its model, its loss, its optimiser and its ``Trainer``.

bf16 is torch's autocast, as it ships.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import eole
import pyonmttok
import torch
from conversation import BOS, EOS, Sentences, converse
from eole.config.run import TrainConfig
from eole.models.model import get_model_class
from eole.trainer import build_trainer
from eole.utils.optimizers import Optimizer
from opennmt_trainer import ATTENTION, FINAL_NORMS, SPECIALS, FedTrainer
from torch import nn
from weights import Weights, fill, names, read_work

FEED_FORWARD = {
    "feed_forward.inner": "mlp.gate_up_proj",
    "feed_forward.outer": "mlp.down_proj",
    "feed_forward_norm": "post_attention_layernorm",
}
ENCODER = FEED_FORWARD | {"attention": "self_attn", "attention_norm": "input_layernorm"}
DECODER = FEED_FORWARD | {
    "self_attention": "self_attn",
    "self_attention_norm": "input_layernorm",
    "cross_attention": "context_attn",
    "cross_attention_norm": "precontext_layernorm",
}


def configuration(plan: dict[str, Any], precision: str) -> TrainConfig:
    """What a user would write into Eole's file for this work."""
    model = plan["model"]
    return TrainConfig(
        data={}, src_vocab="none", share_vocab=True, seed=plan["seed"],
        model={
            "architecture": "transformer", "hidden_size": model["model_dim"],
            "embeddings": {"word_vec_size": model["model_dim"], "position_encoding": True},
            "encoder": {"layers": model["encoder_layers"]},
            "decoder": {"layers": model["decoder_layers"]},
            "heads": model["attention"]["num_heads"], "transformer_ff": model["ffn_dim"],
            "add_qkvbias": True, "add_final_linear_bias": True, "add_ffnbias": True,
            "share_embeddings": True, "share_decoder_embeddings": True,
        },
        training={
            "compute_dtype": precision, "dropout": [model["dropout"]], "attention_dropout": [0.0],
            "param_init_method": "xavier_uniform", "label_smoothing": plan["smoothing"],
            "optim": "adam", "adam_beta2": 0.98, "max_grad_norm": plan["clip_norm"],
            "normalization": "tokens",
        },
    )  # fmt: skip


def built(plan: dict[str, Any], config: Any, vocabs: dict[str, Any], weights: Weights) -> nn.Module:
    """The model with our weights."""
    kind = get_model_class(config.model)
    model: nn.Module = kind.for_training(config.model, vocabs, config.training, device_id=-1)
    table = {"src_emb.embeddings.weight": "embedding"}
    for side, parts in (("encoder", ENCODER), ("decoder", DECODER)):
        layers = plan["model"][f"{side}_layers"]
        table |= names(layers, side, f"{side}.transformer_layers", parts, ATTENTION)
    fill(model, weights, SPECIALS, table, FINAL_NORMS | {"generator.bias"})
    return model


class EoleTrainer(FedTrainer):
    version = eole.__version__

    def __init__(self, plan: dict[str, Any], weights: Weights, precision: str) -> None:
        config = configuration(plan, precision)
        specials = {
            f"{s}_token": getattr(config, f"{s}_token") for s in ("unk", "pad", "bos", "eos")
        }
        words = [str(i) for i in range(3, plan["vocabulary"])]
        vocabulary = pyonmttok.build_vocab_from_tokens(
            words, special_tokens=list(specials.values())
        )
        vocabs = {"src": vocabulary, "tgt": vocabulary, "specials": specials}
        model = built(plan, config, vocabs, weights)
        optimizer = Optimizer.from_config(model, config)
        super().__init__(build_trainer(config, -1, model, vocabs, optimizer), optimizer, plan)

    def batch(self, sources: Sentences, targets: Sentences) -> dict[str, Any]:
        return {
            "src": self.grids.grid([[*s, EOS] for s in sources]),
            "srclen": torch.tensor([len(s) + 1 for s in sources]),
            "tgt": self.grids.grid([[BOS, *t, EOS] for t in targets]),
            "images": None, "prefix_len": None, "cid": ["work"] * len(sources),
            "cid_line_number": list(range(len(sources))),
        }  # fmt: skip


if __name__ == "__main__":
    where = Path(sys.argv[1])
    plan, weights = read_work(where)
    converse(EoleTrainer(plan, weights, sys.argv[2]), where)
