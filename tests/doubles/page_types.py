"""Writes the types of the server's requests and answers for the page, checks the page against
them, and tests its logic: ``python tests/doubles/page_types.py`` (``make web-check``).

They come from the OpenAPI description, which is the same whatever runs are served, through
openapi-typescript, and stand in ``build/page/openapi.ts``, which is not committed: the page is
built without them, since the build leaves types out.
"""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
TYPES = ROOT / "build" / "page" / "openapi.ts"
PACKAGES = WEB / "node_modules"
_OPTIONS = ("--root-types", "--root-types-no-schema-prefix", "--default-non-nullable=false")


def node() -> str:
    """The Node that builds the page. Errors: ``PageError`` of ``build_page.py`` without one."""
    spec = importlib.util.spec_from_file_location("build_page", ROOT / "build_page.py")
    assert spec is not None and spec.loader is not None
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    return str(builder.find_node()[0])


def write_types() -> None:
    """Write ``TYPES``. ``npm ci`` was run in ``web/``."""
    TYPES.parent.mkdir(parents=True, exist_ok=True)
    description = TYPES.with_suffix(".json")
    described = runpy.run_path(str(ROOT / "docs" / "endpoints.py"))["description_of_server"]()
    description.write_text(json.dumps(described), encoding="utf-8")
    typescript = PACKAGES / "openapi-typescript" / "bin" / "cli.js"
    command = [node(), str(typescript), str(description), "--output", str(TYPES), *_OPTIONS]
    subprocess.run(command, cwd=WEB, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)


def check_types(folder: Path = WEB) -> subprocess.CompletedProcess[str]:
    """Run svelte-check over ``folder``, which is ``web/`` or a copy of it -> what it said."""
    options = ("--tsconfig", "./tsconfig.json", "--fail-on-warnings", "--output", "human")
    return _run(folder, "svelte-check/bin/svelte-check", *options)


def check_logic() -> subprocess.CompletedProcess[str]:
    """Run the tests in ``web/tests``, which need no browser -> what Vitest said."""
    return _run(WEB, "vitest/vitest.mjs", "run")


def _run(folder: Path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [node(), str(PACKAGES / program), *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    write_types()
    results = [check_types(), check_logic()]
    for checked in results:
        print(checked.stdout, checked.stderr)
    sys.exit(any(checked.returncode for checked in results))
