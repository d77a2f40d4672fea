"""Object stores and servers of files, through obstore: S3 and its like, GCS, Azure, HTTP.

obstore makes each request again a few times by itself; what still fails is ``Unanswered``, or a
``StoreError`` where another try cannot help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from dragoman.extras import install
from dragoman.stores.store import InputChanged, Stat, Store, StoreError, Unanswered

if TYPE_CHECKING:
    from obstore.store import RetryConfig

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "memory", "http", "https")
_REFUSED = re.compile(r"status code: (400|401|403|404|405|409|501)\b")
_NO_CREDENTIALS = re.compile(r"169\.254\.169\.254|metadata\.google|[Cc]redential|token_uri")
_NO_RANGES = "ange"
_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, AWS_REGION)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}

Found = TypeVar("Found")


class ObjectStore(Store):
    """A bucket, or a server."""

    def __init__(self, address: str) -> None:
        """``address``: ``s3://bucket``, ``https://host``.

        Errors: ``StoreError`` without obstore, and for what it does not know.
        """
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise StoreError(
                f"{address} is an object store, and obstore is not installed: {install('cluster')}"
            ) from None
        self._obstore = obstore
        self.address = address
        self._scheme = urlsplit(address).scheme
        retry: RetryConfig = {
            "max_retries": 3,
            "retry_timeout": timedelta(seconds=30),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=5),
                "base": 2,
            },
        }
        # For an address that says so: a server of files, or AWS_ENDPOINT_URL of a local store.
        options: Any = {"allow_http": True}
        try:
            self._store: Any = self._asked(
                "", lambda: from_url(address, retry_config=retry, client_options=options)
                if self._scheme != "memory" else from_url(address)
            )  # fmt: skip
        except Unanswered as error:  # nobody was asked yet: a setting is missing
            raise StoreError(self._denied(address, error.__cause__ or error)) from error
        self._whole: tuple[str, str, bytes] | None = None

    @property
    def _is_web(self) -> bool:
        return self._scheme in ("http", "https")

    def stat(self, name: str) -> Stat | None:
        try:
            return _stat(self._asked(name, lambda: self._obstore.head(self._store, name)))
        except FileNotFoundError:
            return None

    def read(self, name: str, start: int, length: int, tag: str = "") -> bytes:
        if length == 0:
            return b""
        if self._whole is not None and self._whole[:2] == (name, tag):
            return self._whole[2][start : start + length]
        options = {"range": (start, start + length)}
        try:
            got = self._asked(name, lambda: self._obstore.get(self._store, name, options=options))
            found = _stat(got.meta)
            data = self._asked(name, lambda: bytes(got.bytes()))
        except FileNotFoundError:
            raise InputChanged(f"{self.place(name)} is not there any more") from None
        except _NoRanges:
            return self._read_whole(name, tag)[start : start + length]
        if tag and found.tag != tag:
            raise InputChanged(f"{self.place(name)} has changed since the plan was made")
        return data

    def names(self, below: str, after: str = "") -> Iterator[tuple[str, Stat]]:
        if self._is_web:
            raise StoreError(
                f"{self.place(below)}: a server of files has no list of them; name each file"
            )
        # A prefix of an object store ends with a whole part of a name.
        top = below.rpartition("/")[0]
        chunks = self._asked(
            below, lambda: iter(self._obstore.list(self._store, top or None, offset=after or None))
        )
        while chunk := self._asked(below, lambda: next(chunks, None)):
            for one in chunk:
                # Some stores begin with ``after`` itself.
                if one["path"].startswith(below) and one["path"] > after:
                    yield one["path"], _stat(one)

    def create(self, name: str, data: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError

        def put() -> bool:
            try:
                # In one request: a part in pieces would not be refused where there is one.
                self._obstore.put(self._store, name, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            return True

        return self._asked(name, put)

    def remove(self, name: str) -> None:
        self._asked(name, lambda: self._obstore.delete(self._store, name))

    def _read_whole(self, name: str, tag: str) -> bytes:
        """All of an object, of a server that gives no part of one; kept for the next part."""
        got = self._asked(name, lambda: self._obstore.get(self._store, name))
        found = _stat(got.meta)
        data = self._asked(name, lambda: bytes(got.bytes()))
        if len(data) != found.size:
            raise Unanswered(f"{self.place(name)}: {len(data):,} of {found.size:,} bytes came")
        if tag and found.tag != tag:
            raise InputChanged(f"{self.place(name)} has changed since the plan was made")
        self._whole = (name, tag, data)
        return data

    def _asked(self, name: str, request: Callable[[], Found]) -> Found:
        """What a request gives. Errors: as this module tells them; ``FileNotFoundError``."""
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
            raise StoreError(self._denied(place, error)) from error
        except (InvalidPathError, UnknownConfigurationKeyError, ValueError) as error:
            raise StoreError(f"{place}: {_short(error)}") from error
        except NotSupportedError as error:
            raise _not_supported(place, error) from error
        except BaseError as error:
            told = str(error)
            if "builder error" in told:  # of an address that is none
                raise StoreError(f"{place}: {_short(error)}") from error
            if _NO_RANGES in told and "GET" not in told:
                raise _not_supported(place, error) from error
            if _REFUSED.search(told) or _NO_CREDENTIALS.search(told.partition("Debug source")[0]):
                raise StoreError(self._denied(place, error)) from error
            raise Unanswered(f"{place}: {_short(error)}") from error

    def _denied(self, place: str, error: BaseException) -> str:
        told = f"cannot use {place}: {_short(error)}"
        variables = _VARIABLES.get(self._scheme)
        if variables is None:
            return told
        return (
            f"{told}. Are there credentials, and are they still valid? They are read from "
            f"{variables}, or from the machine's role; give the same command again with them"
        )


class _NoRanges(Exception):
    """A server that gives no part of an object."""


def _not_supported(place: str, error: Exception) -> Exception:
    if _NO_RANGES in str(error):
        return _NoRanges()
    return StoreError(f"{place}: {_short(error)}")


def _short(error: BaseException) -> str:
    """The first line of what obstore says; behind it stands its inside."""
    told = str(error).partition("\n")[0].strip()
    return re.sub(r" in [\d.]+[mµn]?s", "", told)[:300].rstrip(": ")


def _stat(meta: Any) -> Stat:
    tag = meta["e_tag"] or f"{meta['last_modified'].isoformat()}-{meta['size']}"
    return Stat(meta["size"], str(tag))
