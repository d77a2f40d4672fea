"""A sensible model, size and schedule for a parser, if a user gives only trees.

The number of trees chooses a row of ``TREE_TABLE``. On few trees LSTMs with attention learn more
than a Transformer (``docs/results.md``), so it also chooses between the two, and how much is held
out. All choices are written into the recipe.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dragoman.base.errors import RecipeError
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.tree import LABEL_ENDS
from dragoman.runs.recipe.recipe import Recipe
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections, make_corpus
from dragoman.sizing.size import Size

FEW = 10_000
"""Below this number of trees, LSTMs with attention (Vinyals et al., 2015) as in the recipe
wsj-sample-lstm; above it, a Transformer."""

TREE_TABLE = (
    Size(1_000, 1_000, 128, 1, 2, 0.3, 2_048, 200, 3e-3, 100),
    Size(FEW, 4_000, 256, 1, 2, 0.3, 4_096, 300, 3e-3, 40),
    Size(100_000, 8_000, 256, 8, 4, 0.2, 8_192, 2_000, 1.5e-3, 25),
    Size(float("inf"), 16_000, 512, 8, 6, 0.1, 16_384, 4_000, 7e-4, 8),
)
"""The size of a parser by the number of trees; docs/trees.md shows it to users."""


class ParsingBuilder(RecipeBuilder):
    """Builds the recipe for bracketed trees, in a file or a folder of files."""

    table = TREE_TABLE
    fits = ("label_ends", "texts", "columns")
    is_named = True
    one_input = ("bracketed trees", "one file, or a folder of files")
    held_as = ("one file, or a folder of files", "")
    is_whole = True
    sampled = 50

    def file_at(self, path: str) -> CorpusSettings:
        ends = self.options.label_ends
        if ends is None:
            ends = label_ends_of(self.base or self.learned)
        about = {"source": path, "format": "trees", "label_ends": ends}
        return make_corpus(about, "--label-ends", ends)

    def model(self, row: Size) -> Sections:
        family = self.options.model
        if family not in (None, *_MADE):
            raise RecipeError(f"--model {family}: a parser can be {' or '.join(_MADE)}")
        made = _MADE[family or ("lstm" if row.below <= FEW else "transformer")]
        return made(row)

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        return {
            "data": {"cleaning": CLEANING},
            "text": {"shared": False, "normalization": "identity"},
            "plan": {"max_target": 600},
            "search": {"beam": 10, "length_penalty": 0.0},
            "evaluation": {"dev_sentences": 200},
        }


def label_ends_of(learned: Recipe | None) -> str:
    """The characters that end the labels in the training trees of a recipe."""
    corpora = learned.data.train if learned is not None else ()
    return corpora[0].label_ends if corpora else LABEL_ENDS


def _recurrent(row: Size) -> dict[str, Any]:
    model = {
        "kind": "recurrent", "model_dim": row.model_dim, "encoder_layers": row.layers,
        "decoder_layers": row.layers, "attention": "additive", "attends": "first",
        "dropout": row.dropout, "tie": "target",
    }  # fmt: skip
    training = {**row.training(), "average_last": 5, "guided": {"weight": 0.2}}
    return {"model": model, "training": training, "trees": {"tags": "kept"}}


def _transformer(row: Size) -> dict[str, Any]:
    training = {**row.training("inverse_square_root"), "average_last": 5}
    # A row for few trees has one head, because an LSTM learns more from them.
    row = replace(row, heads=max(row.heads, row.model_dim // 64))
    model = {**row.both, "tie": "target", "next_word": True}
    return {"model": model, "training": training}


_MADE = {"lstm": _recurrent, "transformer": _transformer}
"""The best settings of each family for parsing (docs/results.md), with its training."""

CLEANING = {"max_length": 0, "max_length_ratio": 0}
"""No limits: a tree is much longer than its sentence."""
