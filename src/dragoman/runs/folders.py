"""Two folders: that of a run, which one process at a time changes (trains in it, averages its
weights, removes it); and the user's cache of token stores, measurements and packed weights, where
there is one that can be trusted.

Nothing in the cache is needed. Without a home (a container with a random user id), without a right
to write, or in a folder that others may write to, the program does without: what strangers could
have put there is neither read nor mapped into memory.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TextIO

from dragoman.base.errors import FileError, RunError

LOCK = ".lock"
"""The file in a run folder that is there, and locked, while a process changes the folder."""
logger = logging.getLogger("dragoman")


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other processes from changing ``folder``, which is made if it is not there.

    The lock goes with its process, however that ends. Raises RunError when another process holds
    it, FileError where there can be none.
    """
    path = folder / LOCK
    try:
        file = _take(path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from error
    with file:
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # while it is still held


def _take(path: Path) -> TextIO:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("a+", encoding="utf-8", errors="replace")
        except FileNotFoundError:  # the folder was removed meanwhile, by who held the lock
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
            file.close()  # whoever held it has removed the file: what we hold keeps nobody away
        except BlockingIOError:
            with file:
                file.seek(0)
                holder = file.read(100).strip() or "unknown"
            raise RunError(
                f"{path.parent} is in use by another process ({holder}). Wait for it, or stop it "
                "first."
            ) from None


def cache_folder(part: str = "") -> Path | None:
    """The folder of ``part`` ("stores", say) in $DRAGOMAN_CACHE or the user's cache, made if need
    be; None where there is none to be had."""
    try:
        root = _root_folder()
        folder = root / part
        for path in (root, folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if doubt := _find_doubt(path):
                _warn(doubt)
                return None
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        logger.debug("there is no cache folder: %s", error)
        return None
    return folder


@cache
def _warn(doubt: str) -> None:
    """Warns once a process that the cache is not used."""
    logger.warning("the cache is not used, because %s", doubt)


def _root_folder() -> Path:
    given = os.environ.get("DRAGOMAN_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman"


def _find_doubt(folder: Path) -> str | None:
    """The reason not to trust a folder; None if only this user can have written to it."""
    status = folder.stat()
    if status.st_uid != os.geteuid():
        return f"{folder} belongs to another user. Set your own: DRAGOMAN_CACHE=FOLDER"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to {folder}. Correct it with: chmod go-w {folder}"
    for above in folder.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"others may replace {folder} through {above}"
    return None
