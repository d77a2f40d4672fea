"""A file of sound, opened by libsndfile: WAV, FLAC, OGG, Opus or MP3, and nothing else.

``-`` is standard input, whatever it is, which is kept so that it can be read more than once.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dragoman.base.errors import DataError, install
from dragoman.sources.frames.sound_containers import check_length, check_pages, several
from dragoman.sources.shared.files import FileKind, InMemory, conversion, unusable

if TYPE_CHECKING:
    from types import ModuleType

Recording = str | Path | InMemory
"""A file, standard input, or what a client has sent."""
ENDINGS = frozenset({".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3"})
"""Of files that are taken for recordings."""
FOREIGN_ENDINGS = frozenset(
    {".m4a", ".mp4", ".webm", ".mkv", ".mov", ".aac", ".wma", ".amr", ".3gp", ".caf", ".aif",
     ".aiff", ".au", ".sph", ".ac3"}
)  # fmt: skip
"""Of files that hold sound, and are not read."""
STANDARD_INPUT = "-"
"""The raw example that is standard input; a file of that name is ``./-``."""
_LOOKED_AT = 64
"""Bytes that tell what a file is."""
_FOREIGN = {
    b"\x1aE\xdf\xa3": "WebM or Matroska",
    b"0&\xb2u": "WMA or another ASF file",
    b"#!AMR": "AMR",
    b"caff": "CAF",
    b"FORM": "AIFF",
    b".snd": "AU",
}
"""What a file is that begins so. libsndfile reads some of these, and many others; none is opened:
less code meets what a stranger sends."""
_IN_MEMORY = 32 << 20
"""Bytes of standard input; more go to a file without a name."""
_MOST = 4 << 30
"""Bytes of standard input at most."""
_BEGINNINGS = (b"RIFF", b"RF64", b"fLaC", b"OggS", b"ID3")
"""Of what is read; an MP3 file may also begin with a frame of sound."""
_FORMATS = frozenset({"WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3"})
"""What libsndfile calls those that are read."""
_MOST_TAGS = 16
"""ID3 tags one behind the other."""
_XING = re.compile(rb"(?:Xing|Info)\0\0\0[\x03\x07\x0b\x0f].{4}(.{4})", re.DOTALL)
"""What tells in the first frame of an MP3 file how many bytes it has: LAME writes it, and others
do. Some do not count that frame itself."""
_LONGEST_FRAME = 1_441
"""Bytes of a frame of an MP3 file."""
_RATES = range(1_000, 768_001)
"""Samples a second that a header may tell."""
_UNKNOWN_SIZES = (0, 0x7FFFFFFF, 0xFFFFFFFF)
"""What programs write that do not know yet how long a recording will be."""


def library() -> ModuleType:
    """soundfile. Errors: ``DataError`` where it is not installed."""
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise DataError(f"reading recordings needs soundfile: {install('sound')}") from error
    found: ModuleType = soundfile
    return found


def called(raw: Recording) -> str:
    """What a recording is called in messages."""
    return "standard input" if raw == STANDARD_INPUT else str(raw)


def opened(raw: Recording) -> Any:
    """A ``soundfile.SoundFile``. Errors: ``DataError`` for a file that is missing, empty, cut off,
    or no recording."""
    sound, name = library(), called(raw)
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
                raise DataError(f"{name} is a folder: a recording is a file")
            with path.open("rb") as found:
                _check(found, name, size)
            file = os.fsencode(path)  # of any bytes
        recording = sound.SoundFile(file)
    except (OSError, ValueError) as error:
        raise unusable(name, error) from error
    except sound.LibsndfileError as error:
        raise _not_one(name, error.error_string.rstrip(".")) from error
    if recording.format not in _FORMATS:  # of another kind behind what begins as one of these
        recording.close()
        raise _not_one(name, f"it is {recording.format}")
    if recording.samplerate not in _RATES:
        recording.close()
        raise DataError(
            f"{name} is damaged: its header tells {recording.samplerate:,} samples a second"
        )
    return recording


def without_tags(called: str, data: bytes) -> bytes:
    """Without the ID3 tags in front of what a client has sent: libmpg123 writes a line on standard
    error for each of their frames that it does not understand. Errors: ``DataError`` for too
    many."""
    return data[_behind_tags(called, io.BytesIO(data)) :]


def _behind_tags(name: str, file: IO[bytes]) -> int:
    """Where the ID3 tags in front of a recording end (ID3v2.4, section 3.1). Errors: ``DataError``
    for too many."""
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
    """The error of sound of a kind that is not read, with the command that converts it."""
    command = "ffmpeg -i FILE -f wav - | dragoman ..." if raw == STANDARD_INPUT else converting(raw)
    return DataError(
        f"{called(raw)} is {kind}, which is not read ({_kinds()} are). Convert it: {command}"
    )


def converting(raw: Recording) -> str:
    """The command that writes a recording anew, as WAV, beside it."""
    return conversion("ffmpeg -i", Path(str(raw)), ".wav")


@lru_cache(maxsize=1)
def standard_input() -> IO[bytes]:
    """All of it, kept for as long as the program runs. Errors: ``DataError`` for too much."""
    kept = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
    while block := sys.stdin.buffer.read(1 << 20):
        if kept.tell() + len(block) > _MOST:
            raise DataError(
                f"standard input holds more than {_MOST >> 30} GiB: write it to a file first"
            )
        kept.write(block)
    return kept


def _not_one(name: str, why: str) -> DataError:
    return DataError(f"{name} is damaged or no recording that can be read ({_kinds()} can): {why}")


def _kinds() -> str:
    return ", ".join(sorted(one.removeprefix(".").upper() for one in ENDINGS))


def _check(file: IO[bytes], name: str, size: int) -> None:
    """Errors: ``DataError`` for a file that is empty, of a foreign kind, or not whole; it is at its
    beginning afterwards."""
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
        raise foreign(STANDARD_INPUT if name == called(STANDARD_INPUT) else name, kind)
    is_frame = start[:1] == b"\xff" and len(start) > 1 and start[1] & 0xE0 == 0xE0
    if not (start.startswith(_BEGINNINGS) or is_frame):
        raise _not_one(name, "its first bytes are of no such file")
    _check_whole(file, name, start, size)
    file.seek(0)


def _check_whole(file: IO[bytes], name: str, start: bytes, size: int) -> None:
    """Errors: ``DataError`` for a file that ends before its header says, or goes on behind that,
    and for an OGG file that has anything but the pages of one recording: libsndfile would take a
    part for the whole."""
    if start[:4] == b"OggS":
        check_pages(file, name, size)
    elif start[:4] == b"RIFF" and start[8:12] == b"WAVE":
        promised = int.from_bytes(start[4:8], "little")
        # An odd chunk may lack its pad.
        if promised not in _UNKNOWN_SIZES and promised + 8 > size + 1:
            raise DataError(
                f"{name} is cut off: its header promises {promised + 8:,} bytes, and there are "
                f"{size:,}"
            )
    else:
        begin = _behind_tags(name, file)
        file.seek(begin)
        head = file.read(_LOOKED_AT)
        if head.startswith(b"fLaC"):
            check_length(file, name, begin, size)
        elif (found := _XING.search(head)) is not None:
            end = begin + int.from_bytes(found[1])
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
