"""The user's cache folder: token stores, measurements and packed weights, where there is one that
can be trusted.

Nothing in it is needed. Without a home (a container with a random user id), without a right to
write, or in a folder that others may write to, the program does without: what strangers could have
put there is neither read nor mapped into memory.
"""

from __future__ import annotations

import logging
import os
import stat
from functools import cache
from pathlib import Path

logger = logging.getLogger("dragoman")


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
