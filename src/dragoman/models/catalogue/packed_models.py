"""The weights of a run for the kernels: the run's weights file, held open while it is in use, and a
cache of packed models in the user's cache folder, so that the next start need not pack them.

With a large model, most of the start is spent on reading four bytes per weight and rounding them to
one. The first process packs the weights and writes a file, which later processes read::

    32 bytes   what such a file is, and its version
    32 bytes   key: a hash of all that decides what is in it (``key_of``)
    8 bytes    how many bytes the parts have, little-endian
    8 bytes    a sum of the parts (``sum_of``), little-endian
    the rest   the parts, one after the other (``models.fast_path.PackedModel``)

The size of each part follows from the settings, not from the file. A file of another size, key or
sum is not used, and is written again. The file is read, not memory-mapped: the weights are then on
large pages, and other processes cannot truncate them.

The cache is optional: if its folder is not writable, the disk is full or a file is damaged, the
weights are packed again. Files get their names in one step (a rename) and are never changed. A file
is deleted when it was not used for 30 days, or when all files together are too large.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import struct
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.base.atomic import replacing_file
from dragoman.base.errors import FileError, RunError
from dragoman.base.reading import open_regular, read_bytes
from dragoman.base.tensor_file import TensorFile, require_finite
from dragoman.models.fast_path import PackedModel, WithoutTorch
from dragoman.models.settings import ModelSettings
from dragoman.native import loader
from dragoman.native.measured import library_hash

Array = npt.NDArray[np.float32]

SETTLED_SECONDS = 2.0
"""The age, in seconds, from which the hash of a file is remembered. A younger file may change again
with the same time stamp (those of FAT are two seconds apart)."""

_ENDING = ".sha256"

logger = logging.getLogger("dragoman")


class HeldWeights:
    """An open weights file. Only one thread at a time may use it.

    New weights are written to another file that replaces this one (``base/atomic.py``), so an open
    file can be read as long as it is held. Packed weights are found by its SHA-256, which is
    remembered in the user's cache, since reading all of a large file takes longer than the rest of
    a start.
    """

    def __init__(self, path: Path, folder: Path | None = None) -> None:
        """``folder``: a trusted folder in which the hashes of such files are remembered; None: they
        are not.

        Errors: ``RunError`` if the file cannot be read.
        """
        self._path = path
        self._folder = folder
        self._file = open_regular(path)
        self._opened = os.fstat(self._file.fileno())
        weakref.finalize(self, self._file.close)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the whole file, in hex."""
        note = None if self._folder is None else self._folder / f"{self._name}{_ENDING}"
        if note is not None and (known := _read_note(note)) is not None:
            return known
        self._file.seek(0)
        digest = hashlib.file_digest(self._file, "sha256").hexdigest()
        if note is not None and self._has_settled():
            _write_note(note, digest)
        return digest

    def read(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array] | None:
        """Read the weights by name. Return None unless they are complete, finite and of those
        shapes."""
        try:
            file = TensorFile(self._path, ("F32",), self._file)
            if file.shapes != shapes:
                return None
            named = {name: file.read(name) for name in shapes}
            for name, array in named.items():
                require_finite(name, array)
        except RunError:
            return None
        return named

    def read_again(self) -> dict[str, Array]:
        """Read the weights again from the same open file, even if another file has replaced it.

        Errors: ``RunError`` if the file itself was overwritten.
        """
        now = os.fstat(self._file.fileno())
        if (now.st_size, now.st_mtime_ns) != (self._opened.st_size, self._opened.st_mtime_ns):
            raise RunError(
                f"{self._path} was overwritten while it was in use. Open the run again. To "
                "replace the weights of a run, rename a new file over the old one"
            )
        file = TensorFile(self._path, ("F32",), self._file)
        return {name: file.read(name) for name in file.shapes}

    @property
    def _name(self) -> str:
        """A hash that identifies this file, in its current state, among all files of this
        machine."""
        stat = self._opened
        identity = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        return hashlib.sha256(repr(identity).encode()).hexdigest()[:32]

    def _has_settled(self) -> bool:
        """Return True if the file has not changed since it was opened, nor shortly before."""
        now, then = os.fstat(self._file.fileno()), self._opened
        changed = max(then.st_mtime, then.st_ctime)
        return (
            (now.st_size, now.st_mtime_ns, now.st_ctime_ns)
            == (then.st_size, then.st_mtime_ns, then.st_ctime_ns)
        ) and time.time() - changed > SETTLED_SECONDS


def _read_note(note: Path) -> str | None:
    try:
        text = read_bytes(note, 100).decode("ascii", "replace")
    except RunError:
        return None
    return text if re.fullmatch("[0-9a-f]{64}", text) else None


def _write_note(note: Path, digest: str) -> None:
    try:
        with replacing_file(note, forced=False) as temporary:
            temporary.write_text(digest, encoding="ascii")
    except FileError as error:
        logger.debug("the hash of a weights file is not remembered: %s", error)


Parts = Sequence[npt.NDArray[np.uint8]]

_WHAT = b"dragoman: packed weights, 1".ljust(32, b"\n")
_HEADER = struct.Struct("<32s32sQQ")
_PAGE = 4096

MAX_BYTES = 4 << 30
"""The most bytes of all files together. The files that were used last are kept."""
MAX_SECONDS = 30 * 24 * 3600
"""The seconds after its last use at which a file is deleted."""
MIN_FREE = 8
"""The free space that the disk must have before a file is written, in multiples of the file's size:
a cache must not fill the disk."""


def packed_model(
    way: WithoutTorch,
    settings: ModelSettings,
    sizes: tuple[int, int],
    weights: HeldWeights,
    folder: Path | None,
) -> PackedModel | None:
    """Return the weights of a model as the path ``way`` uses them: read from a file in ``folder``,
    or packed now and then kept there. Return None if the weights are not those of such a model.

    ``sizes``: the numbers of source and target tokens. ``folder``: a trusted folder; None: there is
    none.
    """
    key = b"" if folder is None else key_of(settings, sizes, weights.digest)
    path = None if folder is None else folder / f"{key.hex()[:40]}.packed"
    if path is not None and path.exists():
        room = way.room(settings, *sizes)
        if read(path, key, room.parts):
            return room
    named = weights.read(way.shapes(settings, *sizes))
    if named is None:
        return None
    room = way.room(settings, *sizes)  # again: a damaged file may have left something there
    room.pack(named)
    if path is not None:
        keep(path, key, room.parts)
    return room


def key_of(settings: ModelSettings, sizes: tuple[int, int], digest: str) -> bytes:
    """Return a key of 32 bytes that changes with everything that packed weights depend on: the
    weights (``digest``, their SHA-256), the model's settings and sizes, the library of kernels and
    its instruction set."""
    contents = (
        digest,
        settings.model_dump_json(),
        sizes,
        library_hash(loader.library_path()),
        loader.level_in_use(),
    )
    return hashlib.sha256(repr(contents).encode()).digest()


def read(path: Path, key: bytes, parts: Parts) -> bool:
    """Fill ``parts`` from a file. Return False if the file is incomplete or has another key;
    ``parts`` may then hold anything."""
    size = sum(map(len, parts))
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size != _HEADER.size + size:
                return False
            what, its_key, its_size, its_sum = _HEADER.unpack(file.read(_HEADER.size))
            if (what, its_key, its_size) != (_WHAT, key, size):
                return False
            if any(file.readinto(part.data) != len(part) for part in parts):
                return False
    except (RunError, OSError, struct.error) as error:
        logger.debug("%s: these packed weights are not used: %s", path, error)
        return False
    if its_sum != sum_of(parts):
        return False
    with suppress(OSError):
        os.utime(path)  # used last now
    return True


def keep(path: Path, key: bytes, parts: Parts) -> None:
    """Write a file, if there is room for it, after deleting files that are no longer used."""
    size = sum(map(len, parts))
    if size > MAX_BYTES:
        return
    try:
        _tidy(path.parent, MAX_BYTES - size)
        if shutil.disk_usage(path.parent).free < MIN_FREE * size:
            logger.debug("%s: packed weights are not kept: the disk is nearly full", path)
            return
        with replacing_file(path, forced=False) as temporary, temporary.open("wb") as file:
            file.write(_HEADER.pack(_WHAT, key, size, sum_of(parts)))
            file.writelines(part.data for part in parts)
    except (OSError, FileError) as error:
        logger.debug("%s: packed weights are not kept: %s", path, error)


def sum_of(parts: Parts) -> int:
    """Return a checksum of 64 bits: the sums of the 64-bit words of each page of 4096 bytes,
    weighted by different odd numbers. It detects every change of a single word, and almost all
    others, but not words that are swapped within one page. It is no protection against forgery."""
    sums = []
    for part in parts:
        whole = len(part) // _PAGE * _PAGE
        rest = np.zeros(_PAGE, np.uint8)
        rest[: len(part) - whole] = part[whole:]
        sums.append(part[:whole].view("<u8").reshape(-1, _PAGE // 8).sum(axis=1, dtype=np.uint64))
        sums.append(rest.view("<u8").sum(keepdims=True, dtype=np.uint64))
    every = np.concatenate(sums)
    odd = 2 * np.arange(len(every), dtype=np.uint64) + np.uint64(1)
    return int((every * odd).sum(dtype=np.uint64))


def _tidy(folder: Path, most: int) -> None:
    """Delete files that were not used for ``MAX_SECONDS``, and the least recently used ones, until
    all together have at most ``most`` bytes."""
    now, total = time.time(), 0
    files = [(path.stat(), path) for path in folder.iterdir() if path.is_file()]
    for stat, path in sorted(files, key=lambda file: -file[0].st_mtime):
        total += stat.st_size
        if now - stat.st_mtime > MAX_SECONDS or total > most:
            path.unlink(missing_ok=True)
