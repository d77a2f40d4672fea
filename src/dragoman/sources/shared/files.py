"""Files that raw examples name: on a disk, in memory, or in a ZIP file; the files of a kind in a
folder or a list; and the errors for files that cannot be read.

A picture in a ZIP file is read in place: its raw example is ``photos.zip#cat/1.png``. Nothing is
unpacked to a disk. Names that are outside the archive, hidden, or added by macOS are skipped.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple

from dragoman.base.errors import DataError
from dragoman.base.reading import zip_errors

if TYPE_CHECKING:
    from dragoman.forms.form import Pair


@dataclass(frozen=True)
class InMemory:
    """A file whose bytes are in memory, such as one that a client sent to a server. Messages use
    its ``str``."""

    called: str
    data: bytes = field(repr=False)

    def __str__(self) -> str:
        return self.called

    def open(self, mode: Literal["rb"] = "rb") -> BytesIO:
        """Open the bytes for reading, as a path does."""
        return BytesIO(self.data)


File = Path | InMemory
"""A file that a form reads."""


def unusable(path: object, error: OSError | ValueError) -> DataError:
    """Return the error for a file from that of the system; a ``ValueError`` is for a name that
    no file can have, such as one with a NUL."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path} does not exist")
    if isinstance(error, OSError):
        return DataError(f"{path} cannot be read: {error.strerror or error}")
    return DataError(f"{str(path)!r} cannot be the name of a file: {error}")


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Raise ``DataError`` with the name of a file for an error of the system."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise unusable(path, error) from error


def version_of(path: Path, called: object = None) -> tuple[int, int]:
    """Return when a file was changed, and its size: they keep a replaced file from being found in
    a cache. Errors: ``DataError``, where the file is ``called`` so."""
    with reading(called or path):
        about = path.stat()
    return about.st_mtime_ns, about.st_size


def conversion(program: str, given: Path, ending: str) -> str:
    """Return the command by which ``program`` converts a file, in its folder, to another ending."""
    made = given.with_suffix(ending)
    if made == given:
        made = given.with_name(f"{given.stem}-converted{ending}")
    # The ./ keeps a name that begins with a dash from being an option.
    names = (f"./{name}" if str(name).startswith("-") else str(name) for name in (given, made))
    return f"{program} {' '.join(map(shlex.quote, names))}"


_PLACE = ".zip#"
_LARGEST = 512 << 20
"""The most bytes of an unpacked file."""
_SWELLS = 1_000
"""The most times that a file grows when it is unpacked; pictures are compressed already."""


def is_zip(path: str | Path) -> bool:
    """Return True for a name of a ZIP file that is no folder."""
    return str(path).lower().endswith(".zip") and not os.path.isdir(path)


def names_in(path: Path) -> list[str]:
    """Return the names of the files in an archive, sorted. Errors: ``DataError`` for an archive
    that cannot be read."""
    return sorted(_open(path).names)


def place_of(raw: str) -> tuple[Path, str | None]:
    """Return the file on the disk that a raw example names, and for a ZIP file the name in it."""
    at = raw.lower().rfind(_PLACE)
    if at < 0 or os.path.exists(raw):
        return Path(raw), None
    return Path(raw[: at + 4]), raw[at + len(_PLACE) :]


def file_of(raw: str) -> File:
    """Return the file that a raw example names, which may be in a ZIP file. Errors:
    ``DataError`` for one that is not in it or cannot be unpacked."""
    path, name = place_of(raw)
    if name is None:
        return path
    archive = _open(path)
    info = archive.names.get(name)
    if info is None:
        raise DataError(f"{path} has no file {name}")
    if info.flag_bits & 1:
        raise DataError(f"{raw} is protected by a password. Unpack the archive")
    if info.file_size > min(_LARGEST, max(1 << 20, _SWELLS * info.compress_size)):
        raise DataError(
            f"{raw} has {info.compress_size:,} bytes in the archive, but {info.file_size:,} "
            "unpacked, which is too much for a picture"
        )
    try:
        return InMemory(raw, archive.file.read(info))
    except zip_errors() as error:
        raise DataError(f"{raw} is damaged or cut off: {error}") from error


class _Archive(NamedTuple):
    """An open ZIP file, with its visible files by name."""

    file: zipfile.ZipFile
    names: dict[str, zipfile.ZipInfo]


def _open(path: Path) -> _Archive:
    try:
        with reading(path):
            return _open_cached(path, *version_of(path), os.getpid())
    except zip_errors() as error:
        raise DataError(f"{path} is damaged or not a ZIP file: {error}") from error


@lru_cache(maxsize=4)
def _open_cached(path: Path, changed: int, size: int, process: int) -> _Archive:
    """``changed`` and ``size`` keep a replaced file from being found in the cache; ``process``
    gives each process a file position of its own."""
    file = zipfile.ZipFile(path)
    return _Archive(file, {_name_of(info): info for info in file.infolist() if _is_shown(info)})


def _name_of(info: zipfile.ZipInfo) -> str:
    """Return the name of a member; many programs write UTF-8 without the flag for it."""
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


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class FileKind:
    """A kind of files: recordings, or pictures."""

    noun: str
    endings: Collection[str]
    """The endings of files that are read."""
    foreign_endings: Collection[str]
    """The endings of files of the same kind that are not read."""
    foreign: Callable[[Path, str], DataError]
    """A function that returns the error for such a file, with the command that converts it."""

    def reads(self, name: str | Path) -> bool:
        """Return True if a file of that name is read, by its ending."""
        return Path(name).suffix.lower() in self.endings

    def count(self, files: Iterable[Path]) -> int:
        """Return how many of the files are of this kind, whether they are read or not."""
        endings = {*self.endings, *self.foreign_endings}
        return sum(file.suffix.lower() in endings for file in files)

    @property
    def formats(self) -> str:
        """The endings as text: ``.bmp, .gif, ...``"""
        return ", ".join(sorted(self.endings))

    def among(self, files: Iterable[Path]) -> Iterator[Path]:
        """Yield the files of this kind that are read, sorted by name.

        Errors: ``DataError`` for a file of this kind in a format that is not read, unless there
        is one of the same name with an ending that is.
        """
        files = sorted(files)
        converted = {file.with_suffix("") for file in files if self.reads(file)}
        for file in files:
            if (
                file.suffix.lower() in self.foreign_endings
                and file.with_suffix("") not in converted
            ):
                raise self.foreign(file, file.suffix.removeprefix(".").upper())
            if self.reads(file) and _is_file(file):
                yield file


def visible_in(root: Path) -> list[Path]:
    """Return all visible files in a folder and its subfolders."""

    def refuse(error: OSError) -> None:
        raise unusable(error.filename, error) from error

    files: list[Path] = []
    for folder, inside, names in os.walk(root, onerror=refuse):
        inside[:] = [name for name in inside if not name.startswith(".")]
        files += (Path(folder, name) for name in names if not name.startswith("."))
    return files


def _is_file(path: Path) -> bool:
    with reading(path):  # a folder may be listed, but not entered
        return path.is_file()


def check_name(path: Path, place: str = "") -> Path:
    """Return the path. Errors: ``DataError`` for a name that would break a line in tables and
    messages."""
    if _CONTROL.search(str(path)):
        raise DataError(
            f"{place}{': ' if place else ''}{str(path)!r} has a line break, a tab or another "
            "control character in its name. Rename it"
        )
    return path


def with_paths(pairs: Iterable[Pair], listing: Path, kinds: Collection[FileKind]) -> Iterator[Pair]:
    """Yield pairs whose source is a file that ``listing`` names, with its path. ``kinds``: the
    kinds of files that it may name.

    Errors: ``DataError`` with the line of a file that does not exist or is listed twice.
    """
    seen: dict[bytes, int] = {}
    for pair in pairs:
        name, place = pair.source.strip(), f"{listing}, line {pair.line}"
        if not name:
            raise DataError(f"{place}: the name of the file is empty")
        path = check_name(listing.parent / name, place)
        try:
            kind = path.stat().st_mode
        except (OSError, ValueError) as error:
            raise DataError(f"{place}: {unusable(path, error)}{_header(pair, kinds)}") from error
        if not stat.S_ISREG(kind):
            what = "a folder" if stat.S_ISDIR(kind) else "a pipe or a device"
            raise DataError(f"{place}: {path} is {what}. Give a file")
        key = hashlib.blake2b(os.fsencode(os.path.abspath(path)), digest_size=8).digest()
        if key in seen:
            raise DataError(f"{place}: {path} is already in line {seen[key]}")
        seen[key] = pair.line
        yield pair._replace(source=str(path))


def _header(pair: Pair, kinds: Collection[FileKind]) -> str:
    """Return the advice for a first line that seems to name columns."""
    if pair.line > 1 or any(kind.reads(pair.source.strip()) for kind in kinds):
        return ""
    return ". Is it the name of a column? A list has no header: remove its first line"
