"""FLAC and OGG files are checked before libsndfile reads them, which would take a part for the
whole, or a long time.

The header of a FLAC file gives the length of the recording, and libsndfile reads no further: of
two concatenated files, or of one with a wrong header, that would be the beginning alone. The
last frame gives the length too (RFC 9639, section 9).

If libogg finds no page, it searches for the next, and computes a checksum over 65 kB wherever
four bytes look like the beginning of one: a megabyte of such beginnings takes seconds. So every
page must follow the previous one and have the right checksum (RFC 3533, section 6). libsndfile
reads only the first recording of an OGG file, so there must be no other.
"""

from __future__ import annotations

import re
import zlib
from itertools import islice
from typing import IO

from dragoman.base.errors import DataError

_HEADER = 42
"""The bytes up to the end of the section with the length (section 8.2)."""
_BLOCK = 1 << 20
"""The number of bytes that are searched together."""
_MOST = 1 << 18
"""The most bytes of the last frame."""
_PLACES, _TRIED = 1_000, 4
"""The most places where a frame may begin, and the most of them with a valid frame header. By
chance one place in 30,000 looks like a beginning, and one in eight million has a valid header."""
_BEGIN = re.compile(rb"fLaC[\0\x80]\0\0\x22")
_FRAME = re.compile(rb"\xff[\xf8\xf9]")
_TAG = 128
"""The bytes of an ID3v1 tag, which may follow the last frame."""


def check_length(file: IO[bytes], name: str, begin: int, size: int) -> None:
    """Raise ``DataError`` for a file with several recordings, or whose end differs from the
    length in its header, at byte ``begin``. A header with length 0 does not say."""
    file.seek(begin)
    header = file.read(_HEADER)
    at, before = begin + _HEADER, b""
    while block := file.read(_BLOCK):
        if (match := _BEGIN.search(before + block)) is not None:
            raise several(name, at - len(before) + match.start())
        at, before = at + len(block), block[-7:]
    length, samples = int.from_bytes(header[18:26]) & (1 << 36) - 1, int.from_bytes(header[8:10])
    if not length:
        return
    file.seek(max(begin, size - _MOST - _TAG))
    tail = file.read()
    if tail[-_TAG:].startswith(b"TAG"):
        tail = tail[:-_TAG]
    places = [match.start() for match in _FRAME.finditer(tail)]
    ends = (
        (at, _end(tail[at : at + 16].ljust(16, b"\0"), samples))
        for at in places[: -_PLACES - 1 : -1]
    )
    likely = islice(((at, end) for at, end in ends if end is not None), _TRIED)
    end = next((end for at, end in likely if not _remainder(tail[at:], 16)), None)
    if end is None:
        raise DataError(f"{name} is damaged or cut off: it does not end with a frame of FLAC")
    if end != length:
        raise DataError(
            f"{name} is damaged: its header says {length:,} samples, but its last frame ends with "
            f"sample {end:,}"
        )


def _end(start: bytes, samples: int) -> int | None:
    """Return the number of samples up to the end of a frame; None if ``start`` begins no frame.
    ``samples``: the samples of each frame but the last, if they are equal (section 9.1)."""
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
    """Return the CRC of data that ends with its own CRC: 0 for unchanged data."""
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
"""The tables for the checksums of a frame's header and of the frame (sections 9.1.8 and 9.3)."""


_PAGE_HEADER = 27
"""The bytes of a page before the lengths of its segments."""
_MOST_PAGES = 300_000
"""The most pages of a file: an hour and a half of the shortest packets of Opus, each in its own
page."""
_BEHIND = 4_096
"""This many bytes after the last page, such as a tag of another format, are ignored."""
_FIRST = 2
"""The bit of a page that begins a stream."""
_SKELETON = b"fishead\0"
"""The beginning of a stream without sound, which describes the others."""
_TURNED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
"""Each byte with its bits in the opposite order."""


def check_pages(file: IO[bytes], name: str, size: int) -> None:
    """Raise ``DataError`` for a file that is cut off, contains anything but pages, or has
    several recordings."""
    at = streams = 0
    for _ in range(_MOST_PAGES):
        file.seek(at)
        head = file.read(_PAGE_HEADER)
        if size - at <= _BEHIND and head[:4] != b"OggS":
            return
        if head[:5] != b"OggS\0":
            raise DataError(f"{name} is damaged: no page of an OGG file begins at byte {at:,}")
        lengths = file.read(head[26]) if len(head) == _PAGE_HEADER else b""
        end = at + _PAGE_HEADER + (head[26] if len(head) == _PAGE_HEADER else 0) + sum(lengths)
        if len(head) < _PAGE_HEADER or len(lengths) < head[26] or end > size:
            raise DataError(
                f"{name} is cut off: it has {size:,} of at least {max(end, size + 1):,} bytes"
            )
        body = file.read(sum(lengths))
        page = b"".join((head[:22], bytes(4), head[26:], lengths, body))
        if checksum(page) != int.from_bytes(head[22:26], "little"):
            raise DataError(f"{name} is damaged: the page at byte {at:,} has a wrong checksum")
        streams += bool(head[5] & _FIRST) and not body.startswith(_SKELETON)
        if streams > 1:
            raise several(name, at)
        at = end
    raise DataError(
        f"{name} is damaged: it has more than {_MOST_PAGES:,} pages, which no recording needs"
    )


def checksum(page: bytes) -> int:
    """Return the CRC of a page whose own CRC field is 0: the polynomial of zlib's, with the bits
    reversed, starting from 0."""
    turned = zlib.crc32(page.translate(_TURNED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{turned:032b}"[::-1], 2)


def several(name: str, at: int) -> DataError:
    """Return the error for a file in which a second recording begins at byte ``at``."""
    return DataError(
        f"{name} holds several recordings: another one begins at byte {at:,}, but only the first "
        "would be read. Write each to its own file"
    )
