"""The one shared library: built, chosen, refused when stale, damaged or wrong."""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dragoman.base.errors import DragomanError
from dragoman.native import abi, attention, check, embedding, library, loader, norm
from dragoman.native import compile as building
from dragoman.native.dropout import Drop
from dragoman.native.loader import Status
from dragoman.nn.linear import Linear, kernels_fit


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("DRAGOMAN_NATIVE", raising=False)
    monkeypatch.delenv("DRAGOMAN_NATIVE_LIBRARY", raising=False)
    library.reset()
    yield
    monkeypatch.undo()
    library.reset()


@pytest.fixture
def built() -> str:
    """The level in use; skipped where there is none."""
    level = library.status().level
    if level is None:
        pytest.skip(library.status().reason)
    return level


def plain_norm_works() -> bool:
    rows, gain, bias = torch.randn(2, 4, 40), torch.ones(40), torch.zeros(40)
    told: dict[str, Any] = {"added": rows[1], "drop": Drop(0.5, 3)}
    ours = norm.layer_norm(rows[0], gain, bias, **told)
    return torch.equal(ours, norm.layer_norm_plain(rows[0], gain, bias, **told))


def test_off_means_plain_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_NATIVE", "off")
    assert not library.available()
    assert loader.function("norm_forward_fp32") is None
    assert library.status().reason.startswith("off")
    assert plain_norm_works()


def test_threads_that_ask_together_wait_for_one_comparison(
    built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two would draw each other's numbers, and one of them refuse kernels that are right."""
    library.reset()
    together, asked = threading.Barrier(3), []

    def compare() -> None:
        asked.append(threading.current_thread())
        time.sleep(0.1)  # long enough for another to come in, were nobody waiting

    def ask() -> Status:
        together.wait()
        return library.status()

    monkeypatch.setattr(check, "first_difference", compare)
    with ThreadPoolExecutor(3) as threads:
        found = [one.result() for one in [threads.submit(ask) for _ in range(3)]]
    assert len(asked) == 1
    assert [one.level for one in found] == [built] * 3


def test_a_wrong_choice_names_the_allowed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_NATIVE", "sse")
    with pytest.raises(DragomanError, match=r"DRAGOMAN_NATIVE='sse' is not one of auto, off"):
        library.available()


def test_each_level_can_be_forced(built: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in loader.LEVELS[loader.LEVELS.index(built) :]:
        monkeypatch.setenv("DRAGOMAN_NATIVE", level)
        library.reset()
        if level == "avx2" or library.available():
            assert library.status().level == level


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "not built"), (b"", "damaged"), (b"\x7fELF and then nothing", "damaged")],
)
def test_no_library_or_a_damaged_one_falls_back_with_one_line(
    content: bytes | None,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "libdragoman.so"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("DRAGOMAN_NATIVE_LIBRARY", str(path))
    with caplog.at_level(logging.WARNING):
        assert not library.available()
        assert not library.available()
    assert plain_norm_works()
    (line,) = caplog.messages
    assert words in line and "plain torch is used" in line
    assert "python -m dragoman.native.compile" in line


def test_a_library_that_only_translates_leaves_training_to_torch(
    built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one for a new processor may; it is the comparison that asks first."""
    from dragoman.models.transformer.int8 import why_not_here

    find = loader.function

    def found(name: str, level: str | None = None) -> object:
        return find(name, level) if name.startswith(("decode_", "beam_")) else None

    monkeypatch.setattr(loader, "function", found)
    assert library.status().level == built and why_not_here() is None
    assert plain_norm_works() and not kernels_fit(nn.Sequential(Linear(8, 8)), "fp32")
    rows, at = torch.randn(3, 8), torch.tensor([0, 3], dtype=torch.int32)
    told: dict[str, Any] = {"heads": 2, "causal": True, "scale": 0.5}
    ours = attention.attention([rows] * 3, at, at, **told)
    torch.testing.assert_close(ours, attention.attention_plain(rows, rows, rows, at, at, **told))
    ids, places = torch.tensor([2, 0, 2]), torch.randn(3, 8)
    mine, twin = (
        embed(ids, rows, places, ids, scale=3.0, dtype=torch.float32)
        for embed in (embedding.embed, embedding.embed_plain)
    )
    torch.testing.assert_close(mine, twin)


def test_what_no_machine_was_tried_with_is_said_in_the_line(
    built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(loader.NEVER_RUN) == {"neon"} and "never run" not in library.status().reason
    monkeypatch.setitem(loader.NEVER_RUN, built, "right in an emulator, never run")
    library.reset()
    assert library.status().reason.endswith("; right in an emulator, never run")
    assert "\n" not in library.status().reason


def test_a_stale_library_is_not_used(built: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "fingerprint", lambda: "another")
    library.reset()
    assert not library.available()
    assert "stale" in library.status().reason


@pytest.mark.parametrize("struct", abi.STRUCTS, ids=lambda struct: struct.__name__)
def test_a_library_that_lays_out_a_struct_otherwise_is_not_used(
    built: str, struct: type[ctypes.Structure], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two fields changed places: most sizes are the same, and nothing else would tell."""
    first, second, *rest = struct._fields_
    fields = [second, first, *rest]
    other = type(struct.__name__, (ctypes.Structure,), {"_fields_": fields})
    monkeypatch.setattr(abi, "STRUCTS", (other,))
    library.reset()
    assert not library.available()
    assert f"layout of {struct.__name__} differs" in library.status().reason


def test_every_function_is_declared_as_the_sources_have_it() -> None:
    """Read from the C++ itself: a wrong argument type would be a wrong number, or a crash."""
    kinds = {
        "int64_t": ctypes.c_int64, "int": ctypes.c_int, "float": ctypes.c_float,
        "uint64_t": ctypes.c_uint64, "void": None,
    }  # fmt: skip

    def kind(words: str) -> object:
        return ctypes.c_void_p if "*" in words else kinds[words.split()[0]]

    found = {}
    kernel = r"KERNEL\(([\w*]+),\s*(\w+?)_?(?:##suffix|bf16|fp32)?\s*(?:,\s*([^()]*))?\)\s*\{"
    function = r"DRAGOMAN_EXPORT (\w+) dragoman_(beam_\w+)\(([^()]*)\)\s*\{"
    for source in building.SOURCES.glob("*.cpp"):
        text = re.sub(r"//.*", "", source.read_text(encoding="utf-8")).replace("\\\n", " ")
        for result, name, arguments in re.findall(f"{kernel}", text) + re.findall(function, text):
            given = tuple(kind(a.strip()) for a in arguments.split(",") if a.strip())
            found[name] = (given, kind(result))
    assert found == abi.FUNCTIONS


def test_a_library_without_our_names_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    other = shutil.which("cc") and next(iter(Path("/lib").rglob("libm.so.6")), None)
    if not other:
        pytest.skip("no other library to take")
    monkeypatch.setenv("DRAGOMAN_NATIVE_LIBRARY", str(other))
    assert not library.available()
    assert "damaged" in library.status().reason


def test_a_library_says_which_glibc_it_needs(built: str, tmp_path: Path) -> None:
    """What a wheel is tagged by; it was built here, so it asks for no more than there is here."""
    needed = building.needed_glibc(loader.library_path())
    if platform.libc_ver()[0] == "glibc":
        here = tuple(map(int, platform.libc_ver()[1].split(".")))
        assert needed is not None and (2, 2) <= needed <= here
    made = tmp_path / "made.so"
    made.write_bytes(b"\x7fELF\0GLIBC_2.4\0GLIBC_2.17\0GLIBC_2.2.5\0GLIBCXX_3.4.30\0")
    assert building.needed_glibc(made) == (2, 17)
    made.write_bytes(b"\x7fELF\0libc.musl-x86_64.so.1\0")
    assert building.needed_glibc(made) is None


def spoil(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel gives a hundredth more than its twin."""
    right = norm.layer_norm
    monkeypatch.setattr(check.norm, "layer_norm", lambda *x, **rest: right(*x, **rest) * 1.01)
    library.reset()


def test_a_kernel_that_disagrees_with_its_twin_turns_all_off(
    built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as spoiled:
        spoil(spoiled)
        assert not library.available()
        assert "residual_norm" in library.status().reason
        assert loader.function("norm_forward_fp32") is None
    library.reset()
    assert library.available()


def test_training_asks_the_check_before_it_takes_kernels(
    built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernels_fit(Linear(8, 8), "fp32")
    spoil(monkeypatch)
    assert not kernels_fit(Linear(8, 8), "fp32")


def test_the_check_leaves_the_random_state_alone(built: str) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    library.reset()
    torch.manual_seed(5)
    assert library.available()
    assert torch.equal(torch.rand(3), expected)


def test_without_a_compiler_the_build_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(building.CompileError, match=r"compiler|no native kernels for"):
        building.compile_library(tmp_path / "made.so")
    assert list(tmp_path.iterdir()) == []


def test_a_library_for_a_platform_that_is_none_names_those_that_there_are(tmp_path: Path) -> None:
    words = "'sparc-linux-gnu'; allowed are x86_64-linux-gnu, x86_64-linux-musl, aarch64-linux-gnu"
    with pytest.raises(building.CompileError, match=words):
        building.compile_library(tmp_path / "made.so", wanted="sparc-linux-gnu")


def test_without_zig_the_build_for_another_platform_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "find_spec", lambda name: None)
    with pytest.raises(building.CompileError, match=r"aarch64-linux-musl .*pip install ziglang=="):
        building.compile_library(tmp_path / "made.so", wanted="aarch64-linux-musl")
    assert list(tmp_path.iterdir()) == []


def test_sources_that_do_not_compile_leave_the_old_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if building.find_compiler() is None or not building.is_supported():
        pytest.skip("no compiler here")
    (tmp_path / "broken.cpp").write_text("int main( {\n")
    target = tmp_path / "libdragoman.so"
    target.write_bytes(b"old")
    monkeypatch.setattr(building, "SOURCES", tmp_path)
    with pytest.raises(building.CompileError, match=r"broken\.cpp"):
        building.compile_library(target)
    assert target.read_bytes() == b"old"


def test_a_small_source_is_compiled_for_its_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if building.find_compiler() is None or not building.is_supported():
        pytest.skip("no compiler here")
    sources = tmp_path / "src"
    sources.mkdir()
    for name in ("dispatch.h", "dispatch.cpp"):
        shutil.copy(building.SOURCES / name, sources)
    (sources / "answer.cpp").write_text(
        '// levels: avx2\n#include "dispatch.h"\nKERNEL(int, answer, int x) { return x + 1; }\n'
    )
    monkeypatch.setattr(building, "SOURCES", sources)
    made = building.compile_library(tmp_path / "made.so", jobs=1)
    symbols = made.read_bytes()
    assert b"dragoman_avx2_answer" in symbols and b"dragoman_avx512_answer" not in symbols
    assert building.fingerprint().encode() in symbols


@pytest.fixture
def small_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two kernels of one level each, and of the twin; objects are kept beside them."""
    if building.find_compiler() is None or platform.machine() != "x86_64":
        pytest.skip("no compiler here, or none for AVX2")
    sources = tmp_path / "src"
    sources.mkdir()
    for name in ("dispatch.h", "dispatch.cpp"):
        shutil.copy(building.SOURCES / name, sources)
    for name in ("one", "two"):
        (sources / f"{name}.cpp").write_text(
            "// levels: avx2 amxtwin\n"
            f'#include "dispatch.h"\nKERNEL(int, {name}, int x) {{ return x; }}\n'
        )
    monkeypatch.setattr(building, "SOURCES", sources)
    monkeypatch.setattr(building, "OBJECTS", tmp_path / "objects")
    return sources


def test_what_did_not_change_is_not_compiled_again(
    tmp_path: Path, small_sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(**options: bool) -> list[tuple[int, int]]:
        told: list[tuple[int, int]] = []
        building.compile_library(
            tmp_path / "made.so", tell=lambda *some: told.append(some), **options
        )
        assert building.fingerprint().encode() in (tmp_path / "made.so").read_bytes()
        return told

    assert compiled() == [(1, 3), (2, 3), (3, 3)]  # dispatch, one, two
    before = (tmp_path / "made.so").read_bytes()
    assert compiled() == []
    assert (tmp_path / "made.so").read_bytes() == before
    with (small_sources / "two.cpp").open("a") as file:
        file.write("// another\n")
    assert compiled()[-1] == (2, 2)  # two, and dispatch, which names all sources
    monkeypatch.setattr(building, "COMMON_FLAGS", [*building.COMMON_FLAGS, "-DOTHER"])
    assert compiled()[-1] == (3, 3)
    with (small_sources / "dispatch.h").open("a") as file:
        file.write("// another\n")
    assert compiled()[-1] == (3, 3)
    assert compiled() == []


def test_the_level_for_tests_is_in_no_library_but_that_of_the_tests(
    tmp_path: Path, small_sources: Path
) -> None:
    made = building.compile_library(tmp_path / "made.so")
    assert b"dragoman_avx2_one" in made.read_bytes() and not building.has_twin(made)
    assert building.has_twin(building.compile_library(made, twin=True))
    # An installation after that of the tests leaves it there.
    assert building.has_twin(building.compile_library(made))


def test_a_library_without_the_level_for_tests_says_so(
    built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "has_twin", lambda path: False)
    monkeypatch.setenv("DRAGOMAN_NATIVE", "amxtwin")
    library.reset()
    assert library.status().level is None
    assert "python -m dragoman.native.compile --twin)" in library.status().reason


def test_asked_for_the_first_time_by_who_computes_in_fp64(built: str) -> None:
    library.reset()
    torch.set_default_dtype(torch.float64)
    try:
        assert library.status().level == built
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_asked_for_the_first_time_without_gradients(built: str, mode: type[torch.no_grad]) -> None:
    library.reset()
    with mode():
        assert library.status().level == built


@pytest.mark.system
def test_its_own_threads_give_the_same_sums(built: str) -> None:
    """The pool: in a row, after sleeping, from two threads at once, and in a forked child."""
    program = """
import os, threading, time
import torch
from dragoman.native import library, loader, norm
from dragoman.native.dropout import Drop
library.available()
x, gain, bias = torch.ones(3000, 40), torch.ones(40), torch.zeros(40)

def normalised():
    return norm.layer_norm(x, gain, bias, added=x, drop=Drop(0.3, 9))

expected = normalised()  # on torch's threads

def same(times):
    torch.set_num_threads(3)  # of the calling thread
    with loader.own_threads():
        assert torch.get_num_threads() == 1
        assert loader.load()[0].handle.dragoman_threads() == 3
        for _ in range(times):
            if not torch.equal(normalised(), expected):
                wrong.append(times)
    assert torch.get_num_threads() == 3
    assert loader.load()[0].handle.dragoman_threads() == 3

wrong = []
same(300)
time.sleep(0.05)
same(300)
others = [threading.Thread(target=same, args=(300,)) for _ in range(3)]
for other in others:
    other.start()
for other in others:
    other.join()
child = os.fork()
if child == 0:
    torch.set_num_threads(1)  # its OpenMP has lost its threads
    handle = loader.load()[0].handle
    handle.dragoman_own_threads(3)
    os._exit(0 if torch.equal(normalised(), expected) else 1)
assert os.waitpid(child, 0)[1] == 0
assert not wrong
"""
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=60)


def test_a_layer_that_kernels_do_not_know_keeps_them_from_the_whole_model() -> None:
    """An LSTM has weights of its own, which kernels would neither pack nor repack."""
    known, foreign = nn.Sequential(Linear(8, 8)), nn.Sequential(Linear(8, 8), nn.LSTM(8, 8))
    if not kernels_fit(known, "fp32"):
        pytest.skip("this machine has no native kernels")
    assert not kernels_fit(foreign, "fp32")
