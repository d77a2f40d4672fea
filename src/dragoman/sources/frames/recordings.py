"""Recordings are read as samples at one rate, from any rate and any number of channels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError, needing
from dragoman.sources.frames.recording_file import Recording, converting, library, name_of, open_raw

Floats = npt.NDArray[np.float32]


def resample(blocks: Iterable[Floats], given: int, wanted: int) -> Iterator[Floats]:
    """Resample blocks of a recording of one channel from ``given`` samples per second to
    ``wanted``. Frequencies that either rate cannot represent are filtered out, and nothing is
    shifted in time.

    Errors: ``DataError`` if soxr is not installed.
    """
    if given == wanted:
        yield from blocks
        return
    why = f"a recording of {given:,} samples per second can be read at {wanted:,} by soxr"
    with needing("sound", why, DataError):
        import soxr
    stream = soxr.ResampleStream(given, wanted, 1, dtype="float32", quality="HQ")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.empty(0, np.float32), last=True)


_LOUDEST = 1e6
"""The largest sample whose square, and sums of many squares, are still finite."""
_BLOCK = 1 << 18
"""The number of values that are read together, over all channels."""
_UNKNOWN = 1 << 62
"""libsndfile reports at least this many samples for a recording of unknown length."""
_SLACK = 4_608
"""This many samples may be missing: encoders count the silence that MP3 adds, in up to four
frames, differently."""


def rate_of(raw: Recording) -> int:
    """Return the sample rate of a recording. Errors: ``DataError``."""
    with open_raw(raw) as file:
        return int(file.samplerate)


def samples_of(raw: Recording, rate: int) -> int:
    """Return the number of samples at ``rate``, from the header; 0 if the header does not say.
    Errors: ``DataError``."""
    with open_raw(raw) as file:
        count = int(file.frames)
        return 0 if count >= _UNKNOWN else -(-count * rate // int(file.samplerate))


SAMPLES_A_SECOND = 192_000
"""The samples per second over all channels that cost one second: two channels at 96 kHz. More
samples cost as several seconds."""


def seconds_of(raw: Recording) -> float:
    """Return the length of a recording in seconds, from its header. Errors: ``DataError``, also
    if the header does not say."""
    with open_raw(raw) as file:
        return _seconds(raw, file)


def costly_seconds(raw: Recording) -> float:
    """Return the length of a recording in seconds, from its header, where a second with more
    than ``SAMPLES_A_SECOND`` counts as several. Errors: as ``seconds_of``."""
    with open_raw(raw) as file:
        return _seconds(raw, file) * max(
            1.0, int(file.samplerate) * int(file.channels) / SAMPLES_A_SECOND
        )


def _seconds(raw: Recording, file: Any) -> float:
    if file.frames >= _UNKNOWN:
        raise DataError(f"{name_of(raw)} has no duration in its header: {converting(raw)}")
    return float(file.frames / file.samplerate)


def blocks_of(raw: Recording, rate: int) -> Iterator[Floats]:
    """Yield the samples of a recording from -1 to 1 at ``rate``, block by block, as the mean of
    its channels.

    Errors: ``DataError`` for a file that is missing, empty, cut off, no recording, or that
    contains values that are not numbers.
    """
    with open_raw(raw) as file:
        yield from resample(_mean_of(name_of(raw), file), int(file.samplerate), rate)


def _mean_of(name: str, file: Any) -> Iterator[Floats]:
    """Yield the mean of the channels at the rate of the file."""
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
            f"{name} is damaged or cut off: its header says {promised:,.2f} seconds, and only "
            f"{there:,.2f} can be read"
        )


def _block(name: str, file: Any, count: int) -> Floats:
    """Return the next samples, (N, channels). Errors: ``DataError`` for undecodable data."""
    try:
        samples: Floats = file.read(count, dtype="float32", always_2d=True)
    except library().LibsndfileError as error:
        reason = error.error_string.rstrip(".")
        raise DataError(f"{name} is damaged or cut off: {reason}") from error
    return samples
