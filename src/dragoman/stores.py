"""Stores of inputs and of parts: folders, object stores and servers of files; and the addresses by
which users name them.

A name is a path below the store's address, with "/" between its parts. Content is written whole or
not at all, and ``create`` is refused where there is something already: who comes second learns it.

In a folder, of this machine or of several, an object is written under a temporary name, forced to
disk, and linked to its own name: a link is refused where that name is taken, on NFS too. S3 and its
like, GCS, Azure and HTTP are used through obstore, which makes requests again that are refused.
Requests whose answer was cut short are made again here.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from dragoman.base.atomic import FULL, TEMPORARY, force_to_disk
from dragoman.base.errors import DataError, DragomanError, install

BLOCK = 8 << 20
"""Bytes of one request to a store."""
Content = bytes | Iterable[bytes]
"""The content of an object; in blocks if it may be large."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_OLD = 3600.0
"""Seconds after which a temporary file belongs to nobody who is still writing it."""
SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "memory", "http", "https")
_REFUSED = re.compile(r"status code: (400|401|403|404|405|409|501)\b")
_NO_CREDENTIALS = re.compile(r"169\.254\.169\.254|metadata\.google|[Cc]redential|token_uri")
_NO_RANGES = "ange"
PATIENCE = 180.0
"""Seconds for which one request is made again before the store is given up."""
_PAUSE = 0.1
"""Seconds before a request is made again whose answer was cut short."""
_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, AWS_REGION)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}

Found = TypeVar("Found")


class StoreError(DragomanError):
    """A store cannot be read or written: no credentials, no such bucket, no room, no answer."""


class InputChanged(DataError):
    """An input is not what it was when the plan of the parts was made."""


CHANGED = "has changed since the parts were planned. Restore it, or use another folder: --to"
"""The end of a message about an input that has changed."""


@dataclass(frozen=True)
class Stat:
    """The size and version of one object."""

    size: int
    tag: str
    """Changes whenever the content does: an ETag, or the time of the last change."""


class Store(ABC):
    """One folder, bucket or server of objects."""

    address: str
    """The name of the store in messages: ``/data/in`` or ``s3://bucket``."""

    @abstractmethod
    def stat(self, name: str) -> Stat | None:
        """Size and tag; None if there is nothing of that name."""

    @abstractmethod
    def read(self, name: str, start: int, length: int, tag: str = "") -> bytes:
        """``length`` bytes from ``start`` on. ``tag``: the one that the object must still have.

        Errors: ``InputChanged`` where it has another, or there is none any more.
        """

    def content(self, name: str) -> bytes | None:
        """All of an object; None if there is none."""
        stat = self.stat(name)
        return None if stat is None else self.read(name, 0, stat.size)

    def blocks(self, name: str, stat: Stat) -> Iterator[bytes]:
        """All of an object that must be as it was, block by block. Errors: as ``read``."""
        for start in range(0, stat.size, BLOCK):
            yield self.read(name, start, min(BLOCK, stat.size - start), stat.tag)

    @abstractmethod
    def names(self, below: str) -> Iterator[tuple[str, Stat]]:
        """All objects whose names begin with ``below``, in the order of their names."""

    @abstractmethod
    def create(self, name: str, content: Content) -> bool:
        """Write an object if there is none; False if there is one, which stays as it is. A folder
        holds no more than a block of it in memory."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove an object, if there is one."""

    def sweep(self) -> None:  # noqa: B027 -- a bucket holds nothing that is half-written
        """Remove what killed processes left half-written, long ago."""

    def place(self, name: str) -> str:
        """The name of one object in messages."""
        return f"{self.address.rstrip('/')}/{name}" if name else self.address


class FolderStore(Store):
    """A folder, whose objects are files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = str(folder)

    def stat(self, name: str) -> Stat | None:
        try:
            return _stat_of_file(os.stat(self.folder / name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"cannot read {self.place(name)}: {error.strerror}") from error

    def read(self, name: str, start: int, length: int, tag: str = "") -> bytes:
        try:
            with open(self.folder / name, "rb") as file:
                before = _stat_of_file(os.fstat(file.fileno()))
                file.seek(start)
                data = file.read(length)
                after = _stat_of_file(os.fstat(file.fileno()))
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


def _stat_of_file(status: os.stat_result) -> Stat:
    # Not the inode: the same file is another one on another machine.
    return Stat(status.st_size, f"{status.st_mtime_ns:x}-{status.st_size:x}")


def _unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise StoreError(f"cannot read {error.filename}: {error.strerror}") from error


class Unanswered(Exception):
    """One request failed and may succeed if it is made again."""


class ObjectStore(Store):
    """A bucket or a web server, through obstore."""

    def __init__(self, address: str) -> None:
        """``address``: ``s3://bucket``, ``https://host``.

        Errors: ``StoreError`` without obstore, and for what it does not know.
        """
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise StoreError(
                f"{address} is an object store, but obstore is not installed: {install('cluster')}"
            ) from None
        self._obstore = obstore
        self.address = address
        self._scheme = urlsplit(address).scheme
        retry: Any = {"max_retries": 20, "retry_timeout": timedelta(seconds=PATIENCE)}
        # For an address that says so: a server of files, or AWS_ENDPOINT_URL of a local store.
        options: Any = {"allow_http": True}
        try:
            self._store: Any = self._ask_once(
                "", lambda: from_url(address, retry_config=retry, client_options=options)
                if self._scheme != "memory" else from_url(address)
            )  # fmt: skip
        except Unanswered as error:  # nobody was asked yet: a setting is missing
            raise StoreError(self._denial(address, error.__cause__ or error)) from error
        self._whole: tuple[str, str, bytes] | None = None

    def stat(self, name: str) -> Stat | None:
        try:
            return _stat_of_object(self._ask(name, lambda: self._obstore.head(self._store, name)))
        except FileNotFoundError:
            return None

    def read(self, name: str, start: int, length: int, tag: str = "") -> bytes:
        if length == 0:
            return b""
        if self._whole is not None and self._whole[:2] == (name, tag):
            return self._whole[2][start : start + length]
        options = {"range": (start, start + length)}
        try:
            data = self._ask(name, lambda: self._get(name, tag, length, options))
        except FileNotFoundError:
            raise InputChanged(f"{self.place(name)} no longer exists") from None
        except _NoRanges:
            return self._read_whole(name, tag)[start : start + length]
        return data

    def names(self, below: str) -> Iterator[tuple[str, Stat]]:
        if self._scheme in ("http", "https"):
            raise StoreError(f"{self.place(below)}: a web server lists no files. Give each file")
        # A prefix of an object store ends with a whole part of a name.
        top = below.rpartition("/")[0] or None
        entries: list[tuple[str, Stat]] = []

        def list_rest() -> None:
            # A list of many names takes many requests: it goes on behind the last that came.
            last = entries[-1][0] if entries else ""
            for chunk in self._obstore.list(self._store, top, offset=last or None):
                entries.extend(
                    (entry["path"], _stat_of_object(entry))
                    for entry in chunk
                    # Some stores begin with the last one itself.
                    if entry["path"].startswith(below) and entry["path"] > last
                )

        self._ask(below, list_rest)
        yield from entries

    def create(self, name: str, content: Content) -> bool:
        from obstore.exceptions import AlreadyExistsError

        data = content if isinstance(content, bytes) else b"".join(content)

        def put() -> bool:
            try:
                # In one request: a part in pieces would not be refused where there is one.
                self._obstore.put(self._store, name, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            return True

        return self._ask(name, put)

    def remove(self, name: str) -> None:
        self._ask(name, lambda: self._obstore.delete(self._store, name))

    def _read_whole(self, name: str, tag: str) -> bytes:
        """All of an object, of a server that gives no part of one; kept for the next part."""
        data = self._ask(name, lambda: self._get(name, tag))
        self._whole = (name, tag, data)
        return data

    def _get(self, name: str, tag: str, length: int | None = None, options: Any = None) -> bytes:
        """All of an object, or ``length`` bytes of it. Errors: ``Unanswered`` where fewer come,
        ``InputChanged`` where it has another tag."""
        got = self._obstore.get(self._store, name, options=options)
        stat, data = _stat_of_object(got.meta), bytes(got.bytes())
        wanted = stat.size if length is None else length
        if len(data) != wanted:
            raise Unanswered(f"{self.place(name)}: {len(data):,} of {wanted:,} bytes were received")
        if tag and stat.tag != tag:
            raise InputChanged(f"{self.place(name)} {CHANGED}")
        return data

    def _ask(self, name: str, request: Callable[[], Found]) -> Found:
        """Makes a request and returns its result. obstore repeats a refused request; this repeats
        one whose answer was cut short. Errors: as ``_ask_once``, and ``StoreError`` in the end."""
        began = time.monotonic()
        while True:
            try:
                return self._ask_once(name, request)
            except Unanswered as error:
                if time.monotonic() - began > PATIENCE:
                    raise StoreError(
                        f"{error} (asked for {PATIENCE:,.0f} seconds). What was written is kept. "
                        "Run the same command again when the store answers"
                    ) from error
                time.sleep(_PAUSE)

    def _ask_once(self, name: str, request: Callable[[], Found]) -> Found:
        """Makes a request once. Errors: those of this module; ``FileNotFoundError``."""
        from obstore import exceptions

        place = self.place(name)
        try:
            return request()
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise StoreError(self._denial(place, error)) from error
        except (
            exceptions.InvalidPathError,
            exceptions.UnknownConfigurationKeyError,
            ValueError,
        ) as error:
            raise StoreError(f"{place}: {_shorten(error)}") from error
        except exceptions.NotSupportedError as error:
            raise _not_supported(place, error) from error
        except exceptions.BaseError as error:
            text = str(error)
            if "builder error" in text:  # of an address that is none
                raise StoreError(f"{place}: {_shorten(error)}") from error
            if _NO_RANGES in text and "GET" not in text:
                raise _not_supported(place, error) from error
            if _REFUSED.search(text) or _NO_CREDENTIALS.search(text.partition("Debug source")[0]):
                raise StoreError(self._denial(place, error)) from error
            raise Unanswered(f"{place}: {_shorten(error)}") from error

    def _denial(self, place: str, error: BaseException) -> str:
        message = f"cannot use {place}: {_shorten(error)}"
        variables = _VARIABLES.get(self._scheme)
        if variables is None:
            return message
        return (
            f"{message}. Set valid credentials in {variables} or through the machine's role, then "
            "run the same command again"
        )


class _NoRanges(Exception):
    """A server that gives no part of an object."""


def _not_supported(place: str, error: Exception) -> Exception:
    if _NO_RANGES in str(error):
        return _NoRanges()
    return StoreError(f"{place}: {_shorten(error)}")


def _shorten(error: BaseException) -> str:
    """The first line of what obstore says; behind it stands its inside."""
    message = str(error).partition("\n")[0].strip()
    return re.sub(r" in [\d.]+[mµn]?s", "", message)[:300].rstrip(": ")


def _stat_of_object(meta: Any) -> Stat:
    tag = meta["e_tag"] or f"{meta['last_modified'].isoformat()}-{meta['size']}"
    return Stat(meta["size"], str(tag))


def is_remote(address: str | os.PathLike[str]) -> bool:
    """True for the address of an object store or a server, such as ``s3://bucket/in``."""
    return isinstance(address, str) and "://" in address


def split_address(address: str) -> tuple[str, str]:
    """The store's own address, and the name in it: ``s3://bucket``, ``in/a.txt``. Of a file of this
    machine the folder, absolute, and nothing; ``open_store`` goes on from there.

    Errors: ``StoreError`` for a scheme that nobody knows.
    """
    if not is_remote(address):
        return os.path.abspath(address), ""
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in ("s3", "gs", "az", "http", "https"))
        raise StoreError(f"{address}: {parts.scheme}:// is not supported. Use one of {known}")
    name = address.partition("://")[2].partition("/")[2]
    return f"{parts.scheme}://{parts.netloc}", name


def whole_address(address: str) -> str:
    """The address that stays valid wherever this process goes; for a folder of this machine the
    absolute path. Errors: as ``split_address``."""
    own, _ = split_address(address)
    return address.rstrip("/") if is_remote(address) else own


def open_store(address: str) -> Store:
    """The store of an address that ``split_address`` gave."""
    if is_remote(address):
        return ObjectStore(address)
    return FolderStore(Path(address))
