"""From what a user names (two files, one file, a recipe) to the recipe of a run."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from dragoman.data.files.bilingual import path_format
from dragoman.data.files.columns import listed_corpus
from dragoman.data.files.corpora import read_lines, read_pairs
from dragoman.data.files.file_kinds import check_is_lines, check_is_read
from dragoman.data.files.folders import advice_for
from dragoman.errors import RecipeError
from dragoman.forms.identification import language_of
from dragoman.recipe import Recipe
from dragoman.recipe_text import sets
from dragoman.runs.prepare import Say
from dragoman.runs.prepared import is_prepared, recipe_of_prepared
from dragoman.runs.run import Run, vocabulary_name
from dragoman.sizing.boxes import DetectionBuilder
from dragoman.sizing.builder import RecipeBuilder
from dragoman.sizing.codes import CodesBuilder
from dragoman.sizing.families import FAMILIES
from dragoman.sizing.files import FilesBuilder
from dragoman.sizing.inputs import Inputs, is_text, is_treebank
from dragoman.sizing.labels import ClassificationBuilder
from dragoman.sizing.languages import given_languages
from dragoman.sizing.painting import PaintingBuilder
from dragoman.sizing.pairs import TranslationBuilder
from dragoman.sizing.spoken import SpokenBuilder
from dragoman.sizing.start_from import (
    around_part,
    check_apart,
    for_fine_tuning,
    for_part,
    part_to_take,
    serve_context,
)
from dragoman.sizing.tags import TaggingBuilder
from dragoman.sizing.texts import LanguageModelBuilder, MaskedBuilder
from dragoman.sizing.trees import ParsingBuilder
from dragoman.sizing.vocabulary_size import fit_vocabulary
from dragoman.specs.catalogue import TASKS
from dragoman.task import ModelPart

BUILDERS: dict[str, RecipeBuilder] = {
    builder.task.name: builder
    for builder in (
        TranslationBuilder(),
        LanguageModelBuilder(),
        MaskedBuilder(),
        ClassificationBuilder(),
        ParsingBuilder(),
        TaggingBuilder(),
        DetectionBuilder(),
        CodesBuilder(),
        PaintingBuilder(),
    )
}
_FILES: tuple[RecipeBuilder, ...] = (FilesBuilder(), SpokenBuilder())
"""Of what is no text: with labels, with texts."""

_LINES_READ = 400


def recipe_of(
    inputs: Sequence[str],
    *,
    task: str | None = None,
    texts: str | None = None,
    base: str | None = None,
    dev: Sequence[str] | None = None,
    test: Sequence[str] | None = None,
    languages: str | None = None,
    keys: tuple[str, str] | None = None,
    columns: str | None = None,
    groups: str | None = None,
    label_ends: str | None = None,
    codes: str | None = None,
    start_from: Run | None = None,
    take: ModelPart | None = None,
    changes: Sequence[str] = (),
    minutes: float | None = None,
    model: str | None = None,
    say: Say = print,
    learns: bool = True,
) -> tuple[Recipe, float | None]:
    """The recipe, and how many epochs it wants if no time is given (None: it says so itself).

    ``minutes``: the time that there will be; with files alone, the size of the model is one that
    this machine can teach in them, by a measurement of some seconds, and ``say`` gets which.
    ``task``: what files of text are to teach, where neither ``base`` nor ``start_from`` says it.
    ``texts``: what ends a text that stands alone, as ``CorpusSettings.format`` has it; None: that
    is found out. ``keys``: where a JSON Lines file holds source and target; ``columns``: in which
    order a tab-separated one holds texts and labels (``data/files/columns.py``); ``groups``: how
    the name of a recording tells its speaker (``CorpusSettings.group_pattern``); ``label_ends``: as
    ``CorpusSettings`` has it, None: as ``base`` or ``start_from`` has learned; ``codes``: the run
    whose codes a painter writes. ``dev``, ``test``: files of their own, as many as the task has
    (``builder.py``). ``model``: a family of models (``families.py``), where neither ``base``
    nor ``start_from`` has one. ``start_from``: the run to fine-tune, or to ``take`` a part of.
    ``learns``: whether a vocabulary is to be learned, whose size then follows from the text
    (``vocabulary_size.py``). Errors: ``RecipeError`` for inputs that are neither files nor a
    recipe, ``DataError`` for files that cannot be used.
    """
    if len(inputs) > 2:
        raise RecipeError(
            f"{len(inputs)} inputs: give two files of parallel text, one .tsv or .jsonl file, or "
            "one recipe; several corpora go into a recipe (docs/recipes.md)"
        )
    if inputs and is_prepared(inputs[0]):
        options = {
            "--dev": dev, "--test": test, "--recipe": base, "--keys": keys, "--columns": columns,
            "--languages": languages, "--model": model, "--task": task, "--from": start_from,
        }  # fmt: skip
        wrong = next((name for name, value in options.items() if value is not None), None)
        if wrong is not None or len(inputs) > 1:
            raise RecipeError(
                f"{wrong or inputs[-1]}: {inputs[0]} is prepared text, which has a recipe of its "
                "own; --set changes the settings of the model and of the training"
            )
        return recipe_of_prepared(inputs[0], changes), None
    base_recipe = Recipe.load(base) if base else None
    known = base_recipe or (start_from.recipe if start_from else None)
    told = known.task if known else None
    if task is not None and task not in TASKS:
        if task.startswith(("transcri", "speech")):
            raise RecipeError(f"--task {task}: leave it out: recordings with their texts need none")
        near = difflib.get_close_matches(task, TASKS, 1)
        hint = f" Did you mean --task {near[0]}?" if near else ""
        raise RecipeError(
            f"--task {task}: there is no such task.{hint} Tasks are {', '.join(TASKS)}"
        )
    named_task = task or told or "translation"
    for path in inputs:
        if named_task != "classification" or listed_corpus(path, columns, keys) is None:
            check_is_read(Path(path), named_task)
    if model is not None and known is not None:
        given = f"--recipe {base}" if base is not None else "--from"
        raise RecipeError(
            f"--model {model} works only with files: {given} already determines the model"
        )
    if start_from is not None and take is None:
        take = part_to_take(task or told or "", start_from.recipe)
    if take is not None and base is None:  # a part of a run serves any task
        told = None
    if task is not None and told not in (None, task):
        raise RecipeError(f"--task {task}: {base or start_from.folder} is of a {told}")  # type: ignore[union-attr]
    if task is None and told is None and len(inputs) == 1 and is_treebank(inputs[0]):
        task = "parsing"
    named = Inputs(
        names=inputs, task=TASKS[task or told or "translation"], names_task=task is not None,
        texts=texts, base=base_recipe, dev=dev, test=test, languages=languages,
        keys=keys, columns=columns, groups=groups, label_ends=label_ends, codes=codes,
        start_from=start_from, take=take,
        # A time limits the size where nothing else says it.
        model=model, minutes=minutes if known is None else None, say=say,
    )  # fmt: skip
    taken = (one for one in _FILES if one.takes(named))
    builder = next(taken, BUILDERS[named.task.name])
    if groups is not None and builder not in _FILES:
        raise RecipeError(
            "--groups goes with recordings, and with pictures (in folders, listed, or IDX files) "
            "and --task classification; for other corpora a recipe has group_column or group_key"
        )
    if codes is not None and named.task.name != "painting":
        raise RecipeError(
            f"--codes {codes} goes with --task painting: a {named.task.called} writes no codes of "
            "pictures"
        )
    if not builder.takes(named):  # then it is a recipe, or there is no such file
        builder = BUILDERS["translation"]
    builder.check(named)
    if not builder.takes(named):
        return _recipe_named(named, changes), None
    recipe, epochs = builder.begun(*builder.recipe(named), named)
    return _finished(recipe, named, changes, learns), epochs


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
    recipe = Recipe.load(name, changes)
    options = {
        "--dev": inputs.dev, "--test": inputs.test, "--recipe": inputs.base,
        "--keys": inputs.keys, "--languages": inputs.languages, "--model": inputs.model,
        "--columns": inputs.columns,
    }  # fmt: skip
    for option, value in options.items():
        if value is not None:
            raise RecipeError(f"{option} goes with files of text; a recipe says it itself")
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


def name_of(inputs: Sequence[str], task: str | None, languages: str | None) -> str | None:
    """How a run on files of text will be called, before any of them is read; None for recipes, and
    for files that say their languages."""
    says = path_format(inputs[0]) in ("tmx", "xliff", "po") and not languages
    if says or not all(map(is_text, inputs)):
        return None
    stem = Path(inputs[0]).name.split(".")[0]
    if task not in (None, "translation") or (len(inputs) == 1 and is_treebank(inputs[0])):
        return stem
    if languages and "-" not in languages:  # as of recordings: what they are is not known yet
        return stem
    codes = given_languages(languages, inputs)
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
