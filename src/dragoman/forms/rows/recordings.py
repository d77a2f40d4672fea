"""Recordings in files, by libsndfile: WAV, FLAC, OGG, Opus and MP3."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dragoman.errors import DataError
from dragoman.forms.rows.unusable import unusable

if TYPE_CHECKING:
    from types import ModuleType

ENDINGS = frozenset({".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3"})
"""Of files that are taken for recordings."""
_NEEDS = "reading recordings needs soundfile: pip install 'dragoman[sound]'"
_LOUDEST = 1e6
"""Of a sample: its square and the sums of many still are numbers."""
_BLOCK = 1 << 18
"""Samples that are read at once."""
_LONGEST_PAGE = 27 + 255 + 255 * 255
"""Bytes of a page of an OGG file."""
_UNKNOWN_SIZES = (0, 0x7FFFFFFF, 0xFFFFFFFF)
"""What programs write that do not know yet how long a recording will be."""

Floats = npt.NDArray[np.float32]


def library() -> ModuleType:
    """soundfile. Errors: ``DataError`` where it is not installed."""
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise DataError(_NEEDS) from error
    found: ModuleType = soundfile
    return found


def rate_of(path: Path) -> int:
    """Samples a second of a recording. Errors: ``DataError``."""
    with _opened(path) as file:
        return int(file.samplerate)


def samples_of(path: Path, rate: int) -> int:
    """How many samples a recording has. Errors: ``DataError``, also for another rate."""
    with _opened(path) as file:
        _check(path, file, rate)
        return int(file.frames)


def blocks_of(path: Path, rate: int) -> Iterator[Floats]:
    """The samples of a recording from -1 to 1, block by block; of several channels their mean.

    Errors: ``DataError`` for a file that is missing, empty, cut off, no recording, of another rate,
    or that holds what is no number.
    """
    with _opened(path) as file:
        _check(path, file, rate)
        read = 0
        while len(block := _block(path, file)):
            if not (right := np.abs(block) <= _LOUDEST).all():
                row, channel = np.argwhere(~right)[0].tolist()
                where, value = read + row, float(block[row, channel])
                what = f"{value:.3g}, and samples are from -1 to 1"
                raise DataError(
                    f"{path}: sample {where:,} (at {where / rate:.2f} s) is "
                    + (what if math.isfinite(value) else "not a number")
                )
            read += len(block)
            yield block.mean(axis=1, dtype=np.float32)
        if not read:
            raise DataError(f"{path} has no samples")


def _block(path: Path, file: Any) -> Floats:
    """The next samples, (N, channels). Errors: ``DataError`` for what cannot be decoded."""
    try:
        found: Floats = file.read(_BLOCK, dtype="float32", always_2d=True)
    except library().LibsndfileError as error:
        raise DataError(f"{path} is damaged or cut off: {error.error_string}") from error
    return found


def _check(path: Path, file: Any, rate: int) -> None:
    if file.samplerate != rate:
        given, made = str(path), str(path.with_name(f"{path.stem}-converted.wav"))
        if given.startswith("-"):  # not an option
            given, made = f"./{given}", f"./{made}"
        raise DataError(
            f"{path} has {file.samplerate:,} samples a second, and {rate:,} are read "
            "(source.rate). "
            f"Convert it: ffmpeg -i {shlex.quote(given)} -ar {rate} {shlex.quote(made)}"
        )


def _opened(path: Path) -> Any:
    """The file, open. Errors: ``DataError``."""
    sound = library()
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise DataError(f"{path} is a folder: a recording is a file")
        if not size:
            raise DataError(f"{path} is empty")
        _check_whole(path, size)
        return sound.SoundFile(os.fsencode(path))  # of any bytes
    except (OSError, ValueError) as error:
        raise unusable(path, error) from error
    except sound.LibsndfileError as error:
        endings = ", ".join(sorted(one.removeprefix(".").upper() for one in ENDINGS))
        raise DataError(
            f"{path} is damaged or no recording that can be read ({endings} can): "
            f"{error.error_string}"
        ) from error


def _check_whole(path: Path, size: int) -> None:
    """Errors: ``DataError`` for a WAV file that ends before its header says, or an OGG file that
    ends within a page: libsndfile would take the rest for the whole."""
    with path.open("rb") as file:
        start = file.read(12)
        if start[:4] == b"OggS":
            before = max(0, size - _LONGEST_PAGE)
            file.seek(before)
            promised = _end_of_last_page(file.read(_LONGEST_PAGE), before)
            if promised > size:
                raise DataError(
                    f"{path} is cut off: its last page ends at byte {promised:,}, and there are "
                    f"{size:,}"
                )
    if start[:4] != b"RIFF" or start[8:12] != b"WAVE":
        return
    promised = int.from_bytes(start[4:8], "little")
    if promised not in _UNKNOWN_SIZES and promised + 8 > size + 1:  # an odd chunk may lack its pad
        raise DataError(
            f"{path} is cut off: its header promises {promised + 8:,} bytes, and there are {size:,}"
        )


def _end_of_last_page(end: bytes, before: int) -> int:
    """The byte at which the last page of an OGG file ends, by what it says of itself (RFC 3533,
    section 6). ``end``: of the file; ``before``: bytes before that."""
    at = end.rfind(b"OggS\0")
    if at < 0:
        return before + len(end)
    count = end[at + 26] if at + 26 < len(end) else 0
    return before + at + 27 + count + sum(end[at + 27 : at + 27 + count])
