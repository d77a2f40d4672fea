"""A model of another program, taken apart, and its run folder.

``Imported`` is what the file of each program makes: settings, vocabularies, and for each of our
weights where it stands in the other file. Every shape is compared with the settings before memory
is taken for a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.base.atomic import creating_folder
from dragoman.base.errors import RunError
from dragoman.base.reading import read_json, readable
from dragoman.base.tensor_file import require_finite
from dragoman.forms.languages import is_code
from dragoman.forms.sides import Forms
from dragoman.forms.text_form import TextForm
from dragoman.interop.archives import Array, Weights, check_growth
from dragoman.interop.vocabulary import Vocabulary
from dragoman.runs.model import hollow_model
from dragoman.runs.run import RECIPE, WEIGHTS
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.training.weights import save_weights

Change = Callable[[Array], Array]

MOST_LAYERS = 256
"""The most layers of an encoder or decoder here, asked for before the first is described."""


def _same(array: Array) -> Array:
    return array


@dataclass(frozen=True)
class Taken:
    """The place of a weight in the other file: its name and shape there, and what is made of it.
    No name: it is made of zeros of that shape."""

    name: str
    shape: tuple[int, ...]
    change: Change = _same


@dataclass(frozen=True)
class Imported:
    """A model of another program, ready to be written as a run."""

    program: str
    """The name of the program, as messages and the recipe have it."""
    model: Mapping[str, Any]
    """The section ``model`` of the recipe."""
    source: Vocabulary
    target: Vocabulary
    weights: Mapping[str, Taken]
    """Our name of each weight -> its place in the other file."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """The section ``search`` of the recipe."""
    said: Sequence[str] = ()
    """Messages for people about the import."""


def languages_in(path: Path, *keys: str) -> tuple[str, str] | None:
    """The languages that a JSON file names by two keys, source before target; None without them."""
    named = read_json(path) if path.is_file() else {}
    pair = [named.get(key) for key in keys] if isinstance(named, dict) else []
    match pair:
        case [str() as source, str() as target] if is_code(source) and is_code(target):
            return source, target
    return None


def write_run(
    imported: Imported,
    file: Weights,
    languages: tuple[str, str],
    folder: Path,
    tag: str | None = None,
) -> list[str]:
    """Write a run folder, whole or not at all. ``tag``: that of the target language, if the model
    has several. Return messages about the tags.

    Errors: ``RunError`` for weights that are missing, have another shape or are not finite, and for
    a tag that there is not; ``FileError`` if the folder cannot be written.
    """
    forms = Forms(*(
        TextForm(side.text, language)
        for side, language in zip((imported.source, imported.target), languages, strict=True)
    ))  # fmt: skip
    run = Run(folder, _recipe(imported, languages, folder))
    run.forms = forms
    if tag is not None or len(forms.tags) == 1:
        run = run.with_tag(tag or forms.tags[0])
    recipe = run.recipe
    expected = {
        name: tuple(value.shape)
        for name, value in hollow_model(recipe, *forms).state_dict().items()
    }
    assert not (unlike := expected.keys() ^ imported.weights.keys()), sorted(unlike)
    _check(imported, file)
    taken = sum(4 * prod(shape) for shape in expected.values())
    check_growth(f"the model of {imported.program}", file.size, taken)
    with creating_folder(folder) as temporary:
        forms.source.save(temporary / "source.model")
        forms.target.save(temporary / "target.model")
        tensors = dict(_read(imported, file, expected))
        save_weights(temporary / WEIGHTS, tensors, {"weights": f"of {imported.program}"})
        recipe.save(temporary / RECIPE)
    return [run.lacks_tag] if run.lacks_tag else []


def _recipe(imported: Imported, languages: tuple[str, str], folder: Path) -> Recipe:
    text = imported.source.text.settings.model_dump(mode="json")
    size = max(imported.source.text.size, imported.target.text.size, 8)
    return Recipe.parse(
        {
            "name": readable(folder.name),
            "languages": {"source": languages[0], "target": languages[1]},
            "text": {**text, "vocabulary": size},
            "model": {**imported.model},
            "search": {**imported.search},
        },
        where=f"the model of {imported.program}",
    )


def _check(imported: Imported, file: Weights) -> None:
    """Compare the shapes of a file with those that the settings ask for."""
    for origin in imported.weights.values():
        if not origin.name:
            continue
        there = file.shapes.get(origin.name)
        if there is None:
            raise RunError(
                f"the weights of {imported.program} lack {origin.name}. The file and its settings "
                "belong to different models"
            )
        if there != origin.shape:
            raise RunError(
                f"{origin.name} has the shape {_sizes(there)}, but the settings need "
                f"{_sizes(origin.shape)}. The file belongs to another model, or is incomplete"
            )


def _read(
    imported: Imported, file: Weights, expected: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[str, torch.Tensor]]:
    for name, origin in imported.weights.items():
        with np.errstate(all="ignore"):  # what is not finite is refused below
            given = file.read(origin.name) if origin.name else np.zeros(origin.shape, np.float32)
            made = np.array(origin.change(given), np.float32, order="C")
        if made.shape != expected[name]:
            raise RunError(
                f"{origin.name or name} gives {name} the shape {_sizes(made.shape)}, but the "
                f"settings need {_sizes(expected[name])}"
            )
        require_finite(origin.name, made)
        yield name, torch.from_numpy(made)


def put_back(table: Mapping[str, Taken], weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return our weights by the names and in the order of the other program: what ``table`` takes
    from there, put back.

    A ``change`` moves numbers and computes none, so where it moves the number of each place tells
    where each of our numbers belongs.
    """
    made: dict[str, Array] = {}
    for name, weight in weights.items():
        origin = table[name]
        there = made.setdefault(origin.name, np.zeros(origin.shape, np.float32)).reshape(-1)
        places = origin.change(np.arange(there.size).reshape(origin.shape))
        there[places.astype(np.int64, copy=False)] = weight
    return made


def _sizes(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or f"{prod(shape)} number"


def of_rows(places: Sequence[int], columns: Any = slice(None)) -> Change:
    """The rows of an embedding in the order of our ids, and their columns in another order if it is
    given. ``places``: as ``Vocabulary.rows``."""
    rows = np.array(places)

    def change(table: Array) -> Array:
        made: Array = table[np.maximum(rows, 0)]
        made[rows < 0] = 0
        return made[:, columns]

    return change


NEVER = -1e9
"""The output bias of a token that the other model lacks, and no search may write."""
UNLIKELY = -30.0
"""The logit, below that of ``<unk>``, of a token that the other model reads as ``<unk>``. It adds
1e-13 to the probability of that, and a loss that training can bear."""


def bias_of_rows(places: Sequence[int], strangers: int = 0) -> Change:
    """The output biases in the order of our ids, from (V,) or (1, V). ``places`` and ``strangers``:
    as ``Vocabulary`` has them."""
    rows = np.array(places)

    def change(bias: Array) -> Array:
        flat = bias.reshape(-1).astype(np.float32)
        made: Array = flat[np.maximum(rows, 0)]
        made[rows < 0] = NEVER
        if strangers:
            made[-strangers:] += UNLIKELY
        return made

    return change
