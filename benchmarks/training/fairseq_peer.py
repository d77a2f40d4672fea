"""fairseq, from our weights: its model, its loss, its Adam and its ``Trainer``.

Its table of positions is replaced by ours, which has sines and cosines in another order, and its
decoder is fed our symbol of beginning. Sources are padded on the left, as it does.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from conversation import BOS, EOS, Sentences, converse, peak_memory_mb, tokens
from omegaconf import OmegaConf
from torch import nn
from weights import Grids, Specials, Weights, fill, names, read_work

plain_dataclass = dataclasses.dataclass


def dataclass(kind: type | None = None, /, **settings: Any) -> Any:
    """With a hash for fairseq's: they are defaults of others, which Python 3.11 asks that of."""
    if kind is None:
        return functools.partial(dataclass, **settings)
    if kind.__module__.startswith("fairseq"):
        settings["unsafe_hash"] = True
    return plain_dataclass(kind, **settings)


dataclasses.dataclass = dataclass

import fairseq  # noqa: E402
from fairseq.criterions.label_smoothed_cross_entropy import (  # noqa: E402
    LabelSmoothedCrossEntropyCriterion,
)
from fairseq.data import Dictionary  # noqa: E402
from fairseq.dataclass.configs import FairseqConfig  # noqa: E402
from fairseq.models import build_model  # noqa: E402
from fairseq.tasks.translation import TranslationConfig, TranslationTask  # noqa: E402
from fairseq.trainer import Trainer  # noqa: E402

SPECIALS = Specials(unknown=3, padding=1, begin=0, end=2)
ATTENTION = {".query": ".q_proj", ".key": ".k_proj", ".value": ".v_proj", ".output": ".out_proj"}
FEED_FORWARD = {
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_norm": "final_layer_norm",
}
ENCODER = FEED_FORWARD | {"attention": "self_attn", "attention_norm": "self_attn_layer_norm"}
DECODER = FEED_FORWARD | {
    "self_attention": "self_attn",
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention": "encoder_attn",
    "cross_attention_norm": "encoder_attn_layer_norm",
}
SPARE = ("in_proj", "out_proj", "fc1", "fc2")
"""Second copies in its encoder layers, for inference alone; training leaves them zero."""


def built(plan: dict[str, Any], task: TranslationTask, weights: Weights) -> Any:
    """The model with our weights and our table of positions."""
    sizes = plan["model"]
    settings: dict[str, Any] = {"arch": "transformer", "dropout": sizes["dropout"]}
    for side in ("encoder", "decoder"):
        settings |= {
            f"{side}_embed_dim": sizes["model_dim"], f"{side}_ffn_embed_dim": sizes["ffn_dim"],
            f"{side}_layers": sizes[f"{side}_layers"],
            f"{side}_attention_heads": sizes["attention"]["num_heads"],
        }  # fmt: skip
    model: Any = build_model(Namespace(**settings, share_all_embeddings=True), task)
    table = {"encoder.embed_tokens.weight": "embedding"}
    for side, parts in (("encoder", ENCODER), ("decoder", DECODER)):
        table |= names(sizes[f"{side}_layers"], side, f"{side}.layers", parts, ATTENTION)
    spare = {
        f"encoder.layers.{i}.{part}_{end}"
        for i in range(sizes["encoder_layers"])
        for part in SPARE
        for end in ("weight", "bias")
    }
    fill(model, weights, SPECIALS, table, spare)
    first = SPECIALS.padding + 1
    for stack in (model.encoder, model.decoder):
        stack.embed_positions.weights = nn.functional.pad(weights["positions"], (0, 0, first, 0))
    return model


def configuration(plan: dict[str, Any], precision: str) -> Any:
    """Its defaults but for the optimiser, clipping, the seed and the precision."""
    config = OmegaConf.structured(FairseqConfig)
    config.common.cpu = True
    config.common.bf16 = precision == "bf16"
    config.common.seed = plan["seed"]
    config.optimization.clip_norm = plan["clip_norm"]
    config.optimizer = {"_name": "adam", "adam_betas": "(0.9, 0.98)"}
    config.lr_scheduler = {"_name": "fixed"}
    return config


class FairseqTrainer:
    version = fairseq.__version__

    def __init__(self, plan: dict[str, Any], weights: Weights, precision: str) -> None:
        words = Dictionary()
        for i in range(3, plan["vocabulary"]):
            words.add_symbol(str(i))
        task = TranslationTask(TranslationConfig(), words, words)
        loss = LabelSmoothedCrossEntropyCriterion(task, False, plan["smoothing"])
        model = built(plan, task, weights)
        self.trainer = Trainer(configuration(plan, precision), task, model, loss)
        self.found: dict[str, Any] = {}
        loss.register_forward_hook(lambda *call: self.found.update(call[2][2]))
        self.grids = Grids(SPECIALS, plan["vocabulary"])

    def _sample(self, sources: Sentences, targets: Sentences) -> dict[str, Any]:
        return {
            "id": torch.arange(len(sources)), "nsentences": len(sources),
            "ntokens": tokens(targets),
            "net_input": {
                "src_tokens": self.grids.grid([[EOS, *reversed(s)] for s in sources]).flip(1),
                "src_lengths": torch.tensor([len(s) + 1 for s in sources]),
                "prev_output_tokens": self.grids.grid([[BOS, *t] for t in targets]),
            },
            "target": self.grids.grid([[*t, EOS] for t in targets]),
        }  # fmt: skip

    def update(self, sources: Sentences, targets: Sentences, rate: float) -> float:
        self.trainer.optimizer.set_lr(rate)
        self.trainer.train_step([self._sample(sources, targets)])
        return float(self.found["loss"])

    def nll(self, sources: Sentences, targets: Sentences) -> float:
        self.trainer.valid_step(self._sample(sources, targets))
        return float(self.found["nll_loss"])

    def memory_mb(self) -> float:
        return peak_memory_mb()


if __name__ == "__main__":
    where = Path(sys.argv[1])
    plan, weights = read_work(where)
    converse(FairseqTrainer(plan, weights, sys.argv[2]), where)
