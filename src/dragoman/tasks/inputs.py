"""From what a user names (two files, one file, a recipe) to the recipe of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.data.corpora import CorpusSettings
from dragoman.errors import RecipeError
from dragoman.recipe import Recipe
from dragoman.tasks.run import Run
from dragoman.tasks.sizing import default_epochs, languages_of, recipe_for

_ONE_FILE = (".tsv", ".tab", ".jsonl", ".ndjson", ".json")


def recipe_of(
    inputs: Sequence[str],
    *,
    base: str | None = None,
    dev: tuple[str, str] | None = None,
    test: tuple[str, str] | None = None,
    languages: str | None = None,
    start_from: Run | None = None,
    changes: Sequence[str] = (),
) -> tuple[Recipe, float | None]:
    """The recipe, and how many epochs it wants if no time is given (None: it says so itself).

    Errors: ``RecipeError`` for inputs that are neither files nor a recipe.
    """
    if len(inputs) > 2:
        raise RecipeError(
            f"{len(inputs)} inputs: give two files of parallel text, one .tsv or .jsonl file, or "
            "one recipe"
        )
    if len(inputs) == 1 and not _is_corpus(inputs[0]):
        for option, value in (("--dev", dev), ("--test", test), ("--recipe", base)):
            if value is not None:
                raise RecipeError(f"{option} goes with files of text; a recipe says it itself")
        return Recipe.load(inputs[0], changes), None
    corpus = CorpusSettings(
        source=_absolute(inputs[0]), target=_absolute(inputs[1]) if len(inputs) == 2 else None
    )
    codes = _languages(languages) if languages else languages_of(inputs)
    name = f"{codes[0]}-{codes[1]}" if "und" not in codes else Path(inputs[0]).name.split(".")[0]
    held = [
        CorpusSettings(source=_absolute(pair[0]), target=_absolute(pair[1])) if pair else None
        for pair in (dev, test)
    ]
    if start_from is not None:
        name = f"{start_from.recipe.name}-tuned"
    recipe, pairs = recipe_for([corpus], held[0], held[1], codes, name, base)
    if start_from is not None:
        learned = start_from.recipe
        recipe = recipe.model_copy(
            update={
                "text": learned.text,
                "model": learned.model,
                "languages": recipe.languages if languages else learned.languages,
            }
        )
    recipe = recipe.change(changes)
    return recipe, None if base else float(default_epochs(pairs))


def _is_corpus(path: str) -> bool:
    return path.removesuffix(".gz").endswith(_ONE_FILE)


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def _languages(codes: str) -> tuple[str, str]:
    source, dash, target = codes.partition("-")
    if not dash or not source or not target:
        raise RecipeError(f"--languages {codes}: write it as en-de")
    return source, target
