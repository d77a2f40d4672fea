"""Files that raw examples name: on a disk, in memory, or in a ZIP file; and what is said of those
that cannot be read.

A picture in a ZIP file is read where it is: its raw example is ``photos.zip#cat/1.png``. Nothing is
unpacked to a disk. A name that lies outside, that is hidden, or that macOS adds is passed over.
"""

from __future__ import annotations

import os
import shlex
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from dragoman.base.errors import DataError


@dataclass(frozen=True)
class InMemory:
    """A file whose bytes are in memory: what a client of a server sends, and no file system has.
    ``str`` is what messages call it."""

    called: str
    data: bytes = field(repr=False)

    def __str__(self) -> str:
        return self.called

    def open(self, mode: Literal["rb"] = "rb") -> BytesIO:
        """Its bytes, to be read, as a path opens them."""
        return BytesIO(self.data)


File = Path | InMemory
"""What a form reads."""


def unusable(path: object, error: OSError | ValueError) -> DataError:
    """The error of a file, from what the system says of it; a ``ValueError`` is that of a name that
    no file can have, such as one with a NUL."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path} does not exist")
    if isinstance(error, OSError):
        return DataError(f"{path} cannot be read: {error.strerror or error}")
    return DataError(f"{str(path)!r} cannot be the name of a file: {error}")


def conversion(program: str, given: Path, ending: str) -> str:
    """The command by which ``program`` writes a file anew beside it, with another ending."""
    made = given.with_suffix(ending)
    if made == given:
        made = given.with_name(f"{given.stem}-converted{ending}")
    # A name that begins with a dash is not an option.
    names = (f"./{name}" if str(name).startswith("-") else str(name) for name in (given, made))
    return f"{program} {' '.join(map(shlex.quote, names))}"


_PLACE = ".zip#"
_LARGEST = 512 << 20
"""Bytes of a file once it is unpacked."""
_SWELLS = 1_000
"""Times the size that it has in the archive; pictures are packed already."""


def is_zip(path: str | Path) -> bool:
    """Whether its name is that of a ZIP file, and it is no folder."""
    return str(path).lower().endswith(".zip") and not os.path.isdir(path)


def names_in(path: Path) -> list[str]:
    """The names of the files in it, sorted. Errors: ``DataError`` for one that cannot be read."""
    return sorted(_opened(path).names)


def place_of(raw: str) -> tuple[Path, str | None]:
    """The file on the disk that a raw example names, and where it is a ZIP file, the name in it."""
    at = raw.lower().rfind(_PLACE)
    if at < 0 or os.path.exists(raw):
        return Path(raw), None
    return Path(raw[: at + 4]), raw[at + len(_PLACE) :]


def file_of(raw: str) -> File:
    """What a raw example names: a file, or one in a ZIP file. Errors: ``DataError`` for one that is
    not in it or cannot be unpacked."""
    path, name = place_of(raw)
    if name is None:
        return path
    archive = _opened(path)
    info = archive.names.get(name)
    if info is None:
        raise DataError(f"{path} has no file {name}")
    if info.flag_bits & 1:
        raise DataError(f"{raw} is locked with a password: unpack the archive")
    if info.file_size > min(_LARGEST, max(1 << 20, _SWELLS * info.compress_size)):
        raise DataError(
            f"{raw} has {info.compress_size:,} bytes in the archive, and would have "
            f"{info.file_size:,}: no picture is packed so small"
        )
    try:
        return InMemory(raw, archive.file.read(info))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise DataError(f"{raw} is damaged or cut off: {error}") from error


class _Archive(NamedTuple):
    """An open ZIP file, and what is shown of it by its names."""

    file: zipfile.ZipFile
    names: dict[str, zipfile.ZipInfo]


def _opened(path: Path) -> _Archive:
    try:
        about = path.stat()
        return _kept(path, about.st_mtime_ns, about.st_size, os.getpid())
    except (OSError, ValueError) as error:
        raise unusable(path, error) from error
    except zipfile.BadZipFile as error:
        raise DataError(f"{path} is damaged or no ZIP file: {error}") from error


@lru_cache(maxsize=4)
def _kept(path: Path, changed: int, size: int, process: int) -> _Archive:
    """``changed`` and ``size`` tell a file from one that took its place; another process reads at
    places of its own."""
    file = zipfile.ZipFile(path)
    return _Archive(file, {_name_of(info): info for info in file.infolist() if _is_shown(info)})


def _name_of(info: zipfile.ZipInfo) -> str:
    """Its name; many programs write UTF-8 without saying so."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _is_shown(info: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(info.filename).parts
    outside = info.filename.startswith("/") or ".." in parts
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
    return not (info.is_dir() or outside or hidden)
