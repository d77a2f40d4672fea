"""A sane model, size and schedule of a parser, when a user gives nothing but trees.

``TREE_TABLE`` is what is chosen: the number of trees chooses a row. From few trees LSTMs with
attention learn more than a Transformer (``docs/results.md``), so it also chooses which of the two.
How much is held out follows from it too; all of it is written into the recipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dragoman.data.corpora import CorpusSettings, read_pairs
from dragoman.errors import DataError, RecipeError
from dragoman.forms.identification import language_of
from dragoman.recipe import Recipe
from dragoman.shortened import shortened
from dragoman.sizing.held_out import held_corpus
from dragoman.sizing.size import Size, data_of, like, row_of
from dragoman.tree import LABEL_ENDS

FEW = 10_000
"""For fewer trees than this LSTMs with attention (Vinyals et al., 2015), as the recipe
wsj-sample-lstm has them; for more a Transformer."""

TREE_TABLE = (
    Size(1_000, 1_000, 128, 1, 2, 0.3, 2_048, 200, 3e-3, 100),
    Size(FEW, 4_000, 256, 1, 2, 0.3, 4_096, 300, 3e-3, 40),
    Size(100_000, 8_000, 256, 8, 4, 0.2, 8_192, 2_000, 1.5e-3, 25),
    Size(float("inf"), 16_000, 512, 8, 6, 0.1, 16_384, 4_000, 7e-4, 8),
)
"""The size of a parser by the number of trees; docs/trees.md shows it to users."""

_LOOKED_AT = 50
"""Sentences whose language is identified."""


def recipe_for_trees(
    path: str,
    language: str = "und",
    base: str | None = None,
    dev: Sequence[str] | None = None,
    test: Sequence[str] | None = None,
    family: str | None = None,
    label_ends: str = LABEL_ENDS,
) -> tuple[Recipe, int | None]:
    """A recipe for a file or a folder of bracketed trees, by ``TREE_TABLE`` or by the recipe
    ``base``, and how many epochs it wants (None: ``base`` says how long). ``dev``, ``test``: files
    of their own; without one, a part of the trees is held out. ``family``: of the model
    (``families.py``); None: by the number of trees. ``label_ends``: as ``CorpusSettings`` has it.

    Errors: ``DataError`` for files that cannot be used, ``RecipeError`` for ``label_ends`` that are
    too long.
    """
    try:
        corpus = CorpusSettings(source=path, format="trees", label_ends=label_ends)
    except ValidationError as error:
        why = error.errors(include_input=False, include_url=False)[0]["msg"]
        raise RecipeError(f"--label-ends {shortened(label_ends, 40)}: {why}") from None
    trees = sum(1 for _ in read_pairs(corpus))
    if not trees:
        raise DataError(f"{path} holds no tree")
    if language == "und":
        language = language_of(pair.source for pair in islice(read_pairs(corpus), _LOOKED_AT))
    held = (held_corpus(option, files, corpus, "trees")
            for option, files in (("--dev", dev), ("--test", test)))  # fmt: skip
    about: dict[str, Any] = {
        "name": Path(path).name.split(".")[0],
        "languages": {"source": language},
        "data": data_of([corpus], trees, *held),
    }
    if base is not None:
        if language == "und":
            del about["languages"]
        return like(Recipe.load(base), about), None
    row = row_of(TREE_TABLE, trees)
    if family not in (None, *_MADE):
        raise RecipeError(f"--model {family}: a parser can be {' or '.join(_MADE)}")
    made = _MADE[family or ("lstm" if row.below <= FEW else "transformer")]
    values = {
        **about,
        "task": "parsing",
        "data": about["data"] | {"cleaning": CLEANING},
        "text": {"vocabulary": row.vocabulary, "shared": False, "normalization": "identity"},
        **made(row),
        "plan": {**row.plan, "max_target": 600},
        "search": {"beam": 10, "length_penalty": 0.0},
        "evaluation": {"dev_sentences": 200},
    }
    return Recipe.parse(values), row.epochs


def label_ends_of(learned: Recipe | None) -> str:
    """The characters at which labels end in the trees that a recipe learns from."""
    corpora = learned.data.train if learned is not None else ()
    return corpora[0].label_ends if corpora else LABEL_ENDS


def _recurrent(row: Size) -> dict[str, Any]:
    model = {
        "kind": "recurrent", "model_dim": row.model_dim, "encoder_layers": row.layers,
        "decoder_layers": row.layers, "attention": "additive", "attends": "first",
        "dropout": row.dropout, "tie": "target",
    }  # fmt: skip
    training = {**row.training("cosine"), "average_last": 5, "guided": {"weight": 0.2}}
    return {"model": model, "training": training, "trees": {"tags": "kept"}}


def _transformer(row: Size) -> dict[str, Any]:
    training = {**row.training("inverse_square_root"), "average_last": 5}
    row = replace(row, heads=max(row.heads, row.model_dim // 64))  # few trees: an LSTM's has one
    model = {**row.both, "tie": "target", "next_word": True}
    return {"model": model, "training": training}


_MADE = {"lstm": _recurrent, "transformer": _transformer}
"""Of each family what parses best (docs/results.md), with its training."""

CLEANING = {"max_length": 0, "max_length_ratio": 0}
"""A tree is much longer than its sentence, and none is too long for being written out."""
