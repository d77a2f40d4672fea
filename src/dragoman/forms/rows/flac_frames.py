"""The last frame of a FLAC file, which tells how long the recording is (RFC 9639, section 9).

The header of the file tells it too, and libsndfile reads no further than it says: of two files one
behind the other, or of one whose header is wrong, that would be the beginning alone.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import IO

from dragoman.errors import DataError
from dragoman.forms.rows.unusable import several

_HEADER = 42
"""Bytes up to the end of the section that tells the length (section 8.2)."""
_BLOCK = 1 << 20
"""Bytes that are searched at once."""
_MOST = 1 << 18
"""Bytes of the last frame."""
_PLACES, _TRIED = 1_000, 4
"""Places in them where a frame may begin, and where its header is one; by chance one in 30,000 is
the first, and one in eight million the second."""
_BEGIN = re.compile(rb"fLaC[\0\x80]\0\0\x22")
_FRAME = re.compile(rb"\xff[\xf8\xf9]")
_TAG = 128
"""Bytes of an ID3v1 tag, which may stand behind the last frame."""


def check_length(file: IO[bytes], name: str, begin: int, size: int) -> None:
    """Errors: ``DataError`` for a file that holds several recordings, or does not end where its
    header, at byte ``begin``, says. A header that does not know the length says 0."""
    file.seek(begin)
    header = file.read(_HEADER)
    at, before = begin + _HEADER, b""
    while block := file.read(_BLOCK):
        if (found := _BEGIN.search(before + block)) is not None:
            raise several(name, at - len(before) + found.start())
        at, before = at + len(block), block[-7:]
    told, samples = int.from_bytes(header[18:26]) & (1 << 36) - 1, int.from_bytes(header[8:10])
    if not told:
        return
    file.seek(max(begin, size - _MOST - _TAG))
    tail = file.read()
    if tail[-_TAG:].startswith(b"TAG"):
        tail = tail[:-_TAG]
    places = [found.start() for found in _FRAME.finditer(tail)]
    ends = (
        (at, _end(tail[at : at + 16].ljust(16, b"\0"), samples))
        for at in places[: -_PLACES - 1 : -1]
    )
    likely = islice(((at, end) for at, end in ends if end is not None), _TRIED)
    end = next((end for at, end in likely if not _remainder(tail[at:], 16)), None)
    if end is None:
        raise DataError(f"{name} is damaged or cut off: it does not end with a frame of FLAC")
    if end != told:
        raise DataError(
            f"{name} is damaged: its header tells {told:,} samples, and its last frame ends with "
            f"number {end:,}"
        )


def _end(start: bytes, samples: int) -> int | None:
    """How many samples there are up to the end of a frame; None where ``start`` begins none.
    ``samples``: of each frame but the last, where all have as many (section 9.1)."""
    ones = 8 - (start[4] ^ 0xFF).bit_length()
    behind = 4 + max(1, ones)
    number = start[4] & 0x7F >> ones
    for byte in start[5:behind]:
        number = number << 6 | byte & 0x3F
    kind, more = start[2] >> 4, {6: 1, 7: 2}.get(start[2] >> 4, 0)
    if kind < 6:
        count = 144 << kind if kind > 1 else 192
    else:
        count = int.from_bytes(start[behind : behind + more]) + 1 if kind < 8 else 1 << kind
    behind += more + {12: 1, 13: 2, 14: 2}.get(start[2] & 15, 0)
    if _remainder(start[: behind + 1], 8):
        return None
    return (number if start[1] & 1 else number * samples) + count


def _remainder(data: bytes, bits: int) -> int:
    """The CRC of data that ends with its own: 0 where nothing was changed."""
    table, crc = _TABLES[bits], 0
    for byte in data:
        crc = table[crc >> bits - 8 ^ byte] ^ crc << 8 & (1 << bits) - 1
    return crc


def _table(bits: int, polynomial: int) -> list[int]:
    table = []
    for byte in range(256):
        crc = byte << bits - 8
        for _ in range(8):
            crc = crc << 1 ^ (polynomial if crc >> bits - 1 else 0)
            crc &= (1 << bits) - 1
        table.append(crc)
    return table


_TABLES = {8: _table(8, 0x07), 16: _table(16, 0x8005)}
"""Of the checksum of a frame's header and of that of the frame (sections 9.1.8 and 9.3)."""
