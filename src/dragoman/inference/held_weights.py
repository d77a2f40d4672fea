"""The weights file of a run, held open as long as something computes from it.

Whoever writes other weights puts another file in its place (``atomic.py``), so what was opened once
can be read for as long as it is held. Its SHA-256, by which packed weights are found
(``packed_models.py``), is remembered in the user's cache: to read all of a large file takes longer
than the rest of a start.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.atomic import replacing_file
from dragoman.errors import FileError, RunError
from dragoman.reading import open_regular, read_bytes
from dragoman.tensor_file import TensorFile, require_finite

Array = npt.NDArray[np.float32]

SETTLED_SECONDS = 2.0
"""A file that changed less long ago may change again without another time stamp (FAT's are two
seconds apart), so its hash is not remembered yet."""

_ENDING = ".sha256"

logger = logging.getLogger("dragoman")


class HeldWeights:
    """An open weights file. Not for several threads at once."""

    def __init__(self, path: Path, folder: Path | None = None) -> None:
        """``folder``: where the hashes of such files are remembered, trusted; None: nowhere.

        Errors: ``RunError`` if it cannot be read.
        """
        self._path = path
        self._folder = folder
        self._file = open_regular(path)
        self._opened = os.fstat(self._file.fileno())
        weakref.finalize(self, self._file.close)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it, in hex."""
        note = None if self._folder is None else self._folder / f"{self._name}{_ENDING}"
        if note is not None and (known := _noted(note)) is not None:
            return known
        self._file.seek(0)
        found = hashlib.file_digest(self._file, "sha256").hexdigest()
        if note is not None and self._has_settled():
            _note(note, found)
        return found

    def read(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array] | None:
        """The weights by name, if they are whole, finite and of those shapes; None if not."""
        try:
            file = TensorFile(self._path, "F32", self._file)
            if file.shapes != shapes:
                return None
            named = {name: file.read(name) for name in shapes}
            for name, array in named.items():
                require_finite(name, array)
        except RunError:
            return None
        return named

    def read_again(self) -> dict[str, Array]:
        """What ``read`` gave, from the same file, whatever has taken its place.

        Errors: ``RunError`` if somebody wrote into the file itself.
        """
        now = os.fstat(self._file.fileno())
        if (now.st_size, now.st_mtime_ns) != (self._opened.st_size, self._opened.st_mtime_ns):
            raise RunError(
                f"{self._path} was written over while it was in use, so what translates and what "
                "is looked at would be two models: open the run again (and put other weights into "
                "a run by renaming a file, not by writing into it)"
            )
        file = TensorFile(self._path, "F32", self._file)
        return {name: file.read(name) for name in file.shapes}

    @property
    def _name(self) -> str:
        """A hash of what tells this file, as it is, from every other that this machine has had."""
        one = self._opened
        told = (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)
        return hashlib.sha256(repr(told).encode()).hexdigest()[:32]

    def _has_settled(self) -> bool:
        """Whether it is still the file that was opened, and was so for a while."""
        now, then = os.fstat(self._file.fileno()), self._opened
        changed = max(then.st_mtime, then.st_ctime)
        return (
            (now.st_size, now.st_mtime_ns, now.st_ctime_ns)
            == (then.st_size, then.st_mtime_ns, then.st_ctime_ns)
        ) and time.time() - changed > SETTLED_SECONDS


def _noted(note: Path) -> str | None:
    try:
        text = read_bytes(note, 100).decode("ascii", "replace")
    except RunError:
        return None
    return text if re.fullmatch("[0-9a-f]{64}", text) else None


def _note(note: Path, found: str) -> None:
    try:
        with replacing_file(note, forced=False) as temporary:
            temporary.write_text(found, encoding="ascii")
    except FileError as error:
        logger.debug("the hash of a weights file is not remembered: %s", error)
