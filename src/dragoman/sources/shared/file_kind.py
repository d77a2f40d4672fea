"""Files that are examples themselves: which are of a kind, those of a folder, and those that a list
names, one an example."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.forms.form import Pair
from dragoman.sources.shared.files import unusable

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class FileKind:
    """Recordings, or pictures."""

    noun: str
    endings: Collection[str]
    """Of files that are read."""
    foreign_endings: Collection[str]
    """Of files of the same kind that are not read."""
    foreign: Callable[[Path, str], DataError]
    """The error of such a file, whose format is named, with the command that converts it."""

    def reads(self, name: str | Path) -> bool:
        """Whether a file of that name is read, by its ending."""
        return Path(name).suffix.lower() in self.endings

    def count(self, files: Iterable[Path]) -> int:
        """How many of the files are of this kind, read or not."""
        endings = {*self.endings, *self.foreign_endings}
        return sum(file.suffix.lower() in endings for file in files)

    @property
    def formats(self) -> str:
        """``.bmp, .gif, ...``"""
        return ", ".join(sorted(self.endings))

    def among(self, found: Iterable[Path]) -> Iterator[Path]:
        """The files of this kind that are read, by their names.

        Errors: ``DataError`` for a file of this kind in a format that is not read, unless the same
        name stands beside it with an ending that is.
        """
        found = sorted(found)
        converted = {file.with_suffix("") for file in found if self.reads(file)}
        for file in found:
            if (
                file.suffix.lower() in self.foreign_endings
                and file.with_suffix("") not in converted
            ):
                raise self.foreign(file, file.suffix.removeprefix(".").upper())
            if self.reads(file) and _is_file(file):
                yield file


def shown_in(root: Path) -> list[Path]:
    """Whatever lies in a folder and in the folders in it, but what is hidden."""

    def refuse(error: OSError) -> None:
        raise unusable(error.filename, error) from error

    found: list[Path] = []
    for folder, inside, names in os.walk(root, onerror=refuse):
        inside[:] = [name for name in inside if not name.startswith(".")]
        found += (Path(folder, name) for name in names if not name.startswith("."))
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:  # in a folder that is listed, and no more
        raise unusable(path, error) from error


def checked(path: Path, place: str = "") -> Path:
    """The same path. Errors: ``DataError`` for a name that would not stay on one line, where tables
    and messages have it."""
    if _CONTROL.search(str(path)):
        raise DataError(
            f"{place}{': ' if place else ''}{str(path)!r} has an end of line, a tab or another "
            "control character in its name: rename it"
        )
    return path


def listed(pairs: Iterable[Pair], listing: Path, kinds: Collection[FileKind]) -> Iterator[Pair]:
    """Pairs whose source is a file that ``listing`` names, with its path. ``kinds``: of files that
    it may name.

    Errors: ``DataError`` naming the line of a file that does not exist or is listed twice.
    """
    seen: dict[bytes, int] = {}
    for pair in pairs:
        name, place = pair.source.strip(), f"{listing}, line {pair.line}"
        if not name:
            raise DataError(f"{place}: the name of the file is empty")
        path = checked(listing.parent / name, place)
        try:
            kind = path.stat().st_mode
        except (OSError, ValueError) as error:
            raise DataError(f"{place}: {unusable(path, error)}{_header(pair, kinds)}") from error
        if not stat.S_ISREG(kind):
            what = "a folder" if stat.S_ISDIR(kind) else "a pipe or a device"
            raise DataError(f"{place}: {path} is {what}: name a file")
        key = hashlib.blake2b(os.fsencode(os.path.abspath(path)), digest_size=8).digest()
        if key in seen:
            raise DataError(f"{place}: {path} stands in line {seen[key]} already")
        seen[key] = pair.line
        yield pair._replace(source=str(path))


def _header(pair: Pair, kinds: Collection[FileKind]) -> str:
    """What to do where the first line seems to name columns."""
    if pair.line > 1 or any(kind.reads(pair.source.strip()) for kind in kinds):
        return ""
    return ". Is it the name of a column? A list has no header: remove its first line"
