"""Wheels for every platform that kernels are built for: tags are true, and all is in that belongs.

Some minutes each, and zig from PyPI. That of this machine is installed and used elsewhere
(``tests/serving/test_wheel.py``); kernels for ARM run in an emulator (``test_emulated.py``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dragoman.native import compile as building

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
SYSTEM_OF_ARM = Path("/usr/aarch64-linux-gnu")
"""Where Debian's cross compiler keeps the C library of aarch64."""

NUMBERS = {"x86_64": 62, "aarch64": 183}
"""e_machine of ELF, by processor."""
SYSTEM_LIBRARIES = {
    "gnu": r"lib(c|m|dl|pthread)\.so\.\d|ld-linux-[\w-]+\.so\.\d",
    "musl": r"libc\.so",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=building.PLATFORMS)
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``make wheel`` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT],
        env=os.environ | {"DRAGOMAN_WHOLE": "1", "DRAGOMAN_WHEEL_FOR": request.param},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def platform_of(wheel: Path) -> tuple[str, str, str]:
    """C library, its version, processor: what the name says."""
    found = re.search(r"-py3-none-(many|musl)linux_(\d+_\d+)_(x86_64|aarch64)\.whl$", wheel.name)
    assert found is not None, wheel.name
    return {"many": "gnu", "musl": "musl"}[found[1]], found[2].replace("_", "."), found[3]


def library_of(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as inside:
        return Path(inside.extract("dragoman/native/libdragoman.so", folder))


def version(words: str) -> tuple[int, ...]:
    return tuple(map(int, words.split(".")))


def test_a_wheel_carries_what_its_name_says(wheel: Path, tmp_path: Path) -> None:
    libc, least, processor = platform_of(wheel)
    with zipfile.ZipFile(wheel) as inside:
        names = inside.namelist()
        (said,) = (n for n in names if n.endswith(".dist-info/WHEEL"))
        told = inside.read(said).decode()
    assert f"Tag: {wheel.stem.split('-', 2)[2]}\n" in told and "Root-Is-Purelib: false" in told
    assert {"dragoman/serving/web/index.html", "dragoman/native/src/abi.h"} <= set(names)

    library = library_of(wheel, tmp_path)
    content = library.read_bytes()
    assert int.from_bytes(content[18:20], "little") == NUMBERS[processor]
    assert building.fingerprint().encode() in content
    exported = set(re.findall(rb"\0dragoman_(\w+)", content))
    levels = (
        ["neon"]
        if processor == "aarch64"
        else [*building.LEVEL_FLAGS.keys() - {"neon", building.TWIN}]
    )
    assert not building.has_twin(library)
    for source in building.SOURCES.glob("*.cpp"):
        text = source.read_text(encoding="utf-8")
        for level in set(building.levels(source)) & set(levels):
            for kernel in re.findall(r"^KERNEL\([\w*]+, (\w+),", text, re.MULTILINE):
                if not kernel.endswith(("fp32", "bf16")):  # not all levels have both
                    assert f"{level}_{kernel}".encode() in exported, f"{level} {kernel}"

    if (readelf := shutil.which("readelf")) is None:
        pytest.skip("no readelf")
    said = subprocess.run(
        [readelf, "-W", "-d", "--dyn-syms", library], capture_output=True, text=True, check=True
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
    assert needed and all(re.fullmatch(SYSTEM_LIBRARIES[libc], one) for one in needed), needed
    asked = {version(one) for one in re.findall(r" UND \S+@GLIBC_([\d.]+)", said)}
    if libc == "musl":
        assert not asked
    else:  # no newer than the tag, which is no newer than what torch asks for
        assert max(asked) == version(least) <= (2, 28)
    # The system's are the ones that the rest of the process uses, and the faster ones.
    if platform_is_ours(libc, processor):
        assert re.search(r" UND memset@", said) and re.search(r" UND logf@", said)


def platform_is_ours(libc: str, processor: str) -> bool:
    return building.own_platform() == f"{processor}-linux-{libc}"


def test_the_library_for_arm_is_loaded_there(wheel: Path, tmp_path: Path) -> None:
    """By glibc's own loader for aarch64, in an emulator."""
    libc, _, processor = platform_of(wheel)
    if (libc, processor) != ("gnu", "aarch64"):
        pytest.skip("for another processor, or without a C library to run it on")
    compiler = shutil.which("aarch64-linux-gnu-g++")
    if compiler is None or EMULATOR is None or not SYSTEM_OF_ARM.is_dir():
        pytest.skip("no compiler for aarch64 with a C library, or no qemu-aarch64")
    program, library = tmp_path / "loads", library_of(wheel, tmp_path)
    (tmp_path / "loads.cpp").write_text(
        "#include <stdio.h>\n#include <dlfcn.h>\n"
        "int main(int, char **names) {\n"
        "  void *library = dlopen(names[1], RTLD_NOW);\n"
        "  if (library == nullptr) { puts(dlerror()); return 1; }\n"
        '  auto levels = (const char *(*)())dlsym(library, "dragoman_levels");\n'
        "  puts(levels());\n}\n"
    )
    command = [compiler, tmp_path / "loads.cpp", "-o", program, "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    command = [EMULATOR, "-L", SYSTEM_OF_ARM, "-cpu", "max", program, library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "neon"), done.stdout + done.stderr
