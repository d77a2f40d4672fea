"""Reading safetensors files: names, shapes and a little text, then raw numbers.

::

    8 bytes            length of the header, little-endian
    header             JSON: name -> {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                       and "__metadata__" -> {text: text}
    all that is left   the numbers, tensor after tensor without a gap

The library that writes these files reads them through memory maps, which a file that is cut short
in place turns into SIGBUS. Here everything is checked against the header and the header against
the size of the file before any memory is taken, and then read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import RunError
from dragoman.base.reading import MAX_JSON, open_regular, parse_json

Kind = Literal["F32", "I32", "F16", "BF16"]
"""The numbers of a file: all our weights are fp32, all our ids int32; weights of other programs may
be halves."""

_TYPES: dict[Kind, str] = {"F32": "<f4", "I32": "<i4", "F16": "<f2", "BF16": "<u2"}
_METADATA = "__metadata__"


class TensorFile:
    """An open file whose header was checked. Make one with ``open_tensors``."""

    def __init__(self, path: Path, kinds: Sequence[Kind], file: BufferedReader) -> None:
        self._path = path
        self._file = file
        self.size = size = file.seek(0, 2)
        """The number of bytes of the file."""
        file.seek(0)
        length = int.from_bytes(self._take(8), "little")
        if length > min(size - 8, MAX_JSON):
            raise self._error(f"its header is too large: {length:,} bytes")
        header = parse_json(self._take(length), f"{path}: its header")
        if not isinstance(header, dict):
            raise self._error("its header is not a JSON object of names")
        self._first = 8 + length
        self.metadata: Mapping[str, str] = header.pop(_METADATA, None) or {}
        """The texts that the file's header holds about it."""
        pairs = self.metadata.items() if isinstance(self.metadata, dict) else [(0, 0)]
        if not all(isinstance(word, str) for pair in pairs for word in pair):
            raise self._error(f"{_METADATA} of its header is not a dict of texts")
        spans = sorted((*self._span(name, entry, kinds), name) for name, entry in header.items())
        end = 0
        for begin, after, name in spans:
            if begin != end:
                raise self._error(f"there is a gap or an overlap before {name!r}")
            end = after
        if end != size - self._first:
            raise self._error(f"it needs {end:,} bytes of numbers but has {size - self._first:,}")
        self._begins = {name: begin for begin, _, name in spans}
        self._kinds: dict[str, Kind] = {name: entry["dtype"] for name, entry in header.items()}
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: tuple(entry["shape"]) for name, entry in header.items()
        }
        """Name -> shape, in the order of the file's header."""

    def read(self, name: str) -> npt.NDArray[Any]:
        """The numbers of a tensor, in memory of their own; halves as fp32. Errors: ``RunError`` if
        cut short."""
        kind = self._kinds[name]
        array = np.empty(self.shapes[name], _TYPES[kind])
        if array.size:
            self._file.seek(self._first + self._begins[name])
            wanted = array.reshape(-1).view(np.uint8).data
            if self._file.readinto(wanted) != len(wanted):
                raise self._error("it was cut short while it was read")
        return from_halves(array) if kind in ("F16", "BF16") else array

    def _take(self, count: int) -> bytes:
        content = self._file.read(count)
        if len(content) != count:
            raise self._error("it is cut short")
        return content

    def _span(self, name: str, entry: object, kinds: Sequence[Kind]) -> tuple[int, int]:
        """Checks a tensor's entry, and returns where its numbers begin and end, in bytes."""
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise self._error(f"the header has no valid entry for {name!r}")
        if entry["dtype"] not in kinds:
            allowed = " or ".join(kinds)
            raise self._error(f"{name!r} has numbers of type {entry['dtype']!r}, not {allowed}")
        shape, offsets = entry["shape"], entry["data_offsets"]
        if not _is_counts(shape, 0, 8) or not _is_counts(offsets, 2, 2):
            raise self._error(f"{name!r} has no valid shape or offsets")
        if 0 in shape and shape != [0]:
            raise self._error(f"{name!r} is empty")
        if offsets[1] - offsets[0] != math.prod(shape) * np.dtype(_TYPES[entry["dtype"]]).itemsize:
            raise self._error(f"{name!r} has offsets that do not match its shape")
        return offsets[0], offsets[1]

    def _error(self, what: str) -> RunError:
        return RunError(f"{self._path} is damaged or cut short ({what})")


@contextmanager
def open_tensors(path: Path, *kinds: Kind) -> Iterator[TensorFile]:
    """Open a file of tensors of these types. Errors: ``RunError`` if it is missing or damaged."""
    with open_regular(path) as file:
        yield TensorFile(path, kinds, file)


def from_halves(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """fp32 from numbers of 16 bits, exactly: float16, or bfloat16 that was read as uint16."""
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    return (array.astype(np.uint32) << 16).view(np.float32)


def require_finite(name: str, array: npt.NDArray[np.float32]) -> None:
    """Errors: ``RunError`` if it holds a number that is not finite."""
    with np.errstate(all="ignore"):  # a sum is quick, and not finite if one number is not
        if not np.isfinite(array.sum()) and not np.isfinite(array).all():
            raise RunError(f"{name} is damaged: it contains numbers that are not finite")


def _is_counts(value: object, least: int, most: int) -> bool:
    """True for a list of ``least`` to ``most`` whole numbers, none of them negative."""
    if not isinstance(value, list) or not least <= len(value) <= most:
        return False
    return all(type(n) is int and 0 <= n < 2**63 for n in value)


def files_by_update(folder: Path) -> list[tuple[int, Path]]:
    """Return the tensor files of a folder that are named by an update, each with its update, in the
    order of the updates."""
    files = folder.glob("*.safetensors")
    return sorted((int(file.stem), file) for file in files if file.stem.isdecimal())
