"""Transformers in Marian's own files.

    *.npz                       weights, and the settings in special:model.yml
    decoder.yml                 vocabularies, beam and normalisation; or NAME.npz.decoder.yml
    *.vocab.yml or *.spm        token -> id; a SentencePiece model has the ids in itself
    source.spm target.spm       cut text for a *.vocab.yml

A matrix has a row for each input, so all but the embeddings are transposed here. Names and
formulas are those of the class EncoderTransformer and DecoderTransformer of marian-dev.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from dragoman.base.errors import RunError
from dragoman.base.reading import MAX_JSON, read_bytes
from dragoman.interop.archives import Array, NpzWeights, open_npz
from dragoman.interop.model import MOST_LAYERS, Imported, Taken, bias_of_rows, of_rows
from dragoman.interop.vocabulary import (
    BEGIN,
    END,
    MOST_JSON,
    UNKNOWN,
    Vocabulary,
    check_table,
    from_sentencepiece,
    from_table_alone,
    pieces_of,
    table_in_order,
)

PROGRAM = "Marian"
_SETTINGS = "special:model.yml"
_EPSILON = 1e-6
"""The number that Marian's layer normalisation adds to the variance."""
_BEAM = 12
"""Marian's beam where decoder.yml names none."""
_MUST_BE = {
    "type": ("transformer",),
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan", "an"),
    "transformer-preprocess-emb": ("",),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-no-projection": ("false",),
    "transformer-no-bias": ("false",),
    "transformer-no-affine": ("false",),
    "transformer-train-position-embeddings": ("false",),
    "transformer-tied-layers": ("", "[]"),
    "transformer-rnn-projection": ("false",),
    "transformer-disable-position-embeddings": ("false",),
    "transformer-attention-mask": ("default",),
    "transformer-pool": ("false",),
    "right-left": ("false",),
    "skip": ("false",),
    "lemma-dim-emb": ("0",),
    "factors-dim-emb": ("0",),
    "ulr": ("false",),
    "output-omit-bias": ("false",),
}
"""The values of settings that a model here can compute. The first is Marian's default."""
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "gelu": "gelu"}
_LINE = re.compile(r"""^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#?-].*?|-.*?):(?:\s+(.*))?$""")
_ITEM = re.compile(r"^\s*-\s+(.*)$")


def has_written(folder: Path) -> bool:
    """Return True for a folder of Marian."""
    return any(folder.glob("*.npz"))


def _file(folder: Path) -> Path:
    files = sorted(folder.glob("*.npz"))
    models = [path for path in files if not path.name.endswith(".optimizer.npz")]
    if len(models) != 1:
        raise RunError(
            f"{folder} has {len(models)} models ({', '.join(path.name for path in models)[:200]}): "
            "keep only the .npz file that you want"
        )
    return models[0]


def open_weights(folder: Path) -> AbstractContextManager[NpzWeights]:
    """Open the weights of a folder. Errors: ``RunError`` if they are damaged."""
    return open_npz(_file(folder))


def languages_of(folder: Path) -> tuple[str, str] | None:
    """Return None: Marian's files name no languages."""
    return None


def take_apart(folder: Path, file: NpzWeights) -> Imported:
    """Read a folder. Errors: ``RunError`` for another architecture, or files that do not agree."""
    path = _file(folder)
    settings = _Settings(path, file)
    decoder = _decoder(folder, path)
    said: list[str] = []
    source, target = _vocabularies(folder, decoder.get("vocabs"), said)
    if (folder / "preprocess.sh").is_file():
        said.append("preprocess.sh is not run: what it changes in a text stays as it is")
    everything, sources = settings.on("tied-embeddings-all"), settings.on("tied-embeddings-src")
    tied = everything or settings.on("tied-embeddings")
    joint = everything or sources
    d, rows = settings.count("dim-emb"), (max(source.rows) + 1, max(target.rows) + 1)
    inner = settings.count("transformer-dim-ffn")
    model = {
        "kind": "transformer",
        "model_dim": d,
        "ffn_dim": inner,
        "encoder_layers": settings.layers("enc-depth"),
        "decoder_layers": settings.layers("dec-depth"),
        "attention": {"num_heads": settings.count("transformer-heads")},
        "norm": "post",
        "tie": "target" if tied else "none",
        "activation": settings.activation,
        "output_bias": True,
        "norm_epsilon": _EPSILON,
        "zero_start": True,
        "positions": {"kind": "marian"},
    }
    embeddings = ("Wemb", "Wemb") if joint else ("encoder_Wemb", "decoder_Wemb")
    weights = {
        "source_embedding.weight": Taken(embeddings[0], (rows[0], d), of_rows(source.rows)),
        "target_embedding.weight": Taken(embeddings[1], (rows[1], d), of_rows(target.rows)),
        "output_bias": Taken(
            "decoder_ff_logit_out_b", (1, rows[1]), bias_of_rows(target.rows, target.strangers)
        ),
        **_layers(model),
    }
    if not tied:
        weights["output.weight"] = Taken(
            "decoder_ff_logit_out_W", (d, rows[1]), lambda x: of_rows(target.rows)(x.T)
        )
    return Imported(PROGRAM, model, source, target, weights, _search(folder, decoder), said)


def _layers(model: Mapping[str, Any]) -> dict[str, Taken]:
    """The weights of all layers, by our names."""
    d, inner = model["model_dim"], model["ffn_dim"]
    made: dict[str, Taken] = {}

    def linear(ours: str, prefix: str, ending: str, out: int, into: int) -> None:
        made[f"{ours}.weight"] = Taken(f"{prefix}_W{ending}", (into, out), lambda x: x.T)
        made[f"{ours}.bias"] = Taken(f"{prefix}_b{ending}", (1, out), _row)

    def norm(ours: str, theirs: str) -> None:
        made[f"{ours}_norm.weight"] = Taken(f"{theirs}_ln_scale", (1, d), _row)
        made[f"{ours}_norm.bias"] = Taken(f"{theirs}_ln_bias", (1, d), _row)

    for side, attentions in (
        ("encoder", {"attention": "self"}),
        ("decoder", {"self_attention": "self", "cross_attention": "context"}),
    ):
        for number in range(model[f"{side}_layers"]):
            ours, theirs = f"{side}.{number}.", f"{side}_l{number + 1}_"
            for name, other in attentions.items():
                for part in ("query", "key", "value", "output"):
                    linear(f"{ours}{name}.{part}", theirs + other, part[0], d, d)
                norm(ours + name, f"{theirs}{other}_Wo")
            linear(f"{ours}feed_forward.inner", f"{theirs}ffn", "1", inner, d)
            linear(f"{ours}feed_forward.outer", f"{theirs}ffn", "2", d, inner)
            norm(f"{ours}feed_forward", f"{theirs}ffn_ffn")
    return made


def _row(array: Array) -> Array:
    return array.reshape(-1)


class _Settings:
    """The settings in a file of weights, each checked when it is read."""

    def __init__(self, path: Path, file: NpzWeights) -> None:
        self._path = path
        if _SETTINGS not in file.shapes:
            raise RunError(f"{path} has no {_SETTINGS}: it is not a model of {PROGRAM}")
        if math.prod(file.shapes[_SETTINGS]) > MAX_JSON:
            raise RunError(f"{path}: {_SETTINGS} has more than {MAX_JSON:,} bytes")
        content = file.read(_SETTINGS).tobytes().rstrip(b"\0").decode("utf-8", "replace")
        self._values = _flat(content, f"{path}, {_SETTINGS}")
        for name, allowed in _MUST_BE.items():
            value = self._values.get(name, allowed[0])
            text = ", ".join(value) if isinstance(value, list) else value
            if text not in allowed:
                raise RunError(
                    f"{path}: {name} is {text!r:.80}, but only {' or '.join(map(repr, allowed))} "
                    "can be imported"
                )
        other = self._values.get("transformer-decoder-dim-ffn", "0")
        if other not in ("0", self._values.get("transformer-dim-ffn")):
            raise RunError(
                f"{path}: transformer-decoder-dim-ffn is {other!r:.80}, not transformer-dim-ffn"
            )

    def count(self, name: str) -> int:
        value = self._values.get(name)
        if not isinstance(value, str) or not re.fullmatch(r"[1-9][0-9]{0,5}", value):
            raise RunError(f"{self._path}: {name} is {value!r:.80}, but must be a number")
        return int(value)

    def layers(self, name: str) -> int:
        if (value := self.count(name)) > MOST_LAYERS:
            raise RunError(f"{self._path}: {name} is {value}, but must be at most {MOST_LAYERS}")
        return value

    def on(self, name: str) -> bool:
        return str(self._values.get(name, "false")) == "true"

    @property
    def activation(self) -> str:
        name = self._values.get("transformer-ffn-activation", "swish")
        if not isinstance(name, str) or name not in _ACTIVATIONS:
            raise RunError(
                f"{self._path}: transformer-ffn-activation {name!r:.80} cannot be imported, only "
                f"{', '.join(_ACTIVATIONS)}"
            )
        return _ACTIVATIONS[name]


def _flat(text: str, where: str) -> dict[str, Any]:
    """Read the YAML that Marian writes: names with a value or a list of values, all as text."""
    values: dict[str, Any] = {}
    name = None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith(("#", "---")):
            continue
        if (item := _ITEM.match(line)) and name is not None and values[name] in ("", []):
            values[name] = [_plain(item[1].rstrip())]
        elif item and name is not None and isinstance(values[name], list):
            values[name].append(_plain(item[1].rstrip()))
        elif (pair := _LINE.match(line)) is not None:
            name = _plain(pair[1])
            if name in values:
                raise RunError(f"{where}, line {number}: {name[:80]!r} occurs twice")
            values[name] = _plain((pair[2] or "").rstrip())
        elif name is None or not line.startswith((" ", "\t")):
            raise RunError(f"{where}, line {number} is not a name and a value, as in {PROGRAM}")
    return values


def _plain(text: str) -> str:
    if text.startswith("'") and text.endswith("'") and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return text.strip('"')
    return text


# ---- vocabularies and search


def _decoder(folder: Path, path: Path) -> dict[str, Any]:
    for name in ("decoder.yml", f"{path.name}.decoder.yml"):
        if (file := folder / name).is_file():
            return _flat(read_bytes(file, MOST_JSON).decode("utf-8", "replace"), str(file))
    return {}


def _search(folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Beam and length penalty. A score is divided by length^α there, and what ends leaves the
    beam."""
    try:
        beam, alpha = int(given.get("beam-size", _BEAM)), float(given.get("normalize", 0))
    except (TypeError, ValueError):
        beam, alpha = 0, 0.0
    if not 1 <= beam <= 4096 or not 0 <= alpha <= 10:
        raise RunError(
            f"{folder}: beam-size or normalize of decoder.yml is not a number in the allowed range"
        )
    return {"beam": beam, "length_penalty": alpha, "penalty": "marian", "stop": "empty"}


def _paths(folder: Path, named: Any) -> list[Path]:
    """The vocabularies of source and target: those that decoder.yml names, or all there are."""
    if isinstance(named, list):
        paths = [folder / Path(name).name for name in named]
    else:
        paths = sorted(folder.glob("*.vocab.yml")) or sorted(folder.glob("*.spm"))
        paths = paths * 2 if len(paths) == 1 else paths
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise RunError(f"{folder} has no {missing[0][:80]}, which is a vocabulary of the model")
    if len(paths) != 2 or (named is None and paths[0] != paths[1]):
        raise RunError(
            f"{folder} has {len(paths)} vocabularies (*.vocab.yml, *.spm), but decoder.yml does "
            "not name those of source and target. Add them there, as vocabs"
        )
    return paths


def _vocabularies(folder: Path, named: Any, said: list[str]) -> list[Vocabulary]:
    made = []
    for side, path in zip(("source", "target"), _paths(folder, named), strict=True):
        direct = path.suffix == ".spm"
        table = check_table(pieces_of(path), path) if direct else _table(path)
        if UNKNOWN not in table or END not in table:
            raise RunError(f"{path} has no {UNKNOWN} or no {END}")
        # Marian has no <s>. An ordinary token of that name is not the start of an output.
        specials = {UNKNOWN: table.index(UNKNOWN), BEGIN: -1, END: table.index(END)}
        cutter = path if direct else folder / f"{side}.spm"
        if cutter.is_file():
            made.append(from_sentencepiece(cutter, table, specials, side == "source"))
            continue
        if any(folder.glob("*.bpe")):
            raise RunError(f"{folder} splits text by subword-nmt (BPE), which cannot be imported")
        made.append(from_table_alone(table, specials, (), path))
        said.append(f"there is no tokenizer for the {side}: the vocabulary tells how text is read")
    return made


def _table(path: Path) -> list[str]:
    entries = _flat(read_bytes(path, MOST_JSON).decode("utf-8", "replace"), str(path))
    try:
        table = {name: int(number) for name, number in entries.items()}
    except (TypeError, ValueError):
        raise RunError(f"{path} is not a table of tokens and ids") from None
    return check_table(table_in_order(table, path), path)
