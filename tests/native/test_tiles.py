"""Tiles: what the processor's compute, and their software twin; a system that refuses them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.native import compile as building
from dragoman.native import library, loader

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module", params=["amx", "amxtwin"])
def product(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    """``tiles.cpp`` on the processor's tiles, or on their twin."""
    compiler, level = building.find_compiler(), request.param
    if compiler is None or level not in levels_here():
        pytest.skip(f"no compiler, or this processor has no {level}")
    made = tmp_path_factory.mktemp("tiles") / "tiles.so"
    flags = [*building.COMMON_FLAGS, *building.LEVEL_FLAGS[level], f"-DDRAGOMAN_LEVEL={level}"]
    source = Path(__file__).with_name("tiles.cpp")
    command = [compiler, *flags, "-I", str(building.SOURCES), "-shared", str(source), "-o", made]
    subprocess.run(command, check=True)
    functions = ctypes.CDLL(str(made))

    def call(kind: str, a: Array, b: Array, c: Array, first: int) -> Array:
        """a (M, K), b (K, N = 32) -> (M, N); c is added to the first tiles' rows."""
        a, packed = np.ascontiguousarray(a), pack(b)
        out = np.array(c)
        depth = a.shape[1] * a.itemsize // 64
        getattr(functions, f"dragoman_{level}_{kind}")(
            ctypes.c_void_p(a.ctypes.data), ctypes.c_int64(a.strides[0]),
            ctypes.c_void_p(packed.ctypes.data), ctypes.c_int64(depth),
            ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(out.strides[0]),
            ctypes.c_int64(first), ctypes.c_int64(len(a) - first),
        )  # fmt: skip
        return out

    return call


def levels_here() -> list[str]:
    """What the library says, which asks for the permission to use tiles too."""
    found, status = loader.load()
    if found is None:
        pytest.skip(status.reason)
    names = found.handle.dragoman_levels
    names.restype = ctypes.c_char_p
    return list(names().decode().split())


def pack(b: Array) -> Array:
    """(K, 32) -> (2, K / g, 16, g): g consecutive numbers of a column fill a word."""
    group = 4 // b.itemsize
    columns = b.reshape(-1, group, 2, 16)
    return np.ascontiguousarray(columns.transpose(2, 0, 3, 1))


def bf16(values: Array) -> Array:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def wide(values: Array) -> Array:
    return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


ROWS = [(16, 16), (1, 1), (16, 3), (5, 9)]


@pytest.mark.parametrize(("first", "second"), ROWS)
@pytest.mark.parametrize("depth", [1, 3])
def test_tiles_multiply_bf16(
    product: Callable[..., Array], first: int, second: int, depth: int
) -> None:
    random = np.random.default_rng(1)
    a = bf16(random.standard_normal((first + second, 32 * depth)))
    b = bf16(random.standard_normal((32 * depth, 32)))
    c = random.standard_normal((first + second, 32)).astype(np.float32)
    c[first:] = 0
    np.testing.assert_allclose(
        product("bf16", a, b, c, first), wide(a) @ wide(b) + c, rtol=1e-5, atol=1e-5
    )


def test_tiles_take_small_numbers_for_zero(product: Callable[..., Array]) -> None:
    a, b = np.zeros((32, 32)), np.zeros((32, 32))
    a[0, :2], b[:2, 0] = [1e-39, 1.0], [1e30, 1.0]
    out = product("bf16", bf16(a), bf16(b), np.full((32, 32), 1e-40, np.float32), 16)
    assert out[0, 0] == 1.0 and out[0, 1] == 0.0


@pytest.mark.parametrize(("first", "second"), ROWS)
@pytest.mark.parametrize("kind", ["u8s8", "s8s8"])
def test_tiles_multiply_bytes(
    product: Callable[..., Array], kind: str, first: int, second: int
) -> None:
    random = np.random.default_rng(2)
    a = random.integers(-128, 128, (first + second, 192), np.int8)
    left = a.view(np.uint8) if kind == "u8s8" else a
    b = random.integers(-128, 128, (192, 32), np.int8)
    c = random.integers(-1000, 1000, (first + second, 32), np.int32)
    c[first:] = 0
    wanted = left.astype(np.int64) @ b.astype(np.int64) + c
    assert (product(kind, left, b, c, first) == wanted).all()


# ---- a system that refuses

REFUSES = """
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
# Answer arch_prctl(ARCH_REQ_XCOMP_PERM) with EPERM, and let everything else pass.
rules = [(0x20, 0, 0, 0), (0x15, 0, 3, 158), (0x20, 0, 0, 16), (0x15, 0, 1, 0x1023),
         (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
code = b"".join(struct.pack("HBBI", *rule) for rule in rules)
kept = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(kept))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    print("no seccomp here")
    sys.exit()
from dragoman.native import library
print(library.status().reason)
"""


def refused(level: str) -> str:
    """What a process says that may not use tiles."""
    if "amx" not in levels_here():
        pytest.skip("this processor has no tiles")
    done = subprocess.run(
        [sys.executable, "-c", REFUSES], env=os.environ | {"DRAGOMAN_NATIVE": level},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if "no seccomp" in done.stdout:
        pytest.skip("this system has no seccomp")
    return done.stdout


def test_without_the_permission_the_next_level_is_taken() -> None:
    said = refused("auto")
    assert said.startswith("avx512 (amx: the system refuses its tiles (Operation not permitted))")


def test_tiles_that_are_forced_without_the_permission_are_refused_in_one_line() -> None:
    assert "native kernels: amx: the system refuses its tiles" in refused("amx")


def test_what_the_system_refuses_is_said_in_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, on every processor."""
    levels_here()
    monkeypatch.delenv("DRAGOMAN_NATIVE", raising=False)
    monkeypatch.setattr(loader, "_can_run", lambda handle: (["avx2"], "amx: the system says no"))
    library.reset()
    try:
        assert library.status().level == "avx2"
        assert library.status().reason.startswith("avx2 (amx: the system says no), on ")
        monkeypatch.setenv("DRAGOMAN_NATIVE", "amx")
        library.reset()
        assert library.status().level is None
        assert "amx: the system says no; plain torch" in library.status().reason
    finally:
        monkeypatch.undo()
        library.reset()


def test_the_twin_is_never_chosen_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    if "amxtwin" not in levels_here():
        pytest.skip("the twin is compiled for AVX2")
    assert building.has_twin(loader.library_path()), "python -m dragoman.native.compile --twin"
    monkeypatch.setattr(loader, "_can_run", lambda handle: (["amxtwin", "avx2"], ""))
    monkeypatch.delenv("DRAGOMAN_NATIVE", raising=False)
    library.reset()
    try:
        assert library.status().level == "avx2"
        monkeypatch.setenv("DRAGOMAN_NATIVE", "amxtwin")
        library.reset()
        assert library.status().level == "amxtwin"
    finally:
        monkeypatch.undo()
        library.reset()
