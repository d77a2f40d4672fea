"""The few exceptions that a user can meet, and the command that installs what an optional feature
needs.

Every message says what was given, where (file and line), and what is allowed or what to do next.
The command line prints the message alone and exits with ``exit_code``; a traceback is for our own
mistakes only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

LengthUnit = Literal["tokens", "characters"]
"""The unit of a text's length."""


class DragomanError(Exception):
    """Anything that a user can mend. ``str(error)`` is the whole message."""

    exit_code = 1


class DataError(DragomanError):
    """A corpus, a file of sentences or a download is not what it should be."""


class TooLongError(DataError):
    """A text is longer than what a model reads of one."""

    def __init__(self, message: str, length: int, unit: LengthUnit, most: int):
        """``most``: the tokens that are read. A text of far too many characters is not cut into
        tokens; its ``length`` is in characters then."""
        super().__init__(message)
        self.length = length
        self.unit = unit
        self.most = most


class RecipeError(DragomanError):
    """A recipe (or a ``--set``) has an unknown key, a wrong type or values that contradict."""


class RunError(DragomanError):
    """A run folder is missing, incomplete, damaged, or newer than this program."""


class TrainingError(DragomanError):
    """Training stopped, or was refused, because it cannot go on."""


class UntrainableError(TrainingError):
    """These settings cannot be trained here: losses that are not finite, a model or a sentence
    that does not fit into memory. Others may do."""


class FileError(DragomanError):
    """A file cannot be written: no room, no such folder, no permission."""


class SearchError(DragomanError):
    """A request for a translation cannot be met (a prefix that is too long, say)."""


@contextmanager
def needing(
    extra: str, why: str, error: type[DragomanError] = DragomanError, then: str = ""
) -> Iterator[None]:
    """Turn the failure of an import into ``error``: ``why`` the package is needed, and the command
    that installs its ``extra``; ``then`` follows."""
    try:
        yield
    except (ImportError, OSError) as missing:
        raise error(f"{why}: {install(extra)}{then}") from missing


def install(extra: str) -> str:
    """The command line that adds the packages of an extra of ``pyproject.toml`` to this Python.

    dragoman is on no package index, so no message names it to pip, which would install a stranger's
    package of that name. The packages of the extra are named themselves.
    """
    import shlex  # these two take more time than the rest of this file
    from importlib import metadata

    try:
        known = metadata.requires("dragoman") or []
    except metadata.PackageNotFoundError:  # a source tree on PYTHONPATH
        requirements = ["-e", f"{Path(__file__).parents[3]}[{extra}]"]
    else:
        ends = (f"; extra == '{extra}'", f'; extra == "{extra}"')
        requirements = [line.rpartition(";")[0].strip() for line in known if line.endswith(ends)]
        assert requirements, f"pyproject.toml has no extra {extra!r}"
    python = min(sys.executable, os.path.relpath(sys.executable), key=len)
    return shlex.join([python, "-m", "pip", "install", *requirements])
