"""IDX is the format of MNIST: an array of bytes after a header with its sizes; plain or gzip.

Bytes 0 and 1 are zero, byte 2 is 8 (unsigned bytes), byte 3 is the number of sizes. The sizes
follow, 4 bytes each, the highest byte first; then the numbers, the last size running fastest.

The raw example of a picture is its place, ``train-images-idx3-ubyte.gz#17``, counted from 0.
"""

from __future__ import annotations

import gzip
import math
import os.path
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError
from dragoman.base.wording import plural, shorten
from dragoman.forms.form import Pair
from dragoman.sources.shared.files import unusable, version_of

Bytes = npt.NDArray[np.uint8]

_LARGEST = 4 << 30
"""The most bytes of an unpacked file."""
_UNSIGNED_BYTES = 8
_MOST_SIZES = 4
_LONGEST_HEAD = 4 + 4 * _MOST_SIZES
_DIGITS = 20
"""A number with more digits than this is no picture's."""


def is_idx(path: str) -> bool:
    """Return True for a name of an IDX file, such as train-images-idx3-ubyte.gz or digits.idx,
    that is no folder."""
    name = Path(path).name.removesuffix(".gz").lower()
    is_named_so = name.endswith(".idx") or ("idx" in name and name.endswith("ubyte"))
    return is_named_so and not os.path.isdir(path)


def read_idx(path: Path) -> Bytes:
    """Return the array of a file, read-only, and mapped if the file is plain. The last two are
    cached.

    Errors: ``DataError`` for a file that is missing, empty, cut off, damaged, or of another
    kind.
    """
    return _read(path, *version_of(path))


@lru_cache(maxsize=2)
def _read(path: Path, changed: int, size: int) -> Bytes:
    """``changed`` and ``size`` keep a replaced file from being found in the cache."""
    if not size:
        raise DataError(f"{path} is empty")
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        if not packed:
            return _array(path, np.memmap(path, np.uint8, mode="r"))
        with gzip.open(path) as unpacked:
            wanted = _file_size(_sizes(path, unpacked.read(_LONGEST_HEAD)))
            if wanted > _LARGEST:
                raise DataError(f"{path} has more than {_LARGEST >> 30} GiB. Unpack it first")
            unpacked.seek(0)
            content = unpacked.read(wanted + 1)  # no more, whatever its unpacked size
        return _array(path, np.frombuffer(content, np.uint8))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut off: {error}") from error
    except OSError as error:
        raise unusable(path, error) from error


def _array(path: Path, data: Bytes) -> Bytes:
    sizes = _sizes(path, data[:_LONGEST_HEAD].tobytes())
    wanted = _file_size(sizes)
    if len(data) != wanted:
        is_cut = len(data) < wanted
        raise DataError(
            f"{path} is {'cut off' if is_cut else 'damaged'}: {_show_sizes(sizes)} numbers need "
            f"{wanted:,} bytes with the header, but the bytes of the file are "
            + (f"{len(data):,}" if is_cut else "more")
        )
    return data[4 + 4 * len(sizes) :].reshape(sizes)


def _sizes(path: Path, head: bytes) -> list[int]:
    """Return the sizes in the header."""
    if len(head) < 4 or head[:2] != b"\0\0" or not head[3]:
        raise DataError(f"{path} is not an IDX file: it begins with {head[:4]!r}")
    if head[3] > _MOST_SIZES:
        raise DataError(f"{path} has {head[3]} dimensions. At most {_MOST_SIZES} are allowed")
    if head[2] != _UNSIGNED_BYTES:
        raise DataError(f"{path} has numbers of type {head[2]}, but must have unsigned bytes (8)")
    end = 4 + 4 * head[3]
    if len(head) < end:
        raise DataError(f"{path} is cut off: its header needs {end} bytes and has {len(head)}")
    sizes = [int.from_bytes(head[at : at + 4], "big") for at in range(4, end, 4)]
    if 0 in sizes:
        raise DataError(f"{path} is empty: its header says {_show_sizes(sizes)} numbers")
    return sizes


def _file_size(sizes: list[int]) -> int:
    """Return the bytes of a file with such sizes."""
    return 4 + 4 * len(sizes) + math.prod(sizes)


def _show_sizes(sizes: list[int]) -> str:
    return " x ".join(map(str, sizes))


def read_idx_pairs(pictures: Path, labels: Path) -> Iterator[Pair]:
    """Yield a pair for each picture of an IDX file and its label; its line is its number, from
    1.

    Errors: ``DataError``, also for different numbers of both.
    """
    images, numbers = read_idx(pictures), read_idx(labels)
    if numbers.ndim != 1:
        raise DataError(f"{labels} has {numbers.ndim} dimensions, but labels must have one")
    if len(images) != len(numbers):
        raise DataError(
            f"{pictures} has {len(images):,} pictures and {labels} {len(numbers):,} labels. "
            "Label n must be that of picture n"
        )
    for place, label in enumerate(numbers.tolist()):
        yield Pair(place + 1, f"{pictures}#{place}", str(label))


def is_place(raw: str) -> bool:
    """Return True for a place in an IDX file, or such a file, which is not the path of a
    picture."""
    path, _, number = raw.rpartition("#")
    is_place = is_idx(path) or (bool(path) and number.isdecimal())
    return is_idx(raw) or (is_place and not os.path.exists(raw))


def picture_at(raw: str) -> Bytes:
    """Return the (H, W, C) picture at a place. Errors: ``DataError`` if it does not exist."""
    path, _, number = raw.rpartition("#")
    if not path or not (number.isascii() and number.isdecimal()):
        raise DataError(
            f"{raw} does not name a picture. Write its number in the IDX file, from 0, as in "
            "t10k-images-idx3-ubyte.gz#17"
        )
    pictures = read_idx(Path(path))
    if pictures.ndim not in (3, 4):
        raise DataError(
            f"{path} has {plural(pictures.ndim - 1, 'dimension')} per example; pictures have two"
        )
    number = number.lstrip("0") or "0"
    if len(number) > _DIGITS or int(number) >= len(pictures):
        raise DataError(
            f"{path} has {plural(len(pictures), 'picture')}, numbered from 0. There is no number "
            f"{shorten(number, _DIGITS)}"
        )
    picture: Bytes = pictures[int(number)]
    return picture[..., None] if picture.ndim == 2 else picture
