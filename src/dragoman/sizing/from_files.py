"""From what a user names (two files, one file, a recipe) to the recipe of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from dragoman.data.columns import is_tabbed, labelled_corpus, numbered
from dragoman.data.corpora import CorpusSettings, files_of, is_one_file, read_lines, read_pairs
from dragoman.data.file_kinds import NotLines, check_is_lines, check_is_read
from dragoman.errors import RecipeError
from dragoman.forms.identification import language_of
from dragoman.recipe import Recipe
from dragoman.recipe_text import sets
from dragoman.runs.prepare import Say
from dragoman.runs.run import Run, vocabulary_name
from dragoman.sizing.families import DEFAULT, FAMILIES
from dragoman.sizing.held_out import held_corpus
from dragoman.sizing.labels import (
    EPOCHS_FROM,
    recipe_for_labels,
)
from dragoman.sizing.languages import languages_of
from dragoman.sizing.pairs import recipe_for, row_for
from dragoman.sizing.start_from import (
    FINE_TUNING,
    around_part,
    check_apart,
    for_fine_tuning,
    for_part,
    gently,
    part_to_take,
    serve_context,
)
from dragoman.sizing.tags import recipe_for_tags, tagged_corpus
from dragoman.sizing.texts import largest, recipe_for_texts
from dragoman.sizing.trees import label_ends_of, recipe_for_trees
from dragoman.sizing.vocabulary_size import fit_vocabulary
from dragoman.specs.catalogue import TASKS
from dragoman.specs.spec import Spec
from dragoman.task import ModelPart

_LINES_READ = 400
_FILES_LOOKED_AT = 8
_TREES = (".mrg", ".ptb", ".parse")
"""How names of files of bracketed trees end."""


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
    label_ends: str | None = None,
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
    order a tab-separated one holds texts and labels (``data/columns.py``); ``label_ends``: as
    ``CorpusSettings`` has it, None: as ``base`` or ``start_from`` has learned. ``dev``, ``test``:
    files of their own, as many as the task has (``held_out.py``). ``model``: a family of models
    (``families.py``), where neither ``base`` nor ``start_from`` has one. ``start_from``: the
    run to fine-tune, or to ``take`` a part of. ``learns``: whether a vocabulary is to be learned,
    whose size then follows from the text (``vocabulary_size.py``).
    Errors: ``RecipeError`` for inputs that are neither files nor a recipe, ``DataError`` for files
    that cannot be used.
    """
    if len(inputs) > 2:
        raise RecipeError(
            f"{len(inputs)} inputs: give two files of parallel text, one .tsv or .jsonl file, or "
            "one recipe; several corpora go into a recipe (docs/recipes.md)"
        )
    told = Recipe.load(base).task if base else start_from.recipe.task if start_from else None
    if task is not None and task not in TASKS:
        raise RecipeError(f"--task {task}: there is no such task; tasks are {', '.join(TASKS)}")
    for path in inputs:
        check_is_read(Path(path), task or told or "translation")
    if model is not None and (base is not None or start_from is not None):
        given = f"--recipe {base}" if base is not None else "--from"
        raise RecipeError(
            f"--model {model} works only with files: {given} already determines the model"
        )
    family = model or DEFAULT
    # A time limits the size, where nothing else says it.
    limit = minutes if base is None and start_from is None else None
    if start_from is not None and take is None:
        take = part_to_take(task or told or "", start_from.recipe)
    if take is not None and base is None:  # a part of a run serves any task
        told = None
    if task is not None and told not in (None, task):
        raise RecipeError(f"--task {task}: {base or start_from.folder} is of a {told}")  # type: ignore[union-attr]

    def finished(recipe: Recipe) -> Recipe:
        """With the changes, and a vocabulary that fits the text, where none is taken over."""
        if start_from is None or take is None:
            recipe = _changed(recipe, changes, chosen=base is None and start_from is None)
            is_new = base is None and start_from is None
            return fit_vocabulary(recipe, changes, say) if is_new and learns else recipe
        learned, run = start_from.recipe, start_from.folder
        two = recipe.spec.translates
        if two and base is None:
            recipe = around_part(recipe, learned, take, say)
        recipe = recipe.change(changes)
        check_apart(recipe, learned, take, run)
        own = base is not None or sets(changes, "plan.context")
        recipe = serve_context(recipe, learned, run, own, say)
        if not two or base is not None or not learns:
            return recipe
        brought = vocabulary_name(recipe, "source" if take == "encoder" else "target")
        return fit_vocabulary(recipe, changes, say, [brought])

    epochs: float | None
    if task is None and told is None and len(inputs) == 1 and is_treebank(inputs[0]):
        task = "parsing"
    if task == "parsing" or (told == "parsing" and _is_text(inputs[0])):
        if len(inputs) > 1 or keys is not None:
            raise RecipeError(
                "a parser learns from bracketed trees: give one file, or a folder of files. What "
                "it is measured on is held out of it, or named by --dev FILE and --test FILE"
            )
        if take is not None:
            raise RecipeError(
                f"--init-part {take}: a parser goes on from all of another (--from RUN), or from "
                "nothing"
            )
        if label_ends is None:
            learned = Recipe.load(base) if base else start_from.recipe if start_from else None
            label_ends = label_ends_of(learned)
        trees, epochs = recipe_for_trees(
            _absolute(inputs[0]), _language(languages, inputs[0]), base, dev, test, model,
            label_ends,
        )  # fmt: skip
        recipe, epochs = _begun(trees, base, epochs, start_from, take)
        return finished(recipe), epochs
    chosen = TASKS[task or told or "translation"]
    alone = chosen.called if len(chosen.sides) == 1 else ""
    labels = chosen.has_head and _is_text(inputs[0])
    if label_ends is not None and not (labels and chosen.name in _FROM_TREES):
        raise RecipeError(
            "--label-ends goes with a file of bracketed trees, or a folder of them (--task "
            "parsing, --task tagging); a recipe says it itself (label_ends in data.train)"
        )
    tabbed = len(inputs) == 1 and is_tabbed(inputs[0])
    if columns is not None and (alone or not tabbed) and _is_text(inputs[0]):
        raise RecipeError(
            "--columns names the columns of source and target, or of text and label, in a "
            "tab-separated file (.tsv)"
        )
    if labels:
        if texts is not None:
            raise RecipeError("--texts is for texts that stand alone: --task language-model")
        recipe, epochs = _labelled(
            chosen, inputs, base, dev, test, languages, keys, columns, start_from, take, family,
            label_ends,
        )  # fmt: skip
        return finished(recipe), epochs
    if start_from is not None and base is None and task is None and not _is_text(inputs[0]):
        alone = ""  # a recipe, which may be fine-tuned too
    if len(inputs) == 1 and alone and Path(inputs[0]).suffix == ".toml":
        raise RecipeError(
            f"{inputs[0]} is a recipe, which says its task itself: leave --task, --recipe out"
        )
    if texts is not None and not alone:
        raise RecipeError(
            "--texts is for texts that stand alone: --task language-model, or --task masked"
        )
    if alone:
        if len(inputs) > 1 or keys is not None:
            raise RecipeError(
                f"a {alone} learns from texts alone: give one file, or a folder of files; "
                "what it is measured on is held out of it, or named by --dev FILE and --test FILE"
            )
        for one in islice(files_of(inputs[0]), _FILES_LOOKED_AT):
            try:
                next(read_lines(one, check_is_lines), None)
            except NotLines as error:  # to write markup may be what is wanted
                say(f"warning: {error}. As it is, the model learns to write such lines")
                break
        size_of = largest
        if limit is not None:
            from dragoman.sizing.budget import text_size_in  # torch, which text alone does not need

            size_of = partial(text_size_in, limit, say, family)
        recipe, epochs = recipe_for_texts(
            _absolute(inputs[0]), texts, _language(languages, inputs[0]), base, chosen.name,
            dev, test, size_of, family, say,
        )  # fmt: skip
        recipe, epochs = _begun(recipe, base, epochs, start_from, take)
        return finished(recipe), epochs
    if len(inputs) == 1 and not is_one_file(inputs[0]):
        options = {
            "--dev": dev, "--test": test, "--recipe": base, "--keys": keys,
            "--languages": languages, "--model": model, "--columns": columns,
        }  # fmt: skip
        for option, value in options.items():
            if value is not None:
                raise RecipeError(f"{option} goes with files of text; a recipe says it itself")
        if Path(inputs[0]).is_file() and Path(inputs[0]).suffix != ".toml":
            next(read_lines(inputs[0], check_is_lines), None)  # no text, or not that of sentences
            raise RecipeError(
                f"{inputs[0]} is one file of text: name the file of its translations too; or give "
                "one file with both sides (.tsv, .jsonl), or a recipe (.toml). To learn to write "
                "such text itself: --task language-model"
            )
        recipe = Recipe.load(inputs[0], changes)
        if start_from is not None:
            own = "context" in recipe.plan.model_fields_set
            take = take or part_to_take(recipe.task, start_from.recipe)
            if take is None:
                recipe = for_fine_tuning(recipe, start_from.recipe, own_context=own)
            else:
                recipe = for_part(recipe, start_from.recipe, take)
                check_apart(recipe, start_from.recipe, take, start_from.folder)
                recipe = serve_context(recipe, start_from.recipe, start_from.folder, own, say)
            recipe = recipe.change(changes)
        return recipe, None
    size_for = None
    if limit is not None:
        from dragoman.sizing.budget import size_in

        size_for = partial(size_in, limit, say, family)
    corpus = _corpus(inputs, keys, columns)
    recipe, pairs = recipe_for(
        [corpus],
        held_corpus("--dev", dev, corpus, chosen.noun),
        held_corpus("--test", test, corpus, chosen.noun),
        _languages(languages) if languages else languages_of(inputs),
        base,
        size_for,
        family,
    )
    epochs = None if base else row_for(pairs).epochs
    recipe, epochs = _begun(recipe, base, epochs, start_from, take)
    return finished(recipe), epochs


def _changed(recipe: Recipe, changes: Sequence[str], chosen: bool) -> Recipe:
    """``Recipe.change``. ``chosen``: whether the program has chosen the model."""
    try:
        return recipe.change(changes)
    except RecipeError as error:
        if chosen and sets(changes, "model.kind"):
            raise RecipeError(
                "--set model.kind names a kind of model other than the one whose sizes were "
                f"chosen. --model (one of {', '.join(FAMILIES)}) chooses both"
            ) from error
        raise


def _begun(
    recipe: Recipe,
    base: str | None,
    epochs: float | None,
    start_from: Run | None,
    take: ModelPart | None,
) -> tuple[Recipe, float | None]:
    """A recipe as it begins: with a part of a run, with all of it, which it fine-tunes, or with
    nothing. Where no ``base`` says how long (``epochs``), it is fine-tuned gently."""
    if start_from is None:
        return recipe, epochs
    if take is not None:
        return for_part(recipe, start_from.recipe, take), epochs
    tuned = for_fine_tuning(recipe, start_from.recipe, own_context=base is not None)
    tuned = tuned.model_copy(update={"name": f"{start_from.recipe.name}-tuned"})
    if epochs is None:  # the base says it
        return tuned, None
    return gently(tuned, start_from.recipe), epochs / FINE_TUNING


_WITH_HEAD = {
    "classification": (labelled_corpus, recipe_for_labels, "labelled texts"),
    "tagging": (tagged_corpus, recipe_for_tags, "tagged sentences"),
}
"""Of each task with a head: from a file and what is said of it to its corpus, from corpora to a
recipe, and what examples are called beside those of other tasks."""


_FROM_TREES = {"tagging": tagged_corpus}
"""Of each of these whose files may be bracketed trees: the same, told where labels end."""


def _labelled(
    task: Spec,
    inputs: Sequence[str],
    base: str | None,
    dev: Sequence[str] | None,
    test: Sequence[str] | None,
    languages: str | None,
    keys: tuple[str, str] | None,
    columns: str | None,
    start_from: Run | None,
    take: ModelPart | None,
    family: str,
    label_ends: str | None,
) -> tuple[Recipe, float | None]:
    """``recipe_of`` for texts and their labels, without ``changes``."""
    corpus_of, recipe_for_task, noun = _WITH_HEAD[task.name]
    if label_ends is not None:
        corpus_of = partial(_FROM_TREES[task.name], label_ends=label_ends)

    def held(option: str, files: Sequence[str] | None) -> CorpusSettings | None:
        """A file of another kind than the training file's has its own columns or keys."""
        named, like = [name for name in files or () if name], corpus
        if len(named) == 1 and (like.target or is_tabbed(named[0]) != is_tabbed(like.source)):
            like = corpus_of(_absolute(named[0]), columns, keys)
        return held_corpus(option, files, like, noun)

    if len(inputs) == 2:
        corpus = _corpus(inputs, keys)
    else:
        corpus = corpus_of(_absolute(inputs[0]), columns, keys)
    language = _language(languages, inputs[0]) if languages else "und"
    recipe, epochs = recipe_for_task(
        corpus, held("--dev", dev), held("--test", test), language, base, family
    )
    if start_from is None:
        return recipe, epochs
    if take is None:
        recipe = for_fine_tuning(recipe, start_from.recipe, own_context=base is not None)
    else:
        recipe = for_part(recipe, start_from.recipe, take)
    recipe = recipe.model_copy(update={"name": f"{recipe.name}-from-{start_from.recipe.name}"})
    if base is None:
        recipe, epochs = gently(recipe, start_from.recipe), EPOCHS_FROM
    return recipe, epochs


def taken(part: str | None, begins: bool) -> ModelPart | None:
    """``--init-part`` as it was given. ``begins``: whether there is a run to take it of.

    Errors: ``RecipeError``.
    """
    if part is None:
        return None
    if not begins:
        raise RecipeError(f"--init-part {part} goes with --from RUN")
    if part not in ("encoder", "decoder"):
        raise RecipeError(f"--init-part {part}: it is encoder or decoder")
    return "encoder" if part == "encoder" else "decoder"


def name_of(inputs: Sequence[str], task: str | None, languages: str | None) -> str | None:
    """How a run on files of text will be called, before any of them is read; None for recipes."""
    if not all(map(_is_text, inputs)):
        return None
    stem = Path(inputs[0]).name.split(".")[0]
    if task not in (None, "translation") or (len(inputs) == 1 and is_treebank(inputs[0])):
        return stem
    codes = _languages(languages) if languages else languages_of(inputs)
    return stem if "und" in codes else "-".join(codes)


def languages_read(recipe: Recipe) -> str | None:
    """The languages that the text seems to be in, as --languages takes them; None if unsure."""
    lines = list(islice(read_pairs(recipe.data.train[0]), _LINES_READ)) if recipe.data.train else []
    source, target = (
        language_of(getattr(pair, side) for pair in lines) for side in ("source", "target")
    )
    return None if "und" in (source, target) else f"{source}-{target}"


def _corpus(
    inputs: Sequence[str], keys: tuple[str, str] | None, columns: str | None = None
) -> CorpusSettings:
    if len(inputs) == 2:
        if keys is not None:
            raise RecipeError("--keys goes with one .jsonl file that holds both sides")
        return CorpusSettings(source=_absolute(inputs[0]), target=_absolute(inputs[1]))
    corpus = CorpusSettings(source=_absolute(inputs[0]))
    if columns is not None:
        source, target = numbered(columns)
        return corpus.model_copy(update={"source_column": source, "target_column": target})
    if keys is None:
        return corpus
    return corpus.model_copy(update={"source_key": keys[0], "target_key": keys[1]})


def _is_text(path: str) -> bool:
    return Path(path).exists() and not path.endswith(".toml")


def is_treebank(path: str) -> bool:
    """Whether its name is that of a file of bracketed trees."""
    return path.removesuffix(".gz").endswith(_TREES)


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def _language(code: str | None, path: str) -> str:
    """The language of texts that stand alone: as the user says, or from the name of their file."""
    if code is not None and "-" in code:
        raise RecipeError(f"--languages {code}: texts that stand alone have one, such as en")
    return code or languages_of([path, path])[0]


def _languages(codes: str) -> tuple[str, str]:
    source, dash, target = codes.partition("-")
    if not dash or not source or not target:
        raise RecipeError(f"--languages {codes}: write it as en-de")
    return source, target
