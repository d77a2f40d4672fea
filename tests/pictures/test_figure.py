"""Figures, their book and notebook views: well-formed, true to their numbers, asking nobody."""

from __future__ import annotations

import base64
import functools
import io
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import resvg_py
from needs_png import needs_png
from PIL import Image

from dragoman.base.errors import DragomanError
from dragoman.insight.figures.captions import captions
from dragoman.insight.figures.catalogue import FIGURES, make_figure
from dragoman.pictures.bitmaps import grey_address
from dragoman.pictures.explorer import translation_html
from dragoman.pictures.figure import (
    DataTable,
    Figure,
    Words,
    book_html,
    csv_files,
    figure_svg,
    png_of_svg,
    why_no_png,
    write_figure,
)
from dragoman.pictures.matrix import MatrixPicture
from dragoman.pictures.panels import HeadGrid, LinePanel, TextPanel, TwoHops, WordWeights
from dragoman.pictures.records import AttentionRecord, Heatmap, Hops, Series
from dragoman.pictures.theme import LIGHT

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>\"&'\x1b[31m\x00"


def example() -> Figure:
    """One figure with every kind of panel."""
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.ones(3), (2, 2, 3))
    words = ("a", "가나 ༼ $\\frac$", HOSTILE)
    signed = random.normal(size=(3, 3))
    signed[0, 2] = np.nan
    lines = LinePanel("lines", [Series("s", [1, 10, 100], [1, 2, 4])], log_x=True, log_y=True)
    return Figure(
        "example",
        Words("Example <1>", "보기 <1>"),
        Words(HOSTILE, "설명"),
        Words("§3", "3절"),
        [
            MatrixPicture("matrix", signed, words, words, absent="–∞"),
            MatrixPicture("large", random.normal(size=(40, 90)), cell=(2, 2), down="d", across="a"),
            lines,
            WordWeights(Heatmap(words, words, weights[0, 0], HOSTILE)),
            HeadGrid("heads", weights),
            TwoHops(Hops(words, words, 1, 2, weights[0, 0, 0], weights[0, 0, 1])),
            TextPanel("table", ("word", "number"), [(HOSTILE, 1), ("b", 2.5)]),
        ],
        [DataTable(("word", "n"), [(HOSTILE, 1 / 3)]), DataTable(("x",), [(1,)], "more")],
        run="demo",
        notes=[Words("note", "덧붙임")],
    )


def test_svg_is_one_well_formed_picture() -> None:
    root = ElementTree.fromstring(figure_svg(example()))
    panels = root.findall(f"{SVG}svg")
    assert len(panels) == 7
    boxes = []
    for panel in panels:
        x, y, w, h = (float(panel.get(k, "nan")) for k in ("x", "y", "width", "height"))
        assert x >= 0 and x + w <= float(root.get("width", 0))
        assert y >= 0 and y + h <= float(root.get("height", 0))
        boxes.append((x, y, w, h))
    for i, (x, y, w, h) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[i + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    assert not list(root.iter(f"{SVG}script"))
    assert "nan" not in figure_svg(example())


def test_a_matrix_s_masks_hold_its_numbers() -> None:
    """Each ink's mask, read back by another program, is the positive or the negative part."""
    values = np.array([[1.0, -0.5, 0.0], [0.25, np.nan, -1.0]])
    text = MatrixPicture("m", values).svg()
    found = re.findall(r'href="data:image/png;base64,([^"]+)"', text)
    positive, negative = (read(base64.b64decode(one)) for one in found)
    np.testing.assert_allclose(positive, np.clip(np.nan_to_num(values), 0, 1), atol=1 / 254)
    np.testing.assert_allclose(negative, np.clip(-np.nan_to_num(values), 0, 1), atol=1 / 254)
    numbers = [text.text for text in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert {"1", "−0.5", "0", "0.25", "−1"} <= set(numbers)


def read(png: bytes) -> np.ndarray:
    """(H, W) or (H, W, C), from 0 to 1, read by another program."""
    return np.asarray(Image.open(io.BytesIO(png))) / 255


def test_what_is_best_at_nothing_is_deepest_there() -> None:
    rates = MatrixPicture("AER", np.array([[0.0, 0.25, 1.0]]), reach=1.0, is_least_deep=True)
    (found,) = re.findall(r'href="data:image/png;base64,([^"]+)"', rates.svg())
    np.testing.assert_allclose(read(base64.b64decode(found)), [[1, 0.75, 0]], atol=1 / 254)
    assert rates.legend == "deepest = 0"


def test_a_legend_names_the_inks_that_are_there() -> None:
    both = MatrixPicture("m", np.array([[1.0, -2.0]]), across="dimension")
    assert both.legend == "dimension  ·  blue +, orange −, deepest = ±2"
    assert MatrixPicture("m", np.array([[0.5, np.nan]])).legend == "deepest = 0.5"
    assert both.legend in both.svg()


def test_png_is_read_by_others() -> None:
    grey = np.random.default_rng(1).random((7, 300))
    encoded = grey_address(grey).partition(",")[2]
    np.testing.assert_allclose(read(base64.b64decode(encoded)), grey, atol=1 / 254)


@needs_png
def test_png_has_every_text_where_the_svg_has_it() -> None:
    """Without its texts, the picture is another one beside the beginning of each of them."""
    whole = figure_svg(example())
    without = re.sub("<text [^>]*>[^<]+</text>", "", whole)
    differs = (read(png_of_svg(whole)) != read(png_of_svg(without))).any(axis=2)
    places = [
        (float(panel.get("x", 0)) + float(text.get("x", 0)),
         float(panel.get("y", 0)) + float(text.get("y", 0)))
        for panel in ElementTree.fromstring(whole).findall(f"{SVG}svg")
        for text in panel.iter(f"{SVG}text")
        if "translate" not in text.get("transform", "")
    ]  # fmt: skip
    assert len(places) > 60
    for x, y in places:
        near = differs[int(1.3 * (y - 12)) : int(1.3 * (y + 4)), max(0, int(1.3 * (x - 12))) :]
        assert near[:, : int(1.3 * 24)].any(), (x, y)


@needs_png
def test_png_has_the_colours_of_the_svg() -> None:
    """The pixel in the middle of each cell of a matrix, and beside it."""
    values = np.array([[1.0, -0.5], [0.0, np.nan]])
    cells = MatrixPicture("m", values, cell=(20, 20))
    picture = read(png_of_svg(figure_svg(replace(example(), panels=[cells]))))[..., :3]
    blue, orange, paper = (
        np.array(list(bytes.fromhex(one[1:]))) / 255 for one in (*LIGHT.series[:2], LIGHT.paper)
    )
    ground = paper + 0.035 * (blue - paper)
    expected = [[blue, ground + 0.5 * (orange - ground)], [ground, ground]]
    for row, column in np.ndindex(2, 2):
        x, y = (1.3 * (8 + edge + 20 * (at + 0.25)) for edge, at in
                ((cells.left, column), (cells.top, row)))  # fmt: skip
        np.testing.assert_allclose(picture[int(y), int(x)], expected[row][column], atol=0.02)


@needs_png
def test_png_without_fonts_or_without_resvg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text without a font is left out by resvg without a word; so there is no PNG, and a reason."""
    drawn = functools.partial(resvg_py.svg_to_bytes, skip_system_fonts=True)
    monkeypatch.setattr(resvg_py, "svg_to_bytes", drawn)
    for installed, reason in ((True, "needs a font"), (False, "needs resvg")):
        monkeypatch.setattr(
            "dragoman.pictures.figure.find_spec", lambda _, it=installed: it or None
        )
        why_no_png.cache_clear()
        with pytest.raises(DragomanError, match=reason):
            write_figure(tmp_path, example(), ".png")
        assert not list(tmp_path.glob("*.png"))
        assert tmp_path / "example.svg" in write_figure(tmp_path, example())
    monkeypatch.undo()
    why_no_png.cache_clear()
    assert not why_no_png()


def test_csv_files() -> None:
    files = csv_files(example())
    assert set(files) == {"example.csv", "example-more.csv"}
    assert files["example.csv"].endswith(",0.333333333\n")


def test_every_figure_has_its_words_in_both_languages() -> None:
    assert set(captions()) == set(FIGURES)
    for caption in captions().values():
        assert len(caption.text.english) > 100
        assert re.search("[가-힣]{2}", caption.text.korean)
        assert re.search("[가-힣]", caption.title.korean)
        # A section or a table of the paper, or other papers with their years.
        assert re.search(r"§|able 3|\b20\d\d\b", caption.source.english)
        assert re.search(r"절|표|\b20\d\d\b", caption.source.korean)


def test_the_book_asks_nobody_and_hides_nothing() -> None:
    figures = [example(), *(make_figure(name, None) for name in ("position-index", "schedule"))]
    page = book_html(figures, about=[Words("said first", "먼저")], missing=[("lookup", "no run")])
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)[a-z]+:""", page)
    assert "https://" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert HOSTILE not in page
    for figure in figures:
        assert f'<section id="{figure.name}">' in page
        for file in csv_files(figure):
            assert f'href="{file}"' in page
    assert "보기 &lt;1&gt;" in page
    assert "no run" in page
    identifiers = re.findall(r'<mask id="([^"]+)"', page)
    by_content = dict(re.findall(r'<mask id="([^"]+)"[^>]*>(.*?)</mask>', page))
    assert len(set(by_content.values())) == len(set(identifiers))


def record() -> AttentionRecord:
    one = np.full((1, 1, 2, 2), 0.5)
    return AttentionRecord(("▁Ja", HOSTILE), ("▁Yes", "</s>"), one, one, one)


def test_a_notebook_shows_a_record_in_a_frame_of_its_own() -> None:
    shown = record()._repr_html_()
    (frame,) = ElementTree.fromstring(f"<div>{shown.replace('loading=', ' loading=')}</div>")
    inside = frame.get("srcdoc") or ""
    assert inside.startswith("<!doctype html>")
    assert "attention-records" in inside
    assert "default-src 'none'" in inside
    assert HOSTILE not in inside


def test_a_notebook_shows_a_translation() -> None:
    shown = translation_html(
        HOSTILE, "Yes", ("▁Y", "es"), (-0.1, -2.0, -0.3), -0.5, [("Yeah", -1.0)], record()
    )
    assert "<script>" not in shown
    assert "▁Y: 90.5%" in shown
    assert "es: 13.5%" in shown
    assert "Yeah" in shown
    assert "<iframe" in shown
