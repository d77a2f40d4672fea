"""The memory of this process: how much it has taken, and what it keeps: free blocks, and code that
oneDNN has compiled.

glibc is told to keep the memory that it has, instead of returning it after every layer. By default
it takes each large block from the kernel and gives it back when it is freed. Every activation of
every layer then meets fresh pages, and the kernel spends a quarter of a training step on filling
them with zeros. With both thresholds out of reach, blocks are reused. Nothing happens where the C
library is not glibc.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

# From <malloc.h>.
_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3

_OUT_OF_REACH = 2**31 - 1
_TOP_PAD_BYTES = 64 << 20
_MMAP_THRESHOLD_BYTES = 1 << 20
_LARGE_PAGES_BYTES = 3 << 29  # less than what _M_TRIM_THRESHOLD would give back
_MADV_HUGEPAGE = 14

_PRIMITIVES = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_KEPT_PRIMITIVES = 64

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
    if _kept:
        _wish_large_pages(library)
    return _kept


def keep_few_primitives(environment: MutableMapping[str, str]) -> None:
    """Ask oneDNN to keep the code of few shapes, unless ``environment`` says of how many; call it
    before torch computes anything.

    oneDNN compiles each convolution and product for its shape and keeps the last 1,024 of them, up
    to a megabyte each. Recordings and texts are of thousands of lengths, so that a training run
    grew by a gigabyte, and hardly any shape came again. 64 are more than one update has.
    """
    environment.setdefault(_PRIMITIVES, str(_KEPT_PRIMITIVES))


def _wish_large_pages(library: ctypes.CDLL) -> None:
    """Ask for pages of 2 MB for what the heap will grow by (Linux; elsewhere nothing happens).

    The addresses of weights, gradients and activations in pages of 4 KB are more than a processor
    remembers: looking them up took a tenth of an update. No page is touched here, so no memory is
    used before it is needed.
    """
    if not hasattr(library, "madvise"):
        return
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    library.free.restype, library.free.argtypes = None, (ctypes.c_void_p,)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    block = library.malloc(_LARGE_PAGES_BYTES)
    if block is None:
        return
    first = -(-block // mmap.PAGESIZE) * mmap.PAGESIZE
    library.madvise(first, _LARGE_PAGES_BYTES - mmap.PAGESIZE, _MADV_HUGEPAGE)
    library.free(block)


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
        _wish_large_pages(library)


def _glibc() -> ctypes.CDLL | None:
    if os.name != "posix":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None


def peak_bytes() -> int:
    """The most that was resident at once since the program began.

    Linux' ``getrusage`` would not do: what it tells begins with the peak of the program that
    started this one.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    match = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return 0 if match is None else int(match[1]) * 1024
