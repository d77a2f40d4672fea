"""One process at a time changes a run folder: trains in it, averages its weights, removes it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from dragoman.base.errors import FileError, RunError

LOCK = ".lock"
"""The file in a run folder that is there, and locked, while a process changes the folder."""


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
