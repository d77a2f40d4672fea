"""What is translated: models of random weights and forced lengths, or a trained run and its text.

Every work is a folder that all systems read: ``model.json`` and ``model.safetensors`` (settings and
weights under our names), ``ctranslate2`` or ``hugging-face`` for these programs (``export``),
``shortlist`` (optional), and ``run`` where text goes in and comes out.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file

from dragoman.forms.subwords.text import TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.interop import to_ctranslate2, to_huggingface
from dragoman.models.settings import TransformerSettings
from dragoman.models.shortlist import Shortlist, ShortlistSettings
from dragoman.models.transformer.model import Transformer
from dragoman.runs.run import RECIPE, SHORTLIST, WEIGHTS, load_shortlist
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.training.weights import save_weights

SMALL = {"model_dim": 256, "ffn_dim": 1024, "encoder_layers": 3, "decoder_layers": 3}
BASE = {"model_dim": 512, "ffn_dim": 2048, "encoder_layers": 6, "decoder_layers": 6}
MARIAN = {"activation": "swish", "positions": {"kind": "marian"}, "zero_start": True}
"""What OPUS-MT's models have beside the base size."""
SIZES: dict[str, tuple[dict[str, Any], int, int]] = {
    "d256": (SMALL, 8000, 14),
    "d512": (BASE, 32000, 30),
    "opus": (BASE | MARIAN, 58000, 30),
}
"""Model, vocabulary, tokens that each sentence gets."""

NEWS_VOCABULARY, NEWS_TOKENS = 8000, 30
"""Of a run with random weights over a text: its own subwords, and the length of every output."""


RANDOM_CANDIDATES = 5
"""Of a source token where weights are random: words of real sentences share theirs."""


@dataclass
class Work:
    """Sentences to translate with one model, in a folder that every system reads."""

    name: str
    folder: Path
    sources: list[Any]
    """Texts, or lists of token ids with the end symbol."""
    references: list[str] | None
    length: int | None
    """Tokens that every output is to have; None: it ends by itself."""
    random_weights: bool

    @property
    def has_shortlist(self) -> bool:
        return (self.folder / SHORTLIST).exists()


def random_work(size: str, sentences: int, folder: Path) -> Work:
    """Token ids in and out, over fresh weights whose end symbol never wins."""
    changes, vocabulary, length = SIZES[size]
    settings = TransformerSettings.model_validate(changes)
    write_model(folder, settings, endless_model(settings, vocabulary))
    random_shortlist(vocabulary).save(folder / SHORTLIST, "random")
    return Work(size, folder, random_sources(sentences, vocabulary), None, length, True)


def text_work(
    name: str, sources: list[str], folder: Path, vocabulary: int = NEWS_VOCABULARY
) -> Work:
    """Text in and out, over a base model of random weights and subwords learned from the text, of
    which there are as many as it allows and at most ``vocabulary``."""
    size = min(vocabulary, 2 * len(sources))
    text = learn_vocabulary(sources, TextSettings(vocabulary=size, byte_fallback=False))
    changes = [f"model.{key}={value}" for key, value in BASE.items()]
    recipe = Recipe.load("transformer-base", [*changes, f"text.vocabulary={text.size}"])
    run = folder / "run"
    run.mkdir()
    recipe.save(run / RECIPE)
    text.save(run / "shared.model")
    model = endless_model(recipe.model, text.size)
    save_weights(run / WEIGHTS, model.state_dict(), {"weights": "random"})
    write_model(folder, recipe.model, model)
    random_shortlist(text.size).save(run / SHORTLIST, Run.open(run).weights_hash)
    (folder / SHORTLIST).symlink_to(run / SHORTLIST)
    return Work(name, folder, sources, None, NEWS_TOKENS, True)


def run_work(
    name: str, run: Path, sources: list[str], references: list[str] | None, folder: Path
) -> Work:
    """Text in and out, by a trained run, natural ends."""
    opened = Run.open(run)
    write_model(folder, opened.recipe.model, opened.model())
    (folder / "run").symlink_to(run.resolve())
    if (run / SHORTLIST).exists():
        load_shortlist(opened)  # tells if it is for other weights
        (folder / SHORTLIST).symlink_to(run.resolve() / SHORTLIST)
    return Work(name, folder, sources, references, None, False)


def endless_model(settings: TransformerSettings, vocabulary: int) -> Transformer:
    """Fresh weights whose end symbol never wins."""
    torch.manual_seed(0)
    model = Transformer(settings, vocabulary, vocabulary)
    with torch.no_grad():
        model.source_embedding.weight[2] = 0.0
    return model


def write_model(folder: Path, settings: TransformerSettings, model: Transformer) -> None:
    (folder / "model.json").write_text(settings.model_dump_json(), encoding="utf-8")
    state = {name: value.float().contiguous() for name, value in model.state_dict().items()}
    save_file(state, folder / "model.safetensors")


def export(work: Work, name: str) -> None:
    """Write the model for CTranslate2 or Hugging Face, once; its tokens are the ids as text."""
    folder = work.folder / name
    if folder.exists():
        return
    folder.mkdir()
    given = (work.folder / "model.json").read_text(encoding="utf-8")
    settings = TransformerSettings.model_validate_json(given)
    weights = load_file(work.folder / "model.safetensors")
    source = len(weights["source_embedding.weight"])
    sizes = source, len(weights.get("target_embedding.weight", range(source)))
    if name == "ctranslate2":
        tokens = [["<unk>", "<s>", "</s>", *map(str, range(3, size))] for size in sizes]
        to_ctranslate2.write_model(settings, weights, tokens, folder)
    else:
        to_huggingface.write_model(settings, weights, sizes, folder)


def random_shortlist(vocabulary: int) -> Shortlist:
    """As many columns for 64 sentences together as one that was learned from Multi30k."""
    generator, settings = np.random.default_rng(0), ShortlistSettings()
    offsets = np.arange(vocabulary + 1, dtype=np.int32) * RANDOM_CANDIDATES
    candidates = generator.integers(3, vocabulary, int(offsets[-1])).astype(np.int32)
    return Shortlist(np.arange(settings.always, dtype=np.int32), offsets, candidates)


def random_sources(count: int, vocabulary: int) -> list[list[int]]:
    """Token ids with lengths like those of image captions, end symbol included."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(13.5, 4.0, count).round().astype(int), 4, 40)
    return [[*generator.integers(3, vocabulary, n - 1).tolist(), 2] for n in lengths]


def lines_of(path: Path) -> list[str]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    return text.split("\n")[:-1]


def words_of(source: Any) -> int:
    """Words of a text, or tokens less the end symbol."""
    return len(source.split()) if isinstance(source, str) else len(source) - 1
