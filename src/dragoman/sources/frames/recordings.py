"""Recordings as samples of the rate that is read, whatever rate and however many channels a file
has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError, install
from dragoman.sources.frames.recording_file import Recording, called, converting, library, opened

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


_LOUDEST = 1e6
"""Of a sample: its square and the sums of many still are numbers."""
_BLOCK = 1 << 18
"""Numbers that are read at once, over all channels."""
_UNKNOWN = 1 << 62
"""So many samples has a recording that does not know how long it is."""
_SLACK = 4_608
"""So many samples may be missing: the silence that MP3 encoders add, in up to four frames, is not
counted alike by all."""


def rate_of(raw: Recording) -> int:
    """Samples a second of a recording. Errors: ``DataError``."""
    with opened(raw) as file:
        return int(file.samplerate)


def samples_of(raw: Recording, rate: int) -> int:
    """How many samples a recording will have at ``rate``, as its header tells; 0 where it does not.
    Errors: ``DataError``."""
    with opened(raw) as file:
        count = int(file.frames)
        return 0 if count >= _UNKNOWN else -(-count * rate // int(file.samplerate))


SAMPLES_A_SECOND = 192_000
"""Over all channels: those of two channels at 96 kHz. A second with more costs as several do."""


def seconds_of(raw: Recording) -> float:
    """How long a recording is, by its header. Errors: ``DataError``, also where it does not say."""
    with opened(raw) as file:
        return _seconds(raw, file)


def costly_seconds(raw: Recording) -> float:
    """How long a recording is by its header, where a second with more than ``SAMPLES_A_SECOND``
    counts as several. Errors: as those of ``seconds_of``."""
    with opened(raw) as file:
        return _seconds(raw, file) * max(
            1.0, int(file.samplerate) * int(file.channels) / SAMPLES_A_SECOND
        )


def _seconds(raw: Recording, file: Any) -> float:
    if file.frames >= _UNKNOWN:
        raise DataError(
            f"{called(raw)} does not say how long it is. Write it again: {converting(raw)}"
        )
    return float(file.frames / file.samplerate)


def blocks_of(raw: Recording, rate: int) -> Iterator[Floats]:
    """The samples of a recording from -1 to 1 at ``rate``, block by block; of several channels
    their mean.

    Errors: ``DataError`` for a file that is missing, empty, cut off, no recording, or that holds
    what is no number.
    """
    with opened(raw) as file:
        yield from resampled(_mean_of(called(raw), file), int(file.samplerate), rate)


def _mean_of(name: str, file: Any) -> Iterator[Floats]:
    """The samples as they are in the file."""
    read, at_once = 0, max(1, _BLOCK // file.channels)
    while len(block := _block(name, file, at_once)):
        if not (right := np.abs(block) <= _LOUDEST).all():
            row, channel = np.argwhere(~right)[0].tolist()
            where, value = read + row, float(block[row, channel])
            what = f"{value:.3g}, and samples are from -1 to 1"
            raise DataError(
                f"{name}: sample {where:,} (at {where / file.samplerate:.2f} s) is "
                + (what if math.isfinite(value) else "not a number")
            )
        read += len(block)
        yield block.mean(axis=1, dtype=np.float32)
    if not read:
        raise DataError(f"{name} has no samples")
    if file.frames < _UNKNOWN and read + _SLACK < file.frames:
        promised, there = file.frames / file.samplerate, read / file.samplerate
        raise DataError(
            f"{name} is damaged or cut off: its header promises {promised:,.2f} seconds, and only "
            f"{there:,.2f} can be read"
        )


def _block(name: str, file: Any, count: int) -> Floats:
    """The next samples, (N, channels). Errors: ``DataError`` for what cannot be decoded."""
    try:
        found: Floats = file.read(count, dtype="float32", always_2d=True)
    except library().LibsndfileError as error:
        told = error.error_string.rstrip(".")
        raise DataError(f"{name} is damaged or cut off: {told}") from error
    return found
