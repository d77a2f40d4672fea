"""From a recipe and a file of weights to a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from dragoman.base.errors import RunError, UntrainableError
from dragoman.base.wording import plural
from dragoman.forms.form import Form
from dragoman.forms.sides import Forms
from dragoman.models.interface import Network
from dragoman.nn.linear import Linear
from dragoman.runs.recipe.recipe import Recipe
from dragoman.training.weights import open_weights, weights_in

_BYTES_TO_TRAIN = 16
"""Bytes for each parameter in training: itself, its gradient and two moments, in fp32."""


_DRAWS = (torch.Tensor.uniform_, torch.Tensor.normal_, nn.init.uniform_, nn.init.normal_)


class _Hollow(TorchFunctionMode):
    """New parameters have shapes and no memory: those of a file take their place.

    torch's meta device would do the same, and import a second's worth of modules.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func in _DRAWS:
            return args[0] if args else named["tensor"]
        if func in (torch.empty, torch.zeros, torch.ones):
            return func((), **named).expand(*args)
        return func(*args, **named)


def build_model(recipe: Recipe, source: Form, target: Form) -> Network:
    """The model of a recipe, with fresh weights drawn from torch's generator, to be trained.

    Errors: ``UntrainableError`` for one that cannot be trained in the memory of this machine.
    """
    parameters = sum(p.numel() for p in hollow_model(recipe, source, target).parameters())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if parameters * _BYTES_TO_TRAIN > memory:
        raise UntrainableError(
            f"training a model of {parameters:,} parameters needs at least "
            f"{parameters * _BYTES_TO_TRAIN / 2**30:,.0f} GiB, and this machine has "
            f"{memory / 2**30:,.0f}. Set smaller sizes in [model]"
        )
    return _network(recipe, source, target)


def hollow_model(recipe: Recipe, source: Form, target: Form) -> Network:
    """The model of a recipe as a shape, whose weights ``fill_model`` brings."""
    with _Hollow():
        return _network(recipe, source, target)


def _network(recipe: Recipe, source: Form, target: Form) -> Network:
    model = recipe.spec.new_network(recipe.model, Forms(source, target))
    if recipe.training.ctc_weight:
        model.ctc = Linear(recipe.model.model_dim, target.size + 1)
    return model


def fill_model(
    model: Network, path: Path, recipe: str, *, assign: bool = False, filmed: bool = False
) -> None:
    """Put the weights of a file into ``model``; ``recipe`` is what describes it, for messages.
    ``filmed``: as for ``open_weights``.

    Errors: ``RunError`` for weights that are missing, truncated, or of another model; before any
    memory is taken for them.
    """
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    with open_weights(path, filmed=filmed) as file:
        odd = sorted(
            name
            for name in {*expected, *file.shapes}
            if expected.get(name) != file.shapes.get(name)
        )
        if not odd:
            model.load_state_dict(weights_in(file), assign=assign)
    if odd:  # said here: a damaged file is another matter
        raise RunError(
            f"{path} does not hold the model that {recipe} describes: "
            f"{plural(len(odd), 'tensor differs', 'tensors differ')}, {odd[0]} first. If the "
            "recipe was edited, restore it"
        )
