"""Prepared text that lies in an object store: all of it comes into the cache before it is read.

``SHA256SUMS`` names the files, as ``sha256sum`` writes it. A file takes its place in the cache when
it is whole and its checksum is right, so the same command fetches only what is missing yet.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path

from dragoman.atomic import replacing_file, sweep, write_bytes
from dragoman.errors import DataError, RunError
from dragoman.plural import plural
from dragoman.runs.user_cache import cache_folder
from dragoman.stores.opened import is_remote, opened, split_address
from dragoman.stores.store import Stat, Store

logger = logging.getLogger("dragoman")

FILE = "prepared.json"
TOKENS = "tokens"
SUMS_OF_FILES = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ((?:tokens/)?\w[\w.-]*)", re.ASCII)
_AT_ONCE = 16
_BLOCK = 8 << 20
_EVERY = 5.0
"""Seconds between two lines about what has come."""


def of_address(place: str | os.PathLike[str]) -> str | None:
    """The address, if it is one; None for a folder."""
    return str(place) if isinstance(place, str) and is_remote(place) else None


def local_folder(address: str) -> Path:
    """The folder of a prepared text on this machine, fetched where it is not whole yet.

    Errors: ``RunError`` where none was prepared there, and where the disk has no room for it;
    ``DataError`` where a file is not what was written; ``StoreError`` where it cannot be read.
    """
    split_address(address)
    store = opened(address.rstrip("/"))
    stat = store.stat(FILE)
    if stat is None:
        raise RunError(
            f"{address} holds no prepared text: {FILE} is written last. Prepare it, or go on: "
            f"dragoman prepare RECIPE --to {address}"
        )
    name = hashlib.sha256(f"{address.rstrip('/')} {stat.tag}".encode()).hexdigest()[:24]
    folder = (cache_folder("buckets") or _temporary()) / name
    if not (folder / FILE).is_file():
        (folder / TOKENS).mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("wb") as lock:  # one process of this machine fetches it
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / FILE).is_file():
                _fetch(store, folder)
                write_bytes(folder / FILE, store.read(FILE, 0, stat.size, stat.tag))
    return folder


def summed(sums: dict[str, str], name: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks of a file as they are; once all were taken, its checksum is in ``sums``."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        yield block
    sums[name] = digest.hexdigest()


def listed(sums: dict[str, str]) -> bytes:
    """The content of ``SHA256SUMS``."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()


def _fetch(store: Store, folder: Path) -> None:
    """All files but ``prepared.json``."""
    for left in (folder, folder / TOKENS):  # by a process that was killed
        sweep(left)
    place = store.place(SUMS_OF_FILES)
    stat = store.stat(SUMS_OF_FILES)
    if stat is None:
        raise RunError(f"{place} is missing. Prepare the text again, in another folder")
    lines = store.read(SUMS_OF_FILES, 0, stat.size, stat.tag).decode(errors="replace").splitlines()
    found = [_LINE.fullmatch(line) for line in lines]
    sums = {one[2]: one[1] for one in found if one is not None}
    if not found or None in found:
        raise DataError(f"{place} is damaged. Prepare the text again, in another folder")
    missing = [name for name in sums if not (folder / name).is_file()]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        stats = dict(zip(missing, pool.map(lambda name: _stat(store, name), missing), strict=True))
        total = sum(stat.size for stat in stats.values())
        _check_room(store, folder, total)
        progress = _Progress(store.address, len(missing), total)
        coming = [
            pool.submit(_fetch_file, store, folder / name, name, stat, sums[name], progress)
            for name, stat in stats.items()
        ]
        try:
            for one in as_completed(coming):
                one.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    progress.end()


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
            f"{store.address}: {total / 1e9:,.1f} GB are to be fetched, and {folder.parent} has "
            f"{free / 1e9:,.1f} GB free. Name a folder on a larger disk, DRAGOMAN_CACHE=FOLDER, or "
            f"delete texts in {folder.parent} that you no longer train on"
        )


def _fetch_file(
    store: Store, path: Path, name: str, stat: Stat, expected: str, progress: _Progress
) -> None:
    def blocks() -> Iterator[bytes]:
        for start in range(0, stat.size, _BLOCK):
            block = store.read(name, start, min(_BLOCK, stat.size - start), stat.tag)
            progress.add(len(block))
            yield block

    sums: dict[str, str] = {}
    with replacing_file(path) as temporary:
        with temporary.open("wb") as file:
            file.writelines(summed(sums, name, blocks()))
        if sums[name] != expected:
            raise DataError(
                f"{store.place(name)} is damaged: it has the SHA-256 {sums[name]}, and {expected} "
                "was written. Prepare the text again, in another folder"
            )


class _Progress:
    """Notes of how much has come. Several threads may add to it: a count that is a block short is
    told a moment later."""

    def __init__(self, address: str, files: int, total: int) -> None:
        self._address, self._total, self._done = address, total, 0
        self._began = self._told = time.monotonic()
        logger.info("fetching %s: %s, %s MB", address, plural(files, "file"), f"{total / 1e6:,.0f}")

    def add(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._told >= _EVERY:
            self._told = now
            rate = self._done / (now - self._began) / 1e6
            told = f"{self._done / 1e6:,.0f} of {self._total / 1e6:,.0f} MB, {rate:,.1f} MB/s"
            logger.info("fetching %s: %s", self._address, told)

    def end(self) -> None:
        seconds = time.monotonic() - self._began
        logger.info("fetched %s in %s s", self._address, f"{seconds:,.0f}")


@cache
def _temporary() -> Path:
    """Where there is no cache: it goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
