"""The view of a run that labels: its labels as bars, and its words coloured by two measures."""

from __future__ import annotations

import csv
import re
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from opening import Open, accessible_and_fits, in_every_look, saved, told
from playwright.sync_api import Page, Route, expect
from untrained_run import TOPICS

from dragoman.base.wording import enough

SVG = "{http://www.w3.org/2000/svg}"
TEXT = "The dog ate the soup."
RECIPE = "demo-labels"
SMALL = ("model.model_dim=32", "model.ffn_dim=32", "model.layers=2", "plan.context=24")


def label(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Text to label").fill(text)
    expect(page.locator("p.text")).to_have_attribute("data-status", "done")


def test_labels_and_words_are_those_of_the_api(opened: Open) -> None:
    with opened() as page:
        expect(page.get_by_role("tab")).to_have_text(["Use", "How it works", "Run"])
        expect(page.get_by_role("tab", name="Use")).to_have_attribute("aria-selected", "true")
        label(page, TEXT)
        found = told(page, "v1/classify", text=TEXT, why=True)["texts"][0]
        expect(page.locator("p.text")).to_have_text(found["label"])
        rows = page.get_by_role("list", name="All labels").get_by_role("listitem")
        expect(rows).to_have_count(len(TOPICS))
        for number, one in enumerate(found["labels"]):
            expect(rows.nth(number)).to_have_text(
                re.compile(rf"^{one['name']}\s*{100 * one['probability']:.0f}\s%\s*$")
            )
            width = rows.nth(number).locator(".bar").evaluate("(bar) => bar.style.width")
            assert float(width[:-1]) == pytest.approx(100 * one["probability"], abs=0.1)
        rows_saved = list(csv.reader(saved(page, "Numbers (CSV)", "All labels").splitlines()))
        assert rows_saved[0] == ["name", "probability"]
        assert [(one, float(p)) for one, p in rows_saved[1:]] == [
            (one["name"], one["probability"]) for one in found["labels"]
        ]
        picture = ElementTree.fromstring(saved(page, "Picture (SVG)", "All labels"))
        drawn = [float(bar.attrib["width"]) for bar in [*picture.iter(f"{SVG}rect")][1:]]
        wanted = [one["probability"] / found["labels"][0]["probability"] for one in found["labels"]]
        assert [width / drawn[0] for width in drawn] == pytest.approx(wanted, abs=0.01)
        words = page.locator(".words .word")
        expect(words).to_have_text(TEXT.split())
        sizes = [abs(word["gradient"]) for word in found["words"]]
        strongest = words.nth(sizes.index(max(sizes)))
        hue = "--accent" if found["words"][sizes.index(max(sizes))]["gradient"] > 0 else "--doubt"
        assert f"var({hue}) 48%" in strongest.evaluate("(word) => word.style.background")
        sign = "+" if found["words"][1]["gradient"] > 0 else "−"
        digits = enough(max(sizes), 3)
        shown = f"{sign}{abs(found['words'][1]['gradient']):.{digits}f}"
        expect(words.nth(1)).to_have_attribute("title", shown)
        expect(page.get_by_text("neither is a reason")).to_be_visible()


def test_a_gradient_that_is_small_is_not_shown_as_nothing(opened: Open) -> None:
    """Where a label is all but certain, no word moves it by a hundredth of a nat."""
    with opened() as page:

        def certain(route: Route) -> None:
            answer = route.fetch().json()
            for number, word in enumerate(answer["texts"][0]["words"]):
                word["gradient"] = -0.000161 * (number == 0)
            route.fulfill(json=answer)

        page.route("**/v1/classify", certain)
        label(page, TEXT)
        words = page.locator(".words .word")
        expect(words.nth(0)).to_have_attribute("title", "−0.00016")
        expect(words.nth(1)).to_have_attribute("title", "0.00000")
        expect(words.nth(0)).not_to_have_attribute("style", re.compile("color-mix"))
        expect(page.get_by_text("the deepest colour stands for 0.10 nats")).to_be_visible()


def test_the_two_measures_are_switched_and_stand_beside_each_other(opened: Open) -> None:
    with opened() as page:
        label(page, TEXT)
        found = told(page, "v1/classify", text=TEXT, why=True)["texts"][0]
        words = page.locator(".words .word")
        before = [one.get_attribute("style") for one in words.all()]
        switch = page.get_by_role("button", name="Attention")
        switch.focus()
        page.keyboard.press("Enter")
        expect(switch).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".words")).to_have_attribute("data-measure", "attention")
        assert [one.get_attribute("style") for one in words.all()] != before
        expect(words.nth(1)).to_have_attribute(
            "title", f"{100 * found['words'][1]['attention']:.0f}\u00a0%"
        )
        page.get_by_text("Both beside each other").click()
        cells = page.locator("tbody tr").nth(1)
        expect(cells.get_by_role("rowheader")).to_have_text("dog")
        expect(cells.get_by_role("cell")).to_have_count(2)


def test_what_was_not_read_is_grey_and_said(opened: Open) -> None:
    with opened() as page:
        label(page, TEXT + " Again and again" * 20)
        expect(page.get_by_text("what is grey was not read")).to_be_visible()
        expect(page.locator(".words .muted").last).to_have_attribute("title", "not read")
        page.get_by_role("button", name="Clear").click()
        expect(page.get_by_role("textbox", name="Text to label")).to_be_focused()
        expect(page.locator(".words")).to_have_count(0)


def test_an_address_holds_the_text(opened: Open) -> None:
    with opened(f"#classify?v=1&text={quote(TEXT)}") as page:
        expect(page.get_by_role("textbox", name="Text to label")).to_have_value(TEXT)
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        page.get_by_role("button", name="Link").click()
        expect(page.get_by_text("Link copied")).to_be_visible()
        assert quote(TEXT, safe="").replace("%20", "+") in page.url


def test_it_is_looked_into(opened: Open) -> None:
    with opened() as page:
        label(page, TEXT)
        page.get_by_role("button", name="Look").click()
        expect(page.get_by_role("tab", name="How it works")).to_have_attribute(
            "aria-selected", "true"
        )
        words = page.locator(".passage .source .w")
        expect(words).to_have_text([*TEXT.split(), "</s>"])
        expect(page.locator(".passage .target")).to_have_count(0)
        seen = told(page, "v1/look", text=TEXT)
        expect(page.locator(".says")).to_contain_text(seen["best"]["text"].split()[0])
        layers, heads = seen["attention"]["encoder"]["shape"][:2]
        expect(page.get_by_role("radio")).to_have_count(layers * (heads + 1))
        chosen = page.locator('.passage [aria-pressed="true"]')  # one that looked at many
        expect(chosen).to_have_count(1)
        expect(page.locator("#panel-how p.told")).to_contain_text("looked at:")
        chosen.click()  # the page chose it: the first click keeps it, the second lets go
        chosen.click()
        expect(chosen).to_have_count(0)
        words.nth(1).click()
        expect(page.locator("#panel-how p.told")).to_contain_text("“dog” looked at:")
        page.get_by_role("button", name="Hide this word").click()
        expect(page.locator(".both .new")).to_be_visible()
        expect(page.get_by_text("the model finds what it said at first")).to_be_visible()
        accessible_and_fits(page)


@in_every_look
def test_accessible_and_within_the_window(opened: Open, look: dict[str, Any]) -> None:
    with opened(**look) as page:
        page.locator("textarea").fill(TEXT)
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        page.locator("section details:not(.saves) > summary").first.click()
        accessible_and_fits(page)
