"""The contents of a new run folder before the first update: vocabularies, initial weights, notes on
the data, and the lexicon of its training text.

A run may start from the encoder or the decoder of another run, of whatever task. A part is taken
with its vocabulary, because row ``k`` of an embedding is the vector of token ``k``. The name of a
weight says where it belongs: layer 3 of a Transformer's encoder corresponds to layer 3 of an
encoder-only model, and layer 3 of its decoder to layer 3 of a decoder-only model. A weight is taken
if the new model has one in the same place and of the same shape; all others are initialised as in
any new model.
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
from dragoman.runs.corpora import (
    doubts_of,
    learn_vocabularies,
    named_examples,
    sides_of_vocabularies,
)
from dragoman.runs.evaluation_set import keep_test_set
from dragoman.runs.lineage import record_learned
from dragoman.runs.model import build_model
from dragoman.runs.prepare import Prepared, Say, count_words, prepare
from dragoman.runs.prepared import take_learned
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import LEXICON, NOTES, TUNED, WEIGHTS, Run, vocabulary_name
from dragoman.tasks.shared.progress_made import TEXT, text_notes
from dragoman.tasks.teachers import teacher_runs
from dragoman.training.distributed import own_machine
from dragoman.training.weights import open_weights, save_weights

_START = "start"
"""The metadata value of weights that were taken from another run and not yet trained."""

_FEW = 40
"""The number of examples below which none are held out: a model can only memorise so few."""


def fill_new_run(
    recipe: Recipe, folder: Path, start_from: Run | None, take: ModelPart | None, say: Say
) -> Prepared:
    """Write everything but the recipe, and prepare the data. ``start_from`` and ``take`` are those
    of ``train``, and so are the errors."""
    if recipe.data.old is not None and (start_from is None or take is not None):
        raise RunError(
            f"recipe {recipe.name} sets data.old (the old text of a tuned run), which works only "
            "when a whole run is tuned. Give that run with --from RUN, or leave out data.old"
        )
    doubts = doubts_of(recipe)
    for doubt in doubts:
        say(f"warning: {doubt}")
    if recipe.data.prepared is not None:
        if start_from is not None:
            raise RunError(
                f"{recipe.data.prepared} has its own vocabularies, but training from "
                f"{start_from.folder} uses those of that run. Leave out --from, or train on the "
                "original files"
            )
        say(f"taken from {recipe.data.prepared}: {', '.join(take_learned(recipe, folder))}")
    elif recipe.data.teachers:
        _save_vocabularies(teacher_runs(recipe)[0], folder)
        learn_vocabularies(recipe, folder, say, known=sides_of_vocabularies(recipe))
    elif start_from is None:
        learn_vocabularies(recipe, folder, say)
    elif take is None:
        recipe.spec.check_target(
            recipe, partial(named_examples, recipe), start_from.forms, start_from.folder
        )
        _take_over(start_from, folder)
        if recipe.data.old is not None:
            save_weights(folder / TUNED, start_from.model().state_dict(), {"weights": _START})
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
        only = f"with this few, a model learns to repeat them, not to {recipe.spec.verbs[0][0]}"
        say(f"warning: {amount} to train on: {only}")
    held = {"dev": prepared.dev, "test": prepared.test}
    for line in recipe.spec.check_held(recipe, held, prepared.forms):
        say(line)
    with naming_lines(*recipe.data.train, recipe.data.dev, recipe.data.test):
        # Held-out files are checked now: an unreadable one would otherwise fail after the training.
        prepared.forms.source.check(pair.source for pair in chain(prepared.dev, prepared.test))
    bases = teacher_runs(recipe) if start_from is None else [start_from]
    notes = prepared.notes | record_learned(recipe, folder, bases, take, say)
    notes["doubts"] = [doubt.to_dict() for doubt in doubts]
    notes["machine"] = own_machine()
    notes[TEXT] = _text_notes(recipe, prepared)
    if start_from is not None and take is not None:
        torch.manual_seed(torch_seed(recipe.seed))
        model = build_model(recipe, *prepared.forms)
        fit = take_weights(start_from, take, model, folder / WEIGHTS)
        say(fit.summary(start_from.folder))
        notes["start"] = fit.to_dict(start_from)
    _write_lexicon(recipe, prepared, start_from, folder)
    keep_test_set(recipe, folder)
    write_text(folder / NOTES, json.dumps(notes, indent=2, ensure_ascii=False) + "\n")
    return prepared


def _check_same_rows(recipe: Recipe, start_from: Run) -> None:
    """Raise ``RunError`` if the encoder of ``start_from`` reads another kind of input."""
    own, source = recipe.source, start_from.recipe.source
    if own != source:
        kinds = dict.fromkeys((source.kind, own.kind))
        named = " and ".join(f'source.kind = "{kind}"' for kind in kinds)
        raise RunError(
            f"--init-part encoder: {start_from.folder} was trained with another section source "
            f"({named}), and an encoder needs the same input. Use the same section source"
        )


def _text_notes(recipe: Recipe, prepared: Prepared) -> Any:
    """Notes on the targets. They include the cost of guessing by frequency if the model only
    predicts the tokens of a text, or draws pictures, of which a caption has many."""
    if len(recipe.spec.sides) > 1 and recipe.search.sampling is None:
        return text_notes(prepared.train, "target", None, ())
    form = prepared.forms.target
    return text_notes(
        prepared.train, "target", form.size, form.encode([pair.target for pair in prepared.dev])
    )


def has_learned(folder: Path) -> bool:
    """True if the weights of a run have been trained since it started."""
    path = folder / WEIGHTS
    if not path.is_file():
        return False
    with open_weights(path) as file:
        return file.metadata.get("weights") != _START


def _take_over(start_from: Run, folder: Path) -> None:
    """Copy the vocabularies and weights of a run into a new folder."""
    _save_vocabularies(start_from, folder)
    if start_from.task.target_file is not None:
        start_from.forms.target.save(folder / start_from.task.target_file)
    save_weights(folder / WEIGHTS, start_from.model().state_dict(), {"weights": _START})


def _save_vocabularies(run: Run, folder: Path) -> None:
    """Save the vocabularies of a run in a new run folder."""
    forms = run.forms._asdict()
    for side in run.recipe.spec.texts:
        forms[side].save(folder / vocabulary_name(run.recipe, side))


def _write_lexicon(
    recipe: Recipe, prepared: Prepared, start_from: Run | None, folder: Path
) -> None:
    """Save the lexicon of the training text, joined with that of the run it starts from."""
    read = count_words(recipe, prepared)
    before = None if start_from is None else start_from.lexicon()
    if read is None or (start_from is not None and before is None):
        return  # An incomplete lexicon would report known words as unknown.
    (read if before is None else read.join(before)).save(folder / LEXICON)


Shapes = Mapping[str, tuple[int, ...]]

_OWN = {
    "encoder": ("source_embedding.", "source_positions.", "encoder.", "encoder_norm."),
    "decoder": ("target_embedding.", "target_positions.", "decoder.", "decoder_norm."),
}
_ALONE = ("embedding.", "positions.", "layers.", "norm.")
"""The prefixes of these weights in a model with a single stack, such as decoder-only."""
_BODY = "body."
"""The prefix of weights of a stack below a head (``models/catalogue/classifier.py``)."""


@dataclass(frozen=True)
class Fit:
    """The weights of a part that fit into a new model."""

    part: ModelPart
    taken: Mapping[str, str]
    """A mapping from each name in the new model to the name in the old one."""
    missing: tuple[str, ...]
    """The new model's names of the weights of this part that the old model lacks or has in another
    shape."""
    why: str
    """The reason why the first missing place has no weight."""
    parameters: int
    of: int
    """Numbers of parameters: those that are taken, and all of the new model."""

    def summary(self, run: Path) -> str:
        """Return a line for people about the weights that the new model takes from the run in
        ``run``, and those that did not fit."""
        count = len(self.taken)
        line = (
            f"taken from {run}: {plural(count, 'tensor')} of its {self.part}, {self.parameters:,} "
            f"of the {self.of:,} parameters of the new model; the others start at random"
        )
        if self.missing:
            line += f". {len(self.missing):,} of that part did not fit: {self.why}"
        return line

    def to_dict(self, run: Run) -> dict[str, object]:
        """The fit as plain values, for the notes of the new run."""
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
    """Map a canonical name of each weight of the model part ``part``, which is the same in every
    kind of model, to the name of this weight in ``names``. ``names``: all weights of one model."""
    every = {name.removeprefix(_BODY): name for name in names}
    mapped: dict[str, str] = {}
    for own, canonical in zip(_OWN[part], _ALONE, strict=True):
        mapped |= _rename(every, own, canonical)
    if part == "encoder":
        mapped |= _rename(every, "front_end.", "front_end.")
    if part == "decoder":
        for own in _ALONE:
            mapped |= _rename(every, own, own)
        if mapped and "embedding.weight" not in mapped:  # one matrix for both sides
            mapped |= _rename(every, "source_embedding.", "embedding.")
    return {place.replace(".self_attention", ".attention"): name for place, name in mapped.items()}


def _rename(names: Mapping[str, str], own: str, canonical: str) -> dict[str, str]:
    return {
        canonical + name.removeprefix(own): whole
        for name, whole in names.items()
        if name.startswith(own)
    }


def fitting(new: Shapes, old: Shapes, part: ModelPart) -> Fit:
    """Find the weights of a part that fit, by the names and shapes of new and old weights."""
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
    """The side of a new model whose vocabulary belongs to ``part``."""
    reads_alone = recipe.spec.texts == ("source",)
    return "source" if part == "encoder" or reads_alone else "target"


def take_vocabulary(start_from: Run, part: ModelPart, path: Path) -> None:
    """Save the vocabulary of a part of ``start_from``, the one that it reads or writes with, to
    ``path``, a file of the new run.

    Errors: ``RunError`` if that run has no such part.
    """
    forms = start_from.forms
    vocabulary = (forms.source if part == "encoder" else forms.target).vocabulary
    if part == "decoder" and start_from.task.has_head:
        # The decoder is the body below the head; it reads the source.
        vocabulary = forms.source.vocabulary
    if vocabulary is None:
        raise RunError(f"{start_from.folder} is a {start_from.task.name} and has no {part}")
    vocabulary.save(path)


def take_weights(start_from: Run, part: ModelPart, network: Network, path: Path) -> Fit:
    """Copy the weights that fit into ``network``, which is freshly initialised, and save all its
    weights. Errors: ``RunError`` if no weight fits."""
    old = start_from.model().state_dict()
    own = network.state_dict()
    fit = fitting(_shapes(own), _shapes(old), part)
    if not fit.taken:
        raise RunError(
            f"nothing from the {part} of {start_from.folder} fits into a model of kind "
            f"{network.settings.kind}: {fit.why or f'the new model has no {part}'}"
        )
    for name, old_name in fit.taken.items():
        own[name].copy_(old[old_name])  # in the network's own memory
    save_weights(path, own, {"weights": _START})
    return fit


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in state.items()}
