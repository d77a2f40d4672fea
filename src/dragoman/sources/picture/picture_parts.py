"""This module limits the number of parts in the file of a picture, before it is opened.

A progressive JPEG file comes in scans, each of which makes the whole picture a little finer
(ITU-T T.81, annex G); encoders write about ten. A scan that changes nothing takes a few bytes,
and as long to decode as any other: 16 kB can keep a core busy for seconds. A million comments of
a few bytes take long too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from dragoman.base.errors import DataError

_SCANS = 50
_SEGMENTS = 1_000
"""The most segments of tables and metadata, scans included. Pillow joins those of EXIF one by
one."""
MOST_EXIF = 1 << 16
"""The most bytes of EXIF. It gives the orientation of the camera, in one segment of a JPEG file,
which has fewer (CIPA DC-008). Its entries take twelve bytes each; Pillow reads them one by one,
and before version 13 it copies what they point to, which may be the same bytes for all."""
_RESOURCES = 10_000
"""The most Photoshop resources in a JPEG file. Pillow reads them one by one."""
_PARTS = 10_000
"""The most chunks of a PNG file, and the most blocks (of up to 255 bytes) before the first
picture of a GIF file."""
_FILL = 10_000
"""The most bytes before the first scan that belong to no segment; Pillow reads them one by one."""
_WINDOW = 100_000
"""The bytes that are searched together; other threads wait for a search."""
_JPEG_MARKER = re.compile(rb"\xff([\x02-\xcf\xd8-\xfe])")
"""The beginning of a segment of a JPEG file: neither a byte of the picture nor a restart marker.
Of several bytes 0xff it is the last, so that each is read once."""
_SCAN, _END = 0xDA, 0xD9
_APP1, _APP13 = 0xE1, 0xED
_EXTENSION = 0x21
_RUN_LENGTHS = (1, 2)
"""Kinds of compression of a BMP file that Pillow decodes byte by byte."""


def check_parts(called: str, data: bytes) -> None:
    """Raise ``DataError`` for a file whose parts would take long to read."""
    if data.startswith(b"\xff\xd8\xff"):
        scans = fill = exif = resources = 0
        for number, (marker, between, begin, end) in enumerate(_segments(data), 1):
            fill += 0 if scans else between
            scans += marker == _SCAN
            exif += end - begin if marker == _APP1 and data.startswith(b"Exif", begin) else 0
            resources += data.count(b"8BIM", begin, end) if marker == _APP13 else 0
            for count, most, what in (
                (exif, MOST_EXIF, "bytes of EXIF"),
                (resources, _RESOURCES, "resources of Photoshop"),
                (fill, _FILL, "bytes between its segments"),
                (scans, _SCANS, "scans"),
                (number, _SEGMENTS, "segments"),
            ):
                if count > most:
                    raise _too_many(called, f"{most:,} {what}", "JPEG")
    elif data.startswith(b"\x89PNG") and any(islice(_chunks(data), _PARTS, None)):
        raise _too_many(called, f"{_PARTS:,} chunks", "PNG")
    elif data.startswith(b"BM") and int.from_bytes(data[30:34], "little") in _RUN_LENGTHS:
        raise DataError(
            f"{called} is a run-length encoded BMP file, which is slow to decode. Save it as PNG"
        )
    elif data.startswith(b"GIF8") and any(islice(_blocks(data), _PARTS, None)):
        raise _too_many(called, f"{_PARTS:,} blocks", "GIF")


def _too_many(called: str, what: str, kind: str) -> DataError:
    return DataError(f"{called} has more than {what}, which no {kind} file needs. Save it again")


def _segments(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the marker of each segment, the number of bytes before it that belong to none, and
    where its content begins and ends; the end of the picture comes last."""
    at = 2
    while (marker := _marker(data, at)) is not None and marker[1][0] != _END:
        begin, between = marker.end() + 2, marker.start() - at
        at = marker.end() + int.from_bytes(data[marker.end() : begin])
        yield marker[1][0], between, begin, at
    end = len(data) if marker is None else marker.start()
    yield _END, end - at, end, end


def _marker(data: bytes, at: int) -> re.Match[bytes] | None:
    """Return the next marker from ``at`` on. Other threads can run between two windows."""
    while at < len(data):
        if marker := _JPEG_MARKER.search(data, at, at + _WINDOW):
            return marker
        at += _WINDOW - 1  # a marker has two bytes
    return None


def _chunks(data: bytes) -> Iterator[int]:
    """Yield the beginning of each chunk, up to the last chunk."""
    at = 8
    while at < len(data):
        yield at
        if data[at + 4 : at + 8] == b"IEND":
            return
        at += 12 + int.from_bytes(data[at : at + 4])


def _blocks(data: bytes) -> Iterator[int]:
    """Yield the beginning of each block before the first picture; other bytes are skipped."""
    table = data[10] if len(data) > 10 else 0
    at = 13 + (3 << (table & 7) + 1 if table & 0x80 else 0)
    while at < len(data) and data[at] not in b",;":
        yield at
        if data[at] == _EXTENSION:
            at += 2
            while at < len(data) and data[at]:
                yield at
                at += 1 + data[at]
        at += 1
