"""OpenNMT-py, from our weights: its model, its loss, its optimiser and its ``Trainer``.

It has fp32 alone on the CPU: its lower precision is fp16 with CUDA's autocast.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

# Transforms of text, none of which is used here, import them when the package is imported.
sys.modules |= {name: MagicMock() for name in ("ahocorasick", "fasttext", "rapidfuzz", "spacy")}

import onmt  # noqa: E402
import pyonmttok  # noqa: E402
import torch  # noqa: E402
from conversation import BOS, EOS, Sentences, converse  # noqa: E402
from onmt.model_builder import build_model  # noqa: E402
from onmt.opts import train_opts  # noqa: E402
from onmt.trainer import build_trainer  # noqa: E402
from onmt.utils.optimizers import Optimizer  # noqa: E402
from onmt.utils.parse import ArgumentParser  # noqa: E402
from opennmt_trainer import ATTENTION, FINAL_NORMS, SPECIALS, FedTrainer  # noqa: E402
from torch import nn  # noqa: E402
from weights import Weights, fill, names, read_work  # noqa: E402

FEED_FORWARD = {
    "feed_forward.inner": "feed_forward.w_1",
    "feed_forward.outer": "feed_forward.w_2",
    "feed_forward_norm": "feed_forward.layer_norm",
}
ENCODER = FEED_FORWARD | {"attention": "self_attn", "attention_norm": "layer_norm"}
DECODER = FEED_FORWARD | {
    "self_attention": "self_attn",
    "self_attention_norm": "layer_norm_1",
    "cross_attention": "context_attn",
    "cross_attention_norm": "layer_norm_2",
}


def options(plan: dict[str, Any]) -> Any:
    """What a user would call its training with for this work."""
    model = plan["model"]
    words: list[Any] = [
        "-data", "{}", "-src_vocab", "none", "-share_vocab", "-share_embeddings",
        "-share_decoder_embeddings", "-seed", plan["seed"],
        "-encoder_type", "transformer", "-decoder_type", "transformer", "-position_encoding",
        "-word_vec_size", model["model_dim"], "-hidden_size", model["model_dim"],
        "-transformer_ff", model["ffn_dim"], "-heads", model["attention"]["num_heads"],
        "-enc_layers", model["encoder_layers"], "-dec_layers", model["decoder_layers"],
        "-add_qkvbias", "-add_ffnbias", "-dropout", model["dropout"], "-attention_dropout", 0.0,
        "-param_init", 0, "-param_init_glorot", "-label_smoothing", plan["smoothing"],
        "-optim", "adam", "-adam_beta2", 0.98, "-max_grad_norm", plan["clip_norm"],
        "-normalization", "tokens",
    ]  # fmt: skip
    parser = ArgumentParser()
    train_opts(parser)
    found = parser.parse_args([str(word) for word in words])
    ArgumentParser.validate_train_opts(found)
    ArgumentParser.update_model_opts(found)
    ArgumentParser.validate_model_opts(found)
    found.data = {}
    return found


def built(plan: dict[str, Any], chosen: Any, vocabs: dict[str, Any], weights: Weights) -> nn.Module:
    """The model with our weights."""
    model: nn.Module = build_model(chosen, chosen, vocabs, checkpoint=None, device_id=-1)
    table = {"encoder.embeddings.make_embedding.emb_luts.0.weight": "embedding"}
    for side, stack, parts in (
        ("encoder", "encoder.transformer", ENCODER),
        ("decoder", "decoder.transformer_layers", DECODER),
    ):
        table |= names(plan["model"][f"{side}_layers"], side, stack, parts, ATTENTION)
    fill(model, weights, SPECIALS, table, FINAL_NORMS | {"generator.bias"})
    return model


class OpenTrainer(FedTrainer):
    version = onmt.__version__

    def __init__(self, plan: dict[str, Any], weights: Weights) -> None:
        chosen = options(plan)
        words = [str(i) for i in range(3, plan["vocabulary"])]
        specials = chosen.default_specials
        vocabulary = pyonmttok.build_vocab_from_tokens(words, special_tokens=specials)
        vocabs = {"src": vocabulary, "tgt": vocabulary}
        model = built(plan, chosen, vocabs, weights)
        optimizer = Optimizer.from_opt(model, chosen)
        super().__init__(build_trainer(chosen, -1, model, vocabs, optimizer), optimizer, plan)

    def batch(self, sources: Sentences, targets: Sentences) -> dict[str, Any]:
        source = self.grids.grid([[*s, EOS] for s in sources])
        target = self.grids.grid([[BOS, *t, EOS] for t in targets])
        lengths = torch.tensor([len(s) + 1 for s in sources])
        return {"src": source[..., None], "srclen": lengths, "tgt": target[..., None]}


if __name__ == "__main__":
    where = Path(sys.argv[1])
    plan, weights = read_work(where)
    converse(OpenTrainer(plan, weights), where)
