"""Kinds of files that are examples themselves, told by the endings of their names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.sources.frames import recording_file
from dragoman.sources.picture import picture_file


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


RECORDINGS = FileKind(
    "recording",
    recording_file.ENDINGS,
    recording_file.FOREIGN_ENDINGS,
    recording_file.foreign,
)
PICTURES = FileKind(
    "picture",
    frozenset({".png", ".jpg", ".jpeg", ".jpe", ".gif", ".bmp", ".webp"}),
    picture_file.FOREIGN_ENDINGS,
    picture_file.foreign,
)
KINDS = {"frames": RECORDINGS, "picture": PICTURES, "line": PICTURES}
"""By the kind of source that reads them (``source.kind``)."""


def kind_among(files: Collection[Path]) -> FileKind:
    """The kind of most of the files: recordings may lie beside the picture of a cover, and pictures
    beside a film."""
    return max(KINDS.values(), key=lambda kind: kind.count(files))  # the first of equals
