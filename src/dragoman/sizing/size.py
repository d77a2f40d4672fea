"""The rows of tables of sizes, and the settings that follow from a row for each family of models
that ``--model`` names.

Width, layers and the size of updates are the same for all families. Learning rate and dropout
differ: they come from sweeps on Multi30k (the recipes ``multi30k-en-de``, ``-lstm`` and ``-conv``)
and on film reviews (``movie-reviews``, ``-lstm``).

The tables are in ``tasks/NAME/sizes.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dragoman.base.errors import RecipeError
from dragoman.models.settings import KINDS, ModelSettings
from dragoman.runs.recipe.spec import Spec

LEAST_DROPOUT, PASSES = 0.1, 120
"""The dropout of a few passes over the text, and the number of passes for which it would be 1."""


@dataclass(frozen=True)
class Size:
    """The size and the training of a model for a certain amount of text."""

    below: float
    """The limit of the row: it is for less text than this, in the unit of its table: pairs,
    labelled texts, trees or characters."""
    vocabulary: int
    """The most tokens of the vocabulary; the text may reduce them (``vocabulary_size.py``)."""
    model_dim: int
    heads: int
    layers: int
    dropout: float
    tokens_per_update: int
    warmup: int
    peak: float
    epochs: int
    """The length of the training if no time is given."""
    optimizer: Literal["adam", "muon"] = "adam"
    peak_with_adam: float = 0.0
    """For a row with Muon: the highest learning rate of families that learn with Adam."""

    @property
    def stack(self) -> dict[str, Any]:
        """The section ``model``, without its kind, for a model of one stack."""
        return {**self._widths, "layers": self.layers}

    @property
    def both(self) -> dict[str, Any]:
        """The section ``model``, without its kind, for a model with an encoder and a decoder."""
        return {**self._widths, "encoder_layers": self.layers, "decoder_layers": self.layers}

    @property
    def _widths(self) -> dict[str, Any]:
        return {
            "model_dim": self.model_dim,
            "ffn_dim": 4 * self.model_dim,
            "dropout": self.dropout,
            "attention": {"num_heads": self.heads},
        }

    @property
    def plan(self) -> dict[str, Any]:
        """The section ``plan`` of the recipe."""
        return {
            "tokens_per_update": self.tokens_per_update,
            "tokens_per_micro_batch": min(4096, self.tokens_per_update),
        }

    def training(self, schedule: str = "cosine") -> dict[str, Any]:
        """The section ``training`` of the recipe, with this kind of schedule."""
        return {
            "updates": 10 * self.warmup,
            "clip_norm": 1.0,
            "optimizer": {"kind": self.optimizer},
            "schedule": {"kind": schedule, "warmup": self.warmup, "peak": self.peak},
        }


def row_of(table: Sequence[Size], count: float) -> Size:
    """The row of a table for an amount of ``count``."""
    return next(row for row in table if count < row.below)


Shape = Callable[[Size], dict[str, Any]]
"""A function from a row to the section ``model`` of a recipe."""


@dataclass(frozen=True)
class Family:
    """A family of models: its settings by the kind of task."""

    both: Shape | None
    """For a model that reads and writes."""
    reader: Shape | None
    """For a model that only reads, or whose representation of a text is used."""
    writer: Shape | None
    """For a model that only writes."""
    rate: float = 1.0
    """Its highest learning rate, relative to that of the row."""
    by_adam: bool = False
    """True if it learns with Adam even if the table has Muon."""


def _lstm(row: Size) -> dict[str, Any]:
    layers = max(2, row.layers)  # else no layer would read the result of the attention
    return {
        "kind": "recurrent", "model_dim": row.model_dim, "encoder_layers": layers,
        "decoder_layers": layers, "attention": "additive", "attends": "first",
        "dropout": round(row.dropout * 2 / 3, 3),
    }  # fmt: skip


def _lstm_alone(row: Size) -> dict[str, Any]:
    return {
        "kind": "recurrent-decoder", "model_dim": row.model_dim, "layers": row.layers,
        "dropout": row.dropout, "embedding_dropout": row.dropout / 2,
        "recurrent_dropout": row.dropout / 2,
    }  # fmt: skip


def _convolutions(row: Size) -> dict[str, Any]:
    return {
        "kind": "convolutional", "model_dim": row.model_dim, "channels": row.model_dim,
        "encoder_layers": row.layers + 1, "decoder_layers": row.layers,
        "dropout": round(row.dropout / 3, 3),
    }  # fmt: skip


def _transformer(row: Size) -> dict[str, Any]:
    norm = {"norm": "pre"} if row.optimizer == "muon" else {}  # docs/experiments/few-passes.md
    return {"kind": "transformer", **row.both, **norm}


FAMILIES = {
    "transformer": Family(
        both=_transformer,
        reader=lambda row: {"kind": "encoder", **row.stack},
        writer=lambda row: {"kind": "decoder", **row.stack},
    ),
    "lstm": Family(both=_lstm, reader=_lstm_alone, writer=_lstm_alone, rate=1.4, by_adam=True),
    "conv": Family(both=_convolutions, reader=None, writer=None, rate=0.75, by_adam=True),
}
"""The families of models, by the names of ``--model``."""
DEFAULT = "transformer"


def check_family(family: str) -> None:
    """Errors: ``RecipeError`` for an unknown family."""
    if family not in FAMILIES:
        raise RecipeError(f"--model {family}: use one of {', '.join(FAMILIES)}")


def shape_of(family: str, task: Spec) -> Shape:
    """The function from a row to the model settings for ``task``. Errors: ``RecipeError`` if the
    family has no such model."""
    able = {name: _shape(FAMILIES[name], task) for name in FAMILIES}
    shape = able[family]
    if shape is None:
        others = [name for name in able if able[name] is not None]
        raise RecipeError(
            f"--model {family} cannot learn a {task.called}. Use --model {' or '.join(others)}"
        )
    return shape


def settings_of(family: str, task: Spec, row: Size) -> ModelSettings:
    """The model settings for ``task`` with the size of a row."""
    values = shape_of(family, task)(row)
    made: ModelSettings = KINDS[values["kind"]].model_validate(values)
    return made


def size_for(family: str, row: Size) -> Size:
    """The row with the optimizer and the highest learning rate of a family."""
    rate = FAMILIES[family].rate
    if FAMILIES[family].by_adam and row.optimizer == "muon":
        row = replace(row, peak=row.peak_with_adam, optimizer="adam")
    return replace(row, peak=float(f"{rate * row.peak:.2g}"))


def for_passes(row: Size, family: str, passes: float) -> Size:
    """The row for a model that sees the text so many times, with less dropout if Muon trains it and
    the passes are few, since it then has no time to learn by heart
    (docs/experiments/few-passes.md)."""
    if size_for(family, row).optimizer != "muon" or not passes:
        return row
    return replace(row, dropout=min(row.dropout, max(LEAST_DROPOUT, round(passes / PASSES, 2))))


def _shape(family: Family, task: Spec) -> Shape | None:
    if task.reads and task.writes:
        return family.both
    if task.writes:
        return family.writer
    # A masked model predicts each token from both sides, and layers that run from left to right do
    # not see the right side.
    left_to_right = family.reader is family.writer
    return None if left_to_right and not task.has_head else family.reader
