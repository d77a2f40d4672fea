"""A row of a table of sizes, and what follows from it in a recipe: of each family of models that a
user can ask for by name.

Width, layers and the size of updates are the row's, whatever the family. What differs is how fast
each learns best and how much is dropped: by what sweeps found on Multi30k (the recipes
``multi30k-en-de``, ``-lstm`` and ``-conv``) and on film reviews (``movie-reviews``, ``-lstm``).

The tables stand in ``tasks/NAME/sizes.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dragoman.base.errors import RecipeError
from dragoman.models.settings import KINDS, ModelSettings
from dragoman.recipe.spec import Spec


@dataclass(frozen=True)
class Size:
    """A model and its training for text of up to a certain amount."""

    below: float
    """The row is for less text than this, counted as its table does: in pairs, labelled texts,
    trees or characters."""
    vocabulary: int
    """Tokens at most; what a text supports is found out later (``vocabulary_size.py``)."""
    model_dim: int
    heads: int
    layers: int
    dropout: float
    tokens_per_update: int
    warmup: int
    peak: float
    epochs: int
    """How long to train if no time is given."""
    optimizer: Literal["adam", "muon"] = "adam"

    @property
    def stack(self) -> dict[str, Any]:
        """The section ``model`` of a recipe whose model is one stack, but for its kind."""
        return {**self._widths, "layers": self.layers}

    @property
    def both(self) -> dict[str, Any]:
        """The section ``model`` of one with an encoder and a decoder."""
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
        """The section ``plan``."""
        return {
            "tokens_per_update": self.tokens_per_update,
            "tokens_per_micro_batch": min(4096, self.tokens_per_update),
        }

    def training(self, schedule: str = "cosine") -> dict[str, Any]:
        """The section ``training``, with that kind of schedule."""
        return {
            "updates": 10 * self.warmup,
            "clip_norm": 1.0,
            "optimizer": {"kind": self.optimizer},
            "schedule": {"kind": schedule, "warmup": self.warmup, "peak": self.peak},
        }


def row_of(table: Sequence[Size], count: float) -> Size:
    """The row of a table for ``count`` of what the table counts."""
    return next(row for row in table if count < row.below)


Shape = Callable[[Size], dict[str, Any]]
"""A row -> the section ``model`` of a recipe."""


@dataclass(frozen=True)
class Family:
    """What a row of a table becomes."""

    both: Shape | None
    """A model that reads and writes."""
    reader: Shape | None
    """One that reads alone, or of which only what it makes of a text is used."""
    writer: Shape | None
    """One that writes alone."""
    rate: float = 1.0
    """Its highest learning rate, beside the row's."""
    by_adam: bool = False
    """Whether it learns with Adam where the table has Muon."""


def _lstm(row: Size) -> dict[str, Any]:
    layers = max(2, row.layers)  # or what the attention finds would reach no layer
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


FAMILIES = {
    "transformer": Family(
        both=lambda row: {"kind": "transformer", **row.both},
        reader=lambda row: {"kind": "encoder", **row.stack},
        writer=lambda row: {"kind": "decoder", **row.stack},
    ),
    "lstm": Family(both=_lstm, reader=_lstm_alone, writer=_lstm_alone, rate=1.4, by_adam=True),
    "conv": Family(both=_convolutions, reader=None, writer=None, rate=0.75, by_adam=True),
}
"""By the name that a user gives."""
DEFAULT = "transformer"
_RATE_OF_MUON = 1.4
"""The learning rate of rows with Muon, beside that of Adam."""


def check_family(family: str) -> None:
    """Errors: ``RecipeError`` for a name of no family."""
    if family not in FAMILIES:
        raise RecipeError(f"--model {family}: allowed are {', '.join(FAMILIES)}")


def shape_of(family: str, task: Spec) -> Shape:
    """What a row of a table becomes for ``task``. Errors: ``RecipeError`` where the family has no
    such model."""
    check_family(family)
    able = {name: _shape(one, task) for name, one in FAMILIES.items()}
    shape = able[family]
    if shape is None:
        others = [name for name, one in able.items() if one is not None]
        raise RecipeError(
            f"--model {family} cannot learn a {task.called}: use --model {' or '.join(others)}"
        )
    return shape


def settings_of(family: str, task: Spec, row: Size) -> ModelSettings:
    """The settings of a model for ``task``, of the size of a row."""
    values = shape_of(family, task)(row)
    made: ModelSettings = KINDS[values["kind"]].model_validate(values)
    return made


def learned_by(family: str, row: Size) -> Size:
    """The row with the optimizer and the highest learning rate of a family."""
    rate, optimizer = FAMILIES[family].rate, row.optimizer
    if FAMILIES[family].by_adam and optimizer == "muon":
        rate, optimizer = rate / _RATE_OF_MUON, "adam"
    return replace(row, peak=float(f"{rate * row.peak:.2g}"), optimizer=optimizer)


def _shape(family: Family, task: Spec) -> Shape | None:
    if task.reads and task.writes:
        return family.both
    if task.writes:
        return family.writer
    # A masked model says something of each token by what stands on both sides of it, which layers
    # that go from left to right do not see.
    left_to_right = family.reader is family.writer
    return None if left_to_right and not task.has_head else family.reader
