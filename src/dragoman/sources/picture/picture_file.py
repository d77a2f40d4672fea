"""Pictures are read by Pillow: PNG, JPEG, GIF, BMP and WebP.

No other formats are opened, whatever the name of the file; of an animation the first picture is
read. The number of pixels is read from the header before any is decoded.

The number of parts in a file is limited before it is opened. A progressive JPEG file comes in
scans, each of which makes the whole picture a little finer (ITU-T T.81, annex G); encoders write
about ten. A scan that changes nothing takes a few bytes, and as long to decode as any other: 16 kB
can keep a core busy for seconds. A million comments of a few bytes take long too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.base.errors import DataError, needing
from dragoman.sources.picture.idx import Bytes
from dragoman.sources.shared.files import File, FileKind, InMemory, conversion, names_in, reading

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PIXELS = 100_000_000
"""The most pixels of a file: 300 MB of colours."""
_MOST_ROWS = 65_535
"""The most rows of a picture, as in a JPEG file. Pillow processes a picture row by row without
letting other threads run: for 25 million rows of one pixel, half a second at a time."""
_BAND = 500_000
"""The number of pixels that are put on white together."""
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP")
_MOST_TEXT = 4 << 20
"""The most bytes of text in a PNG file, which Pillow inflates when it opens the file."""
FOREIGN_ENDINGS = frozenset(
    {".tif", ".tiff", ".heic", ".heif", ".avif", ".jxl", ".jp2", ".svg", ".psd", ".ppm", ".pgm",
     ".pbm"}
)  # fmt: skip
"""The endings of files of pictures that are not read."""
_BRANDS = {b"ftypheic": "HEIC", b"ftypheix": "HEIC", b"ftypmif1": "HEIF", b"ftypavif": "AVIF"}
"""The format of a file with these bytes after its first four, whatever its name."""
_ORIENTATION = 0x0112
"""The EXIF tag with the orientation of the camera."""
_DEEP = {"I;16": 257, "I;16B": 257, "I;16L": 257, "I": 257}
"""The values per step of a byte, for grey pictures with more than a byte per pixel."""
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


def library() -> ModuleType:
    """Return Pillow's module of pictures. Errors: ``DataError`` if it is not installed."""
    with needing("images", "reading pictures needs Pillow", DataError):
        from PIL import Image, PngImagePlugin
    Image.MAX_IMAGE_PIXELS = None  # MOST_PIXELS has our own message
    PngImagePlugin.MAX_TEXT_MEMORY = _MOST_TEXT
    return Image


def foreign(file: Path, kind: str) -> DataError:
    """Return the error for a picture of an unsupported kind, with the converting command."""
    return DataError(
        f"{file} is {kind}, which is not supported (BMP, GIF, JPEG, PNG and WebP are). Convert "
        f"it: {conversion('magick', file, '.png')}"
    )


def picture_size(file: File) -> tuple[int, int]:
    """Return height and width in the camera's orientation, from the header, without decoding.
    Errors: ``DataError``."""
    with _open(file) as image:
        lies = _orientation(image) in (5, 6, 7, 8)
        return (image.width, image.height) if lies else (image.height, image.width)


def pixels_of(file: File, height: int, width: int, channels: int) -> Bytes:
    """Return the (height, width, channels) picture in the camera's orientation, scaled until it
    covers that size, and cropped around its middle. Transparent parts are white.

    Errors: ``DataError`` for a file that is missing, empty, cut off, damaged, or no picture.
    """
    from PIL import ImageOps

    def fit(whole: Image) -> Image:
        return ImageOps.fit(whole, (width, height), library().Resampling.BILINEAR)

    pixels = _decode(file, "L" if channels == 1 else "RGB", fit)
    return pixels.reshape(height, width, channels)


def whole_picture(file: File) -> Bytes:
    """Return the (H, W, C) picture in colours, at its own size, in the camera's orientation.
    Errors: as ``pixels_of``."""
    return _decode(file, "RGB", lambda whole: whole)


def line_of(file: File, height: int, most: int) -> Bytes:
    """Return the (height, W) picture in grey, in the camera's orientation, scaled to that
    height.

    Errors: as ``pixels_of``, and ``DataError`` for a result wider than ``most``.
    """

    def fit(whole: Image) -> Image:
        width = max(1, round(whole.width * height / whole.height))
        if width > most:
            raise DataError(
                f"{file} is {width:,} pixels wide at a height of {height}; at most {most:,} are "
                "allowed in one line. Split it"
            )
        return whole.resize((width, height), library().Resampling.BOX)

    return _decode(file, "L", fit)


def _decode(file: File, mode: str, fit: Callable[[Image], Image]) -> Bytes:
    """Return a picture in grey (L) or colours (RGB), turned and then fitted. Errors: as
    ``pixels_of``."""
    with _open(file) as image:
        orientation = _orientation(image)
        try:
            return np.asarray(fit(_turn(_in_bytes(image, mode), orientation)), np.uint8)
        except (DataError, MemoryError):
            raise
        except Exception as error:  # decoders raise anything for damaged bytes
            raise DataError(f"{file} is damaged or cut off: {_reason(error)}") from error


def _open(file: File) -> Image:
    """Open a picture and read its header. Errors: ``DataError``."""
    source: Any = file
    with reading(file):
        if isinstance(file, InMemory):
            check_parts(str(file), file.data)
            size, source = len(file.data), file.open()
        else:
            size = file.stat().st_size
            if file.is_dir():
                raise DataError(f"{file} is a folder. Give the file of a picture")
    if not size:
        raise DataError(f"{file} is empty")
    try:
        image: Image = library().open(source, formats=_FORMATS)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # decoders raise anything for damaged bytes
        if not isinstance(file, InMemory):
            if file.suffix.lower() in FOREIGN_ENDINGS:
                raise foreign(file, file.suffix.removeprefix(".").upper()) from error
            with file.open("rb") as stream:
                brand = stream.read(12)[4:]
            if brand in _BRANDS:
                raise foreign(file, _BRANDS[brand]) from error
        kinds = f"{', '.join(_FORMATS[:-1])} and {_FORMATS[-1]}"
        raise DataError(f"{file} is damaged or not a supported picture ({kinds})") from error
    if (problem := _too_much(image)) is not None:
        with image:
            raise DataError(f"{file} has {problem}")
    return image


def _too_much(image: Image) -> str | None:
    """Return the limit that a picture exceeds, with the remedy; None if it exceeds none."""
    size, exif = f"{image.width:,} x {image.height:,} pixels", image.info.get("exif") or b""
    if image.width * image.height > MOST_PIXELS:
        return f"{size}; at most {MOST_PIXELS:,} are allowed. Make it smaller"
    if max(image.width, image.height) > _MOST_ROWS:
        return f"{size}; at most {_MOST_ROWS:,} are allowed in each direction. Crop it"
    # ImageMagick writes EXIF into the text of a PNG file, two hexadecimal digits for each byte.
    if max(len(exif), len(image.info.get("Raw profile type exif", "")) // 2) > MOST_EXIF:
        return f"more than {MOST_EXIF:,} bytes of EXIF. Save it again without them"
    return None


def _in_bytes(image: Image, mode: str) -> Image:
    """Return a picture of any mode in grey (L) or colours (RGB), with a byte per channel."""
    if image.mode in _DEEP:
        deep = np.asarray(image) // _DEEP[image.mode]
        image = library().fromarray(np.clip(deep, 0, 255).astype(np.uint8))
    if image.has_transparency_data:
        image = _on_white(image.convert("RGBA"))
    return image.convert(mode)


def _on_white(seen: Image) -> Image:
    """Put a picture with transparency on white, in place, band by band, because no other thread
    runs meanwhile."""
    rows = max(1, _BAND // seen.width)
    for top in range(0, seen.height, rows):
        band = 0, top, seen.width, min(top + rows, seen.height)
        part = seen.crop(band)
        white = library().new("RGBA", part.size, (255, 255, 255, 255))
        seen.paste(library().alpha_composite(white, part), band)
    return seen


def _orientation(image: Image) -> Any:
    """Return the orientation in the EXIF data before the pixels, or 1. Call it before decoding:
    Pillow's own ``getexif`` of a PNG decodes the pixels, to look behind them."""
    try:
        return library().Image.getexif(image).get(_ORIENTATION, 1)
    except Exception:  # noqa: BLE001 - damaged: a picture all the same
        return 1


def _turn(pixels: Image, orientation: Any) -> Image:
    """Turn a picture to the camera's orientation."""
    turns = library().Transpose
    turn = {
        2: turns.FLIP_LEFT_RIGHT,
        3: turns.ROTATE_180,
        4: turns.FLIP_TOP_BOTTOM,
        5: turns.TRANSPOSE,
        6: turns.ROTATE_270,
        7: turns.TRANSVERSE,
        8: turns.ROTATE_90,
    }.get(orientation)
    return pixels if turn is None else pixels.transpose(turn)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def has_colours(file: File) -> bool:
    """Return True if the header says that a picture has colours. Errors: ``DataError``."""
    with _open(file) as image:
        return image.mode not in {"1", "L", "LA", "F", *_DEEP}


PICTURES = FileKind(
    "picture",
    frozenset({".png", ".jpg", ".jpeg", ".jpe", ".gif", ".bmp", ".webp"}),
    FOREIGN_ENDINGS,
    foreign,
)


def pictures_in_zip(archive: Path) -> list[str]:
    """Return the places of all pictures of a ZIP file. Errors: ``DataError`` if there is none,
    or for a file that cannot be read."""
    places = [f"{archive}#{name}" for name in names_in(archive) if PICTURES.reads(name)]
    if not places:
        raise DataError(f"{archive} has no picture ({PICTURES.formats})")
    return places


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
