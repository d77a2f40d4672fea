"""A recipe of each task that trains in a second, over a small text. Not a test: tests import it."""

from __future__ import annotations

import random
from pathlib import Path

from recipe_of_files import recipe_of
from tiny_scenes import write_scenes
from tiny_shapes import write_blocks, write_codes
from tiny_treebank import treebank, write_treebank

from dragoman.demo.corpus import demo_corpus
from dragoman.runs.recipe.recipe import Recipe

_STACK = (
    "text.vocabulary=400", "model.model_dim=32", "model.ffn_dim=32",
    "model.attention.num_heads=2", "model.dropout=0.1", "plan.tokens_per_update=256",
    "plan.tokens_per_micro_batch=256", "training.updates=4", "training.validate_every=2",
    "training.schedule.warmup=2", "training.schedule.peak=5e-3", "training.average_last=0",
    "training.precision=fp32", "evaluation.dev_sentences=5", "data.split.dev=0.2",
    "data.split.test=0.1",
)  # fmt: skip
_BOTH = (*_STACK, "model.encoder_layers=1", "model.decoder_layers=1")
_AUTOENCODER = (
    "model.model_dim=16", "model.blocks=1", "source.patch=8",
    *(one for one in _STACK if not one.startswith(("text.", "model."))),
)  # fmt: skip
_ONE = (*_STACK, "model.layers=1", "plan.context=24")
_FEW_WORDS = ("text.kind=word", "text.byte_fallback=false", "text.sampling=0")
_WORDS = {"animals": ("dog", "cat", "horse"), "food": ("bread", "soup", "apple")}


def tiny_recipe_of(task: str, folder: Path, *changes: str) -> Recipe:
    """For a text that is written to ``folder``."""
    sizes = _BOTH if task in ("translation", "parsing", "detection", "painting") else _ONE
    if task == "codes":
        sizes = _AUTOENCODER
    if task in ("classification", "parsing", "tagging", "painting"):  # whose words are few
        sizes = (*sizes, *_FEW_WORDS)
    if task == "parsing":
        sizes = (*sizes, "trees.chain=1")
    given = [str(path) for path in _write_text(task, folder)]
    base = "wsj-sample" if task == "parsing" else None
    codes = str(write_codes(folder / "codes")) if task == "painting" else None
    return recipe_of(given, task=task, base=base, codes=codes, changes=[*sizes, *changes])[0]


def tiny_tagger_of(tagged: Path, *changes: str) -> Recipe:
    """The same for a file of tagged words."""
    return recipe_of(
        [str(tagged)], task="tagging", changes=[*_ONE, *_FEW_WORDS, *changes]
    )[0]  # fmt: skip


def tagged_line(draw: random.Random) -> str:
    """Words of two kinds; one behind another of its kind goes on with its span."""
    kinds = draw.choices(sorted(_WORDS), k=6)
    marks = [
        "I" if kind == before else "B"
        for kind, before in zip(kinds, ["", *kinds[:-1]], strict=True)
    ]
    marked = zip(kinds, marks, strict=True)
    return " ".join(f"{draw.choice(_WORDS[kind])}_{mark}-{kind}" for kind, mark in marked)


def _write_text(task: str, folder: Path) -> list[Path]:
    if task == "detection":
        return [write_scenes(folder / "scenes", 60)]
    if task in ("codes", "painting"):
        return [write_blocks(folder, copies=24 if task == "painting" else 6)]
    if task == "parsing":
        return [write_treebank(folder / "toy.mrg", treebank(120))]
    pairs = demo_corpus(train_pairs=200, dev_pairs=1, test_pairs=1).train
    sides = {"my.en": [pair.source for pair in pairs], "my.de": [pair.target for pair in pairs]}
    if task == "classification":
        draw = random.Random(1)
        labelled = [
            f"{label}\t{' '.join(draw.choices(_WORDS[label], k=5))}"
            for label in draw.choices(sorted(_WORDS), k=120)
        ]
        sides = {"my.tsv": labelled}
    elif task == "tagging":
        sides = {"my.txt": [tagged_line(draw) for draw in map(random.Random, range(160))]}
    elif task != "translation":
        sides = {"my.txt": sides["my.en"]}
    for name, lines in sides.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [folder / name for name in sides]
