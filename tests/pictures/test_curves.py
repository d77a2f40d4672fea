"""Curves: what is drawn is what was recorded."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.pictures.chart import chart_svg, compact_number, thin
from dragoman.pictures.curves import charts_of
from dragoman.pictures.records import Chart, Series
from dragoman.tasks.catalogue import TASKS

SVG = "{http://www.w3.org/2000/svg}"
numbers = st.floats(-1e12, 1e12, allow_subnormal=False)


def records() -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for update in range(1, 21):
        lines.append(
            {"kind": "update", "update": update, "loss": 5.0, "nll": 5 - update / 10,
             "learning_rate": update * 1e-4, "gradient_norm": None if update == 3 else 1.0,
             "tokens_per_second": 6000.0, "skipped": update == 3}
        )  # fmt: skip
        if update % 10 == 0:
            for weights in ("current", "average"):
                scores = {"loss": 4.0, "nll": 3.5, "perplexity": 33.0, "bleu": update * 2.0}
                lines.append(
                    {"kind": "validation", "update": update, "weights": weights, "scores": scores,
                     "best": update == 10}
                )  # fmt: skip
    return lines


def test_charts_of_a_run() -> None:
    charts = {chart.title: chart for chart in charts_of(records(), TASKS["translation"])}
    assert list(charts) == ["Loss", "Development scores", "Learning rate", "Gradient norm", "Speed"]
    loss = {one.name: one for one in charts["Loss"].series}
    assert [one.name for one in charts["Loss"].series] == [
        "training",
        "development",
        "development (mean of the last)",
    ]
    assert loss["training"].y[4] == 4.5
    assert loss["development"].y == [3.5, 3.5]  # the unsmoothed one, where both are there
    assert [one.name for one in charts["Development scores"].series] == [
        "BLEU",
        "BLEU (mean of the last)",
    ]
    assert charts["Loss"].marked_x == 10
    assert list(charts["Gradient norm"].series[0].x)[:4] == [1, 2, 4, 5]  # the skipped one left out


def test_charts_of_a_run_that_has_hardly_begun() -> None:
    assert charts_of([], TASKS["translation"]) == ()
    assert (
        charts_of([{"kind": "other"}, {"kind": "update", "update": 1}], TASKS["translation"]) == ()
    )


@given(st.lists(st.tuples(st.integers(0, 10**7), numbers), max_size=40), st.booleans())
def test_any_numbers_give_a_chart_within_its_frame(
    points: list[tuple[int, float]], zero: bool
) -> None:
    points = sorted(points)
    series = Series("s", [x for x, _ in points], [y for _, y in points])
    root = ElementTree.fromstring(chart_svg(Chart("t", [series], from_zero=zero, marked_x=3.0)))
    for path in root.iter(f"{SVG}path"):
        if "line" in path.get("class", "") and "h" not in path.get("d", ""):
            for point in path.get("d", "").removeprefix("M").split("L"):
                x, y = map(float, point.split())
                assert 0 <= x <= 420
                assert 0 <= y <= 240


def test_the_axis_below_ends_where_the_data_end() -> None:
    drawn = chart_svg(Chart("t", [Series("s", list(range(32)), list(range(32)))], x_label="x"))
    root = ElementTree.fromstring(drawn)
    below = [
        text.text
        for text in root.iter(f"{SVG}text")
        if text.get("text-anchor") in ("middle", "end")
    ]
    assert "40" in below, "upwards it ends at a round number"
    assert below.count("40") == 1
    (line,) = (
        p for p in root.iter(f"{SVG}path") if p.get("class") == "line s0" and "L" in p.get("d", "")
    )
    assert float(line.get("d", "").split("L")[-1].split()[0]) == pytest.approx(420 - 14)


@pytest.mark.parametrize("last", [1, 3, 10, 48])
def test_between_two_counts_stands_no_number(last: int) -> None:
    """Positions and updates have no halves."""
    chart = Chart("t", [Series("s", range(last + 1), [0.5] * (last + 1))])
    root = ElementTree.fromstring(chart_svg(chart))
    places = [
        float(text.text or "")
        for text in root.iter(f"{SVG}text")
        if float(text.get("y") or 0) == pytest.approx(222)  # the numbers below
    ]
    assert len(places) >= 2
    assert all(place.is_integer() for place in places), places


def test_no_line_strikes_through_what_is_marked() -> None:
    """Its name stands above the axes, and the dotted line ends below it."""
    chart = Chart("t", [Series("s", [0, 1, 2], [1, 9, 3])], marked_x=1, marked_as="best")
    root = ElementTree.fromstring(chart_svg(chart))
    (name,) = (text for text in root.iter(f"{SVG}text") if text.text == "best")
    below = float(name.get("y") or 0)
    for path in root.iter(f"{SVG}path"):
        if path.get("class") in ("axis", "line s0") and "h" not in path.get("d", ""):
            heights = re.findall(r"[ V]([\d.]+)", path.get("d", ""))
            assert heights and min(map(float, heights)) > below


def test_each_of_many_lines_is_named_and_looks_like_no_other() -> None:
    names = [f"kind of positions {i}" for i in range(9)]
    lines = [Series(name, [1, 2, 3], [1.0 + i, 2.0, 3.0]) for i, name in enumerate(names)]
    picture = ElementTree.fromstring(chart_svg(Chart("t", lines), width=420, height=240))
    shown = {
        (text.text or "").rpartition(" ")[0]: float(text.attrib["y"])
        for text in picture.iter(f"{SVG}text")
    }
    assert shown.keys() >= set(names)
    drawn = [path for path in picture.iter(f"{SVG}path") if path.find(f"{SVG}title") is not None]
    looks = {(path.attrib["class"], path.attrib.get("stroke-dasharray")) for path in drawn}
    assert len(looks) == len(drawn) == len(names)
    highest = min(float(y) for path in drawn for y in re.findall(r" (\d+\.\d)", path.attrib["d"]))
    assert highest > max(shown[name] for name in names), "names stand above the lines"
    width, height = (float(picture.attrib["viewBox"].split()[i]) for i in (2, 3))
    assert (width, height) == (420, 240 + 16 * (len({shown[name] for name in names}) - 1))


def test_what_is_not_finite_or_not_positive_leaves_no_trace() -> None:
    series = Series("s", [1, 2, 3], [math.nan, 1.0, math.inf])
    assert thin(series).mean == [1.0]
    assert "nothing recorded" in chart_svg(Chart("t", [Series("s", [1], [math.nan])]))
    assert "nothing recorded" in chart_svg(Chart("t", [Series("s", [1], [-1.0])], log_y=True))


@given(st.integers(1, 2000))
def test_thinning_keeps_the_extremes(count: int) -> None:
    heights = [math.sin(i * 1.7) * i for i in range(count)]
    band = thin(Series("s", range(count), heights), 50)
    assert len(band.x) <= 50
    assert min(band.low) == min(heights)
    assert max(band.high) == max(heights)
    assert all(
        low <= mean + 1e-9 and mean <= high + 1e-9
        for low, mean, high in zip(band.low, band.mean, band.high, strict=True)
    )


def test_a_long_run_is_a_small_picture() -> None:
    series = [
        Series(f"s{i}", range(100_000), [math.sin(x / 50 + i) for x in range(100_000)])
        for i in range(3)
    ]
    assert len(chart_svg(Chart("t", series))) < 25_000


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.00071512, "7.151e-4"), (0.002, "2e-3"), (36.4049, "36.4"), (3000, "3000"),
     (12_000, "12k"), (1_500_000, "1.5M"), (-20_000, "-20k")],
)  # fmt: skip
def test_numbers_are_short(value: float, shown: str) -> None:
    assert compact_number(value) == shown


def test_names_are_escaped() -> None:
    name = "<b>&\x00"
    chart = Chart(name, [Series(name, [1, 2], [1, 2])], name, name, marked_x=1, marked_as=name)
    ElementTree.fromstring(chart_svg(chart))


def test_scores_stand_on_the_scale_of_their_task() -> None:
    """Accuracy of masked tokens is recorded as a share, and drawn in percent."""
    validation = {"kind": "validation", "update": 10, "weights": "current"}
    update = {"kind": "update", "update": 10, "nll": 2.0, "tokens_per_second": 100.0}
    masked = charts_of([update, {**validation, "scores": {"accuracy": 0.239}}], TASKS["masked"])
    loss, scores, speed = masked
    assert loss.y_label == "nats per masked token" and speed.y_label == "masked tokens per second"
    assert [(one.name, one.y) for one in scores.series] == [("accuracy, %", [pytest.approx(23.9)])]
    labels = charts_of(
        [update, {**validation, "scores": {"macro_f1": 54.0}}], TASKS["classification"]
    )
    assert labels[0].y_label == "nats per text" and labels[2].y_label == "texts per second"
    assert [(one.name, one.y) for one in labels[1].series] == [("macro F1, %", [54.0])]
