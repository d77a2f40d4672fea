"""Every picture of every view can be saved, as a picture and as numbers."""

from __future__ import annotations

import csv
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from every_view import PLACES, chart, go, with_charts
from opening import Open, saved, told
from playwright.sync_api import expect

SENTENCE = "The animal didn't cross the street."
LABELLED = "A bear caught the animal."
UNSAVED = """() => {
  const drawn = 'canvas, svg, .words, .bar, .word[style*=color-mix]';
  const small = '.thumb canvas, label *, button svg, a svg, [hidden] *, .pair svg';
  const parts = [...document.querySelectorAll(`main :is(${drawn})`)]
    .filter((one) => one.checkVisibility() && !one.matches(small));
  const saves = (one) => one && [...one.querySelectorAll('button')]
    .some((button) => /SVG/.test(button.textContent));
  const near = 'figure, section, .cell, .card, .target, .drawing, article, [role=tabpanel]';
  return parts.filter((one) => {
    for (let at = one.closest(near); at; at = at.parentElement?.closest(near)) {
      if (at.matches('[role=tabpanel]')) return true;
      if (saves(at)) return false;
    }
    return true;
  }).map((one) => one.outerHTML.slice(0, 120));
}"""
"""What is drawn without buttons in its part of the view that save it."""

LOOKS = """all => all.map((one) =>
  getComputedStyle(one).stroke + one.getAttribute('stroke-dasharray'))"""


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


def marks(text: str, tag: str) -> list[ElementTree.Element]:
    return [one for one in ElementTree.fromstring(text).iter() if one.tag.endswith(f"}}{tag}")]


@pytest.mark.slow  # every view is opened
def test_every_picture_of_every_view_is_saved(opened_kinds: Open) -> None:
    with opened_kinds() as page:
        with_charts(page, chart("Loss", {"x": [1, 2, 3], "y": [3.0, 2.5, 1.25]}))
        page.reload()
        for view in PLACES:
            go(page, view)
            assert (view, page.evaluate(UNSAVED)) == (view, [])


def test_words_with_their_labels_and_surprise(opened_kinds: Open) -> None:
    with opened_kinds(f"#classify?run=labeller&text={quote(LABELLED)}") as page:
        expect(page.locator(".words")).to_be_visible()
        (found,) = told(page, "v1/classify", text=LABELLED, run="labeller", why=True)["texts"]
        header, *rows = rows_of(saved(page, "Numbers (CSV)", "What the words"))
        assert header == ["word", "gradient", "attention"]
        assert [row[0] for row in rows] == [word["text"] for word in found["words"]]
        gradients = [word["gradient"] for word in found["words"]]
        assert [float(row[1]) for row in rows] == pytest.approx(gradients, rel=1e-3)
        picture = saved(page, "Picture (SVG)", "What the words")
        texts = [one.text for one in marks(picture, "text")]
        assert texts[1:] == [row[0] for row in rows] and texts[0].startswith(found["label"])
    with opened_kinds(PLACES["write"]) as page:
        expect(page.locator("p.text")).to_have_attribute("data-status", "read")
        (found,) = told(page, "v1/surprisal", text="Der Hund", run="writer")["texts"]
        header, *rows = rows_of(saved(page, "Numbers (CSV)", "The text"))
        assert header == ["word", "bits", "probability"]
        assert [row[0] for row in rows] == ["Der", "Hund"]
        assert [float(row[1]) for row in rows] == pytest.approx(
            [word["bits"] for word in found["words"]], rel=1e-3
        )
        assert float(rows[0][2]) == pytest.approx(2 ** -float(rows[0][1]))
        picture = saved(page, "Picture (SVG)", "The text")
        deep = [float(one.get("fill-opacity") or 0) for one in marks(picture, "rect")[1:]]
        assert len(deep) == 2 and all(0 < one <= 0.42 for one in deep)


def test_what_look_draws(opened_kinds: Open) -> None:
    """Where a word looked, its way through the layers, what each head is worth, one cell."""
    with opened_kinds(f"{PLACES['look']}&at=cross.1.2&word=source.2") as page:
        expect(page.locator("td.figure").first).not_to_be_empty()
        header, *rows = rows_of(saved(page, "Numbers (CSV)", "Look inside a translation"))
        words = page.locator(".text.target .w").all_inner_texts()
        assert header == ["word", "weight"] and [row[0] for row in rows] == words
        assert all(0 <= float(row[1]) <= 1 for row in rows)
        picture = saved(page, "Picture (SVG)", "Look inside a translation")
        written = [one.text for one in marks(picture, "text")]
        assert {"animal", "street.", *words} <= set(written)
        assert len(marks(picture, "path")) > 1

        header, *rows = rows_of(saved(page, "Numbers (CSV)", "The row of"))
        assert header[1:] == [str(place) for place in range(1, 33)]
        assert [row[0] for row in rows[:3]] == ["embedding × √d", "position", "sum"]
        made = [float(one) + float(other) for one, other in zip(rows[0][1:], rows[1][1:])]  # noqa: B905
        assert made == pytest.approx([float(one) for one in rows[2][1:]], abs=0.02)
        picture = saved(page, "Picture (SVG)", "The row of")
        assert len(marks(picture, "image")) == len(rows)

        measured = page.locator(".all button[aria-label*='log P changes']")
        expect(measured.first).to_be_visible()
        header, *rows = rows_of(saved(page, "Numbers (CSV)", "Layers and heads"))
        assert header == ["attention", "layer", "head", "fall_of_log_p"]
        assert len(rows) == page.locator(".all button[aria-label]").count() > 4
        picture = saved(page, "Picture (SVG)", "Layers and heads")
        depths = [float(one.get("fill-opacity") or 0) for one in marks(picture, "rect")[1:]]
        assert len(depths) == len(rows)
        falls = [abs(float(row[3])) for row in rows]
        if max(falls) >= 0.01:
            assert depths.index(max(depths)) == falls.index(max(falls))

        page.get_by_role("application").first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator(".cell canvas")).to_have_count(5)
        rows = rows_of(saved(page, "Numbers (CSV)", "How “"))[1:]
        query, key, product = ([float(one) for one in row[1:]] for row in rows[:3])
        assert product == pytest.approx(
            [one * other for one, other in zip(query, key, strict=True)], rel=1e-2, abs=1e-4
        )
        assert len(marks(saved(page, "Picture (SVG)", "How “"), "image")) == 5


def test_lines_of_a_chart_are_named_and_no_two_are_alike(opened_kinds: Open) -> None:
    """On the page and where it is saved."""
    many = [{"name": f"line {i}", "x": [1, 2, 3], "y": [i + 1, i + 2, i + 1.5]} for i in range(11)]
    with opened_kinds() as page:
        with_charts(page, chart("Scores", *many, y_label="points"))
        page.get_by_role("tab", name="Run").click()
        drawn = page.locator("figure svg > path")
        expect(drawn).to_have_count(11)
        looks = drawn.evaluate_all(LOOKS)
        assert len(set(looks)) == 11
        picture = saved(page, "Picture (SVG)", "Scores")
        texts = [one.text for one in marks(picture, "text")]
        assert "Scores, points" in texts and {f"line {i}" for i in range(11)} <= set(texts)
        samples = [
            (one.get("stroke"), one.get("stroke-dasharray"))
            for one in marks(picture, "line")
            if one.get("stroke-width") == "2"
        ]
        assert len(samples) == len(set(samples)) == 11
        lines = {(one.get("stroke"), one.get("stroke-dasharray")) for one in marks(picture, "path")}
        assert len(lines) == 11
        page.get_by_label("Beside: writer").check()
        expect(drawn).to_have_count(22)
        looks = drawn.evaluate_all(LOOKS)
        assert len(set(looks)) == 22
