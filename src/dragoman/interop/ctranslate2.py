"""Import of Transformers in the format of CTranslate2, which argos and quickmt also use.

    model.bin                   attributes and weights in fp32, fp16, bf16, int8 or int16
    config.json                 its special symbols, in newer models
    source_vocabulary, target_vocabulary, shared_vocabulary (.txt or .json)
    source.spm, target.spm, sentencepiece.model, ...   beside it, or a folder above

``model.bin``, all numbers little-endian::

    u32 version, text name of the specification, u32 revision, u32 number of variables
    each variable: text name, u8 rank, u32 sizes, then
        from version 4: u8 type, u32 bytes; before: u8 bytes of a number, u32 numbers
        the numbers
    from version 3: u32 number of aliases, each: text alias, text name
    text: u16 bytes, and the bytes with a NUL at the end

An integer is a weight multiplied by its scale. Each row of an int8 matrix has its own scale; an
int16 matrix has one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.base.errors import RunError
from dragoman.base.reading import open_regular, read_bytes, read_json
from dragoman.interop.archives import Array, numbers
from dragoman.interop.model import (
    MOST_LAYERS,
    Imported,
    Taken,
    bias_of_rows,
    languages_in,
    of_rows,
)
from dragoman.interop.vocabulary import (
    BEGIN,
    END,
    MOST_JSON,
    UNKNOWN,
    Vocabulary,
    check_table,
    from_sentencepiece,
    from_table_alone,
    read_table,
)
from dragoman.nn.embedding import marian

PROGRAM = "CTranslate2"
_OLDEST, NEWEST = 2, 6
_MOST_VARIABLES, _MOST_RANK = 100_000, 4
TYPES = ("<f4", "|i1", "<i2", "<i4", "<f2", "bf16")
_WIDTHS = {"<f4": 4, "|i1": 1, "<i2": 2, "<i4": 4, "<f2": 2, "bf16": 2}
_BY_WIDTH = {4: "<f4", 1: "|i1", 2: "<i2"}
ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu"}
_NULLS = ("<blank>", "<pad>", "<unk>", "<s>", "</s>", "｟mask｠")
"""Tokens of a vocabulary that no text contains."""
_HEADS = {"TransformerBase": 8, "TransformerBig": 16}
"""The heads of models that do not say how many they have."""
POSITIONS = 1024
"""The rows of the table of positions that is computed if the file has none. CTranslate2 cuts longer
sources to this length."""


@dataclass(frozen=True)
class _Variable:
    shape: tuple[int, ...]
    kind: str
    begin: int
    size: int


class ModelBin:
    """An open ``model.bin``, whose directory has been checked against the size of the file."""

    def __init__(self, path: Path, file: BufferedReader) -> None:
        self._path, self._file = path, file
        self.size = file.seek(0, 2)
        file.seek(0)
        self.version = self._number("<I")
        if not _OLDEST <= self.version <= NEWEST:
            raise RunError(
                f"{path} has version {self.version}, but only {_OLDEST} to {NEWEST} can be read. "
                f"If it is a model of {PROGRAM}, convert the original again with a newer {PROGRAM}"
            )
        self.name, self.revision = self._text(), self._number("<I")
        count = self._number("<I")
        if count > _MOST_VARIABLES:
            raise self._error(f"its {count:,} variables exceed the limit of {_MOST_VARIABLES:,}")
        self._variables = dict(self._variable() for _ in range(count))
        aliases = self._number("<I") if self.version >= 3 else 0
        if aliases > _MOST_VARIABLES:
            raise self._error(f"its {aliases:,} aliases exceed the limit of {_MOST_VARIABLES:,}")
        for _ in range(aliases):
            alias, name = self._text(), self._text()
            if name not in self._variables:
                raise self._error(f"it has an alias of {name[:80]!r}, which is missing")
            self._variables[alias] = self._variables[name]
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: variable.shape for name, variable in self._variables.items()
        }

    def read(self, name: str) -> Array:
        """Return the numbers of a variable as fp32; integers are divided by their scale."""
        variable = self._variables[name]
        raw = numbers(self._bytes(variable), variable.kind).reshape(variable.shape)
        if variable.kind not in ("|i1", "<i2"):
            return raw
        scale = self._variables.get(f"{name}_scale")
        rows = variable.shape[0] if variable.shape else 1
        if scale is None or math.prod(scale.shape) not in (1, rows):
            raise self._error(f"{name[:80]!r} has integers without a valid scale")
        by = numbers(self._bytes(scale), scale.kind)
        return raw / by.reshape(-1, *(1,) * (raw.ndim - 1)) if by.size > 1 else raw / by[0]

    def attribute(self, name: str, default: int) -> int:
        """A whole number that the model says of itself."""
        variable = self._variables.get(name)
        if variable is None:
            return default
        if math.prod(variable.shape) != 1:
            raise self._error(f"{name} is not a single number")
        return int(np.nan_to_num(numbers(self._bytes(variable), variable.kind)[0]))

    def layers(self, side: str) -> int:
        """The number of layers of "encoder" or "decoder"."""
        count = 0
        while f"{side}/layer_{count}/ffn/linear_0/weight" in self._variables:
            count += 1
            if count > MOST_LAYERS:
                raise RunError(f"{self._path} has more than {MOST_LAYERS} layers in its {side}")
        return count

    def _variable(self) -> tuple[str, _Variable]:
        name, rank = self._text(), self._number("<B")
        if rank > _MOST_RANK:
            raise self._error(f"{name[:80]!r} has {rank} dimensions; the most is {_MOST_RANK}")
        shape = tuple(self._number("<I") for _ in range(rank))
        code, count = self._number("<B"), self._number("<I")
        if self.version >= 4:
            kind, size = TYPES[code] if code < len(TYPES) else "", count
        else:
            kind = _BY_WIDTH.get(code, "")
            size = code * count
        begin = self._file.tell()
        if not kind or math.prod(shape) * _WIDTHS[kind] != size or begin + size > self.size:
            raise self._error(f"the shape of {name[:80]!r} does not match its type and size")
        self._file.seek(size, 1)
        return name, _Variable(shape, kind, begin, size)

    def _bytes(self, variable: _Variable) -> bytes:
        self._file.seek(variable.begin)
        return self._take(variable.size)

    def _take(self, count: int) -> bytes:
        content = self._file.read(count)
        if len(content) != count:
            raise self._error("it is cut short")
        return content

    def _number(self, kind: str) -> int:
        number: int = struct.unpack(kind, self._take(struct.calcsize(kind)))[0]
        return number

    def _text(self) -> str:
        return self._take(self._number("<H")).rstrip(b"\0").decode("utf-8", "replace")

    def _error(self, what: str) -> RunError:
        return RunError(f"{self._path} is damaged or not a model of {PROGRAM} ({what})")


def has_written(folder: Path) -> bool:
    """Return True if the folder contains a model of CTranslate2."""
    return (folder / "model.bin").is_file()


@contextmanager
def open_weights(folder: Path) -> Iterator[ModelBin]:
    """Open the weights of a folder. Errors: ``RunError`` if they are damaged."""
    path = folder / "model.bin"
    with open_regular(path) as file:
        yield ModelBin(path, file)


def languages_of(folder: Path) -> tuple[str, str] | None:
    """Return the languages of an argos package, or None."""
    return languages_in(folder.parent / "metadata.json", "from_code", "to_code")


def take_apart(folder: Path, file: ModelBin) -> Imported:
    """Read a folder. Errors: ``RunError`` for another architecture, or files that do not agree."""
    _check_kind(folder, file)
    config, package = _config(folder), _package(folder)
    source_name = _embedding(file)
    rows, d = _shape(file, source_name, 2)
    target_rows, _ = _shape(file, "decoder/embeddings/weight", 2)
    (inner, _) = _shape(file, "encoder/layer_0/ffn/linear_0/weight", 2)
    said: list[str] = []
    source, target = _vocabularies(folder, config, (rows, target_rows), said)
    pre = bool(file.attribute("encoder/pre_norm", 1))
    activation = file.attribute("encoder/activation", 0)
    if activation not in ACTIVATIONS:
        raise RunError(
            f"{folder}: activation {activation} of {PROGRAM} cannot be imported, only 0 (ReLU), 2 "
            "(swish) and 3 (GELU)"
        )
    tied = "decoder/projection/weight" not in file.shapes
    heads = _HEADS.get(file.name, 8)
    model = {
        "kind": "transformer",
        "model_dim": d,
        "ffn_dim": inner,
        "encoder_layers": file.layers("encoder"),
        "decoder_layers": file.layers("decoder"),
        "attention": {"num_heads": file.attribute("encoder/num_heads", heads)},
        "norm": "pre" if pre else "post",
        "tie": "target" if tied else "none",
        "activation": ACTIVATIONS[activation],
        "output_bias": True,
        "norm_epsilon": float(config.get("layer_norm_epsilon") or 1e-5),
        "zero_start": bool(file.attribute("decoder/start_from_zero_embedding", 0)),
        "scale_embeddings": bool(file.attribute("encoder/scale_embeddings", 1)),
        "attend_unknown": bool(config.get("add_source_eos", False)),
        "positions": {"kind": "learned", "maximum": _positions(file)},
    }
    weights = weights_of(
        model,
        source_name,
        (rows, target_rows),
        (source.rows, target.rows),
        target.strangers,
        file.shapes,
    )
    if not model["decoder_layers"]:
        raise RunError(f"{folder} has no layers of a decoder")
    usual = {"beam": 4, "length_penalty": 0.2} if package else {"beam": 2, "length_penalty": 1.0}
    search = {**usual, "penalty": "marian", "stop": "full"}
    return Imported(PROGRAM, model, source, target, weights, search, said)


def _package(folder: Path) -> dict[str, Any]:
    """The description of an argos package, which searches with settings of its own; empty for other
    models. Errors: ``RunError`` for a package whose outputs begin with a given token."""
    path = folder.parent / "metadata.json"
    description = read_json(path) if path.is_file() else {}
    if not isinstance(description, dict) or "from_code" not in description:
        return {}
    if description.get("target_prefix"):
        raise RunError(
            f"{path} has a target_prefix: every output of that model begins with the same token, "
            "which cannot be imported"
        )
    return description


def _check_kind(folder: Path, file: ModelBin) -> None:
    """Refuse models other than an encoder and a decoder as in Vaswani et al. (2017)."""
    if not file.name.startswith("Transformer") or file.name.startswith("TransformerDecoder"):
        raise RunError(
            f"{folder} is a {file.name[:80]} of {PROGRAM}. Only a Transformer with encoder and "
            "decoder can be imported"
        )
    odd = {
        "relative_position_keys": "relative positions",
        "relative_attention_bias": "relative positions (T5)",
        "linear_0_noact/weight": "gated layers (GLU)",
        "layernorm_embedding/gamma": "normed embeddings",
        "rotary_dim": "rotary positions",
        "q_norm/gamma": "normed queries",
        "weight_zero": "weights of 4 bits",
    }
    for name in file.shapes:
        for ending, what in odd.items():
            if name.endswith(ending):
                raise RunError(f"{folder} has {what}, which cannot be imported ({name[:80]})")
    if any(name.startswith("encoder/embeddings_1/") for name in file.shapes):
        raise RunError(f"{folder} reads several features of each word, so it cannot be imported")


def _shape(file: ModelBin, name: str, rank: int) -> tuple[int, ...]:
    shape = file.shapes.get(name)
    if shape is None or len(shape) != rank or 0 in shape:
        raise RunError(f"in the model of {PROGRAM}, {name} is missing or has a wrong shape")
    return shape


def _embedding(file: ModelBin) -> str:
    names = ("encoder/embeddings/weight", "encoder/embeddings_0/weight")
    return next((name for name in names if name in file.shapes), names[0])


def _positions(file: ModelBin) -> int:
    table = file.shapes.get("encoder/position_encodings/encodings")
    return table[0] if table else POSITIONS


def counted_from_one(count: int, width: int) -> Array:
    """(count, width): Marian's encoding of the positions from 1, by which OpenNMT-tf and
    CTranslate2 tell places where the model brings no table."""
    return marian(torch.arange(1, count + 1), width).numpy()


def weights_of(
    model: Mapping[str, Any],
    source_name: str,
    rows: tuple[int, int],
    places: tuple[Sequence[int], Sequence[int]],
    strangers: int,
    in_file: Container[str],
) -> dict[str, Taken]:
    """Map our name of each weight to its place in the file of a model with these settings.

    ``source_name``: the file's name of the source embeddings; ``rows``: the numbers of rows of both
    embeddings; ``places``: the row of each of our tokens (``Vocabulary.rows``); ``strangers``: as
    in ``bias_of_rows``; ``in_file``: the names in the file, which need not have positions and
    output biases.
    """
    d = model["model_dim"]
    source, target = map(of_rows, places)
    bias = "decoder/projection/bias"
    made = {
        "source_embedding.weight": Taken(source_name, (rows[0], d), source),
        "target_embedding.weight": Taken("decoder/embeddings/weight", (rows[1], d), target),
        "output_bias": Taken(
            bias if bias in in_file else "", (rows[1],), bias_of_rows(places[1], strangers)
        ),
        **_layers(model),
    }
    for side, ours in (("encoder", "source"), ("decoder", "target")):
        name = f"{side}/position_encodings/encodings"
        brought = name in in_file
        made[f"{ours}_positions.table"] = Taken(
            name if brought else "",
            (model["positions"]["maximum"], d),
            (lambda x: x) if brought else (lambda x: counted_from_one(*x.shape)),
        )
        if model["norm"] == "pre":
            made |= _norm(f"{side}_norm", f"{side}/layer_norm", d)
    if model["tie"] == "none":
        made["output.weight"] = Taken("decoder/projection/weight", (rows[1], d), target)
    return made


def _norm(ours: str, theirs: str, width: int) -> dict[str, Taken]:
    return {
        f"{ours}.weight": Taken(f"{theirs}/gamma", (width,)),
        f"{ours}.bias": Taken(f"{theirs}/beta", (width,)),
    }


def _layers(model: Mapping[str, Any]) -> dict[str, Taken]:
    """The weights of all layers, by our names."""
    d, inner = model["model_dim"], model["ffn_dim"]
    made: dict[str, Taken] = {}

    def linear(ours: str, theirs: str, out: int, into: int, part: int = 0, parts: int = 1) -> None:
        """Add a linear layer: block ``part`` of the ``parts`` blocks of rows of one matrix."""
        rows = slice(part * out, (part + 1) * out)
        made[f"{ours}.weight"] = Taken(f"{theirs}/weight", (parts * out, into), lambda x: x[rows])
        made[f"{ours}.bias"] = Taken(f"{theirs}/bias", (parts * out,), lambda x: x[rows])

    for side in ("encoder", "decoder"):
        own = "attention" if side == "encoder" else "self_attention"
        for number in range(model[f"{side}_layers"]):
            ours, theirs = f"{side}.{number}.", f"{side}/layer_{number}/"
            for place, name in enumerate(("query", "key", "value")):
                linear(f"{ours}{own}.{name}", f"{theirs}self_attention/linear_0", d, d, place, 3)
            linear(f"{ours}{own}.output", f"{theirs}self_attention/linear_1", d, d)
            made |= _norm(f"{ours}{own}_norm", f"{theirs}self_attention/layer_norm", d)
            if side == "decoder":
                cross = f"{ours}cross_attention"
                linear(f"{cross}.query", f"{theirs}attention/linear_0", d, d)
                linear(f"{cross}.key", f"{theirs}attention/linear_1", d, d, 0, 2)
                linear(f"{cross}.value", f"{theirs}attention/linear_1", d, d, 1, 2)
                linear(f"{cross}.output", f"{theirs}attention/linear_2", d, d)
                made |= _norm(f"{cross}_norm", f"{theirs}attention/layer_norm", d)
            linear(f"{ours}feed_forward.inner", f"{theirs}ffn/linear_0", inner, d)
            linear(f"{ours}feed_forward.outer", f"{theirs}ffn/linear_1", d, inner)
            made |= _norm(f"{ours}feed_forward_norm", f"{theirs}ffn/layer_norm", d)
    return made


# ---- vocabularies


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    config = read_json(path) if path.is_file() else {}
    if not isinstance(config, dict):
        raise RunError(f"{path} is not a table of settings")
    if config.get("add_source_bos"):
        raise RunError(f"{path}: models that add a begin symbol to sources cannot be imported")
    if not isinstance(config.get("layer_norm_epsilon") or 0.0, float):
        raise RunError(f"{path}: layer_norm_epsilon is not a number")
    if not isinstance(unknown := config.get("unk_token", UNKNOWN), str):
        raise RunError(f"{path}: unk_token is {unknown!r:.80}, not a token")
    return config


def _table(folder: Path, side: str) -> tuple[list[str], Path]:
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        if (path := folder / f"{name}.json").is_file():
            return read_table(path), path
        if (path := folder / f"{name}.txt").is_file():
            content = read_bytes(path, MOST_JSON).decode("utf-8", "replace")
            return check_table(content.removesuffix("\n").split("\n"), path), path
    raise RunError(f"{folder} has no {side}_vocabulary or shared_vocabulary file (.txt or .json)")


def _vocabularies(
    folder: Path, config: Mapping[str, Any], rows: tuple[int, int], said: list[str]
) -> list[Vocabulary]:
    made = []
    for side, count in zip(("source", "target"), rows, strict=True):
        table, path = _table(folder, side)
        if (unknown := config.get("unk_token", UNKNOWN)) not in table:
            table.append(unknown)
        if len(table) != count:
            raise RunError(
                f"{path} has {len(table):,} tokens, but the model has {count:,}: they belong to "
                "different models"
            )
        specials = _specials(table, side, config, path)
        spm = _tokenizer(folder, side)
        if spm is not None:
            made.append(from_sentencepiece(spm, table, specials, side == "source"))
            continue
        made.append(from_table_alone(table, specials, _NULLS, path))
        by_characters = made[-1].text.settings.kind == "char"
        how = "characters" if by_characters else "what spaces separate"
        said.append(f"there is no tokenizer for the {side}: its tokens are {how}")
    return made


def _specials(table: list[str], side: str, config: Mapping[str, Any], path: Path) -> dict[str, int]:
    """Return the ids of the special symbols in the table; the first becomes our symbol 0.

    If a model reads no end symbol (no ``add_source_eos``), ours masks symbol 0
    (``attend_unknown = false``). Symbol 0 is then ``</s>`` in a source, so that nothing attends to
    it, and in a target a symbol that no text contains.
    """
    end = config.get("eos_token", END)
    start = config.get("decoder_start_token") if side == "target" else config.get("bos_token")
    begin = start or BEGIN
    ids = {
        name: table.index(token) if token in table else -1
        for name, token in ((UNKNOWN, config.get("unk_token", UNKNOWN)), (BEGIN, begin), (END, end))
    }
    if begin == end or (side == "target" and -1 in ids.values()):
        raise RunError(f"{path} has no {begin!r:.80} or no {end!r:.80}, or both are the same token")
    if config.get("add_source_eos"):
        return ids
    if side == "source":
        return {END: ids[END], BEGIN: ids[BEGIN], UNKNOWN: ids[UNKNOWN]}
    free = (name for name in _NULLS if name in table and table.index(name) not in ids.values())
    null = next(free, None)
    return ids if null is None else {null: table.index(null), **ids}


def _tokenizer(folder: Path, side: str) -> Path | None:
    """The SentencePiece model of a side, in the folder or in the one around it."""
    short = {"source": "src", "target": "tgt"}[side]
    names = (f"{side}.spm", f"{short}.spm.model", f"{side}.model", f"{side}.spm.model",
             "sentencepiece.model", "shared.spm", "spm.model", "joint.spm.model")  # fmt: skip
    for place in (folder, folder.parent):
        for name in names:
            if (path := place / name).is_file():
                return path
    for path in (*folder.glob("*.bpe"), folder.parent / "bpe.model"):
        if path.is_file():
            raise RunError(f"{path} was written by subword-nmt (BPE), which cannot be imported")
    return None
