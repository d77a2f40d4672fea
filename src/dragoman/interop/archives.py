"""Files of weights that are ZIP archives: ``.npz``, and ``pytorch_model.bin``.

Both programs store their members as they are, so every byte of memory that is taken stands in the
file. A packed member, which could be a bomb, is refused. Nothing in a file is executed.
"""

from __future__ import annotations

import ast
import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import RunError
from dragoman.base.reading import open_regular, zip_errors
from dragoman.base.tensor_file import from_halves

Array = npt.NDArray[Any]

_MOST_MEMBERS = 20_000
_MOST_HEADER = 4096
_MOST_GROWTH, _ANY_MODEL = 16, 64 << 20
"""A model may take 16 bytes for each byte of its file, and 64 MiB more. One table of int8 that
source, target and output share takes 12."""
_TYPES = {"<f4": "<f4", "<f2": "<f2", "<f8": "<f8", "|i1": "|i1", "<i1": "|i1", "|u1": "|u1"}
"""The types of numpy that an ``.npz`` file of weights may have. Marian writes ``<i1`` for bytes."""


class Weights(Protocol):
    """An open file of weights, whose directory has been checked."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each tensor, by its name."""
        ...

    @property
    def size(self) -> int:
        """The number of bytes of the file."""
        ...

    def read(self, name: str) -> Array:
        """The numbers of a tensor. Errors: ``RunError`` if they are cut short."""
        ...


def check_growth(name: object, size: int, taken: int) -> None:
    """Errors: ``RunError`` if ``taken``, the bytes that the weights of a file take, are too many
    for a file of ``size`` bytes, because it names one weight many times."""
    if taken > _ANY_MODEL + _MOST_GROWTH * size:
        raise RunError(
            f"{name} would grow from {size:,} to {taken:,} bytes: it contains one weight under too "
            "many names, or one row for too many tokens. No known model is like that"
        )


class StoredZip:
    """The members of a ZIP archive that are stored as they are. Errors: ``RunError``."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(file)
        except zip_errors() as error:
            raise RunError(f"{path} is damaged or cut short ({error})") from None
        every = self._zip.infolist()
        if len(every) > _MOST_MEMBERS:
            raise self.error(f"its {len(every):,} members exceed the limit of {_MOST_MEMBERS:,}")
        self.members = {member.filename: member for member in every}
        self.size: int = file.seek(0, 2)
        packed = sum(member.file_size for member in every)
        if len(self.members) != len(every) or packed > self.size:
            raise self.error("its members overlap")
        for member in every:
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
                raise self.error(f"member {member.filename[:80]!r} is packed or encrypted")

    def read(self, name: str, begin: int = 0, count: int | None = None) -> bytes:
        """``count`` bytes of a member from ``begin`` on; all of them if it is None."""
        try:
            with self._zip.open(self.members[name]) as member:
                member.seek(begin)
                content = member.read(-1 if count is None else count)
        except zip_errors() as error:
            raise self.error(f"member {name[:80]!r} cannot be read: {error}") from None
        if count is not None and len(content) != count:
            raise self.error(f"member {name[:80]!r} is cut short")
        return content

    def error(self, what: str) -> RunError:
        """The error for a file in which something is wrong."""
        return RunError(f"{self.path} is damaged or not a file of weights ({what})")


class NpzWeights:
    """The arrays of an ``.npz`` file: numbers alone, no objects."""

    def __init__(self, archive: StoredZip) -> None:
        self._archive, self.size = archive, archive.size
        self._places = {
            name.removesuffix(".npy"): self._place(name)
            for name in archive.members
            if name.endswith(".npy")
        }
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: shape for name, (shape, _, _) in self._places.items()
        }

    def read(self, name: str) -> Array:
        """The numbers of an array; floats as fp32."""
        shape, kind, begin = self._places[name]
        count = math.prod(shape) * np.dtype(kind).itemsize
        content = self._archive.read(f"{name}.npy", begin, count)
        array = np.frombuffer(content, kind).reshape(shape)
        return array.astype(np.float32) if array.dtype.kind == "f" else array

    def _place(self, name: str) -> tuple[tuple[int, ...], str, int]:
        """The shape and type of an array, and where its numbers begin."""
        archive = self._archive
        begin = archive.read(name, 0, min(_MOST_HEADER, archive.members[name].file_size))
        version = begin[6:7]
        if begin[:6] != b"\x93NUMPY" or version not in (b"\x01", b"\x02"):
            raise archive.error(f"{name[:80]!r} is not a numpy array")
        wide = 2 if version == b"\x01" else 4
        after = 8 + wide + int.from_bytes(begin[8 : 8 + wide], "little")
        try:
            header = ast.literal_eval(begin[8 + wide : after].decode("latin-1").strip())
            shape, kind = tuple(header["shape"]), _TYPES[header["descr"]]
            in_order = header["fortran_order"] is False or len(shape) < 2
        except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
            raise archive.error(f"{name[:80]!r} has no valid shape or type of numbers") from None
        sound = all(type(size) is int and 0 <= size < 2**40 for size in shape)
        size = math.prod(shape) * np.dtype(kind).itemsize if sound and len(shape) <= 8 else -1
        if not in_order or after + size != archive.members[name].file_size:
            raise archive.error(f"the size of {name[:80]!r} does not match its shape")
        return shape, kind, after


@contextmanager
def open_npz(path: Path) -> Iterator[NpzWeights]:
    """Open an ``.npz`` file of numbers. Errors: ``RunError`` if it is missing or damaged."""
    with open_regular(path) as file:
        yield NpzWeights(StoredZip(path, file))


def numbers(content: bytes, kind: str) -> Array:
    """Numbers of the type ``kind`` (of numpy; "bf16" for bfloat16) as fp32."""
    if kind == "bf16":
        return from_halves(np.frombuffer(content, "<u2"))
    return np.frombuffer(content, kind).astype(np.float32)
