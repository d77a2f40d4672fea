"""CTranslate2 over the same weights, converted through its own model specification."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from conversation import Job, converse
from ctranslate2.converters import utils
from ctranslate2.specs import TransformerSpec, common_spec

SPECIAL = {0: "<unk>", 1: "<s>", 2: "</s>"}


def convert(folder: Path) -> Path:
    """Our weights -> a CTranslate2 model, once; it quantises when it loads them."""
    out = folder / "ctranslate2"
    if (out / "model.bin").exists():
        return out
    settings = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    weights = dict(np.load(folder / "weights.npz"))
    heads = settings["attention"]["num_heads"]
    spec = TransformerSpec.from_config(
        (settings["encoder_layers"], settings["decoder_layers"]), heads,
        pre_norm=settings["norm"] == "pre",
    )  # fmt: skip
    size = len(weights["source_embedding.weight"])
    target = weights.get("target_embedding.weight", weights["source_embedding.weight"])
    output = weights.get("output.weight", target)

    def linear(to: Any, name: str) -> None:
        to.weight, to.bias = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def norm(to: Any, name: str) -> None:
        to.gamma, to.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def attention(to: Any, name: str, *, own: bool) -> None:
        parts = [common_spec.LinearSpec() for _ in range(3)]
        for part, which in zip(parts, ("query", "key", "value"), strict=True):
            linear(part, f"{name}.{which}")
        if own:
            utils.fuse_linear(to.linear[0], parts)
        else:
            to.linear[0].weight, to.linear[0].bias = parts[0].weight, parts[0].bias
            utils.fuse_linear(to.linear[1], parts[1:])
        linear(to.linear[-1], f"{name}.output")
        norm(to.layer_norm, f"{name}_norm")

    def feed_forward(to: Any, name: str) -> None:
        linear(to.linear_0, f"{name}.inner")
        linear(to.linear_1, f"{name}.outer")
        norm(to.layer_norm, f"{name}_norm")

    for side, embedding in (
        (spec.encoder, weights["source_embedding.weight"]),
        (spec.decoder, target),
    ):
        embeddings = side.embeddings
        (embeddings[0] if isinstance(embeddings, list) else embeddings).weight = embedding
        side.position_encodings.encodings = weights["positions"]
    for i, layer in enumerate(spec.encoder.layer):
        attention(layer.self_attention, f"encoder.{i}.attention", own=True)
        feed_forward(layer.ffn, f"encoder.{i}.feed_forward")
    for i, layer in enumerate(spec.decoder.layer):
        attention(layer.self_attention, f"decoder.{i}.self_attention", own=True)
        attention(layer.attention, f"decoder.{i}.cross_attention", own=False)
        feed_forward(layer.ffn, f"decoder.{i}.feed_forward")
    if settings["norm"] == "pre":
        norm(spec.encoder.layer_norm, "encoder_norm")
        norm(spec.decoder.layer_norm, "decoder_norm")
    spec.decoder.projection.weight = output
    names = [SPECIAL.get(i, str(i)) for i in range(max(size, len(target)))]
    spec.register_source_vocabulary(names[:size])
    spec.register_target_vocabulary(names[: len(target)])
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = (
        names[1],
        names[2],
        names[0],
    )
    spec.config.decoder_start_token = names[1]
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.validate()
    spec.optimize()
    out.mkdir(exist_ok=True)
    spec.save(str(out))
    return out


class CTranslate2:
    version = ctranslate2.__version__

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = convert(folder)
        self.loaded: tuple[Any, ...] = ()
        self.translator: Any = None
        self.texts: Any = None
        if (folder / "run").exists():
            import sentencepiece

            def text(side: str) -> Any:
                own = folder / "run" / f"{side}.model"
                return sentencepiece.SentencePieceProcessor(
                    str(own if own.exists() else folder / "run" / "shared.model")
                )

            self.texts = text("source"), text("target")

    def prepare(self, job: Job) -> None:
        # What a job leaves out is as CTranslate2 ships it.
        wanted = job["compute_type"], job.get("workers", 1), job.get("threads", 0)
        if wanted == self.loaded:
            return
        self.translator = None
        self.translator = ctranslate2.Translator(
            str(self.model),
            compute_type=wanted[0],
            inter_threads=wanted[1],
            intra_threads=wanted[2],
        )
        self.loaded = wanted

    def translate(self, job: Job, sources: list[Any]) -> list[Any]:
        ids = sources if self.texts is None else self.texts[0].encode(sources)
        tokens = [[SPECIAL.get(i, str(i)) for i in sentence] for sentence in ids]
        if self.texts is not None:
            tokens = [[*t, "</s>"] for t in tokens]
        # One more than asked for: ours spends a step on the end symbol, so that all do equal work.
        longest = job["length"] + 1 if job["length"] else max(map(len, tokens)) + 50
        results = self.translator.translate_batch(
            tokens,
            beam_size=job["beam"],
            max_batch_size=job.get("batch", 0),
            batch_type=job.get("batch_type", "examples"),
            max_decoding_length=longest,
            length_penalty=job["alpha"],
        )
        ids_of = {name: i for i, name in SPECIAL.items()}
        found = [[ids_of[t] if t in ids_of else int(t) for t in r.hypotheses[0]] for r in results]
        found = [f[: job["length"]] for f in found]
        return found if self.texts is None else self.texts[1].decode(found)


if __name__ == "__main__":
    converse(CTranslate2(Path(sys.argv[1])))
