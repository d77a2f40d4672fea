"""How often a JPEG file goes over its picture, told before anything is decoded.

A progressive picture comes in scans, each of which makes all of it a little finer (ITU-T T.81,
annex G); encoders write about ten. A scan that changes nothing takes a few bytes, and as long to
decode as any other: 16 kB can keep a core busy for seconds.
"""

from __future__ import annotations

import re

from dragoman.errors import DataError

MOST_SCANS = 50
MOST_SEGMENTS = 1_000
"""Tables and metadata, scans included. Pillow joins those of EXIF one by one."""
_START, _SCAN, _END = b"\xff\xd8\xff", 0xDA, 0xD9
_MARKER = re.compile(rb"\xff+([\x02-\xcf\xd8-\xfe])")
"""What begins a segment: neither a byte of the picture nor one of its restarts."""


def check_scans(called: str, data: bytes) -> None:
    """Errors: ``DataError`` for a JPEG file that would take long; any other file may follow."""
    if not data.startswith(_START):
        return
    scans = segments = 0
    found = _MARKER.search(data, 2)
    while found is not None and found[1][0] != _END:
        segments += 1
        scans += found[1][0] == _SCAN
        if scans > MOST_SCANS or segments > MOST_SEGMENTS:
            what = f"{MOST_SCANS} scans" if scans > MOST_SCANS else f"{MOST_SEGMENTS:,} segments"
            raise DataError(f"{called} has more than {what}, as no JPEG file needs: write it again")
        length = int.from_bytes(data[found.end() : found.end() + 2])
        found = _MARKER.search(data, found.end() + length)
