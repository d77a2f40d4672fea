"""Recordings are read as samples at one rate, from any rate and any number of channels.

A file of sound is opened by libsndfile: WAV, FLAC, OGG, Opus or MP3, and nothing else. ``-`` is
standard input, which is kept so that it can be read more than once.
"""

from __future__ import annotations

import io
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError, needing
from dragoman.sources.frames.sound_containers import check_length, check_pages, several
from dragoman.sources.shared.files import FileKind, InMemory, conversion, unusable

Floats = npt.NDArray[np.float32]
Recording = str | Path | InMemory
"""A recording: a file, standard input, or bytes from a client."""
ENDINGS = frozenset({".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3"})
"""The endings of files that are read as recordings."""
FOREIGN_ENDINGS = frozenset(
    {".m4a", ".mp4", ".webm", ".mkv", ".mov", ".aac", ".wma", ".amr", ".3gp", ".caf", ".aif",
     ".aiff", ".au", ".sph", ".ac3"}
)  # fmt: skip
"""The endings of files of sound that are not read."""
STANDARD_INPUT = "-"
"""The raw example for standard input; a file of that name is ``./-``."""
_LOOKED_AT = 64
"""The number of first bytes that identify the kind of a file."""
_FOREIGN = {
    b"\x1aE\xdf\xa3": "WebM or Matroska",
    b"0&\xb2u": "WMA or another ASF file",
    b"#!AMR": "AMR",
    b"caff": "CAF",
    b"FORM": "AIFF",
    b".snd": "AU",
}
"""The kind of a file with this beginning. libsndfile reads some of these, and many others; none
is opened, so that less code is exposed to files of strangers."""
_IN_MEMORY = 32 << 20
"""Standard input with more bytes is kept in an unnamed file."""
_MOST = 4 << 30
"""The most bytes of standard input."""
_BEGINNINGS = (b"RIFF", b"RF64", b"fLaC", b"OggS", b"ID3")
"""The beginnings of files that are read; an MP3 file may also begin with a frame of sound."""
_FORMATS = frozenset({"WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3"})
"""libsndfile's names of the formats that are read."""
_MOST_TAGS = 16
"""The most ID3 tags in a row."""
_XING = re.compile(rb"(?:Xing|Info)\0\0\0[\x03\x07\x0b\x0f].{4}(.{4})", re.DOTALL)
"""The field in the first frame of an MP3 file that gives its size in bytes; LAME and others
write it. Some do not count that frame itself."""
_LONGEST_FRAME = 1_441
"""The most bytes of a frame of an MP3 file."""
_RATES = range(1_000, 768_001)
"""The sample rates that a header may have."""
_UNKNOWN_SIZES = (0, 0x7FFFFFFF, 0xFFFFFFFF)
"""The sizes that programs write if the length of a recording is not yet known."""


def library() -> ModuleType:
    """Return the module soundfile. Errors: ``DataError`` if it is not installed."""
    with needing("sound", "reading recordings needs soundfile", DataError):
        import soundfile
    module: ModuleType = soundfile
    return module


def name_of(raw: Recording) -> str:
    """Return the name of a recording in messages."""
    return "standard input" if raw == STANDARD_INPUT else str(raw)


def open_raw(raw: Recording) -> Any:
    """Return a ``soundfile.SoundFile``. Errors: ``DataError`` for a file that is missing, empty,
    cut off, or no recording."""
    sound, name = library(), name_of(raw)
    try:
        file: Any
        if raw == STANDARD_INPUT:
            file = standard_input()
            size = file.seek(0, io.SEEK_END)
            _check(file, name, size)
        elif isinstance(raw, InMemory):
            file = io.BytesIO(without_tags(name, raw.data))
            _check(file, name, file.seek(0, io.SEEK_END))
        else:
            path = Path(raw)
            size = path.stat().st_size
            if path.is_dir():
                raise DataError(f"{name} is a folder. Give the file of a recording")
            with path.open("rb") as stream:
                _check(stream, name, size)
            file = os.fsencode(path)  # a path of any bytes
        recording = sound.SoundFile(file)
    except (OSError, ValueError) as error:
        raise unusable(name, error) from error
    except sound.LibsndfileError as error:
        raise _not_one(name, error.error_string.rstrip(".")) from error
    if recording.format not in _FORMATS:  # another format behind a beginning of one of these
        recording.close()
        raise _not_one(name, f"its format is {recording.format}")
    if recording.samplerate not in _RATES:
        recording.close()
        raise DataError(f"{name} is damaged: its header says {recording.samplerate:,} samples/s")
    return recording


def without_tags(called: str, data: bytes) -> bytes:
    """Return a client's bytes without the ID3 tags in front: libmpg123 writes a line on standard
    error for each tag frame that it does not know. Errors: ``DataError`` for too many tags."""
    return data[_behind_tags(called, io.BytesIO(data)) :]


def _behind_tags(name: str, file: IO[bytes]) -> int:
    """Return the end of the ID3 tags in front of a recording (ID3v2.4, section 3.1). Errors:
    ``DataError`` for too many tags."""
    at = 0
    for _ in range(_MOST_TAGS + 1):
        file.seek(at)
        head = file.read(10)
        if not head.startswith(b"ID3") or len(head) < 10:
            return at
        size = 0
        for byte in head[6:10]:
            size = size << 7 | byte & 0x7F
        at += 10 + size + (10 if head[5] & 0x10 else 0)
    raise DataError(f"{name} has more than {_MOST_TAGS} tags, which no recording needs")


def foreign(raw: Recording, kind: str) -> DataError:
    """Return the error for sound of a kind that is not read, with the command that converts it."""
    command = "ffmpeg -i FILE -f wav - | dragoman ..." if raw == STANDARD_INPUT else converting(raw)
    return DataError(f"{name_of(raw)} is {kind}, not {_kinds()}. Convert it: {command}")


def converting(raw: Recording) -> str:
    """Return the command that converts a recording to WAV in the same folder."""
    return conversion("ffmpeg -i", Path(str(raw)), ".wav")


@lru_cache(maxsize=1)
def standard_input() -> IO[bytes]:
    """Return all of standard input, kept for as long as the program runs. Errors: ``DataError``
    for too much."""
    kept = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
    while block := sys.stdin.buffer.read(1 << 20):
        if kept.tell() + len(block) > _MOST:
            raise DataError(
                f"standard input has more than {_MOST >> 30} GiB. Write it to a file first"
            )
        kept.write(block)
    return kept


def _not_one(name: str, why: str) -> DataError:
    return DataError(f"{name} is damaged or not a supported recording ({_kinds()}): {why}")


def _kinds() -> str:
    return ", ".join(sorted(ending.removeprefix(".").upper() for ending in ENDINGS))


def _check(file: IO[bytes], name: str, size: int) -> None:
    """Raise ``DataError`` for a file that is empty, of a foreign kind, or incomplete; leave it
    at its beginning."""
    if not size:
        raise DataError(f"{name} is empty")
    file.seek(0)
    start = file.read(_LOOKED_AT)
    kind = next((kind for begin, kind in _FOREIGN.items() if start.startswith(begin)), None)
    if start[4:8] == b"ftyp":
        kind = "M4A or another MP4 file"
    elif kind is None and start[:1] == b"\xff" and len(start) > 1 and start[1] & 0xF6 == 0xF0:
        kind = "AAC"
    if kind is not None:
        raise foreign(STANDARD_INPUT if name == name_of(STANDARD_INPUT) else name, kind)
    is_frame = start[:1] == b"\xff" and len(start) > 1 and start[1] & 0xE0 == 0xE0
    if not (start.startswith(_BEGINNINGS) or is_frame):
        raise _not_one(name, "its first bytes are not those of such a file")
    _check_whole(file, name, start, size)
    file.seek(0)


def _check_whole(file: IO[bytes], name: str, start: bytes, size: int) -> None:
    """Raise ``DataError`` for a file that is shorter or longer than its header says, and for an
    OGG file with anything but the pages of one recording: libsndfile would take a part for the
    whole."""
    if start[:4] == b"OggS":
        check_pages(file, name, size)
    elif start[:4] == b"RIFF" and start[8:12] == b"WAVE":
        promised = int.from_bytes(start[4:8], "little")
        # An odd chunk may lack its pad.
        if promised not in _UNKNOWN_SIZES and promised + 8 > size + 1:
            raise DataError(f"{name} is cut off: it has {size:,} of {promised + 8:,} bytes")
    else:
        begin = _behind_tags(name, file)
        file.seek(begin)
        head = file.read(_LOOKED_AT)
        if head.startswith(b"fLaC"):
            check_length(file, name, begin, size)
        elif (match := _XING.search(head)) is not None:
            end = begin + int.from_bytes(match[1])
            file.seek(end)
            behind = file.read(2)
            if size - end > _LONGEST_FRAME and (behind == b"ID" or behind == head[:2]):
                raise several(name, end)


RECORDINGS = FileKind(
    "recording",
    ENDINGS,
    FOREIGN_ENDINGS,
    foreign,
)


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
