"""A recipe that trains in a second for every task, kind of model and source. Not a test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from row_files import write_bars, write_tones
from tiny_scenes import write_scenes
from tiny_tasks import tiny_recipe_of

from dragoman.tasks.catalogue import TASKS, Recipe

PAGE = Path(__file__).parents[2] / "docs" / "sources.md"

SOURCES = ("text", "frames", "picture", "line")
_STACK = {"model_dim": 32, "ffn_dim": 32, "layers": 1, "attention": {"num_heads": 2}, "dropout": 0}
_BOTH = {
    "model_dim": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0, "tie": "target",
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "transformer": _BOTH | {"ffn_dim": 32, "attention": {"num_heads": 2}},
    "recurrent": _BOTH,
    "convolutional": _BOTH | {"channels": 32},
    "decoder": _STACK,
    "encoder": _STACK,
    "recurrent-decoder": {"model_dim": 32, "layers": 1, "dropout": 0},
}
"""Sizes of a model of each kind."""
_TRAINING = (
    "training.updates=30", "training.validate_every=10", "training.schedule.peak=1e-2",
    "training.schedule.warmup=5", "training.label_smoothing=0", "training.average_last=0",
    "training.precision=fp32", "training.clip_norm=1", "data.split.dev=0.2", "data.split.test=0.1",
    "evaluation.dev_sentences=2", "training.optimizer.kind=adam",
    "training.schedule.kind=inverse_square_root",
)  # fmt: skip


def told_cells() -> dict[tuple[str, str], set[str]]:
    """(task, source) -> the kinds of models that docs/sources.md names for it."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].strip("`") in TASKS and len(cells) == 1 + len(SOURCES):
            task = cells[0].strip("`")
            for source, cell in zip(SOURCES, cells[1:], strict=True):
                found[task, source] = set(re.findall(r"`([a-z-]+)`", cell))
    return found


def tiny_cell(task: str, kind: str, source: str, folder: Path) -> Recipe:
    """Errors: ``RecipeError`` for a cell that there is not."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = tiny_recipe_of(task, folder)
    values = recipe.model_dump(mode="json", exclude_none=True)
    values["model"] = {"kind": kind, **MODELS[kind]}
    if source == "text" and recipe.spec.reads_files:
        values["source"] = {"kind": "text"}
    if source != "text":
        values["source"], values["data"]["train"] = _files(task, source, folder)
        values["plan"] |= {
            "context": 64, "max_source": 64,
            "tokens_per_update": 512, "tokens_per_micro_batch": 512,
        }  # fmt: skip
        if "target" in recipe.spec.texts:
            values["text"] = {"kind": "word", "byte_fallback": False, "vocabulary": 10}
    return Recipe.parse(values, _TRAINING)


def _files(task: str, source: str, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The sections ``source`` and ``data.train``, of files that are written."""
    if source == "picture" and task == "detection":
        about = {"kind": "picture", "height": 16, "width": 16, "patch": 4}
        return about, [{"source": str(write_scenes(folder / "scenes", 80)), "format": "coco"}]
    if source == "picture":
        pictures, labels = write_bars(folder)
        about = {"kind": "picture", "height": 8, "width": 8, "patch": 4}
        return about, [{"source": str(pictures), "target": str(labels)}]
    if source == "line":
        listing = folder / "words.tsv"
        words = ["red", "green", "blue", "white"]
        about = {"kind": "line", "height": 8, "subsample": 4, "channels": 4}
        lines = [f"{words[n % 4]} {n}\t{words[n % 4]}\n" for n in range(40)]
        listing.write_text("".join(lines), encoding="utf-8")
        return about, [{"source": str(listing), "holds": "drawn"}]
    about = {"kind": "frames", "rate": 8000, "bands": 20, "subsample": 2, "channels": 4}
    root = write_tones(folder / "tones", 40)
    if task == "classification":
        return about, [{"source": str(root), "format": "folders"}]
    lines = [
        f"{file.relative_to(folder)}\ta {file.parent.name} tone" for file in root.rglob("*.wav")
    ]
    listing = folder / "tones.tsv"
    listing.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
    return about, [{"source": str(listing), "holds": "files"}]
