"""A sane size and schedule of a parser, when a user gives nothing but trees.

``TREE_TABLE`` is what is chosen: the number of trees chooses a row. How much is held out follows
from it too; all of it is written into the recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.data.corpora import CorpusSettings, read_pairs
from dragoman.data.split import SplitSettings
from dragoman.errors import DataError
from dragoman.recipe import Recipe


@dataclass(frozen=True)
class TreeSize:
    """One row: what is chosen below so many trees."""

    trees: float
    vocabulary: int
    model_dim: int
    heads: int
    layers: int
    dropout: float
    tokens_per_update: int
    warmup: int
    peak: float
    epochs: int
    """How long to train if no time is given."""


TREE_TABLE = (
    TreeSize(1_000, 1_000, 128, 4, 2, 0.3, 2_048, 200, 3e-3, 100),
    TreeSize(10_000, 4_000, 256, 8, 3, 0.3, 4_096, 800, 1.5e-3, 60),
    TreeSize(100_000, 8_000, 256, 8, 4, 0.2, 8_192, 2_000, 1.5e-3, 25),
    TreeSize(float("inf"), 16_000, 512, 8, 6, 0.1, 16_384, 4_000, 7e-4, 8),
)
"""docs/recipes.md shows it for users."""


def recipe_for_trees(
    path: str, language: str = "und", base: str | None = None
) -> tuple[Recipe, int | None]:
    """A recipe for a file or a folder of bracketed trees, by ``TREE_TABLE`` or by the recipe
    ``base``, and how many epochs it wants (None: ``base`` says how long).

    Errors: ``DataError`` for files that cannot be used.
    """
    corpus = CorpusSettings(source=path, format="trees")
    trees = 0
    words: set[str] = set()
    for pair in read_pairs(corpus):
        trees += 1
        words.update(pair.source.split())
    if not trees:
        raise DataError(f"{path} holds no tree")
    letters = len({letter for word in words for letter in word})
    data = {
        "train": [corpus.model_dump(exclude_none=True)],
        "split": SplitSettings.for_pairs(trees).model_dump(),
    }
    about: dict[str, Any] = {
        "name": Path(path).name.split(".")[0], "languages": {"source": language},
    }  # fmt: skip
    if base is not None:
        values = Recipe.load(base).model_dump(mode="json", exclude_none=True)
        kept = {"cleaning": values["data"]["cleaning"]}
        if language == "und":
            del about["languages"]
        return Recipe.parse({**values, **about, "data": kept | data}), None
    row = next(row for row in TREE_TABLE if trees < row.trees)
    # Every word and character of the text could be a token; 259 are the special and byte tokens.
    vocabulary = min(row.vocabulary, 259 + letters + len(words) // 2)
    values = {
        **about,
        "task": "parsing",
        "data": data | {"cleaning": CLEANING},
        "text": {"vocabulary": vocabulary, "shared": False, "normalization": "identity"},
        "model": {
            "model_dim": row.model_dim, "ffn_dim": 4 * row.model_dim,
            "encoder_layers": row.layers, "decoder_layers": row.layers, "dropout": row.dropout,
            "attention": {"num_heads": row.heads}, "tie": "target",
        },
        "plan": {
            "tokens_per_update": row.tokens_per_update,
            "tokens_per_micro_batch": min(4096, row.tokens_per_update),
            "max_target": 600,
        },
        "training": {
            "updates": 10 * row.warmup,
            "average_last": 5,
            "clip_norm": 1.0,
            "schedule": {
                "kind": "inverse_square_root", "warmup": row.warmup, "peak": row.peak,
            },
        },
        "search": {"beam": 10, "length_penalty": 0.0},
        "evaluation": {"dev_sentences": 200},
    }  # fmt: skip
    return Recipe.parse(values), row.epochs


CLEANING = {"max_length": 0, "max_length_ratio": 0}
"""A tree is much longer than its sentence, and none is too long for being written out."""
