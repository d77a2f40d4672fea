"""A run as a Transformer of CTranslate2. ``ctranslate2.py`` describes the files and their names."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from dragoman.base.atomic import write_text
from dragoman.interop.archives import Array
from dragoman.interop.ctranslate2 import (
    ACTIVATIONS,
    NEWEST,
    POSITIONS,
    PROGRAM,
    TYPES,
    weights_of,
)
from dragoman.interop.model import put_back
from dragoman.models.settings import TransformerSettings
from dragoman.models.shortlist import Shortlist
from dragoman.nn.embedding import Positions
from dragoman.runs.run import SHORTLIST, load_shortlist
from dragoman.tasks.catalogue import Run

__all__ = ["LIBRARY", "PROGRAM", "reasons", "use", "write", "write_model"]

LIBRARY = "ctranslate2"
_REVISION = 7
"""That of CTranslate2's TransformerSpec whose names these are."""
_SOURCE, _TARGET = "encoder/embeddings_0/weight", "decoder/embeddings/weight"
_PLACES = tuple(f"{side}/position_encodings/encodings" for side in ("encoder", "decoder"))
_BIAS, _OUTPUT = "decoder/projection/bias", "decoder/projection/weight"


def reasons(run: Run) -> Iterator[str]:
    """Yield the settings that CTranslate2 cannot compute."""
    settings = run.recipe.model
    assert isinstance(settings, TransformerSettings)
    if (kind := settings.positions.kind) in ("index", "normalised", "none"):
        yield f'model.positions.kind = "{kind}": its positions are a table'


def use(run: Run, folder: Path) -> str:
    """The lines of Python that translate with the exported model."""
    search = run.recipe.search
    return f"""\
import ctranslate2, sentencepiece

source = sentencepiece.SentencePieceProcessor("{folder.name}/source.spm")
target = sentencepiece.SentencePieceProcessor("{folder.name}/target.spm")
translator = ctranslate2.Translator("{folder.name}")
tokens = source.encode(["..."], out_type=str)
results = translator.translate_batch(tokens, beam_size={search.beam}, disable_unk=True)
print(target.decode([one.hypotheses[0] for one in results]))"""


def write(run: Run, weights: Mapping[str, Array], folder: Path) -> Path:
    """Write the files of a run. Return the folder."""
    settings, texts = run.recipe.model, (run.source_text, run.target_text)
    assert isinstance(settings, TransformerSettings)
    tokens = [text.pieces(range(text.size)) for text in texts]
    write_model(settings, weights, tokens, folder)
    if (run.folder / SHORTLIST).exists():
        write_text(folder / "vmap.txt", vmap(load_shortlist(run), *tokens))
    texts[0].save(folder / "source.spm")
    texts[1].save(folder / "target.spm")
    return folder


def write_model(
    settings: TransformerSettings,
    weights: Mapping[str, Array],
    tokens: Sequence[Sequence[str]],
    folder: Path,
) -> None:
    """Write ``model.bin``, ``config.json`` and the vocabularies: all that needs no text.

    ``weights``: by our names; ``tokens``: those of source and target.
    """
    source, target = map(len, tokens)
    count = settings.longest or POSITIONS
    positions = Positions(settings.positions, settings.model_dim)
    ours = dict(weights)
    if positions.is_added_table:
        table = positions.rows(count, torch.device("cpu"), torch.float32)[:count].numpy()
        ours |= {f"{side}_positions.table": table for side in ("source", "target")}
    model = settings.model_dump()
    model["positions"]["maximum"] = count
    places = (range(source), range(target))
    names = weights_of(model, _SOURCE, (source, target), places, 0, (*_PLACES, _BIAS))
    variables = put_back(names, ours)
    aliases = {} if _TARGET in variables else {_TARGET: _SOURCE}
    if _OUTPUT not in variables:
        aliases[_OUTPUT] = aliases.get(_TARGET, _TARGET)
    activation = next(code for code, name in ACTIVATIONS.items() if name == settings.activation)
    for side in ("encoder", "decoder"):
        variables |= {
            f"{side}/num_heads": np.array(settings.attention.num_heads, "<i2"),
            f"{side}/pre_norm": np.array(settings.norm == "pre", "|i1"),
            f"{side}/activation": np.array(activation, "|i1"),
            f"{side}/scale_embeddings": np.array(settings.scale_embeddings, "|i1"),
        }
    variables["decoder/start_from_zero_embedding"] = np.array(settings.zero_start, "|i1")
    _write_binary(folder / "model.bin", variables, aliases)
    config = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "decoder_start_token": "<s>",
        "add_source_bos": False,
        "add_source_eos": True,
        "layer_norm_epsilon": settings.norm_epsilon,
    }
    write_text(folder / "config.json", json.dumps(config, indent=2) + "\n")
    shared = list(tokens[0]) == list(tokens[1])
    for side, words in zip(("source", "target"), tokens, strict=True):
        name = "shared" if shared else side
        content = json.dumps(list(words), ensure_ascii=False, indent=0)
        write_text(folder / f"{name}_vocabulary.json", content + "\n")


def vmap(shortlist: Shortlist, source: Sequence[str], target: Sequence[str]) -> str:
    """A shortlist as CTranslate2 reads it: a line for each source token, with its candidates behind
    a tab. The line without a token has those of every sentence."""

    def writable(words: Sequence[str]) -> Iterator[str]:
        return (word for word in words if not any(mark in word for mark in " \t\r\n"))

    lines = ["\t" + " ".join(writable([target[token] for token in shortlist.always]))]
    for number, word in enumerate(source):
        first, last = shortlist.offsets[number : number + 2]
        candidates = [target[token] for token in shortlist.candidates[first:last]]
        lines += [f"{key}\t{' '.join(writable(candidates))}" for key in writable([word])]
    return "\n".join(lines) + "\n"


def _write_binary(path: Path, variables: Mapping[str, Array], aliases: Mapping[str, str]) -> None:
    def text(word: str) -> bytes:
        return struct.pack("<H", len(word) + 1) + word.encode() + b"\0"

    with path.open("wb") as file:
        file.write(struct.pack("<I", NEWEST) + text("TransformerSpec"))
        file.write(struct.pack("<II", _REVISION, len(variables)))
        for name, array in variables.items():
            shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
            file.write(text(name) + shape)
            file.write(struct.pack("<BI", TYPES.index(array.dtype.str), array.nbytes))
            file.write(array.tobytes())
        file.write(struct.pack("<I", len(aliases)))
        for alias, name in aliases.items():
            file.write(text(alias) + text(name))
