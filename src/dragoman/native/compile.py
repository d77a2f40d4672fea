"""Compile ``native/src`` into the one shared library, where a C++ compiler is found.

Standard library only: the build hook (``hatch_build.py``) runs this file before anything is
installed, and ``python -m dragoman.native.compile`` runs it again after the sources have changed.

A source names in its first lines the instruction sets it is compiled for (``// levels: avx512
avx2``) and is compiled once for each (``src/dispatch.h``); a source without that line is compiled
once for any processor. A source tree keeps the objects, so that only what changed is compiled
again.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"
LIBRARY = HERE / "libdragoman.so"
_ROOT = HERE.parents[2]
OBJECTS = _ROOT / "build" / "objects" if (_ROOT / "hatch_build.py").is_file() else None
"""The folder in which a source tree keeps its objects, each named by all that it was made of."""

COMMON_FLAGS = [
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-ffp-contract=fast",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
    "-Wno-ignored-attributes",
    "-Wno-unused-function",
    "-Wno-maybe-uninitialized",
]
_AVX2 = ["-mavx2", "-mfma", "-mf16c", "-mbmi2"]
_AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni"]
_WIDE = "-mprefer-vector-width=512"
LEVEL_FLAGS = {
    "amx": [
        *_AVX2,
        *_AVX512,
        "-mavx512bf16",
        "-mamx-tile",
        "-mamx-int8",
        "-mamx-bf16",
        _WIDE,
    ],
    "avx512": [*_AVX2, *_AVX512, "-mavx512bf16", _WIDE],
    # Without bf16: Cascade Lake, Ice Lake.
    "avx512vnni": [*_AVX2, *_AVX512, _WIDE],
    "avxvnni": [*_AVX2, "-mavxvnni"],
    "avx2": _AVX2,
    # The kernels of amx, on tiles in plain C++ (src/tiles_twin.h): for tests.
    "amxtwin": [*_AVX2, "-DDRAGOMAN_TILE_TWIN"],
    # Products of bytes (FEAT_DotProd): Armv8.2 and later, Apple's and Amazon's among them.
    "neon": ["-march=armv8.2-a+dotprod"],
}
"""The flags of each instruction set; a compiler knows only those of its own machine."""
TWIN = "amxtwin"
"""The level that only tests use: a library that is made for them has it."""
LINK_FLAGS = ["-shared", "-fPIC", "-Wl,-z,noexecstack", "-Wl,--no-undefined", "-pthread", "-ldl"]
STATIC_FLAGS = ["-static-libstdc++", "-static-libgcc"]

PLATFORMS = ("x86_64-linux-gnu", "x86_64-linux-musl", "aarch64-linux-gnu", "aarch64-linux-musl")
"""The platforms for which ``make wheel`` builds: processor, system and C library."""
ZIG = "ziglang==0.17.1"
"""The compiler and linker for other platforms. Its version is part of what a wheel is."""
_OLDEST_GLIBC = "2.28"  # that of torch's own wheels
ZIG_FLAGS = ["-Wno-unknown-warning-option"]  # some of COMMON_FLAGS are g++'s alone
ZIG_NEON = ["-mcpu=generic+v8_2a+dotprod"]  # its way to say what LEVEL_FLAGS has

# Not all of UBSan: its checks of every pointer make one file of templates take ten minutes.
_CHECKS = (
    "address,signed-integer-overflow,shift,bounds,integer-divide-by-zero,float-cast-overflow,bool"
)
SANITISED_FLAGS = ["-O1", "-g1", "-fno-omit-frame-pointer", f"-fsanitize={_CHECKS}"]
"""Added for ``make test-native``: what reads or writes where it may not, or overflows, ends it."""


class CompileError(Exception):
    """There is no compiler, or it refused the sources. The message is its first words."""


def fingerprint() -> str:
    """A hash of all sources and flags; the library carries that of what it was made from."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.iterdir()):
        if path.suffix in {".cpp", ".h"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(repr((COMMON_FLAGS, LEVEL_FLAGS)).encode())
    return digest.hexdigest()[:16]


def find_compiler() -> str | None:
    """``$CXX`` if set, else the first of c++, g++ and clang++ that is on the path."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and (compiler := shutil.which(name)):
            return compiler
    return None


def needed_glibc(library: Path) -> tuple[int, int] | None:
    """The oldest glibc that can load a library: the newest version among the symbols that it asks
    for; None where it asks glibc for nothing."""
    versions = re.findall(rb"\0GLIBC_(\d+)\.(\d+)", library.read_bytes())
    return max(((int(major), int(minor)) for major, minor in versions), default=None)


def is_supported() -> bool:
    """Kernels exist for Linux on 64-bit x86 and 64-bit ARM; elsewhere plain torch does the work."""
    machines = {"x86_64", "amd64", "aarch64", "arm64"}
    return sys.platform == "linux" and platform.machine().lower() in machines


def levels(source: Path) -> list[str]:
    """The instruction sets that a source asks for; ``["base"]`` if it names none."""
    head = source.read_text(encoding="utf-8")[:2000]
    match = re.search(r"^// levels:(.*)$", head, re.MULTILINE)
    return match.group(1).split() if match else ["base"]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompileError(done.stderr.strip() or f"{command[0]} failed ({done.returncode})")


class _Tools(NamedTuple):
    """The commands that make objects, and a library of them."""

    compiler: list[str]
    linker: list[str]
    ending: list[str]
    """The arguments that follow the objects when they are linked."""
    levels: Mapping[str, list[str]]
    """Flags of the instruction sets that the compiler knows, "base" among them."""


def _tools(platform_name: str | None) -> _Tools:
    """For this machine its own compiler; for a platform zig, which links for old systems too.

    The machine's own platform is compiled by its own compiler there too: the kernels are shaped for
    g++, and a wheel computes what an installation from source computes.

    Raises:
        CompileError: no compiler, no zig, or an unsupported machine or platform.
    """
    own = find_compiler()
    if platform_name is None:
        if not is_supported():
            raise CompileError(f"no native kernels for {sys.platform} on {platform.machine()}")
        if own is None:
            raise CompileError("there is no C++ compiler: no $CXX, c++, g++ or clang++")
        return _Tools([own], [own], [*LINK_FLAGS, *STATIC_FLAGS], _levels_of(own))
    if platform_name not in PLATFORMS:
        allowed = ", ".join(PLATFORMS)
        raise CompileError(f"no wheels are made for {platform_name!r}; allowed are {allowed}")
    if find_spec("ziglang") is None:
        raise CompileError(f"compiling for {platform_name} needs zig: pip install {ZIG}")
    oldest = f".{_OLDEST_GLIBC}" if platform_name.endswith("-gnu") else ""
    zig = [sys.executable, "-m", "ziglang", "c++", "-s", "-target", platform_name + oldest]
    if own is not None and platform_name == own_platform():
        # zig brings C functions of its own, memcpy and logf among them, instead of the system's;
        # everything else is the compiler's.
        said = subprocess.run(
            [own, "-print-libgcc-file-name"], capture_output=True, text=True, check=False
        )
        ending = [said.stdout.strip(), "--rtlib=none", *LINK_FLAGS]
        return _Tools([own], zig, ending, _levels_of(own))
    if platform_name.startswith("aarch64"):
        flags_of = {"neon": ZIG_NEON}
    else:
        flags_of = {level: flags for level, flags in LEVEL_FLAGS.items() if level != "neon"}
    return _Tools([*zig, *ZIG_FLAGS], zig, LINK_FLAGS, {"base": []} | flags_of)


def own_platform() -> str:
    libc = "gnu" if platform.libc_ver()[0] == "glibc" else "musl"
    return f"{platform.machine()}-{sys.platform}-{libc}"


def _levels_of(compiler: str) -> dict[str, list[str]]:
    """Without those that it does not know: an old one, or one for another processor."""
    known = {level: flags for level, flags in LEVEL_FLAGS.items() if _understands(compiler, flags)}
    return {"base": []} | known


def compile_library(
    target: Path = LIBRARY,
    jobs: int | None = None,
    sanitised: Sequence[str] = (),
    wanted: str | None = None,
    twin: bool = False,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Path:
    """Compile what changed and link everything into ``target``, which is replaced in one move.

    A compiler that does not know a level (an old one) leaves that level out. ``sanitised``: these
    levels alone, with checks in them. ``wanted``: one of ``PLATFORMS``, by zig; the default
    is this machine. ``twin``: with the level for tests, which a ``target`` that has it keeps.
    ``tell`` gets how many of the sources that have to be compiled are done.

    Raises:
        CompileError: no compiler, an unsupported machine, or sources that do not compile.
    """
    tools = _tools(wanted)
    chosen = {"base", *(sanitised or tools.levels)}
    if not (twin or sanitised or has_twin(target)):
        chosen.discard(TWIN)
    checks = [*SANITISED_FLAGS, "-fno-sanitize-recover=all"] if sanitised else []
    ending = [f for f in tools.ending if not (sanitised and f in STATIC_FLAGS)]
    mark = f'-DDRAGOMAN_FINGERPRINT="{fingerprint()}"'
    with tempfile.TemporaryDirectory(prefix="dragoman-native-") as folder:
        kept = OBJECTS or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        common = _common_to_all(tools.compiler)
        work: list[tuple[list[str], Path]] = []
        for source in sorted(SOURCES.glob("*.cpp"), key=lambda p: -p.stat().st_size):
            for level in levels(source):
                if level not in tools.levels or level not in chosen:
                    continue
                define = [] if level == "base" else [f"-DDRAGOMAN_LEVEL={level}"]
                define += [mark] if source.stem == "dispatch" else []
                command = [*tools.compiler, *COMMON_FLAGS, *checks, *tools.levels[level], *define]
                of = hashlib.sha256(repr((common, source.read_bytes(), command)).encode())
                object_file = kept / f"{source.stem}.{level}.{of.hexdigest()[:16]}.o"
                work.append(([*command, "-c", str(source)], object_file))
        missing = [(command, path) for command, path in work if not path.exists()]
        with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
            running = [pool.submit(_compile, *unit) for unit in missing]
            for done, future in enumerate(as_completed(running), start=1):
                future.result()
                tell(done, len(missing))
        objects = [str(object_file) for _, object_file in work]
        library = Path(folder) / target.name
        linking = [*tools.linker, *objects, *checks, "-o", str(library)]
        try:
            _run([*linking, *ending])
        except CompileError:  # there may be no static runtime
            if STATIC_FLAGS[0] not in ending:
                raise
            _run([*linking, *LINK_FLAGS])
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copy(library, beside)
        os.replace(beside, target)
    return target


def has_twin(library: Path) -> bool:
    """True if a library has the level for tests."""
    return library.is_file() and f"dragoman_{TWIN}_".encode() in library.read_bytes()


def _common_to_all(compiler: list[str]) -> tuple[str, list[bytes]]:
    """The inputs of every object besides its own source and flags: the compiler and the headers."""
    said = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    return said.stdout, [path.read_bytes() for path in sorted(SOURCES.glob("*.h"))]


def _compile(command: list[str], made: Path) -> None:
    partial = made.with_name(f".{made.name}.{os.getpid()}")
    _run([*command, "-o", str(partial)])
    partial.replace(made)


def _understands(compiler: str, flags: list[str]) -> bool:
    command = [compiler, *flags, "-x", "c++", "-fsyntax-only", os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":

    def tell(done: int, of: int) -> None:
        if sys.stdout.isatty() or done == of:
            end = "\n" if done == of else "\r"
            print(f"compiling the native kernels: {done} of {of} files", end=end, flush=True)

    try:
        compile_library(twin="--twin" in sys.argv[1:], tell=tell)
    except CompileError as error:
        sys.exit(f"native kernels were not built: {error}")
