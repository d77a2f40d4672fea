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


def environment(name: str, requirements: Sequence[str]) -> Path:
    """The Python of an environment that holds ``requirements``; made if it is not there yet."""
    folder = FOLDER / name
    python = folder / "bin" / "python"
    done = folder / "requirements.txt"
    wanted = "\n".join(requirements) + "\n"
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    print(f"making the environment of {name} ({', '.join(requirements)})", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    index = os.environ.get("TORCH_INDEX")
    more = ["--extra-index-url", index] if index else []
    subprocess.run([str(python), "-m", "pip", "install", "-q", *more, *requirements], check=True)
    done.write_text(wanted, encoding="utf-8")
    return python
