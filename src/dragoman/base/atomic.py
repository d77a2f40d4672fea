"""Files and folders that are either there whole or not at all, whatever happens while writing.

Content goes under a temporary name in the same folder, is forced to disk, and takes its real name
in one step; a process killed in between leaves the old content and some ``.writing-…`` rubbish.
Everything that the program writes for keeps goes through here.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from dragoman.base.errors import FileError

TEMPORARY = ".writing-"
"""The beginning of the name that a file or folder has while it is written."""
_DEVICES = Path("/dev")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The numbers of the errors for a disk without room."""


@contextmanager
def replacing_file(path: Path, *, forced: bool = True) -> Iterator[Path]:
    """Write to the path yielded; on leaving, it becomes ``path``. An exception leaves ``path``.

    ``forced``: to disk before it takes its name; False for what can be made again, and is checked
    whenever it is read. Raises FileError when the disk is full or cannot be written to, and at once
    as ``check_is_file``.
    """
    # Two that write the same file do not meet in one temporary: threads neither, nor processes of
    # two containers, which may have one number.
    temporary = path.with_name(f"{TEMPORARY}{os.urandom(4).hex()}-{path.name}")
    with _explaining_errors(path):
        check_is_file(path)
        try:
            temporary.touch()
            mode = temporary.stat().st_mode
            yield temporary
            # safetensors makes files that nobody else may read; a server may be another user.
            temporary.chmod(mode)
            if forced:
                force_to_disk(temporary)
            temporary.replace(path)
            if forced:
                force_to_disk(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def creating_folder(path: Path) -> Iterator[Path]:
    """Fill the folder that it yields; on leaving, it becomes ``path``, where nothing may be yet.

    Raises FileError when the disk is full or cannot be written to.
    """
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    with _explaining_errors(path):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            mode = temporary.stat().st_mode & 0o666
            yield temporary
            for file in temporary.iterdir():
                file.chmod(mode)
                force_to_disk(file)
            force_to_disk(temporary)
            temporary.rename(path)
            force_to_disk(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, UTF-8, whole or not at all. Raises FileError as ``replacing_file``."""
    with replacing_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a small file whole. Raises FileError if that fails."""
    with replacing_file(path) as partial:
        partial.write_bytes(content)


def remove_folder(path: Path) -> None:
    """Remove a folder so that no half of it is ever seen under its own name."""
    if path.exists():
        doomed = path.with_name(f"{TEMPORARY}removing-{path.name}")
        shutil.rmtree(doomed, ignore_errors=True)
        path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what killed processes left half-written in ``folder``."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _explaining_errors(path: Path) -> Iterator[None]:
    """An error of the file system -> what happened, and that nothing is lost."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise FileError(_explain(path, error)) from error


def _explain(path: Path, error: OSError | SafetensorError) -> str:
    # safetensors wraps the system's error and keeps only its words: "… (os error 28)".
    match = re.search(r"os error (\d+)", str(error))
    number = error.errno if isinstance(error, OSError) else int(match[1]) if match else None
    reason = os.strerror(number) if number is not None else str(error)
    lines = [f"cannot write {path}: {reason}."]
    if number in FULL:
        try:
            free = f"{shutil.disk_usage(path.parent).free / 1e6:,.0f} MB are free"
        except OSError:
            free = "its free space is not known"
        lines.append(f"The disk is full or a quota is used up ({free}).")
    lines.append(
        "The old file is unchanged. Free some space or correct the problem, then run the "
        "command again (for a training run: dragoman resume)."
    )
    return " ".join(lines)


def check_is_file(path: Path) -> None:
    """Errors: FileError where a file cannot take the place: it is a folder, a device or a pipe.

    /dev/stdout too where it leads to a file: it would not be that file that is replaced.
    """
    if path.is_dir():
        raise FileError(f"cannot write {path}: it is a folder. Use a file, such as {path}/output")
    if path.parent == _DEVICES or (path.exists() and not path.is_file()):
        raise FileError(
            f"cannot write {path}: it is a device or a pipe, which a file would replace. Use a file"
        )


def force_to_disk(path: Path) -> None:
    """Wait until the disk has the content of a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
