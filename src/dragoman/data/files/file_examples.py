"""Examples whose source is the name of a file: a recording, a picture.

They come as a folder for each label with its files inside, as a ZIP file with such folders of
pictures, as a pair of IDX files, or as a list: a tab-separated file or JSON Lines that names one
file an example, relative to where the list lies.
What a file holds, and not its name, says which side of a split it stands on and what has changed;
where a column or a part of its name tells a group, such as a speaker, the whole group does.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.base.wording import plural
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.pair import Pair
from dragoman.sources.content import content_of
from dragoman.sources.file_kinds import KINDS, PICTURES, RECORDINGS, FileKind, kind_among
from dragoman.sources.picture.idx import read_idx
from dragoman.sources.shared.unusable import unusable
from dragoman.sources.shared.zipped import is_zip, names_in

_SIDES = {
    "train": "", "training": "", "dev": "--dev", "val": "--dev", "valid": "--dev",
    "validation": "--dev", "test": "--test", "testing": "--test",
}  # fmt: skip
"""Folders of a corpus that comes divided, and the option that takes each."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def files_in(root: Path, kind: FileKind | None = None) -> Iterator[Path]:
    """All recordings or all pictures of a folder and of the folders in it, by their names; hidden
    ones are passed over. ``kind``: which of both; None: those of which there are more.

    Errors: ``DataError`` for a folder that cannot be read, and for a file of that kind in a format
    that is not read, unless the same name stands beside it with an ending that is.
    """

    found = shown_in(root)
    kind = kind or kind_among(found)
    converted = {file.with_suffix("") for file in found if kind.reads(file)}
    for file in sorted(found):
        if file.suffix.lower() in kind.foreign_endings and file.with_suffix("") not in converted:
            raise kind.foreign(file, file.suffix.removeprefix(".").upper())
        if kind.reads(file) and _is_file(file):
            yield file


def passed_over(root: Path) -> str:
    """What ``files_in`` leaves out of a folder that has both recordings and pictures; empty where
    it has one kind. Errors: ``DataError`` for a folder that cannot be read."""
    found = shown_in(root)
    read = kind_among(found)
    (other,) = (kind for kind in (RECORDINGS, PICTURES) if kind is not read)
    count = other.count(found)
    if not count:
        return ""
    kept, left = plural(read.count(found), read.noun), plural(count, other.noun)
    return (
        f"{root} has {kept} and {left}, and a model reads one kind: the {other.noun}s are left "
        f"out. To learn from them, put them into a folder of their own"
    )


def check_undivided(root: Path) -> None:
    """Errors: ``DataError`` for a folder that comes divided: its folders are no labels, but parts
    with a folder for each label in them. It tells the command that takes them apart."""
    try:
        inside = sorted(one for one in root.iterdir() if one.is_dir() and one.name[0] not in "._")
        options = [_SIDES.get(one.name.lower()) for one in inside]
        if "" not in options or None in options or len({*options}) < max(2, len(inside)):
            return
        if not all(any(one.is_dir() for one in part.iterdir()) for part in inside):
            return
    except OSError as error:
        raise unusable(root, error) from error
    parts = sorted(zip(map(str, options), inside, strict=True))
    command = " ".join(f"{option} {shlex.quote(str(part))}".strip() for option, part in parts)
    raise DataError(
        f"{root} has folders named {' and '.join(one.name for one in inside)}, and the folders of "
        f"labels are in these. Name them apart: dragoman train {command} --task classification"
    )


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


def read_folders(root: Path) -> Iterator[Pair]:
    """A pair for each recording or picture of ``root``, in which a folder stands for each label;
    its line is its number. Errors: ``DataError`` where there are none, or beside a folder."""
    if is_zip(root):
        yield from _read_zipped(root)
        return
    number = 0
    try:
        is_folder = stat.S_ISDIR(root.stat().st_mode)
    except (OSError, ValueError) as error:
        raise unusable(root, error) from error
    if not is_folder:
        raise DataError(f"{root} is a file: give a folder that has a folder for each label")
    for file in files_in(root):
        inside = checked(file).relative_to(root).parts
        if len(inside) < 2:
            raise DataError(
                f"{file} lies beside the folders of labels: put each file into a folder that has "
                "the name of its label"
            )
        number += 1
        yield Pair(number, str(file), _composed(inside[0]))
    if not number:
        raise DataError(
            f"{root} has no recording ({RECORDINGS.formats}) and no picture ({PICTURES.formats}) "
            "in a folder of its own label"
        )


def _read_zipped(archive: Path) -> Iterator[Pair]:
    """As ``read_folders``, of pictures in a ZIP file; a folder around all of them is no label."""
    shown = [(name, name.split("/")) for name in names_in(archive) if PICTURES.reads(name)]
    if not shown:
        raise DataError(
            f"{archive} has no picture ({PICTURES.formats}) in a folder of its own label; of "
            "anything else, unpack the archive and name the folder"
        )
    around = {inside[0] for _, inside in shown}
    start = int(len(around) == 1 and min(len(inside) for _, inside in shown) > 2)
    for number, (name, inside) in enumerate(shown, 1):
        if len(inside) < start + 2:
            raise DataError(
                f"{archive}#{name} lies beside the folders of labels: put each file into a folder "
                "that has the name of its label"
            )
        checked(Path(f"{archive}#{name}"))
        yield Pair(number, f"{archive}#{name}", _composed(inside[start]))


def pictures_in_zip(archive: Path) -> list[str]:
    """All pictures of a ZIP file. Errors: ``DataError`` where there are none, or for one that
    cannot be read."""
    found = [f"{archive}#{name}" for name in names_in(archive) if PICTURES.reads(name)]
    if not found:
        raise DataError(f"{archive} has no picture ({PICTURES.formats})")
    return found


def read_idx_pairs(pictures: Path, labels: Path) -> Iterator[Pair]:
    """A pair for each picture of an IDX file and its label; its line is its number, from 1.

    Errors: ``DataError``, also where there are not as many of both.
    """
    images, numbers = read_idx(pictures), read_idx(labels)
    if numbers.ndim != 1:
        raise DataError(f"{labels} holds arrays of {numbers.ndim} sizes, not a label an example")
    if len(images) != len(numbers):
        raise DataError(
            f"{pictures} has {len(images):,} pictures and {labels} {len(numbers):,} labels: "
            "label n must be that of picture n"
        )
    for place, label in enumerate(numbers.tolist()):
        yield Pair(place + 1, f"{pictures}#{place}", str(label))


def _composed(name: str) -> str:
    """A name as people write it: some systems take letters of names apart (NFD)."""
    return unicodedata.normalize("NFC", name)


def listed(pairs: Iterable[Pair], listing: Path) -> Iterator[Pair]:
    """Pairs whose source is a file that ``listing`` names, with its path.

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
            raise DataError(f"{place}: {unusable(path, error)}{_header(pair)}") from error
        if not stat.S_ISREG(kind):
            what = "a folder" if stat.S_ISDIR(kind) else "a pipe or a device"
            raise DataError(f"{place}: {path} is {what}: name a file")
        key = hashlib.blake2b(os.fsencode(os.path.abspath(path)), digest_size=8).digest()
        if key in seen:
            raise DataError(f"{place}: {path} stands in line {seen[key]} already")
        seen[key] = pair.line
        yield pair._replace(source=str(path))


def _header(pair: Pair) -> str:
    """What to do where the first line seems to name columns."""
    if pair.line > 1 or any(kind.reads(pair.source.strip()) for kind in KINDS.values()):
        return ""
    return ". Is it the name of a column? A list has no header: remove its first line"


def grouped(pairs: Iterable[Pair], corpus: CorpusSettings) -> Iterator[Pair]:
    """The same pairs, each with its group: what ``group_pattern`` finds first in the name of its
    file, or in its path where the pattern has a ``/``, or what a column has told; else what the
    file holds. Errors: ``DataError`` for a name without one.
    """
    pattern = corpus.group_pattern
    compiled = None if pattern is None else re.compile(pattern)
    root = Path(corpus.source)
    root = root if root.is_dir() else root.parent
    for pair in pairs:
        if compiled is not None:
            path = Path(pair.source)
            inside = path.relative_to(root) if path.is_relative_to(root) else path
            name = _composed(inside.as_posix() if "/" in compiled.pattern else path.name)
            found = compiled.search(name)
            if found is None or not found[1]:
                raise DataError(
                    f"{corpus.name}, line {pair.line}: {pattern!r} (group_pattern) finds nothing "
                    f"in {name!r}"
                )
            yield pair._replace(group=found[1])
        elif pair.group:
            yield pair
        else:
            yield pair._replace(group=content_of(pair.source))
