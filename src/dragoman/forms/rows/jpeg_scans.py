"""How often a JPEG file goes over its picture, told before anything is decoded.

A progressive picture comes in scans, each of which makes all of it a little finer (ITU-T T.81,
annex G); encoders write about ten. A scan that changes nothing takes a few bytes, and as long to
decode as any other: 16 kB can keep a core busy for seconds. Between segments there may be bytes
that fill up, which Pillow goes over one by one.
"""

from __future__ import annotations

import re

from dragoman.errors import DataError

MOST_SCANS = 50
MOST_SEGMENTS = 1_000
"""Tables and metadata, scans included. Pillow joins those of EXIF one by one."""
MOST_FILL = 10_000
"""Bytes before the first scan that belong to no segment."""
_WINDOW = 100_000
"""Bytes that are searched at once: a search lets no other thread run."""
_START, _SCAN, _END = b"\xff\xd8\xff", 0xDA, 0xD9
_MARKER = re.compile(rb"\xff([\x02-\xcf\xd8-\xfe])")
"""What begins a segment: neither a byte of the picture nor one of its restarts. Of several bytes
0xff it is the last, so that a search goes over each once."""


def check_scans(called: str, data: bytes) -> None:
    """Errors: ``DataError`` for a JPEG file that would take long; any other file may follow."""
    if not data.startswith(_START):
        return
    at, scans, segments, fill = 2, 0, 0, 0
    found = _marker(data, at)
    while True:
        if not scans:
            fill += (len(data) if found is None else found.start()) - at
        is_scan = found is not None and found[1][0] == _SCAN
        segments, scans = segments + 1, scans + is_scan
        if scans > MOST_SCANS:
            raise _costly(called, f"{MOST_SCANS} scans")
        if segments > MOST_SEGMENTS:
            raise _costly(called, f"{MOST_SEGMENTS:,} segments")
        if fill > MOST_FILL:
            raise _costly(called, f"{MOST_FILL:,} bytes between its segments")
        if found is None or found[1][0] == _END:
            return
        at = found.end() + int.from_bytes(data[found.end() : found.end() + 2])
        found = _marker(data, at)


def _marker(data: bytes, at: int) -> re.Match[bytes] | None:
    """The next one from ``at`` on. Other threads have a turn between two windows."""
    while at < len(data):
        if found := _MARKER.search(data, at, at + _WINDOW):
            return found
        at += _WINDOW - 1  # a marker has two bytes
    return None


def _costly(called: str, what: str) -> DataError:
    return DataError(f"{called} has more than {what}, as no JPEG file needs: write it again")
