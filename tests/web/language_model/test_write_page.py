"""The view of a language model: written on, coloured, gone on otherwise, looked into."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from opening import Open, accessible, accessible_and_fits, fits, in_every_look, told
from playwright.sync_api import Locator, Page, expect

BEGIN = "Der Hund schläft und"
RECIPE = "demo-letters"
SMALL = ("model.model_dim=32", "model.ffn_dim=32", "model.layers=2")


def settings(page: Page) -> Locator:
    """How the text is written, unfolded."""
    fold = page.locator("details", has=page.locator("summary", has_text="How it is written"))
    fold.evaluate("one => { one.open = true; }")
    return fold


def read(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="How the text begins").fill(text)
    expect(page.locator("p.text")).to_have_attribute("data-status", "read")


def written(page: Page) -> str:
    expect(page.locator("p.text")).to_have_attribute("data-status", "done")
    return page.locator("p.text").inner_text()


def test_write_stands_in_place_of_translate(opened: Open) -> None:
    with opened() as page:
        expect(page.get_by_role("tab")).to_have_text(["Use", "How it works", "Run"])
        expect(page.get_by_role("tab", name="Use")).to_have_attribute("aria-selected", "true")
        page.get_by_role("tab", name="Run").click()
        expect(page.get_by_role("heading", name="Recipe")).to_be_visible()
        expect(page.locator(".head p")).to_have_text("German")
    with opened(f"#translate?text={quote(BEGIN)}") as page:  # where nothing translates
        expect(page.get_by_role("tab", name="Use")).to_have_attribute("aria-selected", "true")


def test_every_word_is_coloured_by_its_surprise(opened: Open) -> None:
    with opened() as page:
        read(page, BEGIN)
        expect(page.locator(".word")).to_have_text(BEGIN.split())
        (found,) = told(page, "v1/surprisal", text=BEGIN)["texts"]
        for number, word in enumerate(found["words"]):
            shown = page.locator(".word").nth(number)
            bits = f"{word['bits']:.1f}"
            expect(shown).to_have_attribute("aria-label", re.compile(f": {bits} bits"))
            assert "color" in (shown.get_attribute("style") or "")
        expect(page.get_by_text(re.compile(r"^4 words, [\d.]+ bits a word$"))).to_be_visible()


def test_it_writes_on_and_another_seed_writes_otherwise(opened: Open) -> None:
    with opened() as page:
        read(page, BEGIN)
        settings(page).get_by_role("spinbutton", name="Tokens").fill("30")
        page.get_by_role("button", name="Write on").click()
        first = written(page)
        assert first.startswith(BEGIN) and len(first) > len(BEGIN) + 10
        expect(page.get_by_role("textbox", name="How the text begins")).to_have_value(BEGIN)
        page.get_by_role("button", name="Another").click()
        expect(settings(page).get_by_role("spinbutton", name="Seed")).to_have_value("1")
        expect(page.locator("p.text")).not_to_have_text(first)
        second = written(page)
        assert second.startswith(BEGIN) and second != first
        page.get_by_role("button", name="Write on").click()
        expect(page.locator("p.text")).not_to_have_text(second)
        assert written(page).startswith(second)
        page.get_by_role("button", name="Edit").click()
        expect(page.get_by_role("textbox", name="How the text begins")).to_have_value(written(page))


PLACES = """() => {
  window.places = [];
  const look = () => {
    const stop = [...document.querySelectorAll("button")].find((one) => one.innerText === "Stop");
    const text = document.querySelector("p.text");
    if (stop && text) window.places.push([text.innerText.length, stop.getBoundingClientRect().y]);
    requestAnimationFrame(look);
  };
  look();
}"""
"""In every frame: how long the text is, and where the button stands that stops it."""


def test_stop_keeps_its_place_while_the_text_grows(opened: Open) -> None:
    with opened(width=800) as page:
        read(page, BEGIN)
        settings(page).get_by_role("spinbutton", name="Tokens").fill("1000")
        page.evaluate(PLACES)
        page.get_by_role("textbox", name="How the text begins").press("Control+Enter")
        written(page)
        places = page.evaluate("window.places")
        assert max(length for length, _ in places) > 300, "more than the pane holds when empty"
        assert len({y for _, y in places}) == 1


def test_it_stops(opened: Open) -> None:
    with opened() as page:
        read(page, BEGIN)
        settings(page).get_by_role("spinbutton", name="Tokens").fill("1000")
        page.get_by_role("textbox", name="How the text begins").press("Control+Enter")
        # At once: a click waits for the button to stand still, and by then all may be written.
        page.get_by_role("button", name="Stop").dispatch_event("click")
        expect(page.locator("p.text")).to_have_attribute("data-status", "stopped")
        expect(page.get_by_text("Stopped")).to_be_visible()
        before = page.locator("p.text").inner_text()
        page.wait_for_timeout(500)
        assert page.locator("p.text").inner_text() == before
        expect(page.get_by_role("button", name="Write on")).to_be_enabled()


def test_what_ends_a_stream_is_said_in_korean(opened: Open) -> None:
    """Its status was sent before, so the code alone says what it was."""
    with opened(language="ko") as page:
        body = {"error": "This took longer.", "code": "too_slow", "values": {"seconds": 1.5}}
        told = f"event: error\ndata: {json.dumps(body)}\n\n"
        page.route("**/v1/write", lambda route: route.fulfill(body=told))
        page.get_by_role("textbox").first.fill(BEGIN)
        page.get_by_role("button", name="이어 쓰기", exact=True).click()
        said = page.get_by_role("alert")
        expect(said).to_contain_text("1.5초가 넘어 중단했습니다. 더 짧은 글을 보내세요.")
        expect(said.locator("[lang=en]")).to_have_count(0)


def test_its_fields_are_folded_away_and_fit(opened: Open) -> None:
    """On a desk, a tablet and a phone."""
    with opened() as page:
        fields = page.get_by_role("group", name="How it is written").locator("input, select")
        expect(fields.first).to_be_hidden()
        settings(page)
        expect(fields).to_have_count(7)
        for width in (1280, 1024, 768, 390):
            page.set_viewport_size({"width": width, "height": 800})
            fits(page)


def test_it_ends_before_a_stop_string(opened: Open) -> None:
    with opened() as page:
        read(page, BEGIN)
        settings(page).get_by_role("spinbutton", name="Tokens").fill("60")
        page.get_by_role("button", name="Write on").click()
        whole = written(page)
        stop = whole[len(BEGIN) + 5 : len(BEGIN) + 7].strip() or whole[len(BEGIN) + 8]
        page.get_by_role("button", name="Clear").click()
        read(page, BEGIN)
        settings(page).get_by_role("textbox", name="Stop before").fill(stop)
        page.get_by_role("button", name="Write on").click()
        assert written(page) == whole[: whole.index(stop, len(BEGIN))].rstrip()
        expect(page.get_by_text("Ended before the stop string.")).to_be_visible()


def test_another_word_is_chosen_and_undone(opened: Open) -> None:
    with opened() as page:
        read(page, BEGIN)
        settings(page).get_by_role("spinbutton", name="Tokens").fill("12")
        page.locator(".word", has_text="Hund").click()
        expect(page.locator(".continuations .here")).to_contain_text("Hund")
        page.locator(".word", has_text="schläft").click()  # the dialog of the first closes
        options = page.locator(".continuations li")
        expect(options.first).to_be_visible()
        assert 1 < options.count() <= 6
        expect(page.locator(".continuations .here")).to_contain_text("schläft")
        other = options.filter(has_not=page.locator("[aria-current=true]")).first
        word = other.locator("b").inner_text()
        other.locator("button").click()
        text = written(page)
        assert text.startswith(f"Der Hund {word}") and "schläft" not in text
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("p.text")).to_have_text(BEGIN)


def test_by_keyboard_alone(opened: Open) -> None:
    with opened() as page:
        page.get_by_role("textbox", name="How the text begins").focus()
        page.keyboard.type(BEGIN)
        expect(page.locator("p.text")).to_have_attribute("data-status", "read")
        page.locator('[data-word="0"]').focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator('[data-word="1"]')).to_be_focused()
        page.keyboard.press("End")
        expect(page.locator('[data-word="3"]')).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".continuations li").first).to_be_visible()
        page.keyboard.press("ArrowDown")
        expect(page.locator(".continuations li button").first).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator('[data-word="3"]')).to_be_focused()


def test_an_address_holds_text_and_settings(opened: Open) -> None:
    with opened(f"#write?v=1&text={quote(BEGIN)}&temperature=1.3&seed=7") as page:
        expect(page.get_by_role("textbox", name="How the text begins")).to_have_value(BEGIN)
        expect(settings(page).get_by_role("spinbutton", name="Seed")).to_have_value("7")
        expect(settings(page).get_by_role("spinbutton", name="Temperature")).to_have_value("1.3")
        settings(page).get_by_role("spinbutton", name="Tokens").fill("9")
        page.get_by_role("button", name="Write on").click()
        text = written(page)
        page.wait_for_url("**longest=9**")
        page.reload()
        expect(page.get_by_role("textbox", name="How the text begins")).to_have_value(text)
        expect(settings(page).get_by_role("spinbutton", name="Tokens")).to_have_value("9")


def test_what_was_written_is_looked_into(opened: Open) -> None:
    with opened() as page:
        read(page, BEGIN)
        page.locator(".target ~ .tools").get_by_role("button", name="Look").click()
        expect(page.get_by_role("tab", name="How it works")).to_have_attribute(
            "aria-selected", "true"
        )
        words = page.locator(".passage .target .w")
        expect(words).to_have_text([*BEGIN.split(), "</s>"])
        expect(page.locator(".passage .source")).to_have_count(0)
        chosen = page.locator('.passage [aria-pressed="true"]')  # one that looked at many
        expect(chosen).to_have_count(1)
        expect(page.locator("p.told")).to_contain_text("the model looked at")
        chosen.click()
        words.nth(2).click()
        expect(page.locator("p.told")).to_contain_text("To choose “schläft” the model looked at")
        expect(page.get_by_role("heading", name="In place of “schläft”")).to_be_visible()
        page.locator(".choices li button:not([disabled])").first.click()
        expect(page.locator(".both .new")).to_be_visible()
        expect(page.locator(".both .old")).to_have_text(BEGIN)
        page.get_by_role("button", name="Take all back").click()
        expect(words).to_have_text([*BEGIN.split(), "</s>"])
        accessible_and_fits(page)


@in_every_look
def test_accessible_and_within_the_window(opened: Open, look: dict[str, Any]) -> None:
    with opened(**look) as page:
        expect(page.locator("textarea")).to_be_visible()
        accessible(page)
        page.locator("textarea").fill(BEGIN)
        expect(page.locator("p.text")).to_have_attribute("data-status", "read")
        page.get_by_role("button", name=re.compile("Write on|이어 쓰기")).click()
        written(page)
        page.locator(".word").nth(1).click()
        expect(page.locator(".continuations li").first).to_be_visible()
        accessible_and_fits(page)
