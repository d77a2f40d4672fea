"""What is said of a file that cannot be read, whatever it should have held."""

from __future__ import annotations

import shlex
from pathlib import Path

from dragoman.base.errors import DataError


def unusable(path: object, error: OSError | ValueError) -> DataError:
    """The error of a file, from what the system says of it; a ``ValueError`` is that of a name that
    no file can have, such as one with a NUL."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path} does not exist")
    if isinstance(error, OSError):
        return DataError(f"{path} cannot be read: {error.strerror or error}")
    return DataError(f"{str(path)!r} cannot be the name of a file: {error}")


def conversion(program: str, given: Path, ending: str) -> str:
    """The command by which ``program`` writes a file anew beside it, with another ending."""
    made = given.with_suffix(ending)
    if made == given:
        made = given.with_name(f"{given.stem}-converted{ending}")
    # A name that begins with a dash is not an option.
    names = (f"./{name}" if str(name).startswith("-") else str(name) for name in (given, made))
    return f"{program} {' '.join(map(shlex.quote, names))}"


def several(name: str, at: int) -> DataError:
    """The error of a file in which a second recording begins at byte ``at``."""
    return DataError(
        f"{name} holds several recordings: another one begins at byte {at:,}, and the first alone "
        "would be read. Write each to a file of its own"
    )
