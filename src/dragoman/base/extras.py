"""The command that installs what an optional feature needs.

dragoman is on no package index, so no message names it to pip: whoever took its name there would be
installed. The packages of an extra are named themselves, for the Python that runs this program.
"""

from __future__ import annotations

import os
import shlex
import sys
from importlib import metadata
from pathlib import Path


def install(extra: str) -> str:
    """The command line that adds the packages of an extra of ``pyproject.toml`` to this Python."""
    try:
        known = metadata.requires("dragoman") or []
    except metadata.PackageNotFoundError:  # a source tree on PYTHONPATH
        wanted = ["-e", f"{Path(__file__).parents[3]}[{extra}]"]
    else:
        ends = (f"; extra == '{extra}'", f'; extra == "{extra}"')
        wanted = [one.rpartition(";")[0].strip() for one in known if one.endswith(ends)]
        assert wanted, f"pyproject.toml has no extra {extra!r}"
    python = min(sys.executable, os.path.relpath(sys.executable), key=len)
    return shlex.join([python, "-m", "pip", "install", *wanted])
