"""What stands there is the answer to what was asked: an old one is marked while the server is slow,
and gone when it fails or is gone; no link shows another run than it names."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from every_view import PLACES, READY, go
from opening import Open, accessible
from playwright.sync_api import Route, expect

OTHER = "the cat sees a dog ."
ASKED = {
    "translate": "v1/translate", "classify": "v1/classify", "fill": "v1/fill",
    "parse": "v1/parse", "tag": "v1/tag", "look": "v1/look",
}  # fmt: skip
"""What the server is asked in a view."""


def broken(route: Route) -> None:
    error = {"error": "The server failed at this.", "code": "failed", "values": {}}
    route.fulfill(status=500, json=error)


@pytest.mark.parametrize("fails", [Route.abort, broken], ids=["gone", "failed"])
@pytest.mark.parametrize("view", ASKED)
def test_an_old_answer_is_marked_and_goes(
    opened_kinds: Open, view: str, fails: Callable[[Route], None]
) -> None:
    held: list[Route] = []
    text = "a ___ ." if view == "fill" else OTHER
    with opened_kinds(refused="Failed to load") as page:
        go(page, view)
        page.route(f"**/{ASKED[view]}", lambda route: held.append(route))
        field = page.locator("[role=tabpanel]:visible textarea").first
        shown = page.locator(f"[role=tabpanel]:visible {READY[view].split(', ')[0]}")
        if view != "look":
            shown = page.locator("[role=tabpanel]:visible .pane").nth(1).locator("[aria-busy]")
        before = shown.inner_text()
        field.fill(text)
        expect(shown).to_have_attribute("aria-busy", "true")
        page.wait_for_function(DIMMED, arg=shown.element_handle())
        if view == "translate":
            expect(page.get_by_role("button", name="Copy")).to_be_disabled()
        while not held:
            page.wait_for_timeout(20)
        for route in held:
            fails(route)
        expect(page.get_by_role("alert").locator("visible=true")).to_be_visible()
        assert before
        if view == "look":
            expect(shown).to_have_count(0)
        else:
            expect(shown).not_to_contain_text(before)


DIMMED = """one => {
  for (let shown = 1; one; one = one.parentElement) {
    shown *= getComputedStyle(one).opacity;
    const text = one.querySelector('.text');
    if (shown < 0.6 || (text && getComputedStyle(text).opacity < 0.6)) return true;
  }
  return false;
}"""


def test_a_text_as_long_as_the_field_takes_is_translated(opened_kinds: Open) -> None:
    """Where that is too much with all that is asked beside, it is translated alone."""
    sentence = f"{OTHER[:-2]} and " * 5 + "the man sleeps. "
    with opened_kinds(PLACES["translate"], refused="400 (Bad Request)") as page:
        field = page.get_by_label("Text in English")
        most = int(field.get_attribute("maxlength") or 0)
        assert most == page.evaluate("fetch('v1/info').then(r => r.json()).then(i => i.characters)")
        text = (sentence * (most // len(sentence) + 1))[: most - 1] + "."
        field.fill(text)
        panel = page.locator("#panel-use")
        expect(panel.get_by_text("This text is long")).to_be_visible()
        expect(panel.locator("[data-status=done]")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        field.fill(OTHER)
        expect(panel.get_by_text("This text is long")).to_have_count(0)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_link_to_a_run_that_is_not_here_says_so(opened_kinds: Open, language: str) -> None:
    link = f"#translate?run=gone&text={quote(OTHER)}"
    asked: list[str] = []
    with opened_kinds(link, language=language) as page:
        page.on("request", lambda request: asked.append(request.url))
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("gone")
        expect(alert).to_contain_text("translator")
        accessible(page)
        assert page.evaluate("location.hash") == link, "it can be sent on, and opened elsewhere"
        assert not [url for url in asked if url.endswith("/translate")]
        alert.get_by_role("button").click()
        expect(page.locator("#panel-use [data-status=done]")).to_be_visible()
        expect(page.locator("#panel-use textarea")).to_have_value(OTHER)
        expect(alert).to_have_count(0)


def test_from_a_run_that_is_not_here_one_goes_on_to_another_view(opened_kinds: Open) -> None:
    with opened_kinds("#look?run=gone&text=the%20dog") as page:
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_role("tab", name="Run").click()
        expect(page.locator("#panel-run .head h2")).to_have_text("translator")
