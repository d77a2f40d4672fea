"""Object stores and servers of files, through obstore: S3 and its like, GCS, Azure, HTTP.

obstore makes requests again that are refused. Those whose answer was cut short are made again here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from dragoman.base.errors import install
from dragoman.stores.store import CHANGED, Content, InputChanged, Stat, Store, StoreError

if TYPE_CHECKING:
    from obstore.store import RetryConfig

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
        retry: RetryConfig = {"max_retries": 20, "retry_timeout": timedelta(seconds=PATIENCE)}
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
            return _stat(self._ask(name, lambda: self._obstore.head(self._store, name)))
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
                    (entry["path"], _stat(entry))
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
        stat, data = _stat(got.meta), bytes(got.bytes())
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
        from obstore.exceptions import (
            BaseError,
            InvalidPathError,
            NotSupportedError,
            PermissionDeniedError,
            UnauthenticatedError,
            UnknownConfigurationKeyError,
        )

        place = self.place(name)
        try:
            return request()
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise StoreError(self._denial(place, error)) from error
        except (InvalidPathError, UnknownConfigurationKeyError, ValueError) as error:
            raise StoreError(f"{place}: {_shorten(error)}") from error
        except NotSupportedError as error:
            raise _not_supported(place, error) from error
        except BaseError as error:
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


def _stat(meta: Any) -> Stat:
    tag = meta["e_tag"] or f"{meta['last_modified'].isoformat()}-{meta['size']}"
    return Stat(meta["size"], str(tag))
