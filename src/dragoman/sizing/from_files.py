"""From what a user names (two files, one file, a recipe) to the recipe of a run."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from dragoman import catalogue
from dragoman.base.errors import RecipeError
from dragoman.data.files.columns import listed_corpus
from dragoman.data.files.corpora import read_lines, read_pairs
from dragoman.data.files.corpus_settings import format_by_name
from dragoman.data.files.file_kinds import check_is_lines, check_is_read
from dragoman.forms.identification import language_of
from dragoman.recipe.recipe import Recipe
from dragoman.recipe.recipe_text import sets
from dragoman.runs.prepared import is_prepared, recipe_of_prepared
from dragoman.runs.run import vocabulary_name
from dragoman.sizing.inputs import Inputs, given_languages, is_text, is_treebank
from dragoman.sizing.size import FAMILIES
from dragoman.sizing.start_from import (
    around_part,
    check_apart,
    for_fine_tuning,
    for_part,
    part_to_take,
    serve_context,
)
from dragoman.sizing.vocabulary_size import fit_vocabulary
from dragoman.sources.file_examples import advice_for

_OF_FILES = ("dev", "test", "recipe", "keys", "columns", "languages", "model")
"""Options that go with files alone."""
_LINES_READ = 400


def recipe_of(
    inputs: Inputs, *, changes: Sequence[str] = (), learns: bool = True
) -> tuple[Recipe, float | None]:
    """The recipe, and how many epochs it wants if no time is given (None: it says so itself).

    ``learns``: whether a vocabulary is to be learned, whose size then follows from the text
    (``vocabulary_size.py``). Errors: ``RecipeError`` for inputs that are neither files nor a
    recipe, ``DataError`` for files that cannot be used.
    """
    names = inputs.names
    if len(names) > 2:
        raise RecipeError(
            f"{len(names)} inputs: give two files of parallel text, one .tsv or .jsonl file, or "
            "one recipe; several corpora go into a recipe (docs/recipes.md)"
        )
    if names and is_prepared(names[0]):
        why = (
            f": {names[0]} is prepared text, which has a recipe of its own; --set changes the "
            "settings of the model and of the training"
        )
        inputs.refuse((*_OF_FILES, "task", "start_from"), why)
        if len(names) > 1:
            raise RecipeError(f"{names[-1]}{why}")
        return recipe_of_prepared(names[0], changes, catalogue.Recipe), None
    inputs = _resolved(inputs)
    of_text, *of_files = catalogue.runtime_of(inputs.spec).builders()
    builder = next((one for one in of_files if one.takes(inputs)), of_text)
    if inputs.groups is not None and builder not in of_files:
        raise RecipeError(
            "--groups goes with recordings, and with pictures (in folders, listed, or IDX files) "
            "and --task classification; for other corpora a recipe has group_column or group_key"
        )
    if inputs.codes is not None and inputs.spec.name != "painting":
        raise RecipeError(
            f"--codes {inputs.codes} goes with --task painting: a {inputs.spec.called} writes no "
            "codes of pictures"
        )
    if not builder.takes(inputs):  # then it is a recipe, or there is no such file
        builder = catalogue.RUNTIMES["translation"].builders()[0]
    builder.check(inputs)
    if not builder.takes(inputs):
        return _recipe_named(inputs, changes), None
    recipe, epochs = builder.begun(*builder.recipe(inputs), inputs)
    return _finished(recipe, inputs, changes, learns), epochs


def _resolved(inputs: Inputs) -> Inputs:
    """With the task, and the part of a run that is taken. Errors: ``RecipeError`` for a task that
    there is not, or another than that of the recipe or the run; for a model that these have."""
    task, take, start_from = inputs.task, inputs.take, inputs.start_from
    known = inputs.base or (start_from.recipe if start_from else None)
    told = known.task if known else None
    if task is not None and task not in catalogue.TASKS:
        if task.startswith(("transcri", "speech")):
            raise RecipeError(f"--task {task}: leave it out: recordings with their texts need none")
        near = difflib.get_close_matches(task, catalogue.TASKS, 1)
        hint = f" Did you mean --task {near[0]}?" if near else ""
        raise RecipeError(
            f"--task {task}: there is no such task.{hint} Tasks are {', '.join(catalogue.TASKS)}"
        )
    named_task = task or told or "translation"
    for path in inputs.names:
        listed = named_task == "classification" and listed_corpus(path, inputs.columns, inputs.keys)
        if not listed:
            check_is_read(Path(path), named_task)
    if inputs.model is not None and known is not None:
        given = f"--recipe {inputs.recipe}" if inputs.base is not None else "--from"
        raise RecipeError(
            f"--model {inputs.model} works only with files: {given} already determines the model"
        )
    if start_from is not None and take is None:
        take = part_to_take(task or told or "", start_from.recipe)
    if take is not None and inputs.base is None:  # a part of a run serves any task
        told = None
    if task is not None and told not in (None, task):
        whose = inputs.recipe or (start_from and start_from.folder)
        raise RecipeError(f"--task {task}: {whose} is of a {told}")
    if task is None and told is None and len(inputs.names) == 1 and is_treebank(inputs.names[0]):
        task = "parsing"
    return replace(
        inputs, task=task or told, names_task=task is not None, take=take,
        # A time limits the size where nothing else says it.
        minutes=inputs.minutes if known is None else None,
    )  # fmt: skip


def _recipe_named(inputs: Inputs, changes: Sequence[str]) -> Recipe:
    """The recipe that the inputs name, as it begins. Errors: ``RecipeError`` for options that go
    with files alone, and for one file of text."""
    name = inputs.names[0]
    if Path(name).is_dir():
        raise RecipeError(advice_for(Path(name)))
    if Path(name).is_file() and Path(name).suffix != ".toml":
        next(read_lines(name, check_is_lines), None)  # no text, or not that of sentences
        raise RecipeError(
            f"{name} is one file of text: name the file of its translations too; or give "
            "one file with both sides (.tsv, .jsonl), or a recipe (.toml). To learn to write "
            "such text itself: --task language-model"
        )
    recipe: Recipe = catalogue.Recipe.load(name, changes)
    inputs.refuse(_OF_FILES, " goes with files of text; a recipe says it itself")
    if inputs.start_from is None:
        return recipe
    learned, run = inputs.start_from.recipe, inputs.start_from.folder
    own = "context" in recipe.plan.model_fields_set
    take = inputs.take or part_to_take(recipe.task, learned)
    if take is None:
        recipe = for_fine_tuning(recipe, learned, own_context=own)
    else:
        recipe = for_part(recipe, learned, take)
        check_apart(recipe, learned, take, run)
        recipe = serve_context(recipe, learned, run, own, inputs.say)
    return recipe.change(changes)


def _finished(recipe: Recipe, inputs: Inputs, changes: Sequence[str], learns: bool) -> Recipe:
    """With the changes, and a vocabulary that fits the text, where none is taken over."""
    start_from, take, say = inputs.start_from, inputs.take, inputs.say
    if start_from is None or take is None:
        recipe = _changed(recipe, changes, chosen=inputs.begins_anew)
        fits = inputs.begins_anew and learns and recipe.spec.texts
        return fit_vocabulary(recipe, changes, say) if fits else recipe
    learned, run = start_from.recipe, start_from.folder
    two, chosen = recipe.spec.translates, inputs.base is None
    if two and chosen:
        recipe = around_part(recipe, learned, take, say)
    recipe = recipe.change(changes)
    check_apart(recipe, learned, take, run)
    own = not chosen or sets(changes, "plan.context")
    recipe = serve_context(recipe, learned, run, own, say)
    if not two or not chosen or not learns:
        return recipe
    brought = vocabulary_name(recipe, "source" if take == "encoder" else "target")
    return fit_vocabulary(recipe, changes, say, [brought])


def _changed(recipe: Recipe, changes: Sequence[str], chosen: bool) -> Recipe:
    """``Recipe.change``. ``chosen``: whether the program has chosen the model."""
    try:
        return recipe.change(changes)
    except RecipeError as error:
        kinds = {
            change.partition("=")[2].strip(" '\"")
            for change in changes
            if sets([change], "model.kind")
        }
        if chosen and kinds - {recipe.model.kind}:
            raise RecipeError(
                "--set model.kind names a kind of model other than the one whose sizes were "
                f"chosen. --model (one of {', '.join(FAMILIES)}) chooses both"
            ) from error
        raise


def name_of(inputs: Inputs) -> str | None:
    """How a run on files of text will be called, before any of them is read; None for recipes, and
    for files that say their languages."""
    names, task, languages = inputs.names, inputs.task, inputs.languages
    says = format_by_name(names[0]) in ("tmx", "xliff", "po") and not languages
    if says or not all(map(is_text, names)):
        return None
    stem = Path(names[0]).name.split(".")[0]
    if task not in (None, "translation") or (len(names) == 1 and is_treebank(names[0])):
        return stem
    if languages and "-" not in languages:  # as of recordings: what they are is not known yet
        return stem
    codes = given_languages(languages, names)
    return stem if "und" in codes else "-".join(codes)


def languages_read(recipe: Recipe) -> str | None:
    """The languages that the text seems to be in, as --languages takes them; None if unsure."""
    data = recipe.data
    reads = bool(data.train) and data.prepared is None
    lines = list(islice(read_pairs(data.train[0]), _LINES_READ)) if reads else []
    source, target = (
        language_of(getattr(pair, side) for pair in lines) for side in ("source", "target")
    )
    return None if "und" in (source, target) else f"{source}-{target}"
