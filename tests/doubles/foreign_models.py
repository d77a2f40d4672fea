"""Small models in the files of other programs. Not a test: tests import it.

``marian_folder`` is made by transformers, with random gains and biases. ``model_bin`` writes what
CTranslate2 reads, by its documentation.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel

from dragoman.demo.corpus import demo_corpus

PAIRS = demo_corpus(train_pairs=400, dev_pairs=1, test_pairs=40)
SHAPES = (
    {"d_model": 16, "encoder_ffn_dim": 40, "encoder_layers": 2, "decoder_layers": 3,
     "encoder_attention_heads": 4, "activation_function": "swish"},
    {"d_model": 24, "encoder_ffn_dim": 48, "encoder_layers": 1, "decoder_layers": 2,
     "encoder_attention_heads": 2, "activation_function": "relu"},
)  # fmt: skip


def sentencepiece_model(lines: Sequence[str], size: int) -> bytes:
    """A unigram model of some lines, without byte tokens, as OPUS-MT's are."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, vocab_size=size, minloglevel=2,
        hard_vocab_limit=False,
    )  # fmt: skip
    return written.getvalue()


def table_of(models: Sequence[bytes], dropped: Sequence[str] = ()) -> dict[str, int]:
    """A table of both sides, in an order of its own, as OPUS-MT has it."""
    words = {
        processor.id_to_piece(number)
        for processor in (sentencepiece.SentencePieceProcessor(model_proto=one) for one in models)
        for number in range(3, processor.vocab_size())
    }
    names = ["</s>", "<unk>", *sorted(words - set(dropped)), ">>de<<", ">>ko<<", "<pad>"]
    return {name: number for number, name in enumerate(names)}


def marian_folder(folder: Path, shape: Mapping[str, Any] = SHAPES[0], **changed: Any) -> Path:
    """Write a folder as Hugging Face has it, with random weights."""
    folder.mkdir(parents=True)
    source = sentencepiece_model([pair.source for pair in PAIRS.train], 120)
    target = sentencepiece_model([pair.target for pair in PAIRS.train], 130)
    table = table_of((source, target), dropped=("s", "▁der"))
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    (folder / "vocab.json").write_text(json.dumps(table))
    config = MarianConfig(
        vocab_size=len(table), pad_token_id=table["<pad>"], eos_token_id=0, scale_embedding=True,
        decoder_start_token_id=table["<pad>"], forced_eos_token_id=None,
        decoder_ffn_dim=shape["encoder_ffn_dim"], bad_words_ids=[[table["<pad>"]]],
        decoder_attention_heads=shape["encoder_attention_heads"], max_position_embeddings=512,
        **shape, **changed,
    )  # fmt: skip
    random_marian(config).save_pretrained(folder)
    generation = folder / "generation_config.json"
    generation.write_text(json.dumps({**json.loads(generation.read_text()), "num_beams": 3}))
    return folder


def random_marian(config: MarianConfig) -> MarianMTModel:
    """A model whose gains, biases and output bias are random too."""
    torch.manual_seed(7)
    model = MarianMTModel(config).eval()
    for name, weight in model.named_parameters():
        if "embed_positions" not in name:
            scale = 0.6 if weight.dim() > 1 else 0.3
            weight.data.normal_(1.0 if name.endswith("norm.weight") else 0.0, scale)
    model.final_logits_bias.normal_(0.0, 0.5)
    return model


def exact_marian(folder: Path) -> MarianMTModel:
    """The model of a folder in fp64, with a table of positions that was not rounded to fp32."""
    model = MarianMTModel.from_pretrained(folder).double().eval()
    width = model.config.d_model
    angles = np.arange(512)[:, None] / 10000 ** (2 * np.arange(width // 2) / width)
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    for part in (model.model.encoder, model.model.decoder):
        part.embed_positions.weight.data = torch.from_numpy(table)
    return model


def saved_by_torch(path: Path, value: Any, *, old: bool = False) -> Path:
    """What ``torch.save`` writes; ``old``: as before torch 1.6."""
    torch.save(value, path, _use_new_zipfile_serialization=not old)  # noqa: TID251
    return path


# ---- CTranslate2


def model_bin(
    variables: Mapping[str, np.ndarray],
    *,
    version: int = 6,
    name: str = "TransformerSpec",
    revision: int = 7,
    aliases: Mapping[str, str] | None = None,
) -> bytes:
    """The bytes of a ``model.bin``."""
    types = {"f4": 0, "i1": 1, "i2": 2, "i4": 3, "f2": 4}

    def text(word: str) -> bytes:
        return struct.pack("<H", len(word) + 1) + word.encode() + b"\0"

    out = [struct.pack("<I", version), text(name), struct.pack("<II", revision, len(variables))]
    for word, array in variables.items():
        array = np.asarray(array)
        out += [
            text(word),
            struct.pack("<B", array.ndim),
            struct.pack(f"<{array.ndim}I", *array.shape),
        ]
        if version >= 4:
            out.append(struct.pack("<BI", types[array.dtype.str[1:]], array.nbytes))
        else:
            out.append(struct.pack("<BI", array.itemsize, array.size))
        out.append(array.tobytes())
    if version >= 3:
        out.append(struct.pack("<I", len(aliases or {})))
        out += [text(one) + text(other) for one, other in (aliases or {}).items()]
    return b"".join(out)


def quantised(variables: Mapping[str, np.ndarray], kind: str) -> dict[str, np.ndarray]:
    """The matrices as int8 with a scale for each row, or as int16 with one scale."""
    made: dict[str, np.ndarray] = {}
    for name, array in variables.items():
        if not name.endswith("/weight"):
            made[name] = array
        elif kind == "int8":
            scale = (127 / np.abs(array).max(1)).astype(np.float32)
            made[name] = np.rint(array * scale[:, None]).astype(np.int8)
            made[f"{name}_scale"] = scale
        else:
            scale = np.float32(2**10 / np.abs(array).max())
            made[name] = np.rint(array * scale).astype(np.int16)
            made[f"{name}_scale"] = scale
    return made


def transformer_variables(
    rows: tuple[int, int], width: int = 8, inner: int = 16, layers: int = 2
) -> dict[str, np.ndarray]:
    """Random weights of a pre-norm Transformer by CTranslate2's names."""
    draw = np.random.default_rng(5)

    def weights(*shape: int) -> np.ndarray:
        return draw.normal(0, 0.5, shape).astype(np.float32)

    made: dict[str, np.ndarray] = {
        "encoder/embeddings_0/weight": weights(rows[0], width),
        "decoder/embeddings/weight": weights(rows[1], width),
        "decoder/projection/weight": weights(rows[1], width),
        "decoder/projection/bias": weights(rows[1]),
        "encoder/num_heads": np.array(2, np.int16),
        "encoder/pre_norm": np.array(1, np.int8),
        "encoder/activation": np.array(0, np.int8),
    }

    def linear(name: str, out: int, into: int) -> None:
        made[f"{name}/weight"], made[f"{name}/bias"] = weights(out, into), weights(out)

    def norm(name: str) -> None:
        made[f"{name}/gamma"], made[f"{name}/beta"] = 1 + weights(width), weights(width)

    for side in ("encoder", "decoder"):
        norm(f"{side}/layer_norm")
        for number in range(layers):
            layer = f"{side}/layer_{number}"
            linear(f"{layer}/self_attention/linear_0", 3 * width, width)
            linear(f"{layer}/self_attention/linear_1", width, width)
            norm(f"{layer}/self_attention/layer_norm")
            if side == "decoder":
                linear(f"{layer}/attention/linear_0", width, width)
                linear(f"{layer}/attention/linear_1", 2 * width, width)
                linear(f"{layer}/attention/linear_2", width, width)
                norm(f"{layer}/attention/layer_norm")
            linear(f"{layer}/ffn/linear_0", inner, width)
            linear(f"{layer}/ffn/linear_1", width, inner)
            norm(f"{layer}/ffn/layer_norm")
    return made


LETTERS = ("abcdefgh", "stuvwxyz")


def ctranslate2_folder(folder: Path, kind: str = "fp32", **written: Any) -> Path:
    """Write a folder as CTranslate2 has it: random weights, letters in and letters out."""
    folder.mkdir(parents=True)
    tables = [["<blank>", "<s>", "</s>", *letters, "<unk>"] for letters in LETTERS]
    for side, table in zip(("source", "target"), tables, strict=True):
        (folder / f"{side}_vocabulary.txt").write_text("\n".join(table) + "\n")
    variables = transformer_variables((len(tables[0]), len(tables[1])))
    if kind != "fp32":
        variables = quantised(variables, kind)
    (folder / "model.bin").write_bytes(model_bin(variables, **written))
    return folder
