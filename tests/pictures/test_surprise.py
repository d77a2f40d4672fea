"""The picture of surprise: every word with its bits, on ink that is as strong as they are many."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from dragoman.pictures.surprise import MAX_BITS, surprise_svg

SVG = "{http://www.w3.org/2000/svg}"


def inks(svg: str) -> list[float]:
    return [float(one) for one in re.findall(r'fill-opacity="([\d.]+)"', svg)]


def test_ink_is_the_bits() -> None:
    words = [("Das", -0.0), ("Tier", 4.0), ("<i>", 8.0), ("Straße", 2 * MAX_BITS)]
    svg = surprise_svg([("Eins", words)])
    strengths = inks(svg)[: len(words)]
    assert strengths[0] == 0 and strengths[2] == pytest.approx(2 * strengths[1], abs=2e-3)
    assert strengths[3] == max(inks(svg)) < 0.6  # beyond the most there is no more
    texts = [one.text for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert texts[:9] == ["Eins", "Das", "0.0", "Tier", "4.0", "<i>", "8.0", "Straße", "32.0"]


def test_long_texts_stand_in_lines_within_the_picture() -> None:
    root = ElementTree.fromstring(surprise_svg([("", [("Wort", 1.0)] * 60), ("", [("x", 1.0)])]))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    rects = [one.attrib for one in root.iter(f"{SVG}rect") if "fill-opacity" in one.attrib]
    assert len({one["y"] for one in rects[:60]}) > 3
    for one in rects:
        assert float(one["x"]) >= 0 and float(one["x"]) + float(one["width"]) <= width
        assert float(one["y"]) + float(one["height"]) <= height
