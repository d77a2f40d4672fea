"""This module lists the kinds of sources, with the settings and the form of each. It reads labelled
files as examples, and chooses default settings from the files.

Files come as a folder for each label, as a ZIP file with such folders of pictures, as a pair of
IDX files, or as a list: a tab-separated file or JSON Lines that names one file per example,
relative to the folder of the list.

The content of a file, not its name, decides its side of a split and whether it has changed. If a
column or a part of its name gives a group, such as a speaker, the group decides its side.

The default settings for reading files follow from the files: the rate of recordings, and the sizes
of pictures and patches.
"""

from __future__ import annotations

import hashlib
import os.path
import re
import shlex
import stat
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.base.settings import one_of
from dragoman.base.wording import plural
from dragoman.forms.form import Pair
from dragoman.forms.languages import CODES
from dragoman.forms.tree import TREE_ENDINGS
from dragoman.sources.frames.form import FramesForm, FramesSource
from dragoman.sources.frames.recordings import RECORDINGS, rate_of
from dragoman.sources.line import DRAWN, LinesForm, LineSource
from dragoman.sources.picture.form import PicturesForm, PictureSource
from dragoman.sources.picture.idx import is_idx, picture_at, read_idx
from dragoman.sources.picture.picture_file import PICTURES, has_colours, picture_size
from dragoman.sources.shared.files import (
    FileKind,
    check_name,
    file_of,
    is_zip,
    names_in,
    place_of,
    reading,
    version_of,
    visible_in,
)
from dragoman.sources.shared.rows import RowsForm, RowsSource, SourceSettings, TextSource

SOURCES: dict[str, type[SourceSettings]] = {
    "text": TextSource,
    "frames": FramesSource,
    "picture": PictureSource,
    "line": LineSource,
}
"""The settings of each kind of source, by its name in a recipe."""


if TYPE_CHECKING:
    AnySource = SourceSettings
else:
    problem = f"no such kind of source. Use one of {', '.join(SOURCES)}"
    AnySource = one_of(SOURCES, "text", problem)
"""The type of a field with a source of any kind, which ``kind`` selects."""

FORMS: dict[str, Callable[[Any], RowsForm]] = {
    "frames": FramesForm,
    "picture": PicturesForm,
    "line": LinesForm,
}
"""The form of each kind of source that is rows of numbers."""
KINDS = {"frames": RECORDINGS, "picture": PICTURES, "line": PICTURES}
"""The kind of files of each kind of source (``source.kind``)."""
_SIDES = {
    "train": "", "training": "", "dev": "--dev", "val": "--dev", "valid": "--dev",
    "validation": "--dev", "test": "--test", "testing": "--test",
}  # fmt: skip
"""Names of folders in a corpus that comes divided, and the option for each."""
_KEPT = 1 << 17
"""The number of cached hashes, some 300 bytes each; a training run needs each hash eight times."""
_TEXTS = (".txt", ".md")


def rows_form(source: SourceSettings) -> RowsForm | None:
    """Return the form of a source that is rows; None for text, which has a vocabulary."""
    made = FORMS.get(source.kind)
    return None if made is None else made(source)


def kind_among(files: Collection[Path]) -> FileKind:
    """Return the kind of most of the files, because a folder of recordings may contain the
    picture of a cover, and a folder of pictures a film."""
    return max(KINDS.values(), key=lambda kind: kind.count(files))  # the first of equals


def files_in(root: Path) -> Iterator[Path]:
    """Yield all recordings or all pictures of a folder and its subfolders, whichever are more,
    sorted by name, without hidden ones.

    Errors: ``DataError`` for a folder that cannot be read, and as ``FileKind.among``.
    """
    files = visible_in(root)
    return kind_among(files).among(files)


def left_out_warning(root: Path) -> str:
    """Return a warning about the files that ``files_in`` leaves out of a folder with both
    recordings and pictures; empty for one kind. Errors: ``DataError`` for a folder that cannot
    be read."""
    files = visible_in(root)
    read = kind_among(files)
    (other,) = (kind for kind in (RECORDINGS, PICTURES) if kind is not read)
    count = other.count(files)
    if not count:
        return ""
    kept, left = plural(read.count(files), read.noun), plural(count, other.noun)
    return (
        f"{root} has {kept} and {left}, but a model reads only one kind, so the {other.noun}s "
        "are left out. To use them, put them into a separate folder"
    )


def check_undivided(root: Path) -> None:
    """Raise ``DataError`` for a folder that comes divided: its subfolders are parts with folders
    of labels. The message has the command that names the parts."""
    with reading(root):
        folders = (path for path in root.iterdir() if path.is_dir())
        inside = sorted(folder for folder in folders if folder.name[0] not in "._")
        options = [_SIDES.get(part.name.lower()) for part in inside]
        if "" not in options or None in options or len({*options}) < max(2, len(inside)):
            return
        if not all(any(path.is_dir() for path in part.iterdir()) for part in inside):
            return
    parts = sorted(zip(map(str, options), inside, strict=True))
    command = " ".join(f"{option} {shlex.quote(str(part))}".strip() for option, part in parts)
    raise DataError(
        f"{root} has folders named {' and '.join(part.name for part in inside)}, with the folders "
        f"of labels inside. Give them separately: dragoman train {command} --task classification"
    )


def read_folders(root: Path) -> Iterator[Pair]:
    """Yield a pair for each recording or picture of ``root``, which has a folder for each label;
    its line is its number. Errors: ``DataError`` if there is no file, or one outside these
    folders."""
    if is_zip(root):
        yield from _read_zipped(root)
        return
    with reading(root):
        is_folder = stat.S_ISDIR(root.stat().st_mode)
    if not is_folder:
        raise DataError(f"{root} is a file. Give a folder that has a folder for each label")
    number = 0
    for number, file in enumerate(files_in(root), 1):
        yield _pair_of(number, str(file), check_name(file).relative_to(root).parts)
    if not number:
        raise DataError(
            f"{root} has no recording ({RECORDINGS.formats}) and no picture ({PICTURES.formats}) "
            "in a folder with the name of its label"
        )


def _read_zipped(archive: Path) -> Iterator[Pair]:
    """Yield what ``read_folders`` does for pictures in a ZIP file; one folder around all of them
    is no label."""
    shown = [(name, name.split("/")) for name in names_in(archive) if PICTURES.reads(name)]
    if not shown:
        raise DataError(
            f"{archive} has no picture ({PICTURES.formats}) in a folder with the name of its "
            "label. For other files, unpack the archive and give the folder"
        )
    around = {inside[0] for _, inside in shown}
    start = int(len(around) == 1 and min(len(inside) for _, inside in shown) > 2)
    for number, (name, inside) in enumerate(shown, 1):
        check_name(Path(f"{archive}#{name}"))
        yield _pair_of(number, f"{archive}#{name}", inside[start:])


def _pair_of(number: int, name: str, inside: Sequence[str]) -> Pair:
    """Return the pair of a file. ``inside``: the folder with the name of its label, and the path
    from there."""
    if len(inside) < 2:
        raise DataError(
            f"{name} is next to the folders of labels. Put each file into a folder with the name "
            "of its label"
        )
    return Pair(number, name, _compose(inside[0]))


def _compose(name: str) -> str:
    """Return a name in NFC; some systems decompose letters of names (NFD)."""
    return unicodedata.normalize("NFC", name)


def group(pairs: Iterable[Pair], root: Path, pattern: str | None, called: str) -> Iterator[Pair]:
    """Yield the pairs with their groups: the first match of ``pattern`` in the file name, or in
    the path below ``root`` if the pattern has a ``/``; else the group of a column, or a hash of
    the file. Errors: ``DataError`` for a name without a match; ``called`` names the corpus.
    """
    compiled = None if pattern is None else re.compile(pattern)
    root = root if root.is_dir() else root.parent
    for pair in pairs:
        if compiled is not None:
            path = Path(pair.source)
            inside = path.relative_to(root) if path.is_relative_to(root) else path
            name = _compose(inside.as_posix() if "/" in compiled.pattern else path.name)
            match = compiled.search(name)
            if match is None or not match[1]:
                raise DataError(
                    f"{called}, line {pair.line}: {pattern!r} (group_pattern) does not match "
                    f"{name!r}"
                )
            yield pair._replace(group=match[1])
        elif pair.group:
            yield pair
        else:
            yield pair._replace(group=content_of(pair.source))


def content_of(raw: str) -> str:
    """Return a hash, in hex, of the content of a raw example; copies have the same hash in any
    folder.

    For a text to be drawn it is a hash of the text, for a picture in an IDX file of its pixels,
    for any other file, such as clips.idx#1.wav, of its bytes. Errors: ``DataError`` for a file
    that is missing or cannot be read.
    """
    if raw.startswith(DRAWN):
        text = raw.encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, digest_size=16).hexdigest()
    path, _, place = raw.rpartition("#")
    if is_idx(path) and place.isascii() and place.isdecimal() and not os.path.isfile(raw):
        return hashlib.blake2b(picture_at(raw).tobytes(), digest_size=16).hexdigest()
    return _hash_of(raw, *version_of(place_of(raw)[0], raw))


@lru_cache(maxsize=_KEPT)
def _hash_of(raw: str, changed: int, size: int) -> str:
    """``changed`` and ``size`` keep a replaced file from being found in the cache."""
    with reading(raw), file_of(raw).open("rb") as file:
        return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16)).hexdigest()


def advice_for(root: Path) -> str:
    """Return a sentence about the content of a folder, with the command that learns from it.

    Errors: ``DataError`` for a folder that cannot be read.
    """
    files = sorted(visible_in(root))
    train = f"dragoman train {shlex.quote(str(root))}"
    if (root / "recipe.toml").is_file():
        return f"{root} is a run. To resume its training: dragoman resume {shlex.quote(str(root))}"
    kind = kind_among(files)
    if count := kind.count(files):
        has = f"{root} has {plural(count, kind.noun)}"
        if any(file.suffix == ".json" for file in files):
            return f"{has} and a .json file. If it lists boxes (COCO): {train} --task detection"
        folders = {file.relative_to(root).parts[0] for file in files if file.parent != root}
        if len(folders) > 1:
            return (
                f"{has} in {len(folders)} folders. If the name of each folder is a label: {train} "
                "--task classification"
            )
        said = "a text file of the same name (.txt) with the transcript next to each recording, or "
        return (
            f"{has}, but no labels. Put {said if '.wav' in kind.endings else ''}the files into a "
            f"folder for each label: {train} --task classification"
        )
    if any(file.suffix in TREE_ENDINGS for file in files):
        return f"{root} has files of bracketed trees: {train} --task parsing"
    sides = [file for file in files if file.name.removesuffix(".gz").rpartition(".")[2] in CODES]
    if len(sides) == 2:
        pair = " ".join(shlex.quote(str(file)) for file in sides)
        return f"{root} has two files of parallel text: dragoman train {pair}"
    if sides or any(file.suffix in _TEXTS for file in files):
        return (
            f"{root} is a folder of {plural(len(files), 'file')}. To train a translator, give the "
            f"two files of parallel text. To train a language model: {train} --task language-model"
        )
    return f"{root} is a folder without texts, recordings, pictures or trees"


def source_of_files(source: str, files: Sequence[str]) -> RowsSource:
    """The settings for reading the ``files`` of a corpus, which ``source`` names."""
    if is_idx(source):
        return source_of_idx(Path(source))
    paths = [Path(file) for file in files]
    if kind_among(paths) is PICTURES:
        return source_of_pictures(files)
    return FramesSource(rate=rate_of(paths[0]), subsample=2)


_PATCHES = (4, 7, 2, 5, 3, 1)
"""Sides of a patch, in the order in which they are tried."""
_LOOKED_AT = 200
"""The number of pictures whose headers are read, spread over all of them."""
_LARGEST = 64
"""The most pixels of a side: larger pictures are made smaller."""
_SMALLEST = 8
_MOST_PATCHES = 256
"""The most patches of pictures that keep their size: 61 x 61 would have 3,721 patches."""
_LARGE = 32
"""The side above which patches may have twice the size."""


def source_of_pictures(files: Sequence[str | Path]) -> PictureSource:
    """The settings for reading pictures in files. Pictures of one size, not larger than 64 pixels,
    keep their size; others are read as squares with the median of their shorter sides, at most 64.

    Errors: ``DataError`` for a picture that cannot be read.
    """
    some = [file_of(str(file)) for file in files[:: -(-len(files) // _LOOKED_AT)]]
    sizes = [picture_size(file) for file in some]
    if (1, 1) in sizes:
        raise DataError(f"{some[sizes.index((1, 1))]} is a single pixel. Give a larger picture")
    channels = 3 if any(map(has_colours, some)) else 1
    height, width = sizes[0]
    if len(set(sizes)) > 1 or max(sizes[0]) > _LARGEST or _patches(height, width) > _MOST_PATCHES:
        side = int(min(_LARGEST, max(_SMALLEST, np.median([min(size) for size in sizes]))))
        height = width = side - side % (8 if side > _LARGE else 4)
    return PictureSource.model_validate(
        {"height": height, "width": width, "channels": channels}
        | {"patch": _patch(height, width, _sides(height, width))}
    )


def _sides(height: int, width: int) -> Sequence[int]:
    """The sides of a patch to try."""
    return (8, *_PATCHES) if max(height, width) > _LARGE else _PATCHES


def _patches(height: int, width: int) -> int:
    """The number of patches in a picture."""
    return height * width // _patch(height, width, _sides(height, width)) ** 2


def source_of_idx(path: Path) -> PictureSource:
    """The settings for reading pictures of an IDX file. Errors: ``DataError`` without pictures."""
    shape = read_idx(path).shape[1:]
    if len(shape) not in (2, 3):
        raise DataError(
            f"{path} has {plural(len(shape), 'dimension')} per example; pictures have two, or "
            "three in colour"
        )
    if len(shape) == 3 and shape[2] not in (1, 3):
        raise DataError(
            f"{path} has pictures of {' x '.join(map(str, shape))}: a pixel has one "
            "number (grey) or three (colour), which come last"
        )
    height, width = shape[:2]
    about = {"height": height, "width": width, "channels": (*shape, 1)[2]}
    try:
        return PictureSource.model_validate(about | {"patch": _patch(height, width, _PATCHES)})
    except ValidationError as error:
        size = " x ".join(map(str, shape))
        raise DataError(
            f"{path}: pictures of {size} cannot be read: {error.errors()[0]['msg']}"
        ) from error


def _patch(height: int, width: int, sides: Sequence[int]) -> int:
    """The first side that divides height and width."""
    return next(side for side in sides if not height % side and not width % side)
