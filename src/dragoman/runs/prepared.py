"""A folder that ``dragoman prepare`` wrote: the text of a recipe, ready to be trained on.

    prepared.json     written last: the recipe, what its corpora are, what was found on the way
    source.model …    what was learned of the text: vocabularies, labels
    tokens/           the store (``data/store.py``)
    dev.jsonl, test.jsonl   what was held out, if anything was
    train.jsonl       the plain text, where the store has it as Moses prepares it
    SHA256SUMS        of all files but the first

A recipe whose ``data.prepared`` names it reads none of the files in ``data.train``. It may be in an
object store too, from which it comes into the cache (``bucket_text.py``).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.data.files.pair import Pair
from dragoman.data.store import TokenStore
from dragoman.errors import RecipeError, RunError
from dragoman.reading import read_json
from dragoman.recipe import Recipe
from dragoman.runs.bucket_text import FILE, TOKENS, local_folder, of_address

FORMAT = 1
BEGUN = Path("_dragoman") / "fingerprints"
"""What the first stage of ``prepare`` leaves in the folder."""


class PreparedFile(BaseModel):
    """``prepared.json``."""

    model_config = ConfigDict(strict=True)
    format: int = Field(ge=1, le=FORMAT)
    recipe: dict[str, Any]
    key: str
    """Of the store, as a training has it."""
    corpora: list[tuple[str, str, float]]
    """Of each its name, the hash of its content, its weight."""
    learned: list[str]
    """Files beside it that were learned of the text."""
    doubts: list[dict[str, Any]]
    """What looks wrong with the text."""


def is_prepared(path: str | os.PathLike[str]) -> bool:
    """Whether it is such a folder, or one that is being prepared; an address is always taken for
    one."""
    return of_address(path) is not None or any((Path(path) / one).exists() for one in (FILE, BEGUN))


def read_prepared(folder: str | os.PathLike[str]) -> PreparedFile:
    """Errors: ``RunError`` where there is none, or where it is not whole."""
    address = of_address(folder)
    path = (local_folder(address) if address else Path(folder)) / FILE
    if not path.is_file():
        raise RunError(
            f"{folder} holds no prepared text: {FILE} is written last. Prepare it, or go on: "
            f"dragoman prepare RECIPE --to {shlex.quote(str(folder))}"
        )
    try:
        # As JSON has them, tuples are lists.
        return PreparedFile.model_validate_json(json.dumps(read_json(path)))
    except ValidationError as error:
        raise RunError(f"{path} is damaged, or of another version of dragoman") from error


def recipe_of_prepared(folder: str | os.PathLike[str], changes: Sequence[str] = ()) -> Recipe:
    """The recipe by which it was prepared, for a training that takes it, with ``changes``.

    Errors: ``RecipeError`` for a change of what the tokens depend on.
    """
    values = read_prepared(folder).recipe
    place = of_address(folder) or os.path.abspath(folder)
    values = {**values, "data": {**values["data"], "prepared": place}}
    plain = Recipe.parse(values, where=str(Path(folder) / FILE))
    changed = Recipe.parse(values, changes, where=str(Path(folder) / FILE))
    for section in ("task", "languages", "data", "text", "source", "trees"):
        if getattr(plain, section) != getattr(changed, section):
            raise RecipeError(
                f"{folder} was prepared with other settings in the section {section}. Prepare the "
                f"text again with this --set, in another folder, or leave {section} as it is"
            )
    return changed


def take_learned(recipe: Recipe, folder: Path, known: Collection[str] = ()) -> list[str]:
    """Copy what was learned of the text into the folder of a run -> the names of the files."""
    prepared = _folder(recipe)
    names = [name for name in read_prepared(_place(recipe)).learned if name not in known]
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if Path(name).name != name or not (prepared / name).is_file():
            raise RunError(f"{prepared / name} is missing. Prepare the text again")
        shutil.copyfile(prepared / name, folder / name)
    return names


def store_of(recipe: Recipe, key: str, sizes: dict[str, int]) -> TokenStore:
    """The tokens of a prepared text. Errors: ``RunError`` where they are of something else than
    ``key``."""
    place = _place(recipe)
    if read_prepared(place).key != key:
        raise RunError(
            f"{place} was prepared with another vocabulary, or with other settings of the "
            "text, than this recipe has. Prepare the text again, in another folder"
        )
    return _opened(recipe, sizes)


def pairs_of_prepared(recipe: Recipe, side: str) -> Iterator[Pair]:
    """The text of "train", "dev" or "test"."""
    prepared = _folder(recipe)
    if side == "train" and not recipe.data.moses:
        store = _opened(recipe)
        for example in range(len(store)):
            texts = {one: store.text(one, example) for one in store.lengths}
            yield Pair(example + 1, texts.get("source", ""), texts.get("target", ""))
        return
    path = prepared / f"{side}.jsonl"
    try:
        with path.open(encoding="utf-8", errors="surrogatepass", newline="\n") as file:
            for line in file:
                number, *texts = json.loads(line)
                yield Pair(int(number), *map(str, texts))
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"{path} is missing or damaged ({error}). Prepare the text again") from error


def _opened(recipe: Recipe, sizes: dict[str, int] | None = None) -> TokenStore:
    folder = _folder(recipe)
    mend = "prepare the text again, in another folder"
    if of_address(_place(recipe)) is not None:
        mend = f"delete {folder}, and it is fetched again"
    return TokenStore(folder / TOKENS, sizes, mend)


def _folder(recipe: Recipe) -> Path:
    """The folder of the text on this machine."""
    address = of_address(_place(recipe))
    return local_folder(address) if address else Path(_place(recipe))


def _place(recipe: Recipe) -> str:
    assert recipe.data.prepared is not None
    return recipe.data.prepared
