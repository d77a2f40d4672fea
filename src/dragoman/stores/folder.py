"""A folder of this machine, or one that several machines share.

An object is written under a temporary name, forced to disk, and linked to its own name: a link is
refused where that name is taken, on NFS too.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from dragoman.base.atomic import FULL, TEMPORARY, force_to_disk
from dragoman.stores.store import CHANGED, Content, InputChanged, Stat, Store, StoreError

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_OLD = 3600.0
"""Seconds after which a temporary file belongs to nobody who is still writing it."""


class FolderStore(Store):
    """A folder, whose objects are files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = str(folder)

    def stat(self, name: str) -> Stat | None:
        try:
            return _stat(os.stat(self.folder / name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"cannot read {self.place(name)}: {error.strerror}") from error

    def read(self, name: str, start: int, length: int, tag: str = "") -> bytes:
        try:
            with open(self.folder / name, "rb") as file:
                before = _stat(os.fstat(file.fileno()))
                file.seek(start)
                data = file.read(length)
                after = _stat(os.fstat(file.fileno()))
        except FileNotFoundError:
            raise InputChanged(f"{self.place(name)} no longer exists") from None
        except OSError as error:
            raise StoreError(f"cannot read {self.place(name)}: {error.strerror}") from error
        if tag and {before.tag, after.tag} != {tag}:
            raise InputChanged(f"{self.place(name)} {CHANGED}")
        return data

    def names(self, below: str) -> Iterator[tuple[str, Stat]]:
        top = self.folder / below.rpartition("/")[0]
        names = []
        for folder, _, files in os.walk(top, onerror=_unreadable):
            inside = Path(folder).relative_to(self.folder).as_posix()
            for file in files:
                name = file if inside == "." else f"{inside}/{file}"
                if name.startswith(below) and not file.startswith(TEMPORARY):
                    names.append(name)
        for name in sorted(names):
            if not os.path.isfile(self.folder / name):  # a pipe, which would be waited for
                continue
            if (stat := self.stat(name)) is not None:
                yield name, stat

    def create(self, name: str, content: Content) -> bool:
        path = self.folder / name
        temporary = path.with_name(f"{TEMPORARY}{os.urandom(4).hex()}-{path.name}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(temporary, "xb") as file:
                    file.writelines([content] if isinstance(content, bytes) else content)
                force_to_disk(temporary)
                os.link(temporary, path)
            except FileExistsError:
                return False
            finally:
                temporary.unlink(missing_ok=True)
            force_to_disk(path.parent)
        except OSError as error:
            raise StoreError(self._explain(path, error)) from error
        return True

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def sweep(self) -> None:
        before = time.time() - _OLD
        for path in self.folder.rglob(f"{TEMPORARY}*"):
            if path.is_file() and path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def _explain(self, path: Path, error: OSError) -> str:
        message = f"cannot write {path}: {error.strerror}"
        if error.errno in FULL:
            free = shutil.disk_usage(self.folder).free / 1e6
            return (
                f"{message}. The disk is full or a quota is used up ({free:,.0f} MB are free). "
                "Completed parts are kept. Free some space, then run the same command again"
            )
        if error.errno in _NO_LINKS:
            return f"{message}. Use a file system with hard links, or an object store"
        return message


def _stat(status: os.stat_result) -> Stat:
    # Not the inode: the same file is another one on another machine.
    return Stat(status.st_size, f"{status.st_mtime_ns:x}-{status.st_size:x}")


def _unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise StoreError(f"cannot read {error.filename}: {error.strerror}") from error
