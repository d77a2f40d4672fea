"""The view of a run that paints: pictures appear code by code, and tell what they looked at."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opening import Open, accessible_and_fits, in_every_look, opening
from playwright.sync_api import Browser, Page, expect
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run
from warm_server import serving

ANSWER = re.compile("v1/images/generations")
SHOWN = "() => document.getAnimations().every((one) => one.playState === 'finished')"
"""Whether all patches have appeared."""
CAPTION = "#paint?text=a%20red%20block%20above"


@pytest.fixture(scope="module")
def opened(
    chromium: Browser, built: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("blocks")
    trained_run(tiny_recipe_of("painting", folder / "data"), folder / "blocks")
    with serving(folder / "blocks") as address:
        yield opening(chromium, address)


def painted(page: Page, caption: str) -> dict[str, Any]:
    """Type a caption -> what the server answers, once all patches are shown."""
    with page.expect_response(ANSWER) as response:
        page.get_by_label("Caption").fill(caption)
    told: dict[str, Any] = response.value.json()
    page.wait_for_function(SHOWN)
    expect(page.locator(".cells button")).to_have_count(len(told["data"][0]["written"]["codes"]))
    return told


def test_a_caption_is_painted_and_tells_where_it_looked(opened: Open) -> None:
    with opened("#paint") as page:
        told = painted(page, "a red block above")
        written = told["data"][0]["written"]
        shown = page.locator(".framed img").get_attribute("src")
        assert shown == f"data:image/png;base64,{told['data'][0]['b64_json']}"
        patch = page.locator(".cells button").nth(2)
        patch.focus()
        row, column = divmod(2, written["columns"])
        expect(page.locator(".told")).to_contain_text(f"Row {row + 1}, column {column + 1}:")
        words = page.locator(".words button")
        expect(words).to_have_text(told["words"])
        for place, share in enumerate(written["attention"][2]):
            given = words.nth(place).evaluate("(one) => one.style.getPropertyValue('--share')")
            assert float(given) == pytest.approx(share / max(written["attention"][2]))
        words.nth(1).click()
        expect(words.nth(1)).to_have_attribute("aria-pressed", "true")
        looked = [line[1] for line in written["attention"]]
        dimmed = page.locator(".cells button").evaluate_all(
            "(all) => all.map((one) => Number(one.style.getPropertyValue('--dim')))"
        )
        assert dimmed == pytest.approx([0.88 * (1 - one / max(looked)) for one in looked])


def test_arrows_lead_from_patch_to_patch(opened: Open) -> None:
    with opened("#paint") as page:
        columns = painted(page, "a red block above")["data"][0]["written"]["columns"]
        page.locator(".cells button").first.focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator(".cells button").nth(columns)).to_be_focused()
        page.keyboard.press("ArrowRight")
        expect(page.locator(".cells button").nth(columns + 1)).to_be_focused()
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".cells button").nth(columns)).to_be_focused()
        page.keyboard.press("ArrowLeft")  # to the end of the line before
        expect(page.locator(".cells button").nth(columns - 1)).to_be_focused()


def test_others_are_drawn_kept_in_the_address_and_saved(opened: Open) -> None:
    with opened("#paint") as page:
        likeliest = painted(page, "a blue block left")
        with page.expect_response(ANSWER) as response:
            page.get_by_role("button", name="Draw others").click()
        drawn = response.value.json()
        assert response.value.request.post_data_json["seed"] == 1
        expect(page.locator(".others img").last).to_have_attribute(
            "src", f"data:image/png;base64,{drawn['data'][-1]['b64_json']}"
        )
        expect(page).to_have_url(re.compile("seed=1"))
        page.locator(".others button").nth(1).click()
        with page.expect_download() as saved:
            page.get_by_role("button", name="Save as PNG").click()
        kept = base64.b64encode(saved.value.path().read_bytes()).decode()
        assert kept == drawn["data"][1]["b64_json"]
        page.get_by_role("button", name="Most probable").click()
        expect(page.locator(".framed img")).to_have_attribute(
            "src", f"data:image/png;base64,{likeliest['data'][0]['b64_json']}"
        )


def test_an_unknown_word_is_told(opened: Open) -> None:
    with opened("#paint") as page:
        painted(page, "a red zebra")
        expect(page.get_by_text("No caption of the training has “zebra”")).to_be_visible()


def test_its_tab_is_called_by_what_it_does(opened: Open) -> None:
    with opened("#paint", language="ko") as page:
        expect(page.get_by_role("tab")).to_have_text(["써 보기", "작동 원리", "학습 기록"])


@in_every_look
def test_accessible_and_within_the_window(opened: Open, look: dict[str, Any]) -> None:
    with opened(CAPTION, **look) as page:
        expect(page.locator(".cells button").first).to_be_visible()
        page.wait_for_function(SHOWN)
        page.locator("main details:not(.opens) > summary:visible").first.click()
        accessible_and_fits(page)
