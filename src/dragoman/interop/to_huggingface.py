"""A run as ``MarianMTModel`` and ``MarianTokenizer`` of Hugging Face's transformers.

The names and the order of columns are those of ``huggingface.py``. All ids stay as they are; our
``<s>`` is ``<pad>`` there, with which an output begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.base.atomic import write_text
from dragoman.forms.subwords.sampling import SPACE
from dragoman.interop.archives import Array
from dragoman.interop.huggingface import (
    EPSILON,
    OWN,
    PAD,
    POSITIONS,
    PROGRAM,
    SHARED,
    weights_of,
)
from dragoman.interop.model import put_back
from dragoman.models.settings import BEGIN, TransformerSettings
from dragoman.nn.embedding import marian
from dragoman.tasks.catalogue import Run
from dragoman.training.weights import save_weights

__all__ = ["LIBRARY", "PROGRAM", "reasons", "use", "write", "write_model"]

LIBRARY = "transformers"
_LONGEST = 512
"""The most tokens of a source and of an output there. Positions are computed, not learned."""
_POSITIONS = ("sinusoidal", "marian")
_OF_WU = 0.75
"""α of length^α beside that of ((5 + length) / 6)^α: docs/results.md has how they compare."""

_SYMBOLS = {
    "pad_token_id": BEGIN,
    "decoder_start_token_id": BEGIN,
    "eos_token_id": 2,
    "forced_eos_token_id": None,
}


def reasons(run: Run) -> Iterator[str]:
    """Yield the settings that Marian models of transformers cannot compute."""
    model = run.recipe.model
    assert isinstance(model, TransformerSettings)
    if model.norm != "post":
        yield (
            f'model.norm = "{model.norm}": its Marian models have norms after the residual sums. '
            "Train with --set model.norm=post, or export to another program"
        )
    if model.positions.kind not in _POSITIONS:
        yield f'model.positions.kind = "{model.positions.kind}": its positions are sinusoidal'
    if model.norm_epsilon > EPSILON:
        yield f"model.norm_epsilon = {model.norm_epsilon}: its norms have {EPSILON}"
    for side, tokens in zip(("source", "target"), tokens_of(run), strict=True):
        if PAD in tokens:
            yield f"the {side} vocabulary has a token {PAD}, which is its start symbol"


def tokens_of(run: Run) -> list[list[str]]:
    """The tokens of source and target, as the tables there have them."""
    return [
        [piece.removeprefix(SPACE) if piece.startswith(f"{SPACE}>>") else piece for piece in side]
        for side in (text.pieces(range(text.size)) for text in (run.source_text, run.target_text))
    ]


def use(run: Run, folder: Path) -> str:
    """The lines of Python that translate with the exported model."""
    model = run.recipe.model
    assert isinstance(model, TransformerSettings)
    epsilon = model.norm_epsilon
    note = f"# Layer norms use the epsilon {EPSILON} here; the run uses {epsilon}.\n"
    return f"""\
{note if epsilon != EPSILON else ""}from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{folder.name}")
model = AutoModelForSeq2SeqLM.from_pretrained("{folder.name}")
output = model.generate(**tokenizer(["..."], return_tensors="pt", padding=True))
print(tokenizer.batch_decode(output, skip_special_tokens=True))"""


def write(run: Run, weights: Mapping[str, Array], folder: Path) -> Path:
    """Write the files of a run. Return the folder."""
    settings, search = run.recipe.model, run.recipe.search
    assert isinstance(settings, TransformerSettings)
    sides = tokens_of(run)
    write_model(settings, weights, [len(side) for side in sides], folder)
    separate = settings.tie != "all"
    for side, tokens in zip(("vocab", "target_vocab"), sides, strict=True):
        if side == "vocab" or separate:
            table = {token: number for number, token in enumerate(tokens)}
            table[PAD] = table.pop("<s>")
            _write_json(folder / f"{side}.json", table)
    run.source_text.save(folder / "source.spm")
    run.target_text.save(folder / "target.spm")
    known = {
        f"{side}_lang": code
        for side, code in zip(("source", "target"), run.languages, strict=True)
        if code != "und"
    }
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": separate,
            "model_max_length": _LONGEST,
            "clean_up_tokenization_spaces": False,
            **known,
        },
    )
    alpha = round(search.length_penalty * (1 if search.penalty == "marian" else _OF_WU), 4)
    _write_json(
        folder / "generation_config.json",
        {
            "num_beams": search.beam,
            "length_penalty": alpha,
            "max_length": _LONGEST,
            "no_repeat_ngram_size": search.no_repeat_ngram,
            "bad_words_ids": [[token] for token in run.target_text.forbidden],
            **_SYMBOLS,
        },
    )
    return folder


def write_model(
    settings: TransformerSettings, weights: Mapping[str, Array], sizes: Sequence[int], folder: Path
) -> None:
    """Write ``config.json`` and ``model.safetensors``: all that needs no text.

    ``weights``: by our names; ``sizes``: those of the vocabularies, source before target.
    """
    shared = settings.tie == "all"
    source, target = sizes
    table = weights_of(
        settings.model_dump(),
        (SHARED, SHARED) if shared else OWN,
        (source, target),
        (range(source), range(target)),
    )
    bias = np.zeros(target, np.float32)
    tensors = put_back(table, {"output_bias": bias, **weights})
    if settings.zero_start:
        tensors[SHARED if shared else OWN[1]][BEGIN] = 0
    if settings.positions.kind == "marian":
        rows = marian(torch.arange(2 * _LONGEST), settings.model_dim).float().numpy()
        tensors |= {name: rows.copy() for name in POSITIONS}
    save_weights(
        folder / "model.safetensors",
        {name: torch.from_numpy(value) for name, value in tensors.items()},
        {"format": "pt"},
    )
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", getattr(settings, f"{side}_layers")),
            ("ffn_dim", settings.ffn_dim),
            ("attention_heads", settings.attention.num_heads),
        )
    }
    _write_json(
        folder / "config.json",
        {
            "model_type": "marian",
            "architectures": ["MarianMTModel"],
            "is_encoder_decoder": True,
            "vocab_size": source,
            "decoder_vocab_size": target,
            "share_encoder_decoder_embeddings": shared,
            "tie_word_embeddings": settings.tie != "none",
            "d_model": settings.model_dim,
            **sides,
            "activation_function": settings.activation,
            "dropout": settings.dropout,
            "activation_dropout": settings.activation_dropout,
            "attention_dropout": settings.attention.dropout,
            "scale_embedding": settings.scale_embeddings,
            "static_position_embeddings": True,
            "max_position_embeddings": 2 * _LONGEST,
            **_SYMBOLS,
        },
    )


def _write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
