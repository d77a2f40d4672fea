"""Pictures that would keep the interpreter busy are refused before they are opened, and those that
programs write are not."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dragoman.base.errors import DataError
from dragoman.sources.picture import picture_file
from dragoman.sources.picture.picture_file import check_parts, picture_size, pixels_of
from dragoman.sources.shared.files import InMemory

GREY = Image.fromarray(np.random.default_rng(0).integers(0, 256, (300, 200), dtype=np.uint8))


def written(image: Image.Image, kind: str, **how: Any) -> bytes:
    held = io.BytesIO()
    image.save(held, kind, **how)
    return held.getvalue()


def chunk(name: bytes, content: bytes = b"") -> bytes:
    whole = name + content
    return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))


PNG, JPEG = written(GREY, "PNG"), written(GREY, "JPEG")
GIF = written(GREY.quantize(16), "GIF", comment=b"a comment")
EXIF = b"II*\0\x08\0\0\0\xff\xff" + b"\1\2\7\0\xff\xff\0\0\0\0\0\0" * 65_535
"""The most entries that it may have, each of which points to the same 65,535 bytes."""


def segments(kind: bytes, begin: bytes, content: bytes, size: int = 60_000) -> bytes:
    """Content in as many segments of a JPEG file as it takes, each with the same beginning."""
    parts = [begin + content[at : at + size] for at in range(0, len(content), size)]
    return b"".join(kind + struct.pack(">H", 2 + len(part)) + part for part in parts)


def png_exif(content: bytes) -> dict[str, bytes]:
    """PNG files with EXIF in a chunk of its own, and in text as ImageMagick writes it."""
    text = b"Raw profile type exif\0\0" + zlib.compress(b"\nexif\n 9\n" + content.hex().encode())
    parts = {"chunk": chunk(b"eXIf", content), "text": chunk(b"zTXt", text)}
    return {name: PNG[:33] + part + PNG[33:] for name, part in parts.items()}


_BEHIND_COLOURS = 13 + 3 * 2 ** ((GIF[10] & 7) + 1)
COSTLY = {
    "chunks before": (PNG[:33] + chunk(b"tEXt", b"a\0b") * 60_000 + PNG[33:], "PNG"),
    "chunks behind": (PNG[:-12] + chunk(b"prVt") * 60_000 + PNG[-12:], "PNG"),
    "comments": (
        GIF[:_BEHIND_COLOURS] + b"\x21\xfe\x01a\0" * 60_000 + GIF[_BEHIND_COLOURS:], "GIF"
    ),
    "parts of one comment": (
        GIF[:_BEHIND_COLOURS] + b"\x21\xfe" + b"\x01a" * 60_000 + b"\0" + GIF[_BEHIND_COLOURS:],
        "GIF",
    ),
    "empty extensions": (
        GIF[:_BEHIND_COLOURS] + b"\x21\xf9\0" * 60_000 + GIF[_BEHIND_COLOURS:], "GIF"
    ),
    "bytes that fill up": (JPEG[:2] + b"\xff" * (10_009) + JPEG[2:], "JPEG"),
    "scans": (JPEG[:-2] + JPEG[JPEG.rfind(b"\xff\xda") : -2] * 50 + JPEG[-2:], "JPEG"),
    "segments": (JPEG[:2] + b"\xff\xfe\0\x02" * 1_001 + JPEG[2:], "JPEG"),
    "entries of EXIF": (JPEG[:2] + segments(b"\xff\xe1", b"Exif\0\0", EXIF) + JPEG[20:], "JPEG"),
    "resources of Photoshop": (
        JPEG[:2] + segments(b"\xff\xed", b"Photoshop 3.0\0", (b"8BIM" + bytes(8)) * 11_000)
        + JPEG[2:], "JPEG",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTLY)
def test_what_would_take_long_is_refused(name: str) -> None:
    content, kind = COSTLY[name]
    assert picture_size(InMemory("a", PNG)) == (300, 200)
    for read in (picture_size, lambda file: pixels_of(file, 8, 8, 1)):
        with pytest.raises(DataError, match=rf"^a has more than .* no {kind} file"):
            read(InMemory("a", content))


@pytest.mark.parametrize("kind", ["chunk", "text", "WEBP"])
def test_little_exif_is_read(kind: str) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    usual = turned.tobytes().removeprefix(b"Exif\0\0")
    for exif, is_read in ((usual, True), (EXIF[:200_000], False)):
        if kind == "WEBP":
            data = written(GREY, "WEBP", exif=exif)
        else:
            data = png_exif(exif)[kind]
        if is_read:
            assert picture_size(InMemory("a", data)) == (200, 300)
        else:
            with pytest.raises(DataError, match="a has more than 65,536 bytes of EXIF"):
                picture_size(InMemory("a", data))


def test_run_lengths_are_not_decoded() -> None:
    """Pillow does that byte by byte, with no turn for another thread."""
    plain = written(GREY, "BMP")
    assert picture_size(InMemory("a", plain)) == (300, 200)
    for kind in (1, 2):
        with pytest.raises(DataError, match="a is a run-length encoded BMP file"):
            picture_size(InMemory("a", plain[:30] + struct.pack("<I", kind) + plain[34:]))


def test_little_text_is_inflated() -> None:
    text = chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(1_000_000)))
    assert picture_size(InMemory("a", PNG[:33] + text * 3 + PNG[33:])) == (300, 200)
    with pytest.raises(DataError, match="a is damaged"):
        picture_size(InMemory("a", PNG[:33] + text * 5 + PNG[33:]))


def test_a_deep_picture_takes_no_more_than_its_pixels() -> None:
    """Of two bytes each, and the one byte that is made of it."""
    deep = Image.fromarray(np.arange(1_000_000, dtype=np.uint16).reshape(1_000, 1_000))
    file = InMemory("a", written(deep, "PNG"))
    tracemalloc.start()
    try:
        pixels = pixels_of(file, 1_000, 1_000, 1)
        assert tracemalloc.get_traced_memory()[1] < 7_000_000
    finally:
        tracemalloc.stop()
    wanted = np.arange(1_000_000, dtype=np.uint16).reshape(1_000, 1_000, 1) // 257
    np.testing.assert_array_equal(pixels, wanted)


@pytest.mark.parametrize("kind", ["PNG", "GIF", "JPEG", "WEBP", "BMP"])
def test_what_programs_write_is_read(kind: str) -> None:
    many = [Image.new("L", (9, 7), n % 256) for n in range(40)]
    large = Image.fromarray(np.random.default_rng(1).integers(0, 256, (900, 800), dtype=np.uint8))
    how: dict[str, dict[str, Any]] = {
        "PNG": {"icc_profile": bytes(3_000)}, "JPEG": {"progressive": True, "comment": b"x" * 9},
        "GIF": {"comment": b"y" * 9_000},
    }  # fmt: skip
    for image, more in ((GREY, {}), (large, how.get(kind, {}))):
        data = written(image, kind, **more)
        check_parts("a", data)
        assert picture_size(InMemory("a", data)) == image.size[::-1]
    if kind in ("PNG", "GIF", "WEBP"):
        data = written(many[0], kind, save_all=True, append_images=many[1:])
        assert pixels_of(InMemory("a", data), 7, 9, 1).shape == (7, 9, 1)


def test_a_file_that_ends_anywhere_ends_the_count() -> None:
    for whole in (PNG, GIF, JPEG, *(content for content, _ in COSTLY.values())):
        for end in (*range(40), len(whole) - 3):
            try:
                check_parts("a", whole[:end])
            except DataError:
                assert end > 40
    check_parts("a", PNG[:8] + b"\xff\xff\xff\xff" * 9)


def test_what_is_behind_the_end_of_a_picture_is_not_counted() -> None:
    """Some systems fill files up with zeros, which look like chunks of no bytes."""
    check_parts("a", PNG + bytes(2_000_000))


def test_each_byte_is_gone_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a search that goes back over bytes that fill up, this would not end."""
    monkeypatch.setattr(picture_file, "_FILL", 1 << 40)
    check_parts("a", b"\xff\xd8" + b"\xff" * 2_000_000 + b"\0")


def test_a_marker_across_two_windows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_file, "_WINDOW", 64)
    monkeypatch.setattr(picture_file, "_SCANS", 1)
    begin = JPEG.rfind(b"\xff\xda")
    scan = JPEG[begin : begin + 10]
    for apart in range(200):
        with pytest.raises(DataError, match="1 scans"):
            check_parts("a", JPEG[:begin] + scan + bytes(apart) + scan)


def test_what_is_transparent_is_laid_on_white_band_by_band(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_file, "_BAND", 40)
    colours = np.random.default_rng(2).integers(0, 256, (11, 15, 4), dtype=np.uint8)
    image = Image.fromarray(colours)
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    wanted = np.asarray(Image.alpha_composite(white, image).convert("RGB"))
    assert (picture_file.whole_picture(InMemory("a", written(image, "PNG"))) == wanted).all()
