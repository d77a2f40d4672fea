"""From what a user names (two files, one file, a recipe) to the recipe of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from dragoman.data.corpora import CorpusSettings, read_pairs
from dragoman.errors import RecipeError
from dragoman.forms.identification import language_of
from dragoman.recipe import Recipe
from dragoman.task import TASKS
from dragoman.tasks.held_out import held_corpus
from dragoman.tasks.label_sizing import (
    EPOCHS_FROM,
    is_tabbed,
    labelled_corpus,
    recipe_for_labels,
)
from dragoman.tasks.prepare import Say
from dragoman.tasks.run import Run
from dragoman.tasks.settings import Taken
from dragoman.tasks.sizing import (
    FINE_TUNING,
    for_fine_tuning,
    for_part,
    gently,
    languages_of,
    part_to_take,
    recipe_for,
    row_for,
)
from dragoman.tasks.text_sizing import largest, recipe_for_texts
from dragoman.tasks.tree_sizing import recipe_for_trees

_LINES_READ = 400
_TREES = (".mrg", ".ptb", ".parse")
"""How names of files of bracketed trees end."""
_ONE_FILE = (".tsv", ".tab", ".jsonl", ".ndjson", ".json")

_AS_TSV = "Save it as tab-separated text (.tsv), source first, without a header"
_NOT_READ = {
    ".csv": _AS_TSV,
    ".xls": _AS_TSV,
    ".xlsx": _AS_TSV,
    ".ods": _AS_TSV,
    ".tmx": "Export it as tab-separated text (.tsv), source first",
    ".xliff": "Export it as tab-separated text (.tsv), source first",
    ".xlf": "Export it as tab-separated text (.tsv), source first",
    ".po": "Write its msgid and msgstr as tab-separated text (.tsv), or as JSON Lines (.jsonl)",
    ".zip": "Unpack it",
}
"""Formats that are not read -> what to do with such a file."""


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
    start_from: Run | None = None,
    take: Taken | None = None,
    changes: Sequence[str] = (),
    minutes: float | None = None,
    say: Say = print,
) -> tuple[Recipe, float | None]:
    """The recipe, and how many epochs it wants if no time is given (None: it says so itself).

    ``minutes``: the time that there will be; with files alone, the size of the model is one that
    this machine can teach in them, by a measurement of some seconds, and ``say`` gets which.
    ``task``: what files of text are to teach, where neither ``base`` nor ``start_from`` says it.
    ``texts``: what ends a text that stands alone, as ``CorpusSettings.format`` has it; None: that
    is found out. ``keys``: where a JSON Lines file holds source and target; ``columns``: in which
    order a tab-separated one holds texts and labels (``label_sizing.COLUMNS``). ``dev``, ``test``:
    files of their own, as many as the task has (``held_out.py``). ``start_from``: the
    run to fine-tune, or to ``take`` a part of.
    Errors: ``RecipeError`` for inputs that are neither files nor a recipe, ``DataError`` for files
    that cannot be used.
    """
    if len(inputs) > 2:
        raise RecipeError(
            f"{len(inputs)} inputs: give two files of parallel text, one .tsv or .jsonl file, or "
            "one recipe; several corpora go into a recipe (docs/recipes.md)"
        )
    for path in inputs:
        _check_is_read(Path(path))
    told = Recipe.load(base).task if base else start_from.recipe.task if start_from else None
    if task is not None and task not in TASKS:
        raise RecipeError(f"--task {task}: there is no such task; tasks are {', '.join(TASKS)}")
    # A time limits the size, where nothing else says it.
    limit = minutes if base is None and start_from is None else None
    if start_from is not None and take is None:
        take = part_to_take(task or told or "", start_from.recipe)
    if take is not None and base is None:  # a part of a run serves any task
        told = None
    if task is not None and told not in (None, task):
        raise RecipeError(f"--task {task}: {base or start_from.folder} is of a {told}")  # type: ignore[union-attr]
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
                f"--take {take}: a parser goes on from all of another (--from RUN), or from nothing"
            )
        trees, epochs = recipe_for_trees(
            _absolute(inputs[0]), _language(languages, inputs[0]), base, dev, test
        )
        recipe, epochs = _begun(trees, epochs, start_from, take)
        return recipe.change(changes), epochs
    chosen = TASKS[task or told or "translation"]
    alone = chosen.called if len(chosen.sides) == 1 else ""
    labels = chosen.target == "label" and _is_text(inputs[0])
    if columns is not None and not labels:
        raise RecipeError("--columns is of labelled texts: --task classification")
    if labels:
        if texts is not None:
            raise RecipeError("--texts is for texts that stand alone: --task language-model")
        return _labelled(
            inputs, base, dev, test, languages, keys, columns, start_from, take, changes
        )
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
        size_of = largest
        if limit is not None:
            from dragoman.tasks.budget import text_size_in  # torch, which text alone does not need

            size_of = partial(text_size_in, limit, say)
        recipe, epochs = recipe_for_texts(
            _absolute(inputs[0]), texts, _language(languages, inputs[0]), base, chosen.name,
            dev, test, size_of,
        )  # fmt: skip
        recipe, epochs = _begun(recipe, epochs, start_from, take)
        return recipe.change(changes), epochs
    if len(inputs) == 1 and not is_corpus(inputs[0]):
        options = {
            "--dev": dev, "--test": test, "--recipe": base, "--keys": keys, "--languages": languages
        }  # fmt: skip
        for option, value in options.items():
            if value is not None:
                raise RecipeError(f"{option} goes with files of text; a recipe says it itself")
        if Path(inputs[0]).is_file() and Path(inputs[0]).suffix != ".toml":
            raise RecipeError(
                f"{inputs[0]} is one file of text: name the file of its translations too; or give "
                "one file with both sides (.tsv, .jsonl), or a recipe (.toml). To learn to write "
                "such text itself: --task language-model"
            )
        recipe = Recipe.load(inputs[0], changes)
        if start_from is not None:
            take = take or part_to_take(recipe.task, start_from.recipe)
            if take is None:
                recipe = for_fine_tuning(recipe, start_from.recipe).change(changes)
            else:
                recipe = for_part(recipe, start_from.recipe, take).change(changes)
        return recipe, None
    size_for = row_for
    if limit is not None:
        from dragoman.tasks.budget import size_in

        size_for = partial(size_in, limit, say)
    corpus = _corpus(inputs, keys)
    recipe, pairs = recipe_for(
        [corpus],
        held_corpus("--dev", dev, corpus, chosen.noun),
        held_corpus("--test", test, corpus, chosen.noun),
        _languages(languages) if languages else languages_of(inputs),
        base,
        size_for,
    )
    epochs = None if base else row_for(pairs).epochs
    recipe, epochs = _begun(recipe, epochs, start_from, take)
    return recipe.change(changes), epochs


def _begun(
    recipe: Recipe, epochs: float | None, start_from: Run | None, take: Taken | None
) -> tuple[Recipe, float | None]:
    """A recipe as it begins: with a part of a run, with all of it, which it fine-tunes, or with
    nothing. Where no other recipe says how long (``epochs``), it is fine-tuned gently."""
    if start_from is None:
        return recipe, epochs
    if take is not None:
        return for_part(recipe, start_from.recipe, take), epochs
    tuned = for_fine_tuning(recipe, start_from.recipe)
    tuned = tuned.model_copy(update={"name": f"{start_from.recipe.name}-tuned"})
    if epochs is None:
        return tuned, None
    return gently(tuned, start_from.recipe), epochs / FINE_TUNING


def _labelled(
    inputs: Sequence[str],
    base: str | None,
    dev: Sequence[str] | None,
    test: Sequence[str] | None,
    languages: str | None,
    keys: tuple[str, str] | None,
    columns: str | None,
    start_from: Run | None,
    take: Taken | None,
    changes: Sequence[str],
) -> tuple[Recipe, float | None]:
    """``recipe_of`` for texts and their labels."""
    if len(inputs) == 2:
        corpus = _corpus(inputs, keys)
    else:
        corpus = labelled_corpus(_absolute(inputs[0]), columns, keys)
    language = _language(languages, inputs[0]) if languages else "und"
    recipe, epochs = recipe_for_labels(
        corpus,
        _labelled_held("--dev", dev, corpus, columns, keys),
        _labelled_held("--test", test, corpus, columns, keys),
        language,
        base,
    )
    if start_from is None:
        return recipe.change(changes), epochs
    if take is None:
        recipe = for_fine_tuning(recipe, start_from.recipe)
    else:
        recipe = for_part(recipe, start_from.recipe, take)
    recipe = recipe.model_copy(update={"name": f"{recipe.name}-from-{start_from.recipe.name}"})
    if base is None:
        recipe, epochs = gently(recipe, start_from.recipe), EPOCHS_FROM
    return recipe.change(changes), epochs


def _labelled_held(
    option: str,
    files: Sequence[str] | None,
    train: CorpusSettings,
    columns: str | None,
    keys: tuple[str, str] | None,
) -> CorpusSettings | None:
    """A file of another kind than the training file's has its own columns or keys."""
    named = [name for name in files or () if name]
    if len(named) == 1 and (train.target or is_tabbed(named[0]) != is_tabbed(train.source)):
        train = labelled_corpus(_absolute(named[0]), columns, keys)
    return held_corpus(option, files, train, "labelled texts")


def _check_is_read(path: Path) -> None:
    """Errors: ``RecipeError`` for a file of a kind that is not read, saying what to do with it."""
    advice = _NOT_READ.get(path.suffix.lower())
    if advice is not None:
        raise RecipeError(
            f"{path}: {path.suffix} is not read here. {advice}; or give two files of lines, one "
            "for each language"
        )


def taken(part: str | None, begins: bool) -> Taken | None:
    """``--take`` as it was given. ``begins``: whether there is a run to take it of.

    Errors: ``RecipeError``.
    """
    if part is None:
        return None
    if not begins:
        raise RecipeError(f"--take {part} goes with --from RUN")
    if part not in ("encoder", "decoder"):
        raise RecipeError(f"--take {part}: it is encoder or decoder")
    return "encoder" if part == "encoder" else "decoder"


def languages_read(recipe: Recipe) -> str | None:
    """The languages that the text seems to be in, as --languages takes them; None if unsure."""
    lines = list(islice(read_pairs(recipe.data.train[0]), _LINES_READ)) if recipe.data.train else []
    source, target = (
        language_of(getattr(pair, side) for pair in lines) for side in ("source", "target")
    )
    return None if "und" in (source, target) else f"{source}-{target}"


def _corpus(inputs: Sequence[str], keys: tuple[str, str] | None) -> CorpusSettings:
    if len(inputs) == 2:
        if keys is not None:
            raise RecipeError("--keys goes with one .jsonl file that holds both sides")
        return CorpusSettings(source=_absolute(inputs[0]), target=_absolute(inputs[1]))
    corpus = CorpusSettings(source=_absolute(inputs[0]))
    if keys is None:
        return corpus
    return corpus.model_copy(update={"source_key": keys[0], "target_key": keys[1]})


def _is_text(path: str) -> bool:
    return Path(path).exists() and not path.endswith(".toml")


def is_treebank(path: str) -> bool:
    """Whether its name is that of a file of bracketed trees."""
    return path.removesuffix(".gz").endswith(_TREES)


def is_corpus(path: str) -> bool:
    """Whether its name is that of one file with both sides."""
    return path.removesuffix(".gz").endswith(_ONE_FILE)


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
