"""What the folder of a new run holds before its first update: vocabularies, the weights that it
begins with, notes of its data, and the words that it will have read."""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from dragoman.atomic import write_text
from dragoman.data.files.listed_lines import naming_lines
from dragoman.data.hashing import torch_seed
from dragoman.errors import RunError
from dragoman.forms.rows.rows_form import RowsForm
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.runs.corpora import doubts_of, learn_vocabularies, named_examples
from dragoman.runs.evaluation_set import keep_test_set
from dragoman.runs.lineage import record_learned
from dragoman.runs.model import build_model
from dragoman.runs.prepare import Prepared, Say, count_words, prepare
from dragoman.runs.prepared import take_learned
from dragoman.runs.run import LEXICON, NOTES, WEIGHTS, Run, vocabulary_name
from dragoman.task import ModelPart
from dragoman.tasks.shared.progress_made import TEXT, text_notes
from dragoman.tasks.transfer import side_of, take_vocabulary, take_weights
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
    elif take == "encoder" and not (start_from.recipe.source.is_text and recipe.source.is_text):
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
        _check_files(prepared)
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


def _check_files(prepared: Prepared) -> None:
    """Read the files of dev and test once, as those of the training were read. Errors:
    ``DataError`` for one that cannot be used, which would be told after the training."""
    source = prepared.forms.source
    if isinstance(source, RowsForm):
        for pair in chain(prepared.dev, prepared.test):
            source.rows(pair.source)


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
