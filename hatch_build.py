"""The build hook: compile the native kernels into the package wherever a compiler is found.

Never fails an install: without a compiler the package works on plain torch, slower, and
``dragoman doctor`` says so in one line.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _compile_module(root: Path) -> ModuleType:
    path = root / "src" / "dragoman" / "native" / "compile.py"
    spec = importlib.util.spec_from_file_location("dragoman_native_compile", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts ``libdragoman.so`` beside ``native/library.py`` and tags the wheel for the platform."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a wheel (``standard`` or ``editable``) is written."""
        if self.target_name != "wheel":
            return
        module = _compile_module(Path(self.root))
        try:
            library = module.compile_library()
        except (module.CompileError, OSError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            print(f"dragoman: native kernels were not built ({first})", file=sys.stderr)
            return
        if version == "editable":
            return
        build_data["artifacts"].append(str(library.relative_to(self.root)))
        build_data["pure_python"] = False
        # The C interface serves every Python 3; only the platform matters.
        build_data["tag"] = f"py3-none-{_platform()}"


def _platform() -> str:
    from packaging.tags import sys_tags

    return next(iter(sys_tags())).platform
