"""JoeyNMT, from our weights: its model, its loss and the training step of its ``TrainManager``.

Its one rate of dropout acts on attention weights and inside feed-forward layers too, and its
smoothing leaves padding out; else the model is ours. It has fp32 alone on the CPU.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import joeynmt
import torch
from conversation import BOS, EOS, Sentences, converse, peak_memory_mb
from joeynmt.batch import Batch
from joeynmt.config import parse_global_args
from joeynmt.model import Model, build_model
from joeynmt.training import TrainManager
from joeynmt.vocabulary import Vocabulary
from weights import Grids, Specials, Weights, fill, names, read_work

SPECIALS = Specials(unknown=0, padding=1, begin=2, end=3)
ATTENTION = {
    ".query": ".q_layer",
    ".key": ".k_layer",
    ".value": ".v_layer",
    ".output": ".output_layer",
}
FEED_FORWARD = {
    "feed_forward.inner": "feed_forward.pwff_layer.0",
    "feed_forward.outer": "feed_forward.pwff_layer.3",
    "feed_forward_norm": "feed_forward.layer_norm",
}
ENCODER = FEED_FORWARD | {"attention": "src_src_att", "attention_norm": "layer_norm"}
DECODER = FEED_FORWARD | {
    "self_attention": "trg_trg_att",
    "self_attention_norm": "x_layer_norm",
    "cross_attention": "src_trg_att",
    "cross_attention_norm": "dec_layer_norm",
}


def configuration(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a user would write into JoeyNMT's file for this work."""
    model = plan["model"]

    def side(layers: int) -> dict[str, Any]:
        width = model["model_dim"]
        return {
            "type": "transformer", "num_layers": layers, "hidden_size": width,
            "num_heads": model["attention"]["num_heads"], "ff_size": model["ffn_dim"],
            "dropout": model["dropout"], "layer_norm": "post",
            "embeddings": {"embedding_dim": width, "scale": True, "dropout": model["dropout"]},
        }  # fmt: skip

    return {
        "name": "benchmark", "model_dir": str(folder), "use_cuda": False, "normalization": "tokens",
        "random_seed": plan["seed"], "data": {}, "testing": {},
        "training": {
            "optimizer": "adam", "adam_betas": [0.9, 0.98], "normalization": "tokens",
            "label_smoothing": plan["smoothing"], "clip_grad_norm": plan["clip_norm"],
            "batch_size": 1, "scheduling": "noam",
        },
        "model": {
            "tied_embeddings": True, "tied_softmax": True,
            "encoder": side(model["encoder_layers"]), "decoder": side(model["decoder_layers"]),
        },
    }  # fmt: skip


def built(plan: dict[str, Any], config: dict[str, Any], symbols: Any, weights: Weights) -> Model:
    """The model with our weights."""
    words = [str(i) for i in range(3, plan["vocabulary"])]
    vocabulary = Vocabulary(words, symbols)
    model = build_model(config["model"], vocabulary, vocabulary)
    table = {"src_embed.lut.weight": "embedding"}
    for side, parts in (("encoder", ENCODER), ("decoder", DECODER)):
        layers = plan["model"][f"{side}_layers"]
        table |= names(layers, side, f"{side}.layers", parts, ATTENTION)
    fill(model, weights, SPECIALS, table)
    return model


class JoeyTrainer:
    version = joeynmt.__version__

    def __init__(self, plan: dict[str, Any], weights: Weights, folder: Path) -> None:
        config = configuration(plan, folder)
        arguments = parse_global_args(config)
        self.model = built(plan, config, config["data"]["special_symbols"], weights)
        self.smoothed = (arguments.train.loss, arguments.train.label_smoothing)
        self.model.loss_function = self.smoothed
        self.manager = TrainManager(
            rank=0, model=self.model, model_dir=folder, device=arguments.device,
            autocast=arguments.autocast, seed=plan["seed"], train_args=arguments.train,
        )  # fmt: skip
        self.device = arguments.device
        # Its loss is a divergence: less than the cross-entropy by what the wanted words are unsure.
        wrong = plan["smoothing"] / (plan["vocabulary"] - 1)
        self.entropy = -(1 - plan["smoothing"]) * math.log(1 - plan["smoothing"])
        self.entropy -= plan["smoothing"] * math.log(wrong)
        self.grids = Grids(SPECIALS, plan["vocabulary"])
        torch.manual_seed(plan["seed"])

    def _batch(self, sources: Sentences, targets: Sentences) -> Batch:
        source = self.grids.grid([[*s, EOS] for s in sources])
        return Batch(
            src=source, src_length=(source != SPECIALS.padding).sum(1), src_prompt_mask=None,
            trg=self.grids.grid([[BOS, *t, EOS] for t in targets]), trg_prompt_mask=None,
            indices=torch.arange(len(sources)), device=self.device,
            pad_index=SPECIALS.padding, eos_index=SPECIALS.end,
        )  # fmt: skip

    def update(self, sources: Sentences, targets: Sentences, rate: float) -> float:
        """As ``TrainManager.train_and_validate`` does it, at the work's learning rate."""
        manager = self.manager
        for group in manager.optimizer.param_groups:
            group["lr"] = rate
        batch = self._batch(sources, targets)
        loss, _ = manager._train_step(batch)
        manager.clip_grad_fun(parameters=self.model.parameters())
        manager.optimizer.step()
        self.model.zero_grad()
        return float((loss + self.entropy) * batch.ntokens)

    def nll(self, sources: Sentences, targets: Sentences) -> float:
        self.model.eval()
        self.model.loss_function = ("crossentropy", 0.0)
        with torch.no_grad():
            batch = self._batch(sources, targets)
            found, *_ = self.model(return_type="loss", **vars(batch))
        self.model.loss_function = self.smoothed
        return float(found)

    def memory_mb(self) -> float:
        return peak_memory_mb()


if __name__ == "__main__":
    where = Path(sys.argv[1])
    plan, weights = read_work(where)
    converse(JoeyTrainer(plan, weights, where / "joeynmt"), where)
