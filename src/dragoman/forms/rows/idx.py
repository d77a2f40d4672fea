"""IDX files, as MNIST comes in: arrays of bytes behind a header of their sizes; plain or gzip.

bytes 0, 1: zero; byte 2: 8 (unsigned bytes); byte 3: number of sizes; then each size, 4 bytes,
the highest first; then the numbers, the last size running fastest.
"""

from __future__ import annotations

import gzip
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.errors import DataError

Bytes = npt.NDArray[np.uint8]

_LARGEST = 4 << 30
"""Bytes of a file once it is unpacked."""
_UNSIGNED_BYTES = 8
_MOST_SIZES = 4


def is_idx(path: str) -> bool:
    """Whether its name is that of an IDX file: train-images-idx3-ubyte.gz, digits.idx."""
    name = Path(path).name.removesuffix(".gz").lower()
    return name.endswith(".idx") or ("idx" in name and name.endswith("ubyte"))


def read_idx(path: Path) -> Bytes:
    """The array of a file, read-only: mapped where the file is plain. The last two are kept.

    Errors: ``DataError`` for a file that is missing, empty, cut off, damaged, or another kind.
    """
    try:
        about = path.stat()
    except OSError as error:
        raise DataError(f"{path} does not exist") from error
    return _read(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=2)
def _read(path: Path, changed: int, size: int) -> Bytes:
    """``changed`` and ``size`` tell a file from one that took its place."""
    if not size:
        raise DataError(f"{path} is empty")
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        if packed:
            with gzip.open(path) as unpacked:
                content = unpacked.read(_LARGEST + 1)
            if len(content) > _LARGEST:
                raise DataError(f"{path} holds more than {_LARGEST >> 30} GiB: unpack it first")
            data = np.frombuffer(content, np.uint8)
        else:
            data = np.memmap(path, np.uint8, mode="r")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut off: {error}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    return _array(path, data)


def _array(path: Path, data: Bytes) -> Bytes:
    head = data[:4].tobytes()
    if len(head) < 4 or head[:2] != b"\0\0" or not 1 <= head[3] <= _MOST_SIZES:
        raise DataError(f"{path} is not an IDX file: it begins with {head!r}")
    if head[2] != _UNSIGNED_BYTES:
        raise DataError(f"{path} holds numbers of type {head[2]}; unsigned bytes (8) are read")
    begin = 4 + 4 * head[3]
    sizes = [int.from_bytes(data[at : at + 4].tobytes(), "big") for at in range(4, begin, 4)]
    wanted = begin + int(np.prod(sizes, dtype=object))
    if len(data) != wanted:
        what = "cut off" if len(data) < wanted else "damaged"
        told = " x ".join(map(str, sizes))
        raise DataError(
            f"{path} is {what}: {told} numbers are {wanted:,} bytes with the header, and there are "
            f"{len(data):,}"
        )
    found: Bytes = data[begin:].reshape(sizes)
    return found
