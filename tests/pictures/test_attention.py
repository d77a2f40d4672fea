"""Attention pictures: well-formed, true to their numbers, and small."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from dragoman.pictures.panels import heatmap_svg, hops_svg
from dragoman.pictures.records import AttentionRecord, Heatmap, Hops
from dragoman.pictures.terminal import heatmap_text, hops_text, shade

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>\"&'\x1b[31m\x00"


def example(rows: int = 3, columns: int = 4) -> Heatmap:
    weights = np.random.default_rng(0).dirichlet(np.ones(columns), rows)
    labels = [f"word{i}" for i in range(max(rows, columns))]
    return Heatmap(labels[:rows], labels[:columns], weights, "cross-attention")


@pytest.mark.parametrize("alone", [True, False])
def test_heatmap_draws_every_weight_once_at_its_strength(alone: bool) -> None:
    heatmap = example()
    root = ElementTree.fromstring(heatmap_svg(heatmap, alone=alone))
    drawn = {
        title.text: float(rect.get("fill-opacity", "nan"))
        for rect in root.iter(f"{SVG}rect")
        if (title := rect.find(f"{SVG}title")) is not None
    }
    assert len(drawn) == 12
    for r, row in enumerate(heatmap.rows):
        for c, column in enumerate(heatmap.columns):
            weight = heatmap.weights[r, c]
            assert drawn[f"{row} → {column}: {weight:.3f}"] == pytest.approx(weight, abs=0.002)
    assert (root.find(f"{SVG}style") is not None) == alone


def test_rows_of_numbers_sum_to_one() -> None:
    """As the captions say: decimals, and none left out that two digits can show."""
    heatmap = Heatmap(("a",), ("b", "c", "d", "e"), np.array([[0.93, 0.04, 0.026, 0.004]]))
    svg = ElementTree.fromstring(heatmap_svg(heatmap))
    numbers = [one.text for one in svg.iterfind(f"{SVG}g/{SVG}text")]
    assert numbers == ["0.93", "0.04", "0.03"]


def test_heatmap_stays_inside_its_frame_and_small() -> None:
    for rows, columns in ((1, 1), (14, 14), (40, 60), (300, 300)):
        text = heatmap_svg(example(rows, columns))
        root = ElementTree.fromstring(text)
        width, height = float(root.get("width", 0)), float(root.get("height", 0))
        for rect in root.iter(f"{SVG}rect"):
            if rect.get("class") != "paper":
                assert 0 <= float(rect.get("x", -1)) <= width - float(rect.get("width", 0))
                assert 0 <= float(rect.get("y", -1)) <= height - float(rect.get("height", 0))
        assert len(text) < 200 * rows * columns + 4_000
        assert width < 1_600


def test_labels_of_users_cannot_become_markup() -> None:
    weights = np.full((2, 1), 0.5)
    for text in (
        heatmap_svg(Heatmap((HOSTILE, HOSTILE), (HOSTILE,), weights, HOSTILE)),
        hops_svg(Hops((HOSTILE,), (HOSTILE,), 0, 0, weights[0], weights[1], HOSTILE, HOSTILE)),
    ):
        root = ElementTree.fromstring(text)
        assert not list(root.iter(f"{SVG}script"))
        assert "\x1b" not in text
    terminal = heatmap_text(Heatmap((HOSTILE, HOSTILE), (HOSTILE,), weights, HOSTILE)).plain
    assert "\x1b" not in terminal
    assert "\x00" not in terminal


def hops() -> Hops:
    source = ("the", "animal", "because", "it", "tired")
    first, second = np.array([0.0, 0.1, 0.1, 0.8, 0.0]), np.array([0.01, 0.6, 0.02, 0.1, 0.27])
    return Hops(source, ("weil", "es", "müde"), 1, 3, first, second, "layer 3", "layer 2")


def test_hops_draw_both_hops_in_proportion() -> None:
    text = hops_svg(hops())
    root = ElementTree.fromstring(text)

    def widths(ink: int) -> list[float]:
        paths = [path for path in root.iter(f"{SVG}path") if path.get("class") == f"line s{ink}"]
        return [float(path.get("stroke-width", "nan")) for path in paths]

    # Above 2 %: three looks of "es"; of "it" those at others, the strongest drawn last.
    assert len(widths(0)) == 3
    assert len(widths(1)) == 3
    assert widths(1) == sorted(widths(1))
    told = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert any(line.startswith("es → it 80 %, ") and line.endswith("(layer 3)") for line in told)
    assert any(line.startswith("it → animal 60 %, tired 27 %") for line in told)


def test_terminal_reads_without_colour_and_the_same_with_it() -> None:
    text = hops_text(hops(), 80)
    lines = text.plain.splitlines()
    assert lines[0].split() == ["the", "animal", "because", "it", "tired"]
    assert lines[1].split() == ["es", "→", "·", "░", "10", "░", "10", "█", "80", "·"]
    assert lines[2].split() == ["it", "→", "·", "▓", "60", "·", "░", "10", "▒", "27"]
    console = Console(width=80, force_terminal=True, color_system="truecolor", no_color=False)
    with console.capture() as captured:
        console.print(text)
    assert "\x1b[" in captured.get()
    bare = re.sub(r"\x1b\[[0-9;]*m", "", captured.get())
    assert bare.rstrip() == text.plain.rstrip()


def test_terminal_keeps_its_width_and_every_column() -> None:
    columns = ["한국어", "Donaudampfschifffahrtsgesellschaft", *(f"word{i}" for i in range(30))]
    heatmap = Heatmap(("어", "long-row-label"), columns, np.full((2, 32), 1 / 32))
    for width in (40, 80, 132):
        lines = heatmap_text(heatmap, width).plain.splitlines()
        assert max(cell_len(line.rstrip()) for line in lines) <= width
        headers = " ".join(lines[::4])
        assert all(f"word{i}" in headers for i in range(30))


def test_the_bands_of_a_terminal_are_of_like_width() -> None:
    """The end symbol does not stand by itself below eleven words."""
    columns = [
        "The",
        "animal",
        "didn't",
        "cross",
        "the",
        "street",
        "because",
        "it",
        "was",
        "too",
        "tired.",
        "</s>",
    ]
    heatmap = Heatmap(("überquerte",), columns, np.full((1, 12), 1 / 12))
    lines = heatmap_text(heatmap, 80).plain.splitlines()
    bands = [line.split() for line in lines if "░" not in line and line.strip()]
    assert [len(band) for band in bands] == [6, 6]


def test_shade_has_five_steps() -> None:
    assert [shade(w) for w in (0.0, 0.049, 0.05, 0.2, 0.45, 0.7, 1.0)] == list("··░▒▓██")


def test_record_gives_the_heatmap_of_a_head_and_the_mean() -> None:
    rng = np.random.default_rng(1)
    encoder, decoder, cross = (
        rng.random((2, 3, 4, 4)),
        rng.random((1, 3, 2, 2)),
        rng.random((1, 3, 2, 4)),
    )
    record = AttentionRecord(["▁a", "b", "▁c", "</s>"], ["▁x", "</s>"], encoder, decoder, cross)
    head = record.heatmap("cross", 0, 2)
    assert (head.rows, head.columns) == (("x", "</s>"), ("a", "…b", "c", "</s>"))
    np.testing.assert_array_equal(head.weights, cross[0, 2])
    assert head.title == "cross-attention, layer 1, head 3"
    np.testing.assert_allclose(record.heatmap("encoder", 1).weights, encoder[1].mean(0))
    assert record.heatmap("decoder", 0).columns == ("<s>", "x")
    without = record.heatmap("encoder", 1, off={0})
    np.testing.assert_allclose(without.weights, encoder[1, 1:].mean(0))
    assert without.title == "encoder, layer 2, mean of the heads, 1 off"
    assert not record.heatmap("encoder", 1, off={0, 1, 2}).weights.any()
    with pytest.raises(AssertionError):
        AttentionRecord(["a"], ["x", "</s>"], encoder, decoder, cross)
