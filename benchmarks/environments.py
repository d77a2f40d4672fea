"""Each peer in a virtual environment of its own, made when first needed.

They lie in ``build/benchmarks/<name>`` of the project and are kept; a changed list of requirements
makes a new one. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "benchmarks"


def environment(name: str, requirements: Sequence[str], bare: Sequence[str] = ()) -> Path:
    """The Python of an environment that holds ``requirements``; made if it is not there yet.

    ``bare`` are installed last and without what they ask for: packages whose own bounds would bring
    another torch, or far more than a training step imports. What of them must be built is built
    with what is in the environment, and as if for documentation: without C extensions.
    """
    folder = FOLDER / name
    python = folder / "bin" / "python"
    done = folder / "requirements.txt"
    wanted = "\n".join([*requirements, *bare]) + "\n"
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    everything = ", ".join([*requirements, *bare])
    print(f"making the environment of {name} ({everything})", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    index = os.environ.get("TORCH_INDEX")
    more = ["--extra-index-url", index] if index else []
    install = [str(python), "-m", "pip", "install", "-q"]
    subprocess.run([*install, *more, *requirements], check=True)
    if bare:
        subprocess.run(
            [*install, "--no-deps", "--no-build-isolation", *bare],
            env=os.environ | {"READTHEDOCS": "True"}, check=True,
        )  # fmt: skip
    done.write_text(wanted, encoding="utf-8")
    return python
