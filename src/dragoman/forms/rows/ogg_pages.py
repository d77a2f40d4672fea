"""The pages of an OGG file, checked before anything else reads them (RFC 3533, section 6).

What libogg does not find to be a page it searches for the next one, and computes a checksum over 65
kB wherever four bytes look like the beginning of one: a megabyte of such beginnings takes seconds.
So every page must follow the one before it and have the checksum that it says.

libsndfile reads the first recording of a file alone, so there must be no other (section 4).
"""

from __future__ import annotations

import zlib
from typing import IO

from dragoman.errors import DataError
from dragoman.forms.rows.unusable import several

_HEADER = 27
_MOST_PAGES = 300_000
"""Of a file: an hour and a half of the shortest packets of Opus, each in a page of its own."""
_BEHIND = 4_096
"""Bytes behind the last page that are not looked at, such as a tag of another format."""
_FIRST = 2
"""The bit of a page with which a stream begins."""
_SKELETON = b"fishead\0"
"""How a stream begins that has no sound of its own, and tells of the others."""
_TURNED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
"""Each byte with its bits in the opposite order."""


def check_pages(file: IO[bytes], name: str, size: int) -> None:
    """Errors: ``DataError`` for a file that is cut off, in which something is no page, or that
    holds several recordings."""
    at = streams = 0
    for _ in range(_MOST_PAGES):
        file.seek(at)
        head = file.read(_HEADER)
        if size - at <= _BEHIND and head[:4] != b"OggS":
            return
        if head[:5] != b"OggS\0":
            raise DataError(f"{name} is damaged: no page of an OGG file begins at byte {at:,}")
        lengths = file.read(head[26]) if len(head) == _HEADER else b""
        end = at + _HEADER + (head[26] if len(head) == _HEADER else 0) + sum(lengths)
        if len(head) < _HEADER or len(lengths) < head[26] or end > size:
            raise DataError(
                f"{name} is cut off: its last page ends at byte {max(end, size + 1):,}, and there "
                f"are {size:,}"
            )
        body = file.read(sum(lengths))
        page = b"".join((head[:22], bytes(4), head[26:], lengths, body))
        if checksum(page) != int.from_bytes(head[22:26], "little"):
            raise DataError(
                f"{name} is damaged: the page at byte {at:,} is not what its checksum says"
            )
        streams += bool(head[5] & _FIRST) and not body.startswith(_SKELETON)
        if streams > 1:
            raise several(name, at)
        at = end
    raise DataError(
        f"{name} is damaged: it has more than {_MOST_PAGES:,} pages, which no recording needs"
    )


def checksum(page: bytes) -> int:
    """The CRC of a page whose own four bytes of it are 0: the polynomial of zlib's, bits in the
    opposite order, from 0."""
    turned = zlib.crc32(page.translate(_TURNED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{turned:032b}"[::-1], 2)
