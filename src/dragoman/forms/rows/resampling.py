"""Sound of one rate -> sound of another, block by block, by soxr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from dragoman.errors import DataError
from dragoman.extras import install

Floats = npt.NDArray[np.float32]


def resampled(blocks: Iterable[Floats], given: int, wanted: int) -> Iterator[Floats]:
    """Blocks of a recording of one channel with ``given`` samples a second -> with ``wanted``. What
    both rates cannot hold is filtered away, and nothing is shifted in time.

    Errors: ``DataError`` where soxr is not installed.
    """
    if given == wanted:
        yield from blocks
        return
    try:
        import soxr
    except ImportError as error:
        raise DataError(
            f"a recording of {given:,} samples a second is read at {wanted:,} by soxr: "
            f"{install('sound')}"
        ) from error
    stream = soxr.ResampleStream(given, wanted, 1, dtype="float32", quality="HQ")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.empty(0, np.float32), last=True)
