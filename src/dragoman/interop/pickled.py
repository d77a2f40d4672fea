"""``pytorch_model.bin``, read as data: torch's unpickler was broken twice (CVE-2025-32434,
CVE-2026-24747).

The file is a ZIP archive. ``data.pkl`` names the tensors; ``data/0``, ``data/1``, ... have their
numbers. ``pickletools`` takes the pickle apart without running it, and the few opcodes of plain
tensors are followed here. Nothing is imported or called by a name in the file; any other opcode or
name is refused.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.errors import RunError
from dragoman.base.reading import open_regular
from dragoman.interop.archives import Array, StoredZip, check_growth, numbers

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
