"""Marian models as Hugging Face keeps them (``MarianMTModel``), which OPUS-MT's are.

    config.json                 sizes
    model.safetensors           weights in fp32, F16 or BF16; or pytorch_model.bin
    vocab.json                  token -> id, of both sides; target_vocab.json: that of the target
    source.spm target.spm       what cuts a text into tokens
    generation_config.json      beam and length penalty

Its positions are sines in the first half of a row and cosines in the second, with the paper's
frequencies. Ours alternate. So every row of width d_model has its columns in our order here, which
changes no number. transformers computes these positions, unless the weights have a table of others:
then they are Marian's, and the columns stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.base.errors import RunError
from dragoman.base.reading import read_json
from dragoman.base.tensor_file import open_tensors
from dragoman.interop.archives import Array, Weights, open_pickled
from dragoman.interop.model import (
    MOST_LAYERS,
    Imported,
    Taken,
    bias_of_rows,
    languages_in,
    of_rows,
)
from dragoman.interop.vocabulary import BEGIN, END, UNKNOWN, from_sentencepiece, read_table
from dragoman.nn.embedding import marian, sinusoidal

PROGRAM = "Hugging Face"
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
_MUST_BE_OFF = ("normalize_before", "normalize_embedding", "add_final_layer_norm")
PAD = "<pad>"
SHARED = "model.shared.weight"
OWN = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
"""The names of embeddings that both sides share, and of those that each has for itself."""
POSITIONS = tuple(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder"))
"""The names of the tables of positions, which the weights of few models have."""
_MOST_SPARE = 128
"""The most rows that a model has beyond its vocabulary, to make its size a round number."""
_ROUNDED = 0.01
"""How far a position of BF16 may be from the exact one, and more."""
EPSILON = 1e-5
"""That of torch's layer norm, which MarianMTModel uses."""


def has_written(folder: Path) -> bool:
    """Return True for a folder of Hugging Face's transformers."""
    config = folder / "config.json"
    return config.is_file() and not (folder / "model.bin").is_file()


def open_weights(folder: Path) -> AbstractContextManager[Weights]:
    """Open the weights of a folder. Errors: ``RunError`` if there are none that can be read."""
    if (path := folder / "model.safetensors").is_file():
        return open_tensors(path, "F32", "F16", "BF16")
    if (path := folder / "pytorch_model.bin").is_file():
        return open_pickled(path)
    several = any(folder.glob("*.index.json"))
    raise RunError(
        f"{folder} has its weights in several files, but only one can be read. Load the model "
        "in transformers and save it with a larger max_shard_size"
        if several
        else f"{folder} has no model.safetensors and no pytorch_model.bin. Download one of them"
    )


def languages_of(folder: Path) -> tuple[str, str] | None:
    """Return the languages that the tokenizer names, or None."""
    return languages_in(folder / "tokenizer_config.json", "source_lang", "target_lang")


def take_apart(folder: Path, file: Weights) -> Imported:
    """Read a folder. Errors: ``RunError`` for another architecture, or files that do not agree."""
    config = _Config(folder / "config.json")
    vocabularies = _vocabularies(folder, config)
    shared = config.truth("share_encoder_decoder_embeddings", True)
    rows = config.rows, config.target_rows
    tie = config.truth("tie_word_embeddings", True)
    model = {
        "kind": "transformer",
        "model_dim": config.count("d_model"),
        "ffn_dim": config.same("encoder_ffn_dim", "decoder_ffn_dim"),
        "encoder_layers": config.count("encoder_layers", most=MOST_LAYERS),
        "decoder_layers": config.count("decoder_layers", most=MOST_LAYERS),
        "attention": {
            "num_heads": config.same("encoder_attention_heads", "decoder_attention_heads")
        },
        "dropout": config.number("dropout", 0.1),
        "norm": "post",
        "tie": "target" if tie else "none",
        "activation": config.activation,
        "output_bias": True,
        "norm_epsilon": EPSILON,
        "scale_embeddings": config.truth("scale_embedding", False),
        "positions": {"kind": _positions(file, config.count("d_model"))},
    }
    source, target = vocabularies
    weights = weights_of(
        model, _embeddings(file, shared), rows, (source.rows, target.rows), target.strangers
    )
    return Imported(PROGRAM, model, source, target, weights, config.search(folder))


def weights_of(
    model: Mapping[str, Any],
    embeddings: tuple[str, str],
    rows: tuple[int, int],
    places: tuple[Sequence[int], Sequence[int]],
    strangers: int = 0,
) -> dict[str, Taken]:
    """Our name of each weight -> its place there, for a model with these settings.

    ``embeddings``: their names; ``rows``: their heights; ``places``: in which of these rows each of
    our tokens stands, as ``Vocabulary.rows``. Source before target.
    """
    d = model["model_dim"]
    order = columns(d) if model["positions"]["kind"] == "sinusoidal" else np.arange(d)
    source, target = (of_rows(of_side, order) for of_side in places)
    weights = {
        "source_embedding.weight": Taken(embeddings[0], (rows[0], d), source),
        "target_embedding.weight": Taken(embeddings[1], (rows[1], d), target),
        "output_bias": Taken("final_logits_bias", (1, rows[1]), bias_of_rows(places[1], strangers)),
        **_layers(model, order),
    }
    if model["tie"] == "none":
        weights["output.weight"] = Taken("lm_head.weight", (rows[1], d), target)
    return weights


def _positions(file: Weights, width: int) -> str:
    """Return the kind of positions that a model adds. Errors: ``RunError`` if it learned them."""
    tables = [file.read(name) for name in POSITIONS if name in file.shapes]
    if not tables or all(_holds(table, columns(width), sinusoidal) for table in tables):
        return "sinusoidal"
    if all(_holds(table, np.arange(width), marian) for table in tables):
        return "marian"
    raise RunError(
        f"{POSITIONS[0]}: the positions are neither those of MarianMTModel nor of Marian"
    )


def _holds(table: Array, order: Array, rows: Callable[[torch.Tensor, int], torch.Tensor]) -> bool:
    """Return True if a table, its columns in this order, has these positions."""
    if table.ndim != 2 or table.shape[1] != len(order):
        return False
    wanted = rows(torch.arange(len(table)), len(order)).numpy()
    return np.allclose(table[:, order], wanted, rtol=0, atol=_ROUNDED)


def columns(width: int) -> Any:
    """(D,) for each of our columns, that of a row of sines and then cosines."""
    half = (width + 1) // 2
    order = np.empty(width, np.int64)
    order[0::2] = np.arange(half)
    order[1::2] = np.arange(half, width)
    return order


def _embeddings(file: Weights, shared: bool) -> tuple[str, str]:
    if shared and SHARED in file.shapes:
        return SHARED, SHARED
    if shared:
        first = next((name for name in OWN if name in file.shapes), OWN[0])
        return first, first
    return OWN


def _layers(model: Mapping[str, Any], order: Any) -> dict[str, Taken]:
    """The weights of all layers, by our names."""
    d, inner = model["model_dim"], model["ffn_dim"]
    made: dict[str, Taken] = {}

    def linear(ours: str, theirs: str, out: int, into: int) -> None:
        """A layer that reads or writes rows of the model, or both sides of which are inner."""
        writes = ours.split(".")[-1] in ("outer", "output")
        made[f"{ours}.weight"] = Taken(
            f"{theirs}.weight", (out, into), lambda x: x[order] if writes else x[:, order]
        )
        made[f"{ours}.bias"] = Taken(
            f"{theirs}.bias", (out,), (lambda x: x[order]) if writes else (lambda x: x)
        )

    def norm(ours: str, theirs: str) -> None:
        for name in ("weight", "bias"):
            made[f"{ours}_norm.{name}"] = Taken(
                f"{theirs}_layer_norm.{name}", (d,), lambda x: x[order]
            )

    for side, attentions in (
        ("encoder", {"attention": "self_attn"}),
        ("decoder", {"self_attention": "self_attn", "cross_attention": "encoder_attn"}),
    ):
        for number in range(model[f"{side}_layers"]):
            ours, theirs = f"{side}.{number}.", f"model.{side}.layers.{number}."
            for name, other in attentions.items():
                for part in ("query", "key", "value"):
                    linear(f"{ours}{name}.{part}", f"{theirs}{other}.{part[0]}_proj", d, d)
                linear(f"{ours}{name}.output", f"{theirs}{other}.out_proj", d, d)
                norm(ours + name, theirs + other)
            linear(f"{ours}feed_forward.inner", f"{theirs}fc1", inner, d)
            linear(f"{ours}feed_forward.outer", f"{theirs}fc2", d, inner)
            norm(f"{ours}feed_forward", f"{theirs}final")
    return made


class _Config:
    """``config.json``, each value checked when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values = read_json(path)
        kind = self.values.get("model_type") if isinstance(self.values, dict) else None
        if kind != "marian":
            raise RunError(
                f"{path} has the model type {kind!r}, but marian is the only model type of "
                f"{PROGRAM} that can be imported{_REASONS.get(str(kind), '')}"
            )
        on = [name for name in _MUST_BE_OFF if self.truth(name, False)]
        if on or not self.truth("static_position_embeddings", True):
            what = on[0] if on else "static_position_embeddings"
            raise RunError(f"{path}: {what} has a value that MarianMTModel does not support")

    def count(self, name: str, least: int = 1, most: int = 10**6 - 1) -> int:
        value = self.values.get(name)
        if type(value) is not int or not least <= value <= most:
            raise RunError(f"{self.path}: {name} is {value!r:.80}, but must be a number")
        return value

    def same(self, key: str, other: str) -> int:
        if self.count(key) != self.count(other):
            raise RunError(
                f"{self.path}: {key} {self.count(key)} and {other} {self.count(other)} differ, but "
                "must be equal"
            )
        return self.count(key)

    def number(self, name: str, default: float) -> float:
        value = self.values.get(name, default)
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise RunError(f"{self.path}: {name} is {value!r:.80}, but must be from 0 to 1")
        return float(value)

    def truth(self, name: str, default: bool) -> bool:
        value = self.values.get(name, default)
        if type(value) is not bool:
            raise RunError(f"{self.path}: {name} is {value!r:.80}, but must be true or false")
        return value

    @property
    def rows(self) -> int:
        return self.count("vocab_size")

    @property
    def target_rows(self) -> int:
        given = self.values.get("decoder_vocab_size") is not None
        return self.count("decoder_vocab_size") if given else self.rows

    @property
    def activation(self) -> str:
        name = self.values.get("activation_function", "gelu")
        if not isinstance(name, str) or name not in _ACTIVATIONS:
            raise RunError(
                f"{self.path}: activation_function {name!r:.80} cannot be imported, only "
                f"{', '.join(_ACTIVATIONS)}"
            )
        return _ACTIVATIONS[name]

    def search(self, folder: Path) -> dict[str, Any]:
        """Beam and length penalty. A score is divided by length^α there."""
        path = folder / "generation_config.json"
        chosen = read_json(path) if path.is_file() else {}
        if not isinstance(chosen, dict):
            raise RunError(f"{path} is not a table of settings")
        values = {**self.values, **chosen}
        beam, alpha = values.get("num_beams", 1), values.get("length_penalty", 1.0)
        sound = type(beam) is int and type(alpha) in (int, float)
        if not sound or not 1 <= beam <= 4096 or not 0 <= alpha <= 10:
            raise RunError(f"{path}: num_beams or length_penalty is not an allowed number")
        return {"beam": beam, "length_penalty": float(alpha), "penalty": "marian"}


_REASONS = {
    "t5": ": T5 has relative positions and norms without bias, which dragoman does not have",
    "mt5": ": mT5 has relative positions and norms without bias, which dragoman does not have",
    "m2m_100": ": NLLB and M2M-100 have one vocabulary for 200 languages and a licence that "
    "forbids commercial use of NLLB",
    "bart": ": BART learns its positions and norms its embeddings",
    "mbart": ": mBART learns its positions and norms its embeddings",
}
"""The reasons why other models are refused, by their types."""


def _vocabularies(folder: Path, config: _Config) -> Any:
    for name in ("vocab.json", "source.spm", "target.spm"):
        if not (folder / name).is_file():
            bpe = any(folder.glob("*.bpe"))
            raise RunError(
                f"{folder} has no {name}"
                + (": it splits text by subword-nmt (BPE), which cannot be imported" if bpe else "")
            )
    own = folder / "target_vocab.json"
    made = []
    for side, path, rows in (
        ("source", folder / "vocab.json", config.rows),
        ("target", own if own.is_file() else folder / "vocab.json", config.target_rows),
    ):
        table = read_table(path)
        if not len(table) <= rows <= len(table) + _MOST_SPARE:
            raise RunError(
                f"{path} has {len(table):,} tokens, but config.json says {rows:,}: they belong to "
                "different models"
            )
        table += [f"<spare-{number}>" for number in range(len(table), rows)]
        # The decoder begins with <pad>, which is our <s>.
        start = config.count("decoder_start_token_id", 0)
        if side == "source" and own.is_file():
            start = table.index(PAD) if PAD in table else -1
        if not (UNKNOWN in table and END in table and start < len(table)):
            raise RunError(f"{path} has no {UNKNOWN}, no {END} or no start token {start}")
        specials = {UNKNOWN: table.index(UNKNOWN), BEGIN: start, END: table.index(END)}
        if len(set(specials.values())) != 3:
            raise RunError(f"{config.path}: decoder_start_token_id must not be <unk> or </s>")
        made.append(from_sentencepiece(folder / f"{side}.spm", table, specials, side == "source"))
    return made
