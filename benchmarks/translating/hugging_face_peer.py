"""Hugging Face's Marian model over the same weights, as ``dragoman export`` writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from conversation import Job, converse
from transformers import GenerationConfig, MarianMTModel


class HuggingFace:
    version = transformers.__version__

    def __init__(self, folder: Path) -> None:
        self.model = MarianMTModel.from_pretrained(folder / "hugging-face").eval()
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
