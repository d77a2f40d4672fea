"""Hugging Face's Marian model over the same weights, its position table replaced by ours."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from conversation import Job, converse
from transformers import GenerationConfig, MarianConfig, MarianMTModel

PARTS = (
    ("attention.query", "self_attn.q_proj"), ("attention.key", "self_attn.k_proj"),
    ("attention.value", "self_attn.v_proj"), ("attention.output", "self_attn.out_proj"),
    ("attention_norm", "self_attn_layer_norm"),
)  # fmt: skip
COMMON = (
    ("feed_forward.inner", "fc1"), ("feed_forward.outer", "fc2"),
    ("feed_forward_norm", "final_layer_norm"),
)  # fmt: skip


def names(settings: dict[str, Any]) -> dict[str, str]:
    """Marian's name of each of our weights."""
    table: dict[str, str] = {}

    def put(ours: str, theirs: str) -> None:
        for kind in ("weight", "bias"):
            table[f"{ours}.{kind}"] = f"model.{theirs}.{kind}"

    for i in range(settings["encoder_layers"]):
        for ours, theirs in (*PARTS, *COMMON):
            put(f"encoder.{i}.{ours}", f"encoder.layers.{i}.{theirs}")
    for i in range(settings["decoder_layers"]):
        for ours, theirs in PARTS:
            put(f"decoder.{i}.self_{ours}", f"decoder.layers.{i}.{theirs}")
            cross = theirs.replace("self_attn", "encoder_attn")
            put(f"decoder.{i}.cross_{ours}", f"decoder.layers.{i}.{cross}")
        for ours, theirs in COMMON:
            put(f"decoder.{i}.{ours}", f"decoder.layers.{i}.{theirs}")
    return table


class HuggingFace:
    version = transformers.__version__

    def __init__(self, folder: Path) -> None:
        settings = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        weights = {k: torch.from_numpy(v) for k, v in np.load(folder / "weights.npz").items()}
        size, heads = len(weights["source_embedding.weight"]), settings["attention"]["num_heads"]
        positions = weights["positions"]
        config = MarianConfig(
            vocab_size=size, d_model=settings["model_dim"], max_position_embeddings=len(positions),
            encoder_layers=settings["encoder_layers"], decoder_layers=settings["decoder_layers"],
            encoder_ffn_dim=settings["ffn_dim"], decoder_ffn_dim=settings["ffn_dim"],
            encoder_attention_heads=heads, decoder_attention_heads=heads,
            activation_function="relu", scale_embedding=True, dropout=0.0,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
            forced_eos_token_id=None,
        )  # fmt: skip
        self.model = MarianMTModel(config).eval()
        state = self.model.state_dict()
        for ours, theirs in names(settings).items():
            state[theirs].copy_(weights[ours])
        self.model.model.shared.weight.copy_(weights["source_embedding.weight"])
        self.model.model.encoder.embed_positions.weight.copy_(positions)
        self.model.model.decoder.embed_positions.weight.copy_(positions)
        self.precision = "fp32"
        self.texts: Any = None
        if (folder / "run").exists():
            import sentencepiece

            self.texts = sentencepiece.SentencePieceProcessor(str(folder / "run" / "shared.model"))

    def prepare(self, job: Job) -> None:
        torch.set_num_threads(job["threads"])
        if job["precision"] != self.precision:
            self.precision = job["precision"]
            self.model = self.model.to(
                torch.bfloat16 if self.precision == "bf16" else torch.float32
            )
        self.model.set_attn_implementation(job.get("attention", "sdpa"))

    def translate(self, job: Job, sources: list[Any]) -> list[Any]:
        ids = sources if self.texts is None else [[*s, 2] for s in self.texts.encode(sources)]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        found: list[Any] = [None] * len(ids)
        for begin in range(0, len(order), job["batch"]):
            part = order[begin : begin + job["batch"]]
            longest = max(len(ids[i]) for i in part)
            grid = torch.zeros(len(part), longest, dtype=torch.int64)
            mask = torch.zeros(len(part), longest, dtype=torch.int64)
            for row, i in enumerate(part):
                grid[row, : len(ids[i])] = torch.tensor(ids[i])
                mask[row, : len(ids[i])] = 1
            most = job["length"] + 1 if job["length"] else longest + 50
            # A static cache holds as many positions as are asked for: it is not made anew while it
            # grows, and all of them are looked at in every step.
            cache = {"cache_implementation": "static"} if job.get("cache") == "static" else {}
            generation = GenerationConfig(
                num_beams=job["beam"], max_new_tokens=most, **cache,
                length_penalty=job["alpha"], do_sample=False, decoder_start_token_id=1,
                bos_token_id=1, eos_token_id=2, pad_token_id=0,
            )  # fmt: skip
            out = self.model.generate(
                input_ids=grid, attention_mask=mask, generation_config=generation
            )
            for i, tokens in zip(part, out[:, 1:].tolist(), strict=True):
                found[i] = tokens[: tokens.index(2)] if 2 in tokens else tokens
        found = [f[: job["length"]] for f in found]
        return found if self.texts is None else self.texts.decode(found)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    converse(HuggingFace(Path(sys.argv[1])))
