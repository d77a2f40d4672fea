"""Files of weights that are ZIP archives: ``.npz``, and ``pytorch_model.bin``.

Both programs store their members as they are, so every byte of memory that is taken stands in the
file. A packed member, which could be a bomb, is refused. Nothing in a file is executed.

``pytorch_model.bin`` is read as data: torch's unpickler was broken twice (CVE-2025-32434,
CVE-2026-24747). ``data.pkl`` in it names the tensors; ``data/0``, ``data/1``, ... have their
numbers. ``pickletools`` takes the pickle apart without running it, and the few opcodes of plain
tensors are followed here. Nothing is imported or called by a name in the file; any other opcode or
name is refused.
"""

from __future__ import annotations

import ast
import math
import pickletools
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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


# ---- pytorch_model.bin

_MOST_PICKLE = 1 << 20
_STORAGES = {
    "FloatStorage": ("<f4", 4), "HalfStorage": ("<f2", 2), "BFloat16Storage": ("bf16", 2),
    "DoubleStorage": ("<f8", 8), "LongStorage": ("<i8", 8),
}  # fmt: skip
"""The types of numbers by torch's names, and their bytes."""
_NAMES = {
    "collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter",
    *(f"torch {name}" for name in _STORAGES),
}  # fmt: skip
_MARK = object()
_PUSHED = {
    "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE",
    "SHORT_BINUNICODE",
}  # fmt: skip
"""Opcodes that push their own argument."""
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}


@dataclass(frozen=True)
class _Name:
    """A class or function that the pickle names; it stays a name."""

    name: str


@dataclass(frozen=True)
class _Storage:
    key: str
    kind: str
    width: int
    count: int


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Machine:
    """The stack and the memo of a pickle, for the opcodes of plain tensors."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, pickle: bytes) -> Any:
        """The value that the pickle describes. Errors: ``ValueError`` with what is refused."""
        for opcode, argument, _ in pickletools.genops(pickle):
            if opcode.name == "STOP":
                return self.stack.pop()
            self._step(opcode.name, argument)
        raise ValueError("the pickle has no end")

    def _step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _PUSHED:
            stack.append(_CONSTANTS.get(name, argument))
        elif name in ("PROTO", "FRAME"):
            return
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
            stack.append({"EMPTY_DICT": {}, "EMPTY_LIST": [], "EMPTY_TUPLE": ()}[name])
        elif name == "TUPLE" or name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[5:]) if name[5:] else None
            stack.append(tuple(self._pop(count)))
        elif name == "GLOBAL":
            stack.append(self._check_name(argument))
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop()))
        elif name in ("SETITEM", "SETITEMS"):
            self._set(self._pop(2 if name == "SETITEM" else None))
        elif name == "REDUCE":
            given = stack.pop()
            stack.append(_make(stack.pop(), given))
        elif name == "BUILD":
            stack.pop()  # the attributes of a dict of tensors, which say nothing of the weights
        else:
            raise ValueError(f"opcode {name} is not allowed")

    def _pop(self, count: int | None) -> list[Any]:
        """The top ``count`` values, or all above the last mark."""
        if count is None:
            count = 0
            while self.stack[-1 - count] is not _MARK:
                count += 1
            values = self._pop(count)
            self.stack.pop()
            return values
        if count > len(self.stack):
            raise IndexError("it takes values from an empty stack")
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    def _set(self, items: list[Any]) -> None:
        into = self.stack[-1]
        if not isinstance(into, dict) or not all(isinstance(key, str) for key in items[::2]):
            raise ValueError("it sets items of a value that is not a dict with names as keys")
        into.update(zip(items[::2], items[1::2], strict=True))

    @staticmethod
    def _check_name(name: str) -> _Name:
        if name not in _NAMES:
            raise ValueError(f"it uses the name {name.replace(' ', '.')}")
        return _Name(name)


def _storage(given: Any) -> _Storage:
    """The numbers that a tensor is a view of: ("storage", type, key, device, count)."""
    word, kind, key, _, count = given
    if word != "storage" or not isinstance(key, str) or type(count) is not int or count < 0:
        raise ValueError("a storage has no valid description")
    return _Storage(key, *_STORAGES[kind.name.removeprefix("torch ")], count)


def _make(called: Any, given: Any) -> Any:
    """The value that a call would make."""
    name = called.name if isinstance(called, _Name) else ""
    if name == "collections OrderedDict" and given == ():
        return {}
    if name == "torch._utils _rebuild_parameter" and isinstance(given[0], _Tensor):
        return given[0]
    if name != "torch._utils _rebuild_tensor_v2" or not isinstance(given[0], _Storage):
        raise ValueError(f"it calls the function {name.replace(' ', '.') or '(no name)'}")
    storage, offset, shape, strides = given[:4]
    numbers_of = (offset, *shape, *strides)
    sound = all(type(n) is int and 0 <= n < 2**40 for n in numbers_of)
    if not sound or len(shape) != len(strides) or len(shape) > 8:
        raise ValueError("a tensor has no valid shape")
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if math.prod(shape) > storage.count or (0 not in shape and offset + last >= storage.count):
        raise ValueError("a tensor has fewer numbers than its shape needs")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


class PickledWeights:
    """The tensors of an open ``pytorch_model.bin``, whose pickle has been checked."""

    def __init__(self, archive: StoredZip) -> None:
        self._archive, self.size = archive, archive.size
        pickles = [name for name in archive.members if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise archive.error("it does not have exactly one data.pkl")
        self._folder = pickles[0].removesuffix("data.pkl")
        order = f"{self._folder}byteorder"
        if order in archive.members and archive.read(order, 0, 3) != b"lit":
            raise archive.error("its numbers are big-endian, not little-endian")
        if archive.members[pickles[0]].file_size > _MOST_PICKLE:
            raise archive.error(f"{pickles[0]} has more than the {_MOST_PICKLE:,} bytes allowed")
        try:
            state = _Machine().run(archive.read(pickles[0]))
        except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{archive.path}: {pickles[0]} is refused: it contains more than plain tensors "
                f"({str(error)[:100]}). Save it as safetensors with the program that made it"
            ) from None
        if not isinstance(state, dict):
            raise archive.error("its pickle contains no dict of tensors")
        self._tensors = {name: item for name, item in state.items() if isinstance(item, _Tensor)}
        # For each tensor all numbers that it is a view of are read.
        storages = [tensor.storage for tensor in self._tensors.values()]
        check_growth(archive.path, self.size, sum(part.count * part.width for part in storages))
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: tensor.shape for name, tensor in self._tensors.items()
        }

    def read(self, name: str) -> Array:
        """The numbers of a tensor as fp32."""
        tensor = self._tensors[name]
        member = f"{self._folder}data/{tensor.storage.key}"
        if member not in self._archive.members:
            raise self._archive.error(f"member {member[:80]!r} is missing")
        held = self._archive.read(member, 0, tensor.storage.count * tensor.storage.width)
        flat = numbers(held, tensor.storage.kind)[tensor.offset :]
        steps = tuple(stride * flat.itemsize for stride in tensor.strides)
        return np.lib.stride_tricks.as_strided(flat, tensor.shape, steps, writeable=False)


@contextmanager
def open_pickled(path: Path) -> Iterator[PickledWeights]:
    """Open a ``pytorch_model.bin``. Errors: ``RunError`` if it is missing, damaged, or holds more
    than plain tensors."""
    with open_regular(path) as file:
        if file.read(4) != b"PK\x03\x04":
            raise RunError(
                f"{path} is not in the format of torch 1.6 and later. Load it there and save it "
                "again, as safetensors if you can"
            )
        yield PickledWeights(StoredZip(path, file))
