"""Beginning with a part of another run: its encoder or its decoder, whatever that run was for.

A part is taken with its vocabulary, as a row of an embedding means the token of that number. What
a weight is called says where it belongs: layer 3 of a Transformer's encoder is layer 3 of an
encoder by itself, and that of a decoder by itself is layer 3 of a Transformer's decoder. A weight
is taken where the new model has one in the same place and of the same shape; all others begin as
those of a new model do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from torch import Tensor

from dragoman.errors import RunError
from dragoman.models.interface import Network
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.task import ModelPart
from dragoman.training.weights import save_weights

Shapes = Mapping[str, tuple[int, ...]]

_OWN = {
    "encoder": ("source_embedding.", "source_positions.", "encoder.", "encoder_norm."),
    "decoder": ("target_embedding.", "target_positions.", "decoder.", "decoder_norm."),
}
_ALONE = ("embedding.", "positions.", "layers.", "norm.")
"""What a stack by itself calls the same; it goes from left to right."""
_BODY = "body."
"""What stands before the names of a stack below a head (``models/catalogue/classifier.py``)."""


@dataclass(frozen=True)
class Fit:
    """What of a part fits into a new model."""

    part: ModelPart
    taken: Mapping[str, str]
    """Name in the new model -> name in the old one."""
    missing: tuple[str, ...]
    """Places of the part that the old model does not have, or in another shape; as the new one
    calls them."""
    why: str
    """Why the first of the missing places has no weight."""
    parameters: int
    of: int
    """Parameters that are taken, and all of the new model's."""

    def summary(self, run: Path) -> str:
        """One line for people."""
        count = len(self.taken)
        line = (
            f"taken from {run}: {plural(count, 'tensor')} of its {self.part}, {self.parameters:,} "
            "of the "
            f"{self.of:,} parameters of the new model; the others begin anew"
        )
        if self.missing:
            line += f". {len(self.missing):,} of that part did not fit: {self.why}"
        return line

    def to_dict(self, run: Run) -> dict[str, object]:
        """As plain values, for the notes of the new run."""
        return {
            "run": run.folder.name,
            "weights": run.weights_hash,
            "part": self.part,
            "tensors": len(self.taken),
            "parameters": self.parameters,
            "of": self.of,
            "did_not_fit": list(self.missing),
        }


def places(names: Iterable[str], part: ModelPart) -> dict[str, str]:
    """Where the weights of a part belong: place -> name."""
    every = {name.removeprefix(_BODY): name for name in names}
    found: dict[str, str] = {}
    for own, canonical in zip(_OWN[part], _ALONE, strict=True):
        found |= _renamed(every, own, canonical)
    if part == "encoder":
        found |= _renamed(every, "front_end.", "front_end.")
    if part == "decoder":
        for own in _ALONE:
            found |= _renamed(every, own, own)
        if found and "embedding.weight" not in found:  # one matrix for both sides
            found |= _renamed(every, "source_embedding.", "embedding.")
    return {place.replace(".self_attention", ".attention"): name for place, name in found.items()}


def _renamed(names: Mapping[str, str], own: str, canonical: str) -> dict[str, str]:
    return {
        canonical + name.removeprefix(own): whole
        for name, whole in names.items()
        if name.startswith(own)
    }


def fitting(new: Shapes, old: Shapes, part: ModelPart) -> Fit:
    """What a new model can take of an old one's part; both by the shapes of their weights."""
    wanted, given = places(new, part), places(old, part)
    taken, missing, whys = {}, [], []
    for place, name in wanted.items():
        if place not in given:
            missing.append(name)
            whys.append(f"it has no {place}")
        elif old[given[place]] != new[name]:
            missing.append(name)
            shapes = ("×".join(map(str, shape)) for shape in (old[given[place]], new[name]))
            whys.append(f"its {place} is {' and not '.join(shapes)}")
        else:
            taken[name] = given[place]
    return Fit(
        part, taken, tuple(missing), whys[0] if whys else "",
        sum(prod(new[name]) for name in taken), sum(map(prod, new.values())),
    )  # fmt: skip


def side_of(recipe: Recipe, part: ModelPart) -> str:
    """Which side of a new model the vocabulary of a part is of."""
    reads_alone = recipe.spec.texts == ("source",)
    return "source" if part == "encoder" or reads_alone else "target"


def take_vocabulary(start_from: Run, part: ModelPart, path: Path) -> None:
    """The vocabulary with which a part reads or writes, into a file of the new run.

    Errors: ``RunError`` where that run has no such part.
    """
    forms = start_from.forms
    vocabulary = (forms.source if part == "encoder" else forms.target).vocabulary
    if part == "decoder" and start_from.task.has_head:
        # Its body, which goes over what is read.
        vocabulary = forms.source.vocabulary
    if vocabulary is None:
        raise RunError(f"{start_from.folder} is a {start_from.task.name} and has no {part}")
    vocabulary.save(path)


def take_weights(start_from: Run, part: ModelPart, network: Network, path: Path, mark: str) -> Fit:
    """Put what fits into ``network``, whose other weights are fresh, and save all of it.

    ``mark``: what the metadata of the file say. Errors: ``RunError`` where nothing fits.
    """
    old = start_from.model().state_dict()
    own = network.state_dict()
    fit = fitting(_shapes(own), _shapes(old), part)
    if not fit.taken:
        raise RunError(
            f"nothing of the {part} of {start_from.folder} fits into a model of kind "
            f"{network.settings.kind}: {fit.why or f'the new model has no {part}'}"
        )
    for name, given in fit.taken.items():
        own[name].copy_(old[given])  # in the network's own memory
    save_weights(path, own, {"weights": mark})
    return fit


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in state.items()}
