"""A sane model, size and schedule of a parser, when a user gives nothing but trees.

``TREE_TABLE`` is what is chosen: the number of trees chooses a row. From few trees LSTMs with
attention learn more than a Transformer (``docs/results.md``), so it also chooses which of the two.
How much is held out follows from it too; all of it is written into the recipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.tree import LABEL_ENDS
from dragoman.recipe.recipe import Recipe
from dragoman.recipe.spec import Spec
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections
from dragoman.sizing.inputs import Inputs, with_label_ends
from dragoman.sizing.size import Size
from dragoman.tasks.parsing.spec import PARSING

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

_SAMPLE_SIZE = 50
"""Sentences whose language is identified."""


class ParsingBuilder(RecipeBuilder):
    """Bracketed trees, in a file or a folder of files."""

    task: ClassVar[Spec] = PARSING
    table: ClassVar[Sequence[Size]] = TREE_TABLE

    def takes(self, inputs: Inputs) -> bool:
        return inputs.names_task or inputs.are_files

    def check(self, inputs: Inputs) -> None:
        if len(inputs.names) > 1 or inputs.keys is not None:
            raise RecipeError(
                "a parser learns from bracketed trees: give one file, or a folder of files. What "
                "it is measured on is held out of it, or named by --dev FILE and --test FILE"
            )
        self.check_whole(inputs)

    def corpus(self, inputs: Inputs) -> CorpusSettings:
        ends, learned = inputs.label_ends, inputs.base
        if learned is None and inputs.start_from is not None:
            learned = inputs.start_from.recipe
        if ends is None:
            ends = label_ends_of(learned)
        return with_label_ends(CorpusSettings(source=inputs.first, format="trees"), ends)

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        trees, sentences = 0, list[str]()
        for pair in read_pairs(corpus):
            trees += 1
            if trees <= _SAMPLE_SIZE:
                sentences.append(pair.source)
        if not trees:
            raise DataError(f"{corpus.source} holds no tree")
        return CorpusSummary(trees, trees, sentences)

    def learned(self, row: Size, family: str | None) -> Sections:
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
    """The characters at which labels end in the trees that a recipe learns from."""
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
    row = replace(row, heads=max(row.heads, row.model_dim // 64))  # few trees: an LSTM's has one
    model = {**row.both, "tie": "target", "next_word": True}
    return {"model": model, "training": training}


_MADE = {"lstm": _recurrent, "transformer": _transformer}
"""Of each family what parses best (docs/results.md), with its training."""

CLEANING = {"max_length": 0, "max_length_ratio": 0}
"""A tree is much longer than its sentence, and none is too long for being written out."""
