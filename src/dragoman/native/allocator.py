"""Tell glibc to keep the memory that it has, instead of returning it after every layer.

By default glibc takes each large block from the kernel and gives it back when it is freed. Every
activation of every layer then meets fresh pages, and the kernel spends a quarter of a training
step on filling them with zeros. With both thresholds out of reach, blocks are reused. Nothing
happens where the C library is not glibc.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

# From <malloc.h>.
_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3

_OUT_OF_REACH = 2**31 - 1
_TOP_PAD_BYTES = 64 << 20
_MMAP_THRESHOLD_BYTES = 1 << 20

_kept = False


def keep_memory() -> bool:
    """Raise glibc's thresholds for this process; call it before torch is imported.

    Returns whether it worked. Does not import torch, and leaves alone what the environment sets
    (``MALLOC_MMAP_THRESHOLD_``, ``MALLOC_TRIM_THRESHOLD_``, ``GLIBC_TUNABLES``).
    """
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return False
    library = _glibc()
    if library is None:
        return False
    wishes = {
        _M_MMAP_THRESHOLD: _OUT_OF_REACH,
        _M_TRIM_THRESHOLD: _OUT_OF_REACH,
        _M_TOP_PAD: _TOP_PAD_BYTES,
    }
    accepted = [library.mallopt(option, value) == 1 for option, value in wishes.items()]
    global _kept
    _kept = all(accepted)
    return _kept


@contextmanager
def returning_memory() -> Iterator[None]:
    """Large blocks come from the kernel meanwhile and go back to it, as they do by default.

    For work of another shape in the midst of training, such as validation: among the blocks that
    training reuses it would leave holes that fit nothing, and each time the process would grow.
    """
    library = _glibc()
    if library is None or not _kept:
        yield
        return
    library.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
    try:
        yield
    finally:
        library.mallopt(_M_MMAP_THRESHOLD, _OUT_OF_REACH)
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if os.name != "posix":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
