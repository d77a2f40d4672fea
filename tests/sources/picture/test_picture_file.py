"""Pictures of every mode and format become pixels of one size; what is none is told in a line."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from dragoman.base.errors import DataError
from dragoman.sources.picture.form import patches_of, pixels_from
from dragoman.sources.picture.picture_file import picture_size, pixels_of
from dragoman.sources.shared.files import InMemory

HALVES = np.zeros((8, 6), np.uint8)
HALVES[:4] = 200
"""Light above, dark below."""


def in_file(image: Image.Image, kind: str = "PNG", **more: Any) -> InMemory:
    file = io.BytesIO()
    image.save(file, kind, **more)
    return InMemory("one.png", file.getvalue())


def test_pixels_of_the_size_that_is_read_are_left_as_they_are(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    file = in_file(Image.fromarray(pixels))
    assert (pixels_of(file, 7, 5, 3) == pixels).all() and picture_size(file) == (7, 5)
    path = tmp_path / "one.png"
    path.write_bytes(file.data)
    assert (pixels_of(path, 7, 5, 3) == pixels).all()
    grey = in_file(Image.fromarray(pixels[..., 0]))
    assert (pixels_of(grey, 7, 5, 1)[..., 0] == pixels[..., 0]).all()


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("1", "PNG"), ("L", "PNG"), ("LA", "PNG"), ("P", "GIF"), ("P", "PNG"), ("RGB", "BMP"),
     ("RGBA", "PNG"), ("RGB", "WEBP"), ("CMYK", "JPEG"), ("L", "JPEG"), ("I;16", "PNG")],
)  # fmt: skip
@pytest.mark.parametrize("channels", [1, 3])
def test_any_mode_is_read(mode: str, kind: str, channels: int) -> None:
    whole = Image.fromarray(np.kron(HALVES, np.ones((8, 8), np.uint8)))
    if mode == "I;16":
        image = Image.fromarray(np.asarray(whole).astype(np.uint16) * 257)
    else:
        image = whole.convert(mode)
    found = pixels_of(in_file(image, kind), 8, 6, channels)
    wanted = 255 if mode == "1" else 200  # a dithered grey is on the whole as light
    assert found.shape == (8, 6, channels)
    if mode == "1":
        assert 150 < found[:3].mean() < 255 and found[5:].mean() == 0
    else:
        assert np.abs(found[:3].astype(int) - wanted).max() <= 6
        assert found[5:].max() <= 6


def test_what_is_transparent_is_white() -> None:
    image = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    image.putpixel((1, 2), (0, 0, 0, 255))
    found = pixels_of(in_file(image), 4, 4, 1)[..., 0]
    assert found[2, 1] == 0 and found.sum() == 15 * 255


@pytest.mark.parametrize("orientation", range(1, 9))
def test_it_is_turned_as_the_camera_was_held(orientation: int) -> None:
    from PIL import ImageOps

    image = Image.fromarray(
        np.kron(np.arange(6, dtype=np.uint8).reshape(2, 3) * 40, np.ones((8, 8), np.uint8))
    )
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = in_file(image, "JPEG", exif=exif, quality=100)
    wanted = ImageOps.exif_transpose(Image.open(file.open()))
    assert wanted is not None
    found = pixels_of(file, wanted.height, wanted.width, 1)[..., 0]
    assert (found == np.asarray(wanted)).all()


def test_how_a_png_was_held_is_told_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    turned, plain = in_file(Image.new("L", (4, 2)), exif=exif), in_file(Image.new("L", (4, 2)))
    assert pixels_of(turned, 4, 2, 1).shape == (4, 2, 1)
    decoded: list[object] = []
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", lambda one: decoded.append(one))
    assert [picture_size(turned), picture_size(plain)] == [(4, 2), (2, 4)]
    assert not decoded


def many_scans(more: int, behind: bytes = b"") -> InMemory:
    """A progressive JPEG file whose last scan is repeated."""
    data = in_file(Image.new("L", (16, 16), 90), "JPEG", progressive=True).data
    scan, end = data.rfind(b"\xff\xda"), data.rfind(b"\xff\xd9")
    return InMemory("one.jpg", data[:end] + data[scan:end] * more + data[end:] + behind)


def test_a_jpeg_file_of_many_scans_is_refused() -> None:
    """Each takes some bytes, and as long to decode as the picture is large."""
    with pytest.raises(DataError, match=r"one\.jpg has more than 50 scans"):
        pixels_of(many_scans(60), 8, 8, 1)
    with pytest.raises(DataError, match="more than 1,000 segments"):
        picture_size(
            InMemory("one.jpg", many_scans(0).data[:2] + b"\xff\xe1\0\x08Exif\0\0" * 2_000)
        )
    # What stands behind the picture, as a film beside a photo does, and what is in EXIF.
    assert pixels_of(many_scans(30, b"\xff\xda\0\x08" * 100), 8, 8, 1).max() == 90
    exif = Image.Exif()
    exif[0x9286] = b"\xff\xda\0\x02" * 100
    shown = in_file(Image.new("L", (16, 16), 90), "JPEG", exif=exif, progressive=True)
    assert shown.data.count(b"\xff\xda") >= 100 and pixels_of(shown, 8, 8, 1).max() == 90


def test_a_file_of_a_million_parts_is_refused() -> None:
    """Pillow reads each by itself."""
    png, gif = (in_file(Image.new("P", (8, 8)), kind).data for kind in ("PNG", "GIF"))
    chunk = struct.pack(">I", 0) + b"prVt" + struct.pack(">I", zlib.crc32(b"prVt"))
    at = gif.index(b",\0\0\0\0\x08\0\x08")
    for comments in (b"!\xfe\1a\0" * 60_000, b"!\xfe" + b"\1a" * 60_000 + b"\0"):
        with pytest.raises(DataError, match=r"one\.gif has more than 10,000 blocks"):
            picture_size(InMemory("one.gif", gif[:at] + comments + gif[at:]))
    assert picture_size(InMemory("one.gif", gif[:at] + b"!\xfe\1a\0" * 99 + gif[at:])) == (8, 8)
    with pytest.raises(DataError, match=r"one\.png has more than 10,000 chunks"):
        picture_size(InMemory("one.png", png[:33] + chunk * 60_000 + png[33:]))
    assert picture_size(InMemory("one.png", png[:33] + chunk * 99 + png[33:])) == (8, 8)


def test_another_shape_is_cut_around_its_middle() -> None:
    wide = np.zeros((4, 12), np.uint8)
    wide[:, 4:8] = 255
    assert pixels_of(in_file(Image.fromarray(wide)), 4, 4, 1).min() == 255
    assert pixels_of(in_file(Image.fromarray(wide[:1, 5:6])), 28, 28, 1).min() == 255  # 1 x 1


def test_of_an_animation_the_first_picture_is_read() -> None:
    frames = [Image.new("L", (4, 4), shade) for shade in (90, 200)]
    file = in_file(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert pixels_of(file, 4, 4, 1).max() == 90


def bomb(width: int, height: int) -> InMemory:
    """A PNG of so many pixels along each side, a thousandth as large."""
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    data = zlib.compress(bytes((width // 8 + 1) * 8))  # cut off, to be made fast
    chunks = [(b"IHDR", head), (b"IDAT", data), (b"IEND", b"")]
    made = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
    return InMemory("one.png", b"\x89PNG\r\n\x1a\n" + made)


WHOLE = in_file(Image.fromarray(np.random.default_rng(1).integers(0, 256, (40, 40, 3), np.uint8)))


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (InMemory("one.png", b""), "one.png is empty"),
        (
            InMemory("one.png", b"hello"),
            "not a supported picture (PNG, JPEG, GIF, BMP and WEBP",
        ),
        (InMemory("one.png", WHOLE.data[:-900]), "one.png is damaged or cut off"),
        (bomb(20_000, 20_000), "20,000 x 20,000 pixels; at most 100,000,000"),
        (bomb(1, 65_536), "1 x 65,536 pixels; at most 65,535 are allowed in each direction"),
        (bomb(65_536, 1), "65,536 x 1 pixels; at most 65,535 are allowed in each direction"),
        (in_file(Image.new("L", (3, 3)), "TIFF"), "not a supported picture"),
        (in_file(Image.new("L", (3, 3)), "PPM"), "not a supported picture"),
        (
            InMemory("one.png", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
            "not a supported picture",
        ),
        (Path("/nowhere/one.png"), "does not exist"),
        (Path("/"), "is a folder"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(file: Any, words: str) -> None:
    with pytest.raises(DataError) as told:
        pixels_of(file, 8, 8, 1)
    assert words in str(told.value) and "\n" not in str(told.value)


def test_a_file_of_another_format_is_told_with_the_command_that_converts_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "two words.tif"
    Image.new("L", (3, 3)).save(path)
    with pytest.raises(DataError) as told:
        pixels_of(path, 8, 8, 1)
    assert f"magick '{path}' '{tmp_path / 'two words.png'}'" in str(told.value)
    path = tmp_path / "really.png"  # as telephones send them
    path.write_bytes(b"\0\0\0\x18ftypheic" + bytes(200))
    with pytest.raises(DataError, match=r"really.png is HEIC, .* magick"):
        pixels_of(path, 8, 8, 1)


def test_patches_are_put_together_again() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 3), dtype=np.uint8)
    patches = patches_of(pixels, 4)
    assert (pixels_from(patches, 8, 12, 4) == pixels).all()
    half = pixels_from(patches[:3], 8, 12, 4)
    assert (half[:4] == pixels[:4]).all() and not half[4:].any()
