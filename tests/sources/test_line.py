"""Text is drawn the same way each time, and a picture of it in a file is read as it was drawn."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from dragoman.base.errors import DataError
from dragoman.sources import line as lines_form
from dragoman.sources.file_examples import content_of
from dragoman.sources.line import DRAWN, DrawingSettings, LinesForm, LineSource, draw_text
from dragoman.sources.picture.idx import Bytes
from dragoman.sources.picture.picture_file import line_of
from dragoman.sources.shared.files import InMemory

TEXT = "A man on a ladder."
FORM = LinesForm(LineSource(height=20))


def saved(path: Path, pixels: Bytes, **more: Any) -> str:
    Image.fromarray(pixels).save(path, **more)
    return str(path)


def test_a_picture_is_read_as_it_was_drawn(tmp_path: Path) -> None:
    pixels = draw_text(TEXT, 20, FORM.settings.drawing)
    file = saved(tmp_path / "line.png", pixels)
    rows = FORM.rows(file)
    assert rows.shape == (pixels.shape[1], 20) and rows.dtype == np.uint8
    assert (rows == FORM.rows(DRAWN + TEXT)).all() and (rows == 255 - pixels.T).all()
    (*_, in_turns) = FORM.in_turns(Path(file))
    assert in_turns is not None and (in_turns == rows).all()
    assert (FORM.picture(rows)[..., 0] == pixels).all()
    dark = saved(tmp_path / "dark.png", 255 - pixels)
    assert (FORM.rows(dark) == rows).all(), "light letters on dark paper"
    large = saved(tmp_path / "large.png", np.kron(pixels, np.ones((3, 3), np.uint8)))
    assert (FORM.rows(large) == rows).all(), "scaled to the height"


def test_it_is_turned_as_its_camera_was_held(tmp_path: Path) -> None:
    pixels = draw_text(TEXT, 20, FORM.settings.drawing)
    exif = Image.Exif()
    exif[0x0112] = 6
    upright = saved(tmp_path / "held.png", np.rot90(pixels).copy(), exif=exif)
    assert (FORM.rows(upright) == FORM.rows(DRAWN + TEXT)).all()


def test_what_varies_is_of_the_text_and_the_seed_alone() -> None:
    vary = DrawingSettings(smallest=0.4, largest=0.9, slant=0.4, blur=1.5, speckle=0.2)
    first = draw_text(TEXT, 24, vary)
    assert (draw_text(TEXT, 24, vary) == first).all()
    other = draw_text(TEXT, 24, vary.model_copy(update={"seed": 2}))
    assert first.shape != other.shape or (first != other).any()
    widths = {draw_text(f"{TEXT} {n}", 24, vary).shape[1] for n in range(10)}
    assert len(widths) > 5, "sizes differ from text to text"
    plain = DrawingSettings(smallest=0.7, largest=0.7, slant=0, blur=0)
    assert (draw_text("  A  man\ton a ladder. ", 24, plain) == draw_text(TEXT, 24, plain)).all()


@pytest.mark.parametrize("text", ["|||||", "gÅjy|" * 40, "i"])
@pytest.mark.parametrize("slant", [0.0, 1.0])
def test_no_ink_touches_the_left_or_the_right_edge(text: str, slant: float) -> None:
    for seed in range(8):
        pixels = draw_text(text, 24, DrawingSettings(slant=slant, blur=0, seed=seed))
        assert pixels.min() < 100, "there is ink"
        assert (pixels[:, [0, -1]] == 255).all()


def test_a_text_that_is_higher_than_its_picture_is_drawn_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As letters with signs above and below are, in some fonts."""
    edges: list[tuple[float, float]] = []
    font_of, draw = lines_form._font, ImageDraw.ImageDraw.text

    def noted(image: Any, place: tuple[float, float], text: str, font: Any, fill: int) -> None:
        _, top, _, bottom = font.getbbox(text)
        edges.append((place[1] + top, place[1] + bottom))
        draw(image, place, text, font=font, fill=fill)

    monkeypatch.setattr(lines_form, "_font", lambda name, size: font_of(name, 2 * size))
    monkeypatch.setattr(ImageDraw.ImageDraw, "text", noted)
    for seed in range(8):
        draw_text("gAjy|", 24, DrawingSettings(seed=seed))
    assert all(top >= 0 and bottom <= 24 for top, bottom in edges) and len(edges) == 8


def test_a_text_that_nobody_sees_is_not_drawn() -> None:
    settings = DrawingSettings(fonts=("DejaVuSans.ttf",))
    try:
        draw_text("a", 24, settings)
    except DataError:
        pytest.skip("the font DejaVu Sans is not installed")
    with pytest.raises(DataError, match=r"'\\u200b' has no visible letter"):
        draw_text("\u200b", 24, settings)


def test_content_is_that_of_the_text() -> None:
    assert content_of(DRAWN + TEXT) == content_of(DRAWN + TEXT) != content_of(DRAWN + TEXT + "!")


def test_what_cannot_be_drawn_or_read_is_told(tmp_path: Path) -> None:
    settings = DrawingSettings()
    for text, why in (
        (" \t", "empty text"),
        ("x" * 4_001, "4,001 letters; at most 4,000"),
        ("한국어 text", "has 4 letters of 7, and lacks '한'"),
    ):
        if "7" in why:
            assert draw_text(text, 20, settings).size
            continue
        with pytest.raises(DataError, match=why):
            draw_text(text, 20, settings)
    with pytest.raises(DataError, match="Aileron Regular has 1 letter of 4, and lacks '한'"):
        draw_text("한국어.", 20, settings)
    with pytest.raises(DataError, match=r"no font none\.ttf .* source\.drawing\.fonts"):
        draw_text(TEXT, 20, DrawingSettings(fonts=("none.ttf",)))
    wide = io.BytesIO()
    Image.new("L", (40_000, 2)).save(wide, "PNG")
    with pytest.raises(DataError, match="400,000 pixels wide at a height of 20; at most 1,000"):
        line_of(InMemory("wide.png", wide.getvalue()), 20, 1_000)
    thin = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("L", (2, 40_000)).save(thin, "PNG", exif=exif)
    with pytest.raises(DataError, match="400,000 pixels wide"):
        line_of(InMemory("thin.png", thin.getvalue()), 20, 1_000)
