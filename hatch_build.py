"""The build hook: compile the native kernels and build the page into the package.

Never fails an install: without a compiler the package works on plain torch, slower, and
``dragoman doctor`` says so in one line; without Node or npm's registry it serves the API without
the page, and ``dragoman serve`` says so. The page is never built by an editable install.
Where the environment has ``DRAGOMAN_WHOLE=1`` (images), a build without either fails instead.

``DRAGOMAN_WHEEL_FOR=aarch64-linux-gnu`` (or another of ``PLATFORMS`` in ``native/compile.py``)
makes the wheel for that platform, on whatever machine; ``make wheel`` makes them all.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MUSL = "musllinux_1_2"  # zig's is musl 1.2


def _load(path: Path) -> ModuleType:
    """A module of the source tree, which is on no path while it is built."""
    spec = importlib.util.spec_from_file_location(f"dragoman_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts ``libdragoman.so`` beside ``native/library.py`` and tags the wheel for the platform;
    puts the page beside the server."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What a build needs beside hatchling: Node for the page, where the machine has none, and
        zig for another platform."""
        # Build frontends name the step that they run as the first argument.
        if self.target_name != "wheel" or any("editable" in word for word in sys.argv):
            return []
        page = _load(Path(self.root) / "build_page.py")
        zig = [self._native().ZIG] if _wheel_for() else []
        return zig if page.has_node() else [page.WANTED, *zig]

    def _native(self) -> ModuleType:
        return _load(Path(self.root) / "src" / "dragoman" / "native" / "compile.py")

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a wheel (``standard`` or ``editable``) is written."""
        if self.target_name != "wheel":
            return
        if version != "editable":
            self._build_page(build_data)
        native = self._native()
        made, wanted = native.LIBRARY, None
        if version != "editable":  # the tree's own library may have a level that is for tests
            wanted = _wheel_for()
            made = Path(self.root) / "build" / "native" / (wanted or "here") / made.name
            made.parent.mkdir(parents=True, exist_ok=True)
        try:
            native.compile_library(made, wanted=wanted)
        except (native.CompileError, OSError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            if wanted:
                raise SystemExit(f"dragoman: no wheel for {wanted}: {error}") from None
            _lacks(f"native kernels were not built ({first})")
            return
        if version == "editable":
            return
        build_data["force_include"][str(made)] = f"dragoman/native/{made.name}"
        build_data["pure_python"] = False
        # The C interface serves every Python 3; only the platform matters.
        build_data["tag"] = f"py3-none-{_platform(native.needed_glibc(made), wanted)}"

    def _build_page(self, build_data: dict[str, Any]) -> None:
        page = _load(Path(self.root) / "build_page.py")
        built = Path(self.root) / "src" / "dragoman" / "serving" / "web"
        try:
            # Of wheels for several platforms the first builds the page.
            if not (_wheel_for() and (built / "index.html").is_file()):
                page.build_page(Path(self.root))
        except page.PageError as error:
            _lacks(f"the page was not built: {error}")
            return
        build_data["artifacts"].append(f"/{built.relative_to(self.root)}/**")


def _lacks(what: str) -> None:
    """Say what the wheel will lack, or refuse to build one that lacks anything."""
    if os.environ.get("DRAGOMAN_WHOLE") == "1":
        raise SystemExit(f"dragoman: {what}, and DRAGOMAN_WHOLE=1 asks for a whole wheel")
    print(f"dragoman: {what}", file=sys.stderr)


def _wheel_for() -> str | None:
    """The platform that a wheel is asked for; None: this machine."""
    return os.environ.get("DRAGOMAN_WHEEL_FOR") or None


def _platform(glibc: tuple[int, int] | None, wanted: str | None) -> str:
    """What the wheel runs on: wherever its library finds the glibc that it asks for, since the
    package asks for nothing else; with another C library, where it was built."""
    machine = wanted.partition("-")[0] if wanted else platform.machine()
    if glibc is not None:
        return f"manylinux_{glibc[0]}_{glibc[1]}_{machine}"
    if wanted:
        return f"{MUSL}_{machine}"
    from packaging.tags import sys_tags

    return next(iter(sys_tags())).platform
