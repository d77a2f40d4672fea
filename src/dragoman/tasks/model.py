"""From a recipe and a file of weights to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from dragoman.errors import RunError
from dragoman.forms.text import Text
from dragoman.models.interface import Network
from dragoman.models.kinds import new_network
from dragoman.recipe import Recipe
from dragoman.training.weights import load_weights


class Unfilled(TorchFunctionMode):
    """New parameters are not drawn: those of a file take their place.

    torch's meta device would do the same, and import a second's worth of modules.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in (torch.Tensor.uniform_, torch.Tensor.normal_):
            return args[0]
        return func(*args, **(kwargs or {}))


def build_model(recipe: Recipe, source: Text, target: Text) -> Network:
    """The model of a recipe, with fresh weights drawn from torch's generator."""
    return new_network(recipe.model, source.size, target.size)


def fill_model(model: Network, path: Path, recipe: str, *, assign: bool = False) -> None:
    """Put the weights of a file into ``model``; ``recipe`` is what describes it, for messages.

    Errors: ``RunError`` for weights that are missing, truncated, or of another model.
    """
    state = load_weights(path).tensors
    expected = {name: value.shape for name, value in model.state_dict().items()}
    found = {name: value.shape for name, value in state.items()}
    if expected != found:
        odd = sorted(
            name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
        )
        raise RunError(
            f"{path} does not hold the model that {recipe} describes: {len(odd)} tensors differ, "
            f"{odd[0]} first. Was the recipe edited?"
        )
    model.load_state_dict(state, assign=assign)
