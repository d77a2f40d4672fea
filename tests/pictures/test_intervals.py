"""Intervals, points and plain tables: what is drawn is what was given."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from needs_png import needs_png
from PIL import Image

from dragoman.pictures.chart import chart_svg
from dragoman.pictures.figure import png_of_svg
from dragoman.pictures.labels import plain_table
from dragoman.pictures.panels import IntervalRow, Intervals
from dragoman.pictures.records import Chart, Series
from dragoman.pictures.theme import SVG_STYLE

SVG = "{http://www.w3.org/2000/svg}"
ROWS = (
    IntervalRow("1 head", -2.0, 1.0, published=-0.9),
    IntervalRow("a < b", 1.0, None),
    IntervalRow("no warm-up", None, None),
    IntervalRow("unsure", 0.0, 500.0),
)


def test_a_dot_and_a_whisker_for_what_was_measured() -> None:
    picture = ElementTree.fromstring(Intervals("Difference", "BLEU", ROWS).svg())
    circles = picture.findall(f".//{SVG}circle")
    assert [one.findtext(f"{SVG}title") for one in circles[1:]] == [
        "1 head -2 ± 1, paper -0.9",
        "a < b 1",
        "unsure 0 ± 500",
    ]
    x = [float(one.attrib["cx"]) for one in circles[1:]]
    assert x[0] < x[2] < x[1]
    texts = [one.text for one in picture.findall(f".//{SVG}text")]
    assert texts.count("not measured") == 1
    paths = [one.attrib["d"] for one in picture.findall(f".//{SVG}path[@class='line s0']")]
    begin, end = (float(part) for part in re.findall(r"[MH](-?[\d.]+)", paths[0]))
    assert begin < x[0] < end and end - x[0] == pytest.approx(x[0] - begin, abs=0.2)
    # One that nobody is sure of does not press the others together, and stays in the picture.
    assert len(paths) == 2 and x[1] - x[0] > 60
    assert all(0 < float(part) < 500 for part in re.findall(r"[MH](-?[\d.]+)", paths[1]))


def test_one_row_alone_and_rows_without_any_value() -> None:
    for rows in ((IntervalRow("same", 0.0, 0.0),), (IntervalRow("none", None),)):
        ElementTree.fromstring(Intervals("", "", rows).svg())


@needs_png
@pytest.mark.parametrize("size", [0.09, 3.0, 0.0009, 4e5])
def test_the_numbers_of_an_axis_do_not_touch(size: float) -> None:
    rows = [IntervalRow("least", -0.7 * size, 0.2 * size), IntervalRow("most", 0.8 * size)]
    picture = Intervals("Difference", "nats", rows).svg()
    texts = list(ElementTree.fromstring(picture).iter(f"{SVG}text"))
    labels = [one for one in texts if one.get("text-anchor") == "middle"][:-1]
    assert len(labels) > 3 and len({one.get("y") for one in labels}) == 1
    y = 1.3 * float(labels[0].get("y", 0))
    styled = picture.replace(">", f"><style>{SVG_STYLE}</style>", 1)
    drawn = np.asarray(Image.open(io.BytesIO(png_of_svg(styled))).convert("RGBA"))[..., 3]
    inked = np.flatnonzero(drawn[int(y - 11) : int(y) + 1].any(axis=0))
    assert np.count_nonzero(np.diff(inked) > 5) == len(labels) - 1


def test_points_are_not_joined() -> None:
    series = [Series("best", [1e-3], [30.0]), Series("others", [1e-4, 1e-2, 1e-3], [10, 20, 5])]
    picture = ElementTree.fromstring(chart_svg(Chart("By rate", series, log_x=True, points=True)))
    assert len(picture.findall(f".//{SVG}circle")) == 4 + 2  # and in the legend
    assert not picture.findall(f".//{SVG}path[@class='line s1']")
    assert picture.attrib["aria-label"] == "By rate, points: 1 best, 3 others"


def test_columns_of_a_plain_table_stand_below_each_other() -> None:
    told = plain_table(["", "row", "BLEU"], [["A", "한국어", "+1.5"], ["", "heads", "12.25 ± 1"]])
    assert told.splitlines() == [
        "   row          BLEU",
        "A  한국어       +1.5",
        "   heads   12.25 ± 1",
    ]
