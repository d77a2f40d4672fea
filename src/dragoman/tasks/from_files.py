"""Makes the recipe of a run from the inputs that a user names: two files, one file or a recipe."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from dragoman.base.errors import RecipeError
from dragoman.base.task import ModelPart
from dragoman.data.files.columns import listed_corpus
from dragoman.data.files.corpora import read_lines, read_pairs
from dragoman.data.files.corpus_settings import format_by_name
from dragoman.data.files.file_kinds import check_is_lines, check_is_read
from dragoman.forms.identification import language_of
from dragoman.runs.prepare import Say
from dragoman.runs.prepared import is_prepared, recipe_of_prepared
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.recipe_text import sets
from dragoman.runs.run import Run, vocabulary_name
from dragoman.sizing.builder import FOR_FEW, RecipeBuilder
from dragoman.sizing.options import TrainOptions, given_languages, is_text, is_treebank
from dragoman.sizing.size import FAMILIES
from dragoman.sizing.start_from import (
    around_part,
    check_apart,
    for_fine_tuning,
    for_part,
    part_named,
    part_to_take,
    serve_context,
)
from dragoman.sizing.vocabulary_size import fit_vocabulary
from dragoman.sources.file_examples import advice_for
from dragoman.tasks import catalogue

_OF_FILES = ("dev", "test", "recipe", "keys", "columns", "languages", "model")
"""The options that can only be used with files, not with a recipe."""
_LINES_READ = 400


@dataclass(frozen=True)
class Chosen:
    """What a training run starts with: its recipe, its length and the run that it starts from."""

    recipe: Recipe
    epochs: float | None = None
    """The number of epochs if no time is given; None: the recipe sets the length."""
    start_from: Run | None = None
    """The run that is fine-tuned, or that gives a part."""
    take: ModelPart | None = None


def recipe_of(options: TrainOptions, say: Say = print, *, learns: bool = True) -> Chosen:
    """Make the recipe from the options. ``learns``: True if a vocabulary will be learned, whose
    size then depends on the text (``sizing/vocabulary_size.py``).

    Errors: ``RecipeError`` for inputs that are neither files nor a recipe, ``RunError`` for a run
    that cannot be opened, ``DataError`` for files that cannot be used.
    """
    run: Run | None = catalogue.Run.open(options.from_) if options.from_ else None
    names = options.inputs
    if len(names) > 2:
        raise RecipeError(
            f"{len(names)} inputs: give two files of parallel text, one .tsv or .jsonl file, or "
            "one recipe. For several corpora, write a recipe (docs/recipes.md)"
        )
    if names and is_prepared(names[0]):
        why = (
            f": {names[0]} is prepared text, which has its own recipe. Change model and training "
            "with --set"
        )
        options.refuse(dict.fromkeys((*_OF_FILES, "task", "from_"), why))
        if len(names) > 1:
            raise RecipeError(f"{names[-1]}{why}")
        return Chosen(recipe_of_prepared(names[0], options.set_, catalogue.Recipe))
    if options.blend:
        options = replace(options, set_=["training.blend=true", *options.set_])
    base: Recipe | None = catalogue.Recipe.load(options.recipe) if options.recipe else None
    own_task = _task_of(options, base, run)
    if options.task is None and own_task is None and len(names) == 1 and is_treebank(names[0]):
        options = replace(options, task="parsing")
    task = options.task or own_task or "translation"
    spec = catalogue.TASKS[task]
    take = part_named(options.init_part, run is not None)
    if run is not None and take is None:
        take = part_to_take(task, run.recipe)
    learned = run.recipe if run is not None else None
    of_text, *of_files = (
        kind(options, spec, catalogue.Recipe, base, learned, take, say)
        for kind in catalogue.runtime_of(spec).builders()
    )
    builder = next((builder for builder in of_files if builder.takes()), of_text)
    if builder.takes():
        builder.check()
        recipe, epochs = builder.with_start(*builder.recipe())
        return Chosen(_finish(recipe, builder, run, learns), epochs, run, take)
    options.refuse(FOR_FEW)
    return _recipe_named(options, run, take, say)


def _task_of(options: TrainOptions, base: Recipe | None, run: Run | None) -> str | None:
    """The task of the recipe or the run. None without either, or if only a part of the run is
    taken, which serves any task. Errors: ``RecipeError`` for an unknown task, or one that differs
    from that of the recipe or run; for ``--model`` if the recipe or the run already determines the
    model; for files that the task does not read."""
    task = options.task
    known = base or (run.recipe if run is not None else None)
    own_task = known.task if known else None
    if task is not None and task not in catalogue.TASKS:
        if task.startswith(("transcri", "speech")):
            raise RecipeError(f"--task {task}: recordings with texts need no task. Leave it out")
        near = difflib.get_close_matches(task, catalogue.TASKS, 1)
        hint = f" Did you mean --task {near[0]}?" if near else ""
        raise RecipeError(
            f"--task {task}: there is no such task.{hint} Use one of {', '.join(catalogue.TASKS)}"
        )
    named_task = task or own_task or "translation"
    for path in options.inputs:
        listed = named_task == "classification" and listed_corpus(
            path, options.columns, options.keys
        )
        if not listed:
            check_is_read(Path(path), named_task)
    if options.model is not None and known is not None:
        flag = f"--recipe {options.recipe}" if base is not None else "--from"
        raise RecipeError(
            f"--model {options.model} works only with files, because {flag} already determines "
            "the model"
        )
    takes_part = options.init_part is not None or (
        run is not None and part_to_take(task or "", run.recipe) is not None
    )
    if takes_part and base is None:
        return None
    if task is not None and own_task not in (None, task):
        whose = options.recipe or (run and run.folder)
        raise RecipeError(f"--task {task} does not fit: {whose} belongs to the task {own_task}")
    return own_task


def _recipe_named(
    options: TrainOptions, run: Run | None, take: ModelPart | None, say: Say
) -> Chosen:
    """Return the recipe that the options name, and the run that it starts from. Errors:
    ``RecipeError`` for options that work only with files, and for a single file of text."""
    name, changes = options.inputs[0], options.set_
    if len(options.inputs) > 1:
        raise RecipeError(f"{' '.join(options.inputs)}: give only files, or one recipe")
    if Path(name).is_dir():
        raise RecipeError(advice_for(Path(name)))
    if Path(name).is_file() and Path(name).suffix != ".toml":
        next(read_lines(name, check_is_lines), None)  # refuses files that are not lines of text
        raise RecipeError(
            f"{name} is one file of text. Give the file of its translations too, or one file with "
            "both sides (.tsv, .jsonl), or a recipe (.toml). To train a language model: --task "
            "language-model"
        )
    recipe: Recipe = catalogue.Recipe.load(name, changes)
    options.refuse(dict.fromkeys(_OF_FILES, " works only with files of text, not a recipe"))
    if run is None:
        return Chosen(recipe)
    own = "context" in recipe.plan.model_fields_set
    take = take or part_to_take(recipe.task, run.recipe)
    if take is None:
        recipe = for_fine_tuning(recipe, run.recipe, own_context=own)
    else:
        recipe = for_part(recipe, run.recipe, take)
        check_apart(recipe, run.recipe, take, run.folder)
        recipe = serve_context(recipe, run.recipe, run.folder, own, say)
    return Chosen(recipe.change(changes), None, run, take)


def _finish(recipe: Recipe, builder: RecipeBuilder, run: Run | None, learns: bool) -> Recipe:
    """The recipe with the changes of ``--set``, and a vocabulary size that fits the text, unless
    the vocabulary comes from the run."""
    take, say, changes = builder.take, builder.say, builder.options.set_
    if run is None or take is None:
        recipe = _change(recipe, changes, chosen=builder.begins_anew)
        fits = builder.begins_anew and learns and recipe.spec.texts
        return fit_vocabulary(recipe, changes, say) if fits else recipe
    two, chosen = recipe.spec.translates, builder.base is None
    if two and chosen:
        recipe = around_part(recipe, run.recipe, take, say)
    recipe = recipe.change(changes)
    check_apart(recipe, run.recipe, take, run.folder)
    own = not chosen or sets(changes, "plan.context")
    recipe = serve_context(recipe, run.recipe, run.folder, own, say)
    if not two or not chosen or not learns:
        return recipe
    brought = vocabulary_name(recipe, "source" if take == "encoder" else "target")
    return fit_vocabulary(recipe, changes, say, [brought])


def _change(recipe: Recipe, changes: Sequence[str], chosen: bool) -> Recipe:
    """Do ``Recipe.change`` with a better error message. ``chosen``: True if the program, not the
    user, chose the model."""
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
                "--set model.kind sets a kind of model that does not match the chosen sizes. "
                f"Use --model (one of {', '.join(FAMILIES)}) instead"
            ) from error
        raise


def name_of(options: TrainOptions) -> str | None:
    """The name of a run on files of text, before any of them is read; None for recipes, and for
    files that contain their languages."""
    names, task, languages = options.inputs, options.task, options.languages
    says = format_by_name(names[0]) in ("tmx", "xliff", "po") and not languages
    if says or not all(map(is_text, names)):
        return None
    stem = Path(names[0]).name.split(".")[0]
    if task not in (None, "translation") or (len(names) == 1 and is_treebank(names[0])):
        return stem
    if languages and "-" not in languages:  # such as for recordings: the inputs are not known yet
        return stem
    codes = given_languages(languages, names)
    return stem if "und" in codes else "-".join(codes)


def languages_read(recipe: Recipe) -> str | None:
    """The languages that the text seems to have, in the form of ``--languages``; None if unsure."""
    data = recipe.data
    reads = bool(data.train) and data.prepared is None
    lines = list(islice(read_pairs(data.train[0]), _LINES_READ)) if reads else []
    source, target = (
        language_of(getattr(pair, side) for pair in lines) for side in ("source", "target")
    )
    return None if "und" in (source, target) else f"{source}-{target}"
