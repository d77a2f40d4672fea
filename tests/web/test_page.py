"""The page in a real browser, over the demo run: what people see, and what must never happen."""

from __future__ import annotations

import csv
import re
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from opening import Open, accessible, fits, in_every_look, opening, saved
from playwright.sync_api import Browser, Page, Route, expect

SENTENCE = "The animal didn't cross the street because it was too tired."
TWO = "The small man eats the dinosaur.\n\nThe small dinosaur eats the man."


@pytest.fixture
def opened(chromium: Browser, address: str) -> Open:
    return opening(chromium, address)


def write(page: Page, text: str) -> None:
    page.locator("textarea").fill(text)
    expect(page.locator("p.text")).to_have_attribute("data-status", "done")


HELD = """() => {
  const real = window.fetch, held = new Promise((go) => { window.goOn = go; });
  window.fetch = async (...asked) => {
    const answer = await real(...asked);
    if (!String(asked[0]).includes('v1/translate')) return answer;
    const [start, ...events] = (await answer.text()).split('\\n\\n');
    const rest = events.filter((event) => !event.startsWith('event: draft'));
    const draft = 'event: draft\\ndata: {"sentence": 0, "text": "Das Tier"}';
    const bytes = (some) => new TextEncoder().encode(some.map((one) => `${one}\\n\\n`).join(''));
    const body = new ReadableStream({async start(stream) {
      stream.enqueue(bytes([start, draft]));
      await held;
      stream.enqueue(bytes(rest));
      stream.close();
    }});
    return new Response(body, {status: answer.status, headers: answer.headers});
  };
}"""
"""Every answer of the server, held after a draft until ``goOn()``: whether there is time for drafts
between the first word and the last is the machine's affair."""


def test_translates_as_one_types(opened: Open) -> None:
    with opened() as page:
        page.locator("textarea").press_sequentially(SENTENCE, delay=5)
        expect(page.locator("p.text")).to_have_text(re.compile(r"^Das Tier .* müde war\.$"))
        assert page.locator(".word").count() >= 9
        write(page, TWO)
        expect(page.locator("p.text")).to_have_text(re.compile(r"Mann .*\n\n.* Dinosaurier "))
        page.locator("textarea").fill("")
        expect(page.locator(".hint")).to_be_visible()


def test_the_translation_grows(opened: Open) -> None:
    with opened() as page:
        page.evaluate(HELD)
        page.locator("textarea").fill(SENTENCE)
        expect(page.locator(".draft")).to_have_text("Das Tier")
        expect(page.locator("p.text")).to_have_attribute("data-status", "growing")
        page.evaluate("window.goOn()")
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        expect(page.locator("p.text")).to_have_text(re.compile(r"^Das Tier .* müde war\.$"))


def test_another_word_is_forced_and_undone(opened: Open) -> None:
    with opened() as page:
        write(page, SENTENCE)
        before = page.locator("p.text").inner_text()
        page.locator(".word", has_text=re.compile("^(es|sie)$")).first.click()
        options = page.locator(".continuations li")
        expect(options.first).to_be_visible()
        assert options.count() >= 3
        chosen = options.filter(has_not=page.locator("[aria-current=true]")).first
        word = chosen.locator("b").inner_text()
        chosen.click()
        expect(page.locator("p.text")).not_to_have_text(before)
        assert word in page.locator("p.text").inner_text()
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("p.text")).to_have_text(before)


def test_other_translations(opened: Open) -> None:
    """Of sentences with words that it never read: of what it is sure of there is nothing else, and
    of which of them it is sure differs between trainings."""
    unread = (
        "A zebra and a giraffe dance in the snow.",
        "The zebra sings.",
        "The giraffe gives a violin.",
    )
    with opened() as page:
        shares = page.locator("section .share")
        for text in unread:
            write(page, text)
            if shares.count():
                break
        expect(shares.first).to_have_text(
            re.compile(r"^(just as probable|(> |< )?\d+\s% as probable as the best)$")
        )
        other = page.locator("section li button").first
        text = other.inner_text()
        assert text
        other.click()
        expect(page.locator("p.text")).to_have_text(text)


def test_what_is_doubtful_is_said_and_marked(opened: Open) -> None:
    doubtful = "The queen sees a zebra."
    with opened() as page:
        write(page, f"{SENTENCE} {doubtful}")
        doubts = page.get_by_role("list", name="What is doubtful here")
        expect(doubts).to_contain_text("Never read in training: “zebra”")
        expect(page.locator(".copy .unknown")).to_have_text("zebra")
        expect(page.locator("textarea")).to_have_value(f"{SENTENCE} {doubtful}")
        write(page, SENTENCE)
        expect(page.locator("p.text")).to_have_text(re.compile(r"müde war\.$"))
        expect(doubts).to_have_count(0)


def test_words_of_both_sides_belong_together(opened: Open) -> None:
    with opened() as page:
        write(page, SENTENCE)
        page.locator(".word", has_text=re.compile("^Tier$")).hover()
        expect(page.locator(".copy .pointed")).to_have_text("animal")
        page.mouse.move(1, 1)
        expect(page.locator(".copy .pointed")).to_have_count(0)
        box = page.locator(".copy span", has_text=re.compile("^animal$")).bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(page.locator(".word.pointed").first).to_have_text("Tier")


def test_a_run_has_examples_and_says_what_it_knows(opened: Open) -> None:
    with opened() as page:
        example = page.locator(".examples button").first
        text = example.inner_text()
        example.click()
        expect(page.locator("textarea")).to_have_value(text)
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        expect(example).to_have_attribute("aria-pressed", "true")
        page.locator("textarea").fill("The dog sleeps.")
        expect(page.locator(".examples")).to_have_count(0)
        page.locator("textarea").fill(text)
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        page.get_by_text("What does this run know?").click()
        expect(
            page.get_by_text(re.compile("pairs of sentences with .* different words"))
        ).to_be_visible()
        page.locator("a.inside").click()
        expect(page.get_by_role("tab", name="How it works")).to_have_attribute(
            "aria-selected", "true"
        )
        expect(page.locator(".passage")).to_contain_text(text.split()[1])


def test_by_keyboard_alone(opened: Open) -> None:
    with opened() as page:
        page.locator("textarea").focus()
        page.keyboard.type(SENTENCE)
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        page.locator('[data-spot="0-0"]').focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator('[data-spot="0-1"]')).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".continuations li").first).to_be_visible()
        page.keyboard.press("ArrowDown")
        expect(page.locator(".continuations li button").first).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator('[data-spot="0-1"]')).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".continuations li").first).to_be_visible()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator(".continuations")).to_have_count(0)
        expect(page.locator('[data-spot="0-1"]')).to_be_focused()
        page.get_by_role("tab", name="Use").focus()
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name="How it works")).to_be_focused()
        page.keyboard.press("End")
        expect(page.get_by_role("tab", name="Run")).to_be_focused()
        expect(page.get_by_role("heading", name="Recipe")).to_be_visible()


def test_an_address_holds_a_text(opened: Open) -> None:
    with opened(f"#translate?text={quote(SENTENCE)}") as page:
        expect(page.locator("textarea")).to_have_value(SENTENCE)
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        page.locator("textarea").fill("We see the dog & <b>that</b>.")
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        page.wait_for_url("**that**")
        page.reload()
        expect(page.locator("textarea")).to_have_value("We see the dog & <b>that</b>.")
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        page.get_by_role("button", name="Link").click()
        expect(page.get_by_text("Link copied")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.url and quote("<b>") in copied
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_text("Copied", exact=True)).to_be_visible()
        text = page.evaluate("navigator.clipboard.readText()")
        assert text == page.locator("p.text").inner_text()


def test_a_long_text_outlives_a_reload_but_goes_into_no_link(opened: Open) -> None:
    text = "We see the dog. " * 150
    with opened() as page:
        write(page, text)
        page.get_by_role("tab", name="How it works").click()
        # The lesson is about the first sentence alone.
        expect(page.locator("#step-1-title")).to_be_visible()
        page.get_by_role("tab", name="Use").click()
        page.get_by_role("button", name="Link").click()
        expect(page.get_by_text("too long for an address")).to_be_visible()
        assert "dog" not in page.url and "run=demo" in page.url
        page.reload()
        expect(page.locator("textarea")).to_have_value(text)


def test_text_is_copied_without_tls(opened: Open) -> None:
    with opened() as page:
        write(page, SENTENCE)
        text = page.locator("p.text").inner_text()
        page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_text("Copied", exact=True)).to_be_visible()
        page.locator("textarea").fill("")
        page.locator("textarea").press("Control+v")
        expect(page.locator("textarea")).to_have_value(text)


def test_text_is_never_html(opened: Open) -> None:
    with opened() as page:
        write(page, "<img src=x onerror=alert(1)> <script>alert(1)</script> the dog")
        assert page.locator("p.text img, p.text script").count() == 0


def test_an_error_is_shown_and_mended(opened: Open) -> None:
    with opened() as page:
        write(page, SENTENCE)
        refusal = 'event: error\ndata: {"error": "Slow down"}\n\n'
        page.route("**/v1/translate", lambda route: route.fulfill(body=refusal))
        page.locator("textarea").fill("The dog")
        expect(page.get_by_role("alert")).to_contain_text("Slow down")
        page.unroute("**/v1/translate")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")


@in_every_look
def test_every_tab_is_accessible(opened: Open, look: dict[str, Any]) -> None:
    run, use = {"en": ("Run", "Use"), "ko": ("학습 기록", "써 보기")}[look["language"]]
    with opened(**look) as page:
        expect(page.get_by_role("tab", name=use)).to_be_visible()
        write(page, TWO)
        accessible(page)
        page.locator(".word").nth(2).click()
        expect(page.locator(".continuations li").first).to_be_visible()
        accessible(page)
        page.keyboard.press("Escape")
        for summary in page.locator("main details:not(.opens) > summary:visible").all():
            summary.click()
        accessible(page)
        page.get_by_role("tab", name=run).click()
        expect(page.locator("pre[role=region]")).to_contain_text("[model]")
        assert page.locator("figure svg").count() >= 3
        assert page.locator(".scores li").count() >= 1
        assert page.locator(".samples li").count() >= 3
        accessible(page)
        fits(page)
        if look["language"] == "en":  # the API is described in one language
            page.get_by_role("link", name="API").click()
            expect(page.get_by_role("heading", name="/v1/translate").first).to_be_visible()
            accessible(page)


def path_of(page: Page, chart: str, which: int) -> str:
    """A curve as it is drawn."""
    figure = page.locator("figure", has_text=chart).first
    return figure.locator("path:not(.raw)").nth(which).get_attribute("d") or ""


def test_curves_smoothed_logarithmic_and_read_out(opened: Open) -> None:
    with opened("#run") as page:
        expect(page.locator("figure svg").first).to_be_visible()
        measured = path_of(page, "Gradient norm", 0)
        page.get_by_role("slider", name="Smoothing").fill("5")
        expect(page.locator("path.raw").first).to_be_visible()
        smoothed = path_of(page, "Gradient norm", 0)
        assert smoothed != measured
        page.get_by_label("Logarithmic axis").uncheck()
        expect(
            page.locator("figure", has_text="Gradient norm").first.get_by_role("application")
        ).to_be_visible()
        assert path_of(page, "Gradient norm", 0) not in (measured, smoothed)
        loss = page.locator("figure", has_text="Loss").first
        loss.get_by_role("application").focus()
        page.keyboard.press("ArrowRight")
        expect(loss.locator(".legend")).to_contain_text("update 1")
        expect(loss.locator(".legend b").first).to_have_text(re.compile(r"^\d\.\d+$"))
        page.wait_for_url("**smooth=0.95**")
        page.reload()
        expect(page.get_by_label("Logarithmic axis")).not_to_be_checked()
        expect(page.locator("path.raw").first).to_be_visible()
        expect(page.locator(".scores code").first).not_to_be_visible()
        page.locator(".scores summary").first.click()
        expect(page.locator(".scores code").first).to_contain_text("nrefs:1|case:mixed")
        page.locator(".term", has_text="BLEU").focus()
        expect(page.get_by_role("tooltip").first).to_contain_text("one to four words")


def test_a_chart_and_its_numbers_are_saved(opened: Open) -> None:
    with opened("#run?v=1&smooth=0.9") as page:
        expect(page.locator("path.raw").first).to_be_visible()
        chart = page.evaluate("fetch('v1/runs/demo').then((one) => one.json())")["charts"][0]
        header, *rows = csv.reader(saved(page, "Numbers (CSV)", chart["title"]).splitlines())
        assert header == ["curve", chart["x_label"], "value", "smoothed"]
        measured = [
            point for one in chart["series"] for point in zip(one["x"], one["y"], strict=True)
        ]
        assert [(float(row[1]), float(row[2])) for row in rows] == measured
        picture = ElementTree.fromstring(saved(page, "Picture (SVG)", chart["title"]))
        lines = [one for one in picture.iter() if one.tag.endswith("}path")]
        assert len(lines) >= len(chart["series"])
        assert all(one.get("fill") == "none" and one.get("stroke") for one in lines)


def test_two_runs_are_compared(opened: Open) -> None:
    """The second is the first with another name, and twice its loss."""

    def runs(route: Route) -> None:
        info = route.fetch().json()
        route.fulfill(json={**info, "runs": [*info["runs"], {**info["runs"][0], "name": "other"}]})

    def other(route: Route) -> None:
        run = route.fetch(url=route.request.url.replace("/other", "/demo")).json()
        for series in run["charts"][0]["series"]:
            series["y"] = [2 * value for value in series["y"]]
        run["scores"][0]["value"] = 12.3
        route.fulfill(json={**run, "name": "other"})

    with opened() as page:
        page.route("**/v1/info", runs)
        page.route("**/v1/runs/other", other)
        page.reload()
        page.get_by_role("tab", name="Run").click()
        page.get_by_label("Beside: other").check()
        expect(page.get_by_text("other: 12.3")).to_be_visible()
        loss = page.locator("figure", has_text="Loss").first
        expect(loss.locator("path")).to_have_count(4)
        loss.get_by_role("application").focus()
        page.keyboard.press("ArrowRight")
        values = [float(one) for one in loss.locator(".legend b").all_inner_texts()]
        assert values[2] == pytest.approx(2 * values[0], rel=0.02)
        expect(loss.locator(".legend")).to_contain_text("other: training")
        accessible(page)


def test_colours_and_language_are_kept(opened: Open) -> None:
    with opened() as page:
        page.get_by_label("Language of this page").select_option("ko")
        expect(page.get_by_role("tab", name="써 보기")).to_be_visible()
        page.get_by_label("색상").select_option("dark")
        page.reload()
        expect(page.get_by_role("tab", name="써 보기")).to_be_visible()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert page.evaluate("document.documentElement.lang") == "ko"
