"""What is said of a file that cannot be opened, whatever it should have held."""

from __future__ import annotations

from dragoman.errors import DataError


def unusable(path: object, error: OSError | ValueError) -> DataError:
    """The error of a file, from what the system says of it; a ``ValueError`` is that of a name that
    no file can have, such as one with a NUL."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path} does not exist")
    if isinstance(error, OSError):
        return DataError(f"{path} cannot be read: {error.strerror or error}")
    return DataError(f"{str(path)!r} cannot be the name of a file: {error}")
