"""The view of a parser: its tree drawn, and where it looked when it opened each bracket."""

from __future__ import annotations

import csv
import re
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from opening import Open, accessible_and_fits, in_every_look, saved, told
from playwright.sync_api import Page, Route, expect

TEXT = "the small cat sees the dog of the house ."
RECIPE = "wsj-sample"
SMALL = (
    "model.model_dim=32", "model.ffn_dim=32", "model.encoder_layers=1", "model.decoder_layers=2",
    "model.attention.num_heads=2", "text.vocabulary=400", "search.beam=2",
)  # fmt: skip


def parse(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Sentence to parse").fill(text)
    expect(page.locator(".drawing")).to_have_attribute("data-status", "done")


def test_the_tree_is_that_of_the_api_and_brackets_stand_above_what_they_hold(opened: Open) -> None:
    with opened() as page:
        expect(page.get_by_role("tab")).to_have_text(["Use", "How it works", "Run"])
        parse(page, TEXT)
        tree = told(page, "v1/parse", text=TEXT, attention=True)["sentences"][0]["trees"][0]
        words = page.locator("svg text.word")
        expect(words).to_have_text(TEXT.split())
        brackets = page.locator("svg .bracket")
        expect(brackets).to_have_text([one["label"] for one in tree["brackets"]])
        where = [box for one in words.all() if (box := one.bounding_box())]
        rights = [box["x"] + box["width"] for box in where]
        assert all(box["x"] >= right for box, right in zip(where[1:], rights, strict=False))
        places = [box for one in brackets.all() if (box := one.bounding_box())]
        assert len(where) == len(TEXT.split()) and len(places) == len(tree["brackets"])
        for place, one in zip(places, tree["brackets"], strict=True):
            held = where[one["first"] : one["first"] + one["count"]]
            middle = place["x"] + place["width"] / 2
            assert held[0]["x"] <= middle <= held[-1]["x"] + held[-1]["width"] + 20
            assert place["y"] < held[0]["y"]
            if "parent" in one:
                assert places[one["parent"]]["y"] < place["y"]


def test_a_parse_that_is_all_but_certain_has_no_negative_zero(opened: Open) -> None:
    with opened() as page:

        def surer(route: Route) -> None:
            answer = route.fetch().json()
            answer["sentences"][0]["trees"][0]["log_probability"] = -0.001
            route.fulfill(json=answer)

        page.route("**/v1/parse", surer)
        parse(page, TEXT)
        expect(page.get_by_text("log P")).to_have_text("log P 0.00")


def test_a_bracket_that_is_pointed_at_shows_where_the_model_looked(opened: Open) -> None:
    with opened() as page:
        parse(page, TEXT)
        tree = told(page, "v1/parse", text=TEXT, attention=True)["sentences"][0]["trees"][0]
        expect(page.locator("svg .look")).to_have_count(0)
        expect(page.locator("p.told")).to_contain_text("Point at a bracket")
        last = len(tree["brackets"]) - 1
        page.locator(f'[data-bracket="{last}"]').hover()
        shares = tree["brackets"][last]["attention"]
        most = shares.index(max(shares))
        for number in (0, most):
            depth = page.locator(f'svg .look[data-word="{number}"]').get_attribute("fill-opacity")
            assert float(depth or 0) == pytest.approx(0.5 * shares[number] / max(shares), abs=0.01)
        best = f"{TEXT.split()[most]} {100 * max(shares):.0f} %"
        expect(page.locator("p.told")).to_contain_text(f"looked at: {best}")
        page.locator("h2").hover()
        expect(page.locator("svg .look")).to_have_count(0)


def test_the_tree_and_its_numbers_are_saved(opened: Open) -> None:
    with opened() as page:
        parse(page, TEXT)
        tree = told(page, "v1/parse", text=TEXT, attention=True)["sentences"][0]["trees"][0]
        picture = ElementTree.fromstring(saved(page, "Picture (SVG)", "Tree of"))
        drawn = [one.text for one in picture.iter() if one.tag.endswith("}text")]
        assert all(drawn.count(one) >= TEXT.split().count(one) for one in TEXT.split())
        assert all(one["label"] in drawn for one in tree["brackets"])
        header, *rows = csv.reader(saved(page, "Numbers (CSV)", "Tree of").splitlines())
        assert header == ["bracket", "words", "first", "count", *TEXT.split()]
        assert [row[0] for row in rows] == [one["label"] for one in tree["brackets"]]
        for row, one in zip(rows, tree["brackets"], strict=True):
            assert [float(share) for share in row[4:]] == pytest.approx(one["attention"])


def test_by_keyboard_alone(opened: Open) -> None:
    with opened(f"#parse?v=1&text={quote(TEXT)}") as page:
        expect(page.get_by_role("textbox", name="Sentence to parse")).to_have_value(TEXT)
        expect(page.locator(".drawing")).to_have_attribute("data-status", "done")
        tree = told(page, "v1/parse", text=TEXT, attention=True)["sentences"][0]["trees"][0]
        page.locator('[data-bracket="0"]').focus()
        expect(page.locator("p.told")).to_contain_text("looked at")
        inside = [n for n, one in enumerate(tree["brackets"]) if one.get("parent") == 0]
        if inside:
            page.keyboard.press("ArrowDown")
            expect(page.locator(f'[data-bracket="{inside[0]}"]')).to_be_focused()
        for number in inside[1:]:
            page.keyboard.press("ArrowRight")
            expect(page.locator(f'[data-bracket="{number}"]')).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(page.locator('[data-bracket="0"]')).to_be_focused()
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_text("Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == tree["text"]


def test_every_symbol_of_the_tree_is_looked_into(opened: Open) -> None:
    with opened() as page:
        parse(page, TEXT)
        page.get_by_role("button", name="Look").click()
        words = page.locator(".passage .source .w")
        expect(words).to_have_text([*TEXT.split(), "</s>"])
        symbols = page.locator(".passage .target .w")
        seen = told(page, "v1/look", text=TEXT)  # by the plain model, as Look is
        shown = [one.removeprefix("▁") for one in seen["target_tokens"]]
        expect(symbols).to_have_text(shown)
        written = [one.split("/")[0] for one in shown[:-1] if one[0] not in "()"]
        assert written == TEXT.split(), "a word stands where its tag is written"
        chosen = page.locator('.passage .target [aria-pressed="true"]')
        expect(chosen).to_have_text(re.compile(r"\w"))
        chosen.click()  # the page chose it: the first click keeps it, the second lets go
        expect(chosen).to_have_count(1)
        chosen.click()
        expect(chosen).to_have_count(0)
        symbols.nth(1).click()
        expect(page.locator("#panel-how p.told")).to_contain_text(
            f"To choose “{shown[1]}” the model"
        )
        way = page.locator("section", has_text="The way through")
        expect(way).to_contain_text(f"The row that reads “{shown[0]}” and chooses")
        parts = page.get_by_role("group", name="Which attention")
        expect(parts.get_by_role("button")).to_have_count(3)
        choice = page.locator(".choices li button:not([disabled])").first
        other = choice.locator(".name").inner_text()
        choice.click()
        expect(page.locator(".both .new")).to_be_visible()
        expect(symbols.nth(1)).to_have_text(re.compile(rf"(^|/){re.escape(other)}$"))
        expect(symbols.nth(0)).to_have_text(shown[0])
        expect(page.locator(".both .old")).to_have_text(seen["best"]["text"])
        accessible_and_fits(page)


@in_every_look
def test_accessible_and_within_the_window(opened: Open, look: dict[str, Any]) -> None:
    with opened(**look) as page:
        page.locator("textarea").fill(TEXT)
        expect(page.locator(".drawing")).to_have_attribute("data-status", "done")
        page.locator('[data-bracket="0"]').focus()
        accessible_and_fits(page)
        for summary in page.locator("main details:not(.opens) > summary:visible").all():
            summary.click()
        accessible_and_fits(page)
