"""The view of a masked model: the candidates of each blank, put in one by one."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from opening import Open, accessible_and_fits, in_every_look, saved, told
from playwright.sync_api import Page, Route, expect

TEXT = "The ___ eats the ___."
RECIPE = "demo-masked"
SMALL = ("model.model_dim=32", "model.ffn_dim=32", "model.layers=2")


def fill(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Text with blanks").fill(text)
    expect(page.locator("p.text")).to_have_attribute("data-status", "done")


def test_candidates_are_those_of_the_api_and_a_click_asks_the_others_again(opened: Open) -> None:
    with opened() as page:
        expect(page.get_by_role("tab")).to_have_text(["Use", "How it works", "Run"])
        fill(page, TEXT)
        found = told(page, "v1/fill", text=TEXT, top=8)
        shown = [one["chosen"] for one in found["blanks"]]
        expect(page.locator("p.text mark")).to_have_text([f"{shown[0]}1", f"{shown[1]}2"])
        lists = [page.get_by_role("list", name=f"Candidates of blank {n}") for n in (1, 2)]
        for blank, bars in zip(found["blanks"], lists, strict=True):
            expect(bars.locator(".name")).to_have_text([c["text"] for c in blank["candidates"]])
            first = blank["candidates"][0]["probability"]
            width = bars.locator(".bar").first.evaluate("(bar) => bar.style.width")
            assert float(width[:-1]) == pytest.approx(100 * first, abs=0.1)
        numbers = saved(page, "Numbers (CSV)", "Candidates of blank 2").splitlines()
        assert numbers[1].startswith(found["blanks"][1]["candidates"][0]["text"])
        word = found["blanks"][0]["candidates"][3]["text"]
        lists[0].get_by_role("button").nth(3).click()
        one_left = TEXT.replace("___", word, 1)
        expect(page.get_by_role("textbox", name="Text with blanks")).to_have_value(one_left)
        expect(page.locator("p.text mark")).to_have_count(1)
        again = told(page, "v1/fill", text=one_left, top=8)["blanks"][0]["candidates"]
        expect(lists[0].locator(".name")).to_have_text([c["text"] for c in again])
        expect(page.locator(".target")).to_be_focused()
        expect(page.locator(".target [aria-live]")).to_contain_text(f"“{word}” is put in")
        lists[0].get_by_role("button").first.press("Enter")
        whole = one_left.replace("___", again[0]["text"])
        expect(page.locator("p.text")).to_have_text(whole)
        expect(page.get_by_text("No blank is left.")).to_be_visible()
        undo = page.get_by_role("button", name="Undo")
        undo.click()
        expect(page.get_by_role("textbox", name="Text with blanks")).to_have_value(one_left)
        undo.click()
        expect(page.get_by_role("textbox", name="Text with blanks")).to_have_value(TEXT)
        expect(undo).to_have_count(0)
        expect(page.locator("p.text mark")).to_have_count(2)


def test_a_blank_is_put_where_the_cursor_stands_and_may_have_several_pieces(opened: Open) -> None:
    with opened() as page:
        field = page.get_by_role("textbox", name="Text with blanks")
        field.fill("The  sleeps.")
        for _ in range(8):
            field.press("ArrowLeft")
        page.get_by_role("button", name="Blank", exact=True).click()
        expect(field).to_have_value("The ___ sleeps.")
        expect(field).to_be_focused()
        expect(page.locator("p.text mark")).to_have_count(1)
        names = page.get_by_role("list", name="Candidates of blank 1").locator(".name")
        before = names.all_inner_texts()
        page.get_by_role("combobox", name="Pieces of a blank").select_option("2")
        expect(names).not_to_have_text(before)
        page.wait_for_url("**pieces=2**")


def test_an_address_holds_text_and_pieces(opened: Open) -> None:
    with opened(f"#fill?v=1&text={quote(TEXT)}&pieces=3") as page:
        expect(page.get_by_role("textbox", name="Text with blanks")).to_have_value(TEXT)
        expect(page.get_by_role("combobox", name="Pieces of a blank")).to_have_value("3")
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")


def test_an_error_is_said_and_asked_again(opened: Open) -> None:
    with opened() as page:
        page.route("**/v1/fill", lambda route: route.fulfill(body="<p>a proxy's page</p>"))
        page.get_by_role("textbox", name="Text with blanks").fill(TEXT)
        expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached.")
        page.unroute("**/v1/fill")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("p.text mark")).to_have_count(2)
        expect(page.get_by_role("alert")).to_have_count(0)


MANY = "___ " * 40
LONG = "the " * 4500 + "___"
COSTLY = "___ " * 32 + "the " * 700


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (MANY, "too_many_blanks", "빈칸이 {blanks}개입니다. 한 번에 {most}개까지 채우니"),
        (LONG, "too_many_tokens", "글이 토큰 {tokens}개입니다. 한 번에 {most}개까지 읽으니"),
        (COSTLY, "too_costly", "토큰 계산이 최대 {cost}번 필요한데, 한 요청에 {most}번까지"),
    ],
    ids=["blanks", "tokens", "cost"],
)
def test_what_the_server_refuses_is_said_in_korean(
    opened: Open, text: str, code: str, says: str
) -> None:
    """With the numbers of the server, which the page reads from the values of its error."""
    with opened("#fill?v=1&pieces=8", language="ko", refused="status of 400") as page:
        page.get_by_role("textbox").first.fill(text)
        refusal = told(page, "v1/fill", text=text.strip(), top=8, pieces=8)
        assert refusal["code"] == code, refusal
        numbers = {
            name: f"{value:,}" for name, value in refusal["values"].items() if name != "work"
        }
        said = page.get_by_role("alert")
        expect(said).to_contain_text(says.format(**numbers))
        expect(said.locator("[lang=en]")).to_have_count(0)


@pytest.mark.parametrize(
    ("status", "body", "korean", "english"),
    [
        (
            400,
            {
                "error": "Invalid request: top: too large",
                "code": "bad_field",
                "values": {"field": "top", "problem": "too large"},
            },
            "요청의 top 항목이 올바르지 않습니다: ",
            "too large",
        ),
        (400, {"error": "Wait for spring.", "code": "later", "values": {}}, "", "Wait for spring."),
        (429, {"error": "Slow down"}, "지금은 요청이 너무 많습니다.", ""),
        (400, {"error": "Bad luck"}, "", "Bad luck"),
    ],
    ids=["problem", "unknown code", "proxy", "neither"],
)
def test_what_has_no_korean_is_said_as_the_server_says_it(
    opened: Open, status: int, body: dict[str, Any], korean: str, english: str
) -> None:
    with opened(language="ko", refused=f"status of {status}") as page:
        page.route("**/v1/fill", lambda route: route.fulfill(status=status, json=body))
        page.get_by_role("textbox").first.fill(TEXT)
        said = page.get_by_role("alert")
        expect(said).to_contain_text(korean + english)
        expect(said.locator("[lang=en]")).to_have_text([english] if english else [])


def test_what_is_pasted_beyond_the_limit_is_said(opened: Open) -> None:
    """The browser cuts it without a word."""
    with opened() as page:
        field = page.get_by_role("textbox", name="Text with blanks")
        most = int(field.get_attribute("maxlength") or 0)
        note = page.get_by_text(f"A text may have {most:,} characters here")
        field.fill("a" * (most - 1))
        expect(note).to_have_count(0)
        field.press("b")
        expect(note).to_be_visible()
        assert field.evaluate("(one) => one.scrollHeight <= one.clientHeight"), "all can be reached"
        page.get_by_role("button", name="Clear").click()
        expect(note).to_have_count(0)


def test_what_a_blank_looks_at_is_shown(opened: Open) -> None:
    with opened() as page:
        fill(page, TEXT)
        asked: list[Route] = []
        page.route("**/v1/look", lambda route: asked.append(route))
        with page.expect_request("**/v1/look"):
            page.get_by_role("button", name="Look").click()
        while not asked:
            page.wait_for_timeout(20)
        expect(page.get_by_text("Looking…").last).to_be_visible()
        expect(page.get_by_text("Beam")).to_have_count(0)  # nothing is searched for
        asked[0].continue_()
        page.unroute("**/v1/look")
        words = page.locator(".passage .source .w")
        expect(words).to_have_text(["The", "<mask>", "eats", "the", "<mask>", ".", "</s>"])
        expect(words.nth(1)).to_have_attribute("aria-pressed", "true")  # the first blank
        expect(page.locator("#panel-how p.told")).to_contain_text("“<mask>” looked at:")
        seen = told(page, "v1/look", text=TEXT)
        expect(page.locator(".says")).to_contain_text(seen["best"]["text"])
        heads = page.get_by_role("group", name=re.compile("All heads, Encoder"))
        heads.get_by_role("button").nth(1).click()
        page.get_by_role("button", name="Switch this head off").click()
        expect(page.locator(".both .old")).to_have_text(seen["best"]["text"])
        expect(page.locator(".both .new")).to_be_visible()
        accessible_and_fits(page)


@in_every_look
def test_accessible_and_within_the_window(opened: Open, look: dict[str, Any]) -> None:
    with opened(**look) as page:
        page.locator("textarea").fill(TEXT)
        expect(page.locator("p.text")).to_have_attribute("data-status", "done")
        accessible_and_fits(page)
