"""A folder that ``dragoman prepare`` wrote: the text of a recipe, ready to be trained on.

    prepared.json     written last: the recipe, what its corpora are, what was found on the way
    source.model …    what was learned of the text: vocabularies, labels
    tokens/           the store (``data/store.py``)
    dev.jsonl, test.jsonl   what was held out, if anything was
    train.jsonl       the plain text, where the store has it as Moses prepares it
    SHA256SUMS        of all files but the first

A recipe whose ``data.prepared`` names it reads none of the files in ``data.train``. It may be in an
object store too, from which all of it comes into the cache before it is read: a file takes its
place there when it is whole and its checksum is right, so the same command fetches only what is
missing yet.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.base.atomic import replacing_file, sweep, write_bytes
from dragoman.base.errors import DataError, RecipeError, RunError
from dragoman.base.reading import read_json
from dragoman.base.wording import plural
from dragoman.data.store import TokenStore
from dragoman.data.store_writer import alone
from dragoman.forms.form import Pair
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.user_cache import cache_folder
from dragoman.stores import Stat, Store, is_remote, open_store, whole_address

logger = logging.getLogger("dragoman")

FILE = "prepared.json"
TOKENS = "tokens"
SUMS_OF_FILES = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ((?:tokens/)?\w[\w.-]*)", re.ASCII)
_AT_ONCE = 16
_EVERY = 5.0
"""Seconds between two lines about what has come."""

FORMAT = 1
BEGUN = Path("_dragoman") / "fingerprints"
"""The file that the first stage of ``prepare`` leaves in the folder."""


class PreparedFile(BaseModel):
    """The content of ``prepared.json``, which describes prepared text."""

    model_config = ConfigDict(strict=True)
    format: int = Field(ge=1, le=FORMAT)
    recipe: dict[str, Any]
    key: str
    """The key of the store, as a training run computes it."""
    corpora: list[tuple[str, str, float]]
    """The name, content hash and weight of each corpus."""
    learned: list[str]
    """Files in the same folder that were learned from the text."""
    doubts: list[dict[str, Any]]
    """Problems that were found in the text."""


def is_prepared(path: str | os.PathLike[str]) -> bool:
    """True for such a folder, also while it is being prepared, and for any address."""
    return is_remote(path) or any((Path(path) / name).exists() for name in (FILE, BEGUN))


def read_prepared(folder: str | os.PathLike[str]) -> PreparedFile:
    """Errors: ``RunError`` where there is none, or where it is not whole."""
    path = local_folder(folder) / FILE
    if not path.is_file():
        raise _not_prepared_error(folder)
    try:
        # As JSON has them, tuples are lists.
        return PreparedFile.model_validate_json(json.dumps(read_json(path)))
    except ValidationError as error:
        raise RunError(
            f"{path} is damaged or was written by another version of dragoman"
        ) from error


def _not_prepared_error(folder: str | os.PathLike[str]) -> RunError:
    return RunError(
        f"{folder} has no prepared text: it has no {FILE}, which is written last. Prepare it, or "
        f"continue: dragoman prepare RECIPE --to {shlex.quote(str(folder))}"
    )


def recipe_of_prepared(
    folder: str | os.PathLike[str], changes: Sequence[str], recipes: type[Recipe]
) -> Recipe:
    """The recipe by which it was prepared, for a training run that takes it, with ``changes``.

    Errors: ``RecipeError`` for a change of what the tokens depend on.
    """
    values = read_prepared(folder).recipe
    place = str(folder) if is_remote(folder) else os.path.abspath(folder)
    values = {**values, "data": {**values["data"], "prepared": place}}
    plain = recipes.parse(values, where=str(Path(folder) / FILE))
    changed = recipes.parse(values, changes, where=str(Path(folder) / FILE))
    for section in ("task", "languages", "data", "text", "source", "trees"):
        if getattr(plain, section) != getattr(changed, section):
            raise RecipeError(
                f"{folder} was prepared with other settings in the section {section}. Prepare the "
                f"text again with this --set, in another folder, or leave {section} as it is"
            )
    return changed


def take_learned(recipe: Recipe, folder: Path) -> list[str]:
    """Copy what was learned of the text into the folder of a run -> the names of the files."""
    prepared = local_folder(_place(recipe))
    names = read_prepared(_place(recipe)).learned
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
    return _open_store(recipe, sizes)


def pairs_of_prepared(recipe: Recipe, side: str) -> Iterator[Pair]:
    """The text of "train", "dev" or "test"."""
    prepared = local_folder(_place(recipe))
    if side == "train" and not recipe.data.moses:
        store = _open_store(recipe)
        for example in range(len(store)):
            texts = {name: store.text(name, example) for name in store.lengths}
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


def _open_store(recipe: Recipe, sizes: dict[str, int] | None = None) -> TokenStore:
    folder = local_folder(_place(recipe))
    mend = "prepare the text again, in another folder"
    if is_remote(_place(recipe)):
        mend = f"delete {folder}; it will be downloaded again"
    return TokenStore(folder / TOKENS, sizes, mend)


def _place(recipe: Recipe) -> str:
    assert recipe.data.prepared is not None
    return recipe.data.prepared


def local_folder(place: str | os.PathLike[str]) -> Path:
    """The folder of a prepared text on this machine: of an address, it is fetched where it is not
    whole yet.

    Errors: ``RunError`` where none was prepared there, and where the disk has no room for it;
    ``DataError`` where a file is not what was written; ``StoreError`` where it cannot be read.
    """
    if not is_remote(place):
        return Path(place)
    address = whole_address(str(place))
    store = open_store(address)
    stat = store.stat(FILE)
    if stat is None:
        raise _not_prepared_error(place)
    name = hashlib.sha256(f"{address} {stat.tag}".encode()).hexdigest()[:24]
    folder = (cache_folder("buckets") or _temporary()) / name
    if not (folder / FILE).is_file():
        (folder / TOKENS).mkdir(parents=True, exist_ok=True)
        with alone(folder / ".lock"):  # one process of this machine fetches it
            if not (folder / FILE).is_file():
                _fetch(store, folder)
                write_bytes(folder / FILE, store.read(FILE, 0, stat.size, stat.tag))
    return folder


def with_checksum(sums: dict[str, str], name: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks of a file as they are; once all were taken, its checksum is in ``sums``."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        yield block
    sums[name] = digest.hexdigest()


def sums_file(sums: dict[str, str]) -> bytes:
    """The content of ``SHA256SUMS`` for these hashes."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()


def _fetch(store: Store, folder: Path) -> None:
    """Fetches all files but ``prepared.json`` into ``folder``."""
    for left in (folder, folder / TOKENS):  # by a process that was killed
        sweep(left)
    place = store.place(SUMS_OF_FILES)
    data = store.content(SUMS_OF_FILES)
    if data is None:
        raise RunError(f"{place} is missing. Prepare the text again, in another folder")
    matches = [_LINE.fullmatch(line) for line in data.decode(errors="replace").splitlines()]
    sums = {match[2]: match[1] for match in matches if match is not None}
    if not matches or None in matches:
        raise DataError(f"{place} is damaged. Prepare the text again, in another folder")
    missing = [name for name in sums if not (folder / name).is_file()]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        stats = dict(zip(missing, pool.map(lambda name: _stat(store, name), missing), strict=True))
        total = sum(stat.size for stat in stats.values())
        _check_room(store, folder, total)
        what, began = plural(len(missing), "file"), time.monotonic()
        last_report = began
        logger.info("fetching %s: %s, %s MB", store.address, what, f"{total / 1e6:,.0f}")
        coming = [
            pool.submit(_fetch_file, store, folder / name, name, stat, sums[name])
            for name, stat in stats.items()
        ]
        try:
            for number, future in enumerate(as_completed(coming), 1):
                future.result()
                if time.monotonic() - last_report >= _EVERY:
                    last_report = time.monotonic()
                    logger.info("fetching %s: %s of %s", store.address, f"{number:,}", what)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    logger.info("fetched %s in %s s", store.address, f"{time.monotonic() - began:,.0f}")


def _stat(store: Store, name: str) -> Stat:
    stat = store.stat(name)
    if stat is None:
        raise DataError(
            f"{store.place(name)} is missing. Prepare the text again, in another folder"
        )
    return stat


def _check_room(store: Store, folder: Path, total: int) -> None:
    free = shutil.disk_usage(folder).free
    if total > free:
        raise RunError(
            f"{store.address}: {total / 1e9:,.1f} GB must be downloaded, but {folder.parent} has "
            f"{free / 1e9:,.1f} GB free. Set a folder on a larger disk with "
            f"DRAGOMAN_CACHE=FOLDER, or delete unused texts in {folder.parent}"
        )


def _fetch_file(store: Store, path: Path, name: str, stat: Stat, expected: str) -> None:
    sums: dict[str, str] = {}
    with replacing_file(path) as temporary:
        with temporary.open("wb") as file:
            file.writelines(with_checksum(sums, name, store.blocks(name, stat)))
        if sums[name] != expected:
            raise DataError(
                f"{store.place(name)} is damaged: it has the SHA-256 {sums[name]} instead of "
                f"{expected}. Prepare the text again, in another folder"
            )


@cache
def _temporary() -> Path:
    """The folder to use without a cache; it is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
