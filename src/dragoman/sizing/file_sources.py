"""Default settings for reading files: the rate of recordings, the sizes of pictures and patches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.base.wording import plural
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.sources.file_examples import kind_among
from dragoman.sources.frames.form import FramesSource
from dragoman.sources.frames.recordings import rate_of
from dragoman.sources.picture.form import PictureSource
from dragoman.sources.picture.idx import is_idx, read_idx
from dragoman.sources.picture.picture_file import PICTURES, has_colours, picture_size
from dragoman.sources.shared.files import file_of
from dragoman.sources.shared.rows import RowsSource


def source_of_files(corpus: CorpusSettings, files: Sequence[str]) -> RowsSource:
    """The settings for reading the files of a corpus."""
    if is_idx(corpus.source):
        return source_of_idx(Path(corpus.source))
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
        side = int(min(_LARGEST, max(_SMALLEST, median(min(size) for size in sizes))))
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
