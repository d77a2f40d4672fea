"""From the address that a user writes to a store, and the name of what is meant in it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from dragoman.stores.folder import FolderStore
from dragoman.stores.objects import SCHEMES, ObjectStore
from dragoman.stores.store import Store, StoreError


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
