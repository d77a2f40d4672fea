"""What the folder of a new run holds before its first update: vocabularies, the weights that it
begins with, notes of its data, and the words that it will have read.

It may begin with a part of another run, its encoder or its decoder, whatever that run was for. A
part is taken with its vocabulary, as a row of an embedding means the token of that number. What a
weight is called says where it belongs: layer 3 of a Transformer's encoder is layer 3 of an encoder
by itself, and that of a decoder by itself is layer 3 of a Transformer's decoder. A weight is taken
where the new model has one in the same place and of the same shape; all others begin as those of a
new model do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.base.atomic import write_text
from dragoman.base.errors import RunError
from dragoman.base.task import ModelPart
from dragoman.base.wording import plural
from dragoman.data.files.corpora import naming_lines
from dragoman.data.hashing import torch_seed
from dragoman.models.interface import Network
from dragoman.recipe.recipe import Recipe
from dragoman.runs.corpora import doubts_of, learn_vocabularies, named_examples
from dragoman.runs.evaluation_set import keep_test_set
from dragoman.runs.lineage import record_learned
from dragoman.runs.model import build_model
from dragoman.runs.prepare import Prepared, Say, count_words, prepare
from dragoman.runs.prepared import take_learned
from dragoman.runs.run import LEXICON, NOTES, WEIGHTS, Run, vocabulary_name
from dragoman.tasks.shared.progress_made import TEXT, text_notes
from dragoman.training.distributed import own_machine
from dragoman.training.weights import open_weights, save_weights

_START = "start"
"""What the metadata of weights say that a fine-tuned run has taken over, and not yet changed."""

_FEW = 40
"""Examples of which a model learns nothing but themselves; of fewer, nothing is held out either."""


def fill_new_run(
    recipe: Recipe, folder: Path, start_from: Run | None, take: ModelPart | None, say: Say
) -> Prepared:
    """Write all of it but the recipe, and prepare the data. ``start_from`` and ``take``: as
    ``train`` has them. Errors: those of ``train``."""
    doubts = doubts_of(recipe)
    for doubt in doubts:
        say(f"warning: {doubt}")
    if recipe.data.prepared is not None:
        if start_from is not None:
            raise RunError(
                f"{recipe.data.prepared} has vocabularies of its own, and a training from "
                f"{start_from.folder} takes over those of that run. Leave out --from, or train on "
                "the files themselves"
            )
        say(f"taken from {recipe.data.prepared}: {', '.join(take_learned(recipe, folder))}")
    elif start_from is None:
        learn_vocabularies(recipe, folder, say)
    elif take is None:
        recipe.spec.check_target(
            recipe, partial(named_examples, recipe), start_from.forms, start_from.folder
        )
        _take_over(start_from, folder)
    elif take == "encoder" and (start_from.task.reads_files or recipe.spec.reads_files):
        _check_same_rows(recipe, start_from)
        learn_vocabularies(recipe, folder, say)
    else:
        side = vocabulary_name(recipe, side_of(recipe, take))
        take_vocabulary(start_from, take, folder / side)
        learn_vocabularies(recipe, folder, say, known=[side])
    prepared = prepare(recipe, folder, say)
    if start_from is None and len(recipe.spec.sides) > 1 and len(prepared.train) < _FEW:
        amount = plural(len(prepared.train), recipe.spec.noun.removesuffix("s"))
        only = f"so few only teach a model to repeat them, not to {recipe.spec.verbs[0][0]}"
        say(f"warning: {amount} to train on: {only}")
    held = {"dev": prepared.dev, "test": prepared.test}
    for line in recipe.spec.check_held(recipe, held, prepared.forms):
        say(line)
    with naming_lines(*recipe.data.train, recipe.data.dev, recipe.data.test):
        # As those of the training were: what cannot be read would be told after it.
        prepared.forms.source.check(pair.source for pair in chain(prepared.dev, prepared.test))
    notes = prepared.notes | record_learned(recipe, folder, start_from, take, say)
    notes["doubts"] = [doubt.to_dict() for doubt in doubts]
    notes["machine"] = own_machine()
    notes[TEXT] = _text_notes(recipe, prepared)
    if start_from is not None and take is not None:
        torch.manual_seed(torch_seed(recipe.seed))
        model = build_model(recipe, *prepared.forms)
        fit = take_weights(start_from, take, model, folder / WEIGHTS, _START)
        say(fit.summary(start_from.folder))
        notes["start"] = fit.to_dict(start_from)
    _write_lexicon(recipe, prepared, start_from, folder)
    keep_test_set(recipe, folder)
    write_text(folder / NOTES, json.dumps(notes, indent=2, ensure_ascii=False) + "\n")
    return prepared


def _check_same_rows(recipe: Recipe, start_from: Run) -> None:
    """Errors: ``RunError`` where the encoder of ``start_from`` reads something else."""
    own, source = recipe.source, start_from.recipe.source
    if own != source:
        kinds = " and ".join(dict.fromkeys(f'source.kind = "{one.kind}"' for one in (source, own)))
        raise RunError(
            f"--init-part encoder: {start_from.folder} was trained with another section source "
            f"({kinds}), and an encoder goes with what it reads: take over its section source"
        )


def _text_notes(recipe: Recipe, prepared: Prepared) -> Any:
    """What is noted of the side that a run learns from; what frequencies alone tell, where all it
    learns is to predict the tokens of a text, or pictures of which a caption has many."""
    if len(recipe.spec.sides) > 1 and recipe.search.sampling is None:
        return text_notes(prepared.train, "target", None, ())
    form = prepared.forms.target
    return text_notes(
        prepared.train, "target", form.size, form.encode([pair.target for pair in prepared.dev])
    )


def has_learned(folder: Path) -> bool:
    """Whether a run's weights are its own, and not those that it began with."""
    path = folder / WEIGHTS
    if not path.is_file():
        return False
    with open_weights(path) as file:
        return file.metadata.get("weights") != _START


def _take_over(start_from: Run, folder: Path) -> None:
    """Vocabularies and weights of a run into a new one, which may be killed at any moment."""
    forms = start_from.forms._asdict()
    for side in start_from.recipe.spec.texts:
        forms[side].save(folder / vocabulary_name(start_from.recipe, side))
    if start_from.task.target_file is not None:
        start_from.forms.target.save(folder / start_from.task.target_file)
    save_weights(folder / WEIGHTS, start_from.model().state_dict(), {"weights": _START})


def _write_lexicon(
    recipe: Recipe, prepared: Prepared, start_from: Run | None, folder: Path
) -> None:
    """The words that a new run will have read, those of the run that it begins with among them."""
    read = count_words(recipe, prepared)
    before = None if start_from is None else start_from.lexicon()
    if read is None or (start_from is not None and before is None):
        return  # what is not known in whole would take known words for unknown ones
    (read if before is None else read.joined(before)).save(folder / LEXICON)


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
