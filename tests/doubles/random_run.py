"""A translator with random weights, gains and biases. Not a test: tests import it."""

from __future__ import annotations

from pathlib import Path

import torch

from dragoman.demo.corpus import demo_corpus
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.forms.text_form import TextForm
from dragoman.runs.model import build_model
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.training.weights import save_weights

PAIRS = demo_corpus(train_pairs=600, dev_pairs=1, test_pairs=500)
LINES = [pair.source for pair in PAIRS.test]
SHARED = (
    "model.model_dim=24", "model.ffn_dim=40", "model.encoder_layers=2", "model.decoder_layers=3",
    "text.vocabulary=500", "text.byte_fallback=true",
)  # fmt: skip
"""A shape: one vocabulary of BPE and bytes, one matrix for all, ReLU."""
APART = (
    "model.model_dim=16", "model.ffn_dim=48", "model.attention.num_heads=2",
    "model.activation=gelu", "model.output_bias=true", "model.tie=none",
    "text.shared=false", "text.kind=unigram", "text.vocabulary=150",
)  # fmt: skip
"""Another: a vocabulary and matrices of each side's own, output biases, GELU."""


def random_run(folder: Path, *changes: str) -> Run:
    """Write a run of the demo's recipe with ``changes``."""
    recipe = Recipe.load("demo", changes)
    folder.mkdir()
    sides = [[p.source for p in PAIRS.train], [p.target for p in PAIRS.train]]
    if recipe.text.shared:
        texts = [learn_vocabulary([*sides[0], *sides[1]], recipe.text)] * 2
        texts[0].save(folder / "shared.model")
    else:
        texts = [learn_vocabulary(lines, recipe.text) for lines in sides]
        texts[0].save(folder / "source.model")
        texts[1].save(folder / "target.model")
    source, target = (TextForm(text, "en") for text in texts)
    torch.manual_seed(5)
    model = build_model(recipe, source, target)
    for name, weight in model.named_parameters():
        scale = 0.6 if weight.dim() > 1 else 0.3
        weight.data.normal_(1.0 if name.endswith("norm.weight") else 0.0, scale)
        if name == "output_bias":
            weight.data[0] += 9  # <unk> would be written if it were not forbidden
    recipe.save(folder / "recipe.toml")
    save_weights(folder / "model.safetensors", model.state_dict(), {})
    return Run.open(folder)
