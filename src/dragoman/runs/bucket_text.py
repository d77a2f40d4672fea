"""Prepared text that lies in an object store: its small files come into the cache at once, its
tokens when they are needed (``data/units.py``)."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from dragoman.atomic import replacing_file
from dragoman.data.store import SUMS
from dragoman.data.units import Remote
from dragoman.errors import RunError
from dragoman.reading import read_json
from dragoman.runs.user_cache import cache_folder
from dragoman.stores.objects import ObjectStore
from dragoman.stores.opened import is_remote, opened, split_address
from dragoman.stores.patient import PatientStore
from dragoman.stores.store import InputChanged, Stat, Store

FILE = "prepared.json"
TOKENS = "tokens"
_HELD = ("dev.jsonl", "test.jsonl")
_DEFAULT = 20.0
_HASTE = 10.0
"""Seconds for which what may be fetched again is asked for."""


def local_folder(address: str) -> Path:
    """All of a prepared text but its tokens, on this machine.

    Errors: ``RunError`` where none was prepared there; ``StoreError`` where it cannot be read.
    """
    store = store_at(address)
    stat = store.stat(FILE)
    if stat is None:
        raise RunError(
            f"{address} holds no prepared text: {FILE} is written last. Prepare it, or go on: "
            f"dragoman prepare RECIPE --to {address}"
        )
    folder = _kept(address, stat) / "text"
    if not (folder / FILE).is_file():
        (folder / TOKENS).mkdir(parents=True, exist_ok=True)
        prepared = store.read(FILE, 0, stat.size, stat.tag)
        for name in (*_HELD, f"{TOKENS}/store.json", f"{TOKENS}/{SUMS}"):
            _copy(store, name, folder)
        with replacing_file(folder / f".{FILE}") as path:
            path.write_bytes(prepared)
        for name in read_json(folder / f".{FILE}")["learned"]:
            if Path(name).name == name:
                _copy(store, name, folder)
        (folder / f".{FILE}").replace(folder / FILE)
    return folder


def fetch(address: str, name: str) -> None:
    """Have one more file in the local folder."""
    folder = local_folder(address)
    if not (folder / name).is_file():
        _copy(store_at(address), name, folder)


def remote_tokens(address: str) -> Remote:
    """Where its tokens are, and where they are kept. Errors: as ``local_folder``."""
    store = store_at(address)
    stat = store.stat(FILE)

    def check() -> None:
        if store.stat(FILE) != stat:
            raise InputChanged(
                f"{address} was prepared again since this training began. Train on it anew"
            )

    assert stat is not None, "local_folder comes first"
    hasty = PatientStore(ObjectStore(address), _HASTE)
    return Remote(store, hasty, f"{TOKENS}/", _kept(address, stat) / TOKENS, _most(), check)


def store_at(address: str) -> Store:
    """Errors: ``StoreError`` for a scheme that is not known, or without obstore."""
    split_address(address)
    return opened(address.rstrip("/"))


def of_address(place: str | os.PathLike[str]) -> str | None:
    """The address, if it is one; None for a folder."""
    return str(place) if isinstance(place, str) and is_remote(place) else None


def _copy(store: Store, name: str, folder: Path) -> None:
    stat = store.stat(name)
    if stat is not None:
        with replacing_file(folder / name) as path:
            path.write_bytes(store.read(name, 0, stat.size, stat.tag))


def _kept(address: str, stat: Stat) -> Path:
    """The folder of this text, as it is now."""
    name = hashlib.sha256(f"{address.rstrip('/')} {stat.tag}".encode()).hexdigest()[:24]
    return (cache_folder("buckets") or _temporary()) / name


@cache
def _temporary() -> Path:
    """Where there is no cache: it goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _most() -> int:
    """Bytes of tokens that are kept, beyond those in use."""
    given = os.environ.get("DRAGOMAN_CACHE_GB", "")
    try:
        gigabytes = float(given or _DEFAULT)
    except ValueError:
        gigabytes = -1.0
    if not 0 <= gigabytes < 1e9:
        raise RunError(f"DRAGOMAN_CACHE_GB={given} is no number of gigabytes")
    return int(gigabytes * 1e9)
